"""Where output goes: what is replaced, what is written into, what is refused, and what is left behind."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cerflow.base import limits
from cerflow.base.errors import OutputError
from cerflow.cli.app import app
from cerflow.cli.output import targets
from cerflow.cli.output.targets import check_writable, open_target

MAIN = [sys.executable, "-c", "from cerflow.cli import main; main()"]


def write(path, content=b"new"):
    with open_target(str(path)) as stream:
        stream.write(content)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def read_fifo(path, found):
    found.append(path.read_bytes())


@pytest.mark.parametrize("output_format", ["jsonl", "csv", "parquet", "orc"])
def test_a_fifo_is_written_into(tmp_path, output_format):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=read_fifo, args=(path, found), daemon=True)
    reader.start()
    arguments = ["generate", "sensors", "-n", "50", "--format", output_format, "--output", str(path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    reader.join(20)
    same = tmp_path / "same"
    CliRunner().invoke(app, [*arguments[:-1], str(same)])
    assert found == [same.read_bytes()]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    real, link, dangling = tmp_path / "there" / "real", tmp_path / "link", tmp_path / "dangling"
    real.write_text("old")
    link.symlink_to("there/real")
    (tmp_path / "far").symlink_to("link")
    write(tmp_path / "far")
    assert real.read_text() == "new"
    dangling.symlink_to("there/absent")
    write(dangling)
    assert (tmp_path / "there" / "absent").read_text() == "new"
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert names(tmp_path / "there") == ["absent", "real"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match=r"'.*loop': Too many levels of symbolic links"):
        check_writable(str(tmp_path / "loop"))
    dangling.unlink()
    dangling.symlink_to("nowhere/absent")
    with pytest.raises(OutputError, match=r"there is no directory '.*nowhere'"):
        check_writable(str(dangling))


def test_mode_and_owner_are_kept(tmp_path):
    path = tmp_path / "o"
    path.write_text("old")
    path.chmod(0o640)
    owner = (4321, 1234) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    write(path)
    found = path.stat()
    assert path.read_text() == "new"
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o640, *owner)


def test_a_new_file_gets_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "o")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "o").stat().st_mode) == 0o640


def test_an_owner_that_cannot_be_kept_is_told(tmp_path, monkeypatch, capsys):
    path = tmp_path / "o"
    path.write_text("old")
    path.chmod(0o4755)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    other = os.stat_result([*path.stat()[:4], 99_999, *path.stat()[5:]])
    monkeypatch.setattr(targets, "_status", lambda _: other)
    write(path)
    assert "belonged to another user" in capsys.readouterr().err
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_what_cannot_be_written_to(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(OutputError, match="it is a socket"):
            check_writable(str(tmp_path / "s"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="a part of its path is not a directory"):
        check_writable(str(tmp_path / "file" / "o.csv"))
    with pytest.raises(OutputError, match="'/dev/fd/99'"), open_target("/dev/fd/99"):
        pass


@pytest.mark.parametrize("output_format", ["jsonl", "csv", "parquet", "orc"])
def test_a_full_device_is_named(tmp_path, output_format):
    path = tmp_path / "full"
    path.symlink_to("/dev/full")
    result = CliRunner().invoke(app, ["generate", "sensors", "--format", output_format, "--output", str(path)])
    assert (result.exit_code, result.stderr) == (1, f"error: cannot write to '{path}': No space left on device\n")
    assert path.is_symlink()


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "o.jsonl"
    path.write_text("old")
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from cerflow.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "generate", "sensors", "-n", "5000", "--output", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"error: cannot write to '{path}': File too large\n")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["o.jsonl"]
    monkeypatch.setattr(limits, "DISK_LOOK_BYTES", 2)
    monkeypatch.setattr(targets.shutil, "disk_usage", lambda _: targets.shutil._ntuple_diskusage(10**9, 10**9, 10))
    with pytest.raises(OutputError, match="its disk has only 0 MiB left"):
        write(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["o.jsonl"]


def test_standard_output(tmp_path):
    def shell(command):
        return subprocess.run(["sh", "-c", command, "sh", *MAIN], capture_output=True, check=False)

    full = shell('"$@" generate sensors > /dev/full')
    assert (full.returncode, full.stderr) == (1, b"error: cannot write to standard output: No space left on device\n")
    path = tmp_path / "o"
    path.write_text("before\n")
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    done = shell(f'"$@" generate sensors -n 3 --format csv --output {link} >> {path}')
    assert (done.returncode, done.stderr) == (0, b"")
    assert path.read_text().startswith("before\ntype,")
    assert len(path.read_text().splitlines()) == 5
    assert link.is_symlink()


def test_what_killed_processes_left_is_removed(tmp_path):
    code = (
        "import sys, time; from cerflow.cli.output.targets import open_target\n"
        "with open_target(sys.argv[1]) as stream: print('open', flush=True); time.sleep(60)"
    )
    path = tmp_path / "o.csv"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        assert [process.stdout.readline() for process in processes] == [b"open\n"] * 2
        assert len(names(tmp_path)) == 2
        processes[0].kill()
        processes[0].wait()
        (tmp_path / ".o.csv.notes.partial").write_text("somebody's own")
        write(path)
        assert [name.split(".")[3].split("-")[0] for name in names(tmp_path)[:2]] == [str(processes[1].pid), "notes"]
        processes[1].send_signal(signal.SIGKILL)
        processes[1].wait()
        write(path)
        assert names(tmp_path) == [".o.csv.notes.partial", "o.csv"]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "in" / "events.csv"
    path.parent.mkdir()
    path.write_text("type\nA\nB\n")
    (tmp_path / "hard.csv").hardlink_to(path)
    (tmp_path / "soft.csv").symlink_to(path)
    (tmp_path / "out.jsonl").symlink_to("/dev/stdout")
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A")
    return path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-i", "in/events.csv", "-o", "in/events.csv"], "that is the input 'in/events.csv'"),
        (["-i", "in/events.csv", "-o", "in/../in/events.csv"], "that is the input"),
        (["-i", "in/events.csv", "-o", "soft.csv"], "that is the input"),
        (["-i", "soft.csv", "-o", "hard.csv"], "that is the input 'soft.csv'"),
        (["-i", "in/*.csv", "-o", "hard.csv"], "that is the input"),
        (["-i", "in", "-o", "in/out.csv"], "in the directory 'in', which is read as a whole"),
        (["-i", "in/events.csv", "--dead-letter", "hard.csv"], "dead letters cannot be written to 'hard.csv'"),
        (["-i", "in/events.csv", "-o", "o.csv", "--dead-letter", "in/../o.csv"], "the matches go there"),
        (["-i", "in/events.csv", "--dead-letter", "-"], "the matches go there"),
        (["-i", "in/events.csv", "--dead-letter", "out.jsonl", "-o", "-"], "the matches go there"),
        (["-i", "in/events.csv", "-o", "q.ceql", "--output-format", "csv"], "'q.ceql', which is read"),
        (["-i", "in/events.csv", "-o", "in", "--output-mode", "overwrite"], "the input 'in/events.csv' is in it"),
        (["-i", "in", "-o", "in/matches", "--output-mode", "append"], "which is read as a whole"),
    ],
)
def test_nothing_is_read_and_written(tmp_path, monkeypatch, stream, arguments, says):
    monkeypatch.chdir(tmp_path)
    if "--dead-letter" in arguments:
        arguments = [*arguments, "--on-bad-record", "dead-letter"]
    if "--output-mode" in arguments:
        arguments = [*arguments, "--output-format", "csv"]
    before = names(tmp_path)
    result = CliRunner().invoke(app, ["run", "q.ceql", *arguments])
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stderr.startswith("error: the ")
    assert stream.read_text() == "type\nA\nB\n"
    assert names(tmp_path) == before


def test_neighbours_are_no_clash(tmp_path, monkeypatch, stream):
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "q.ceql", "--runner", "local", "-i", "in", "--on-bad-record", "dead-letter=/dev/null"]
    arguments += ["-o", "in/_matches.csv"]
    result = CliRunner().invoke(app, [*arguments, "--output-format", "jsonl"])
    assert result.exit_code == 1
    assert "format does not follow from the name '/dev/null'" in result.stderr
    arguments[7] = "dead-letter=in/.dead.jsonl"
    result = CliRunner().invoke(app, [*arguments, "--output-format", "jsonl"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(Path("in/_matches.csv").read_text())["start"] == 0
