"""What is said while a command works, and when it is ended from outside."""

import io
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cerflow.cli.app import app
from cerflow.cli.output.progress import PhaseTimer, Progress, bytes_read
from cerflow.cli.output.reporting import RunSummary
from cerflow.engine.recognize import warmup
from support.signals import let_programs_hear


def test_kernels_are_compiled_with_a_line_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(warmup, "kernels_are_compiled", lambda: False)
    monkeypatch.setattr(warmup, "warm_up", lambda: None)
    result = CliRunner().invoke(app, ["warmup"])
    assert (result.exit_code, result.stderr) == (0, "compiling kernels, once for this machine: 0 s\n")
    (tmp_path / "in.csv").write_text("type\nA\n")
    result = CliRunner().invoke(app, ["run", "-e", "SELECT * WHERE A", "-i", str(tmp_path / "in.csv")])
    assert result.exit_code == 0
    said = result.stderr.splitlines()
    assert said[0] == "compiling kernels, once for this machine: 0 s"
    assert re.search(r"s: starting [\d.]+, compiling [\d.]+, reading [\d.]+, recognising \(", said[1])

    def fail():
        raise OSError("no compiler")

    monkeypatch.setattr(warmup, "warm_up", fail)
    result = CliRunner().invoke(app, ["warmup"])
    assert result.exit_code == 1
    assert result.stderr.startswith("compiling kernels, once for this machine: stopped\n")
    monkeypatch.setattr(warmup, "kernels_are_compiled", lambda: True)
    assert CliRunner().invoke(app, ["warmup"]).stderr == "the kernels are compiled already\n"


def test_the_closing_line():
    phases = {"starting": 0.5, "reading": 0.25, "recognising": 2.0, "writing": 0.0}
    assert str(RunSummary(1000, 1, 0, phases, "here")) == (
        "1,000 events, 1 match, 0 bad records; "
        "2.75 s: starting 0.50, reading 0.25, recognising (500 events/s) 2.00, writing 0.00; here"
    )
    watch = PhaseTimer(time.perf_counter() - 3)
    assert watch.done("starting") >= 3
    watch.done("reading")
    assert list(watch.phases) == ["starting", "reading"]


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
