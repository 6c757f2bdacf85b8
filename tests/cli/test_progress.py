"""What is said while a command works, and when it is ended from outside."""

import io
import itertools
import re
import signal
import subprocess
import sys
import time

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from cerflow.cli import ended_by_signals
from cerflow.cli.app import app
from cerflow.cli.options import bytes_of
from cerflow.cli.output.reporting import PhaseTimer, Progress, RunSummary, bytes_read
from cerflow.engine.kernels.base import library
from support.signals import let_programs_hear


def test_kernels_that_are_not_there_are_compiled_first(tmp_path, monkeypatch):
    library.load_kernels()
    monkeypatch.setattr(library, "find_library", lambda: None)
    result = CliRunner().invoke(app, ["warmup"])
    assert (result.exit_code, result.stderr) == (0, "")
    (tmp_path / "in.csv").write_text("type\nA\n")
    result = CliRunner().invoke(app, ["run", "-e", "SELECT * WHERE A", "-i", str(tmp_path / "in.csv")])
    assert result.exit_code == 0
    assert re.search(r"s: starting [\d.]+, compiling [\d.]+, reading [\d.]+, recognising \(", result.stderr)
    monkeypatch.setattr(library, "find_library", lambda: True)
    assert CliRunner().invoke(app, ["warmup"]).stderr == "the kernels are compiled already\n"


def test_the_closing_line():
    phases = {"starting": 0.5, "reading": 0.25, "recognising": 2.0, "writing": 0.0}
    assert str(RunSummary(1000, 1, 0, phases, "here")) == (
        "1,000 events, 1 match, 0 bad records; "
        "2.75 s: starting 0.50, reading 0.25, recognising (500 events/s) 2.00, writing 0.00; here"
    )
    watch = PhaseTimer(time.perf_counter() - 3)
    watch.done("starting")
    watch.done("reading")
    assert list(watch.phases) == ["starting", "reading"]
    assert watch.phases["starting"] >= 3


def test_a_bar_shows_how_far_it_is():
    output = io.StringIO()
    show = Progress(Console(file=output, force_terminal=True, width=100))
    show("beginning")
    show.bar("reading", 200, lambda: 50, "B")
    show("reading, 7 matches")
    show.stop()
    assert "beginning" in output.getvalue()
    assert "25%" in output.getvalue()
    assert "reading, 7 matches" in output.getvalue()
    silent = Progress(Console(file=output, force_terminal=False))
    before = output.getvalue()
    silent("reading")
    silent.bar("reading", 1, lambda: 1, "B")
    silent.stop()
    assert output.getvalue() == before


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
def test_what_has_been_read_is_seen(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x" * 100_000)
    total, reached = bytes_read([tmp_path / "a", tmp_path / "b"])
    assert (total, reached()) == (200_000, 0)
    with (tmp_path / "b").open("rb", buffering=0) as file:
        assert reached() == 100_000
        file.read(60_000)
        assert reached() == 160_000
    assert reached() == 160_000


def _ends(number, raised):
    with ended_by_signals():
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            if raised is not None:
                raise raised from None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("raised", [None, RuntimeError, typer.Abort])
def test_a_signal_decides_the_exit_code(monkeypatch, number, raised):
    """Whatever becomes of the exception; typer makes another one of it."""
    monkeypatch.setattr("logging.disable", lambda: None)
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as ended:
            _ends(number, raised)
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    assert ended.value.code == 128 + number


def test_what_fails_without_a_signal_keeps_its_error():
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(ZeroDivisionError), ended_by_signals():
            _ = 1 / 0
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


@pytest.mark.parametrize(
    ("size", "expected"), [("1", 1), ("500 MB", 500_000_000), ("2gb", 2 * 10**9), ("1.5 MiB", 3 << 19), ("64k", 64_000)]
)
def test_sizes_of_memory(size, expected):
    assert bytes_of(size) == expected


@pytest.mark.parametrize("size", ["", "0", "nix", "-1", "2 parsecs", "1e9"])
def test_what_is_no_size(size):
    with pytest.raises(typer.BadParameter, match="is not a size of memory"):
        bytes_of(size)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (["--memory", "20MB"], "bytes so far, more than the 20,000,000 bytes"),
        (["--timeout", "1 second"], "the run takes longer than --timeout allows (1 s)"),
    ],
)
def test_a_run_has_limits(tmp_path, limit, said):
    path, output = tmp_path / "in.csv", tmp_path / "o.jsonl"
    path.write_text("type,v\n" + "".join(f"A,{n}\n" for n in range(3000)))
    query = "SELECT * WHERE (A AS a ; A AS b ; A AS c ; A AS d) FILTER " + " AND ".join(
        f"{x}.v <> {y}.v - 0.5" for x, y in itertools.combinations("abcd", 2)
    )
    given = ["run", "-e", query, "-i", str(path), "-o", str(output)]
    result = CliRunner().invoke(app, [*given, *limit])
    assert result.exit_code == 1, result.stderr
    assert said in result.stderr
    assert not output.exists()
    refused = CliRunner().invoke(app, [*given, *limit, "--runner", "spark"])
    assert refused.exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_ended_leaves_nothing(tmp_path, number):
    path, output = tmp_path / "in.csv", tmp_path / "o.jsonl"
    path.write_text("\n".join(["type", *"A" * 24, "B", ""]))
    output.write_text("old")
    command = [sys.executable, "-c", "from cerflow.cli import main; main()", "run", "-e", "SELECT * WHERE A+ ; B"]
    process = subprocess.Popen([*command, "-i", str(path), "-o", str(output)], stderr=subprocess.PIPE, text=True)
    try:
        while not list(tmp_path.glob(".o.jsonl.*.partial")) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert said.splitlines()[-1] == f"interrupted by {number.name}; no file is left half-written"
    assert "Traceback" not in said
    assert output.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.csv", "o.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_programs_hear_what_the_process_of_tests_ignores(number):
    """As where these tests run in the background."""
    command = f"import signal; print(signal.getsignal({int(number)}) == signal.SIG_IGN)"
    before = signal.signal(number, signal.SIG_IGN)
    try:
        let_programs_hear()
        told = subprocess.run([sys.executable, "-S", "-c", command], capture_output=True, text=True, check=True)
    finally:
        signal.signal(number, before)
    assert told.stdout == "False\n"
