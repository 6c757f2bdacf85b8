"""Signals end the command with the codes that the manual promises, also before cerflow is imported."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cerflow_command


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_python_imports_the_package_it_runs(tmp_path, name):
    # The package imports this one, which takes until the test is over.
    (tmp_path / "pyarrow.py").write_text("print('begun', flush=True)\ninput()\n")
    path = os.pathsep.join([str(tmp_path), str(Path(cerflow_command.__file__).parent)])
    process = subprocess.Popen(
        [sys.executable, "-m", "cerflow", "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(getattr(signal, name))
    assert process.wait() == 128 + getattr(signal, name)
    assert process.communicate() == (b"", b"")


def _ended(process, number):
    """How a process ended; one that was signalled just before it began to read waits for another signal."""
    while True:
        try:
            return process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.send_signal(number)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("heard", [True, False])
def test_a_signal_while_cerflow_is_imported(tmp_path, name, heard):
    package = tmp_path / "cerflow"
    package.mkdir()
    # Importing this one takes until the test is over.
    (package / "__init__.py").write_text("print('begun', flush=True)\ninput()\n")
    (package / "cli.py").write_text("def main(): print('taken over')\n")
    number = getattr(signal, name)
    path = os.pathsep.join([str(tmp_path), str(Path(cerflow_command.__file__).parent)])
    process = subprocess.Popen(
        [sys.executable, "-c", "from cerflow_command import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        # As it is under nohup.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL if heard else signal.SIG_IGN),
    )
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(number)
    if heard:
        assert _ended(process, number) == 128 + number
        assert process.communicate() == (b"", b"")
    else:
        assert process.communicate(b"\n") == (b"taken over\n", b"")
