"""What Spark's processes write to standard error."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cerflow.cli.spark import session
from support.spark.servers import skip_without_java

JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"
CHATTER = "Streaming TransformWithStateInPandas Python worker"


def test_chatter_of_workers_is_left_out(capfd):
    written = f"{JAVA}\none\nStarting {CHATTER}.\n\n{CHATTER} received parameters.\n\nStopped\n\n[Stage 0"
    command = [sys.executable, "-c", f"import sys; sys.stderr.write({written!r})"]
    with session._without_chatter():
        subprocess.run(command, check=True)
    found = ""
    end = time.monotonic() + 20
    while not found.endswith("0") and time.monotonic() < end:
        time.sleep(0.01)
        found += capfd.readouterr().err
    assert found == "one\nStopped\n\n[Stage 0"


def test_a_signal_while_spark_starts_java_ends_java(tmp_path):
    pytest.importorskip("pyspark")
    begun = tmp_path / "begun"
    programs = {
        "bin/java": "echo 'openjdk version \"17.0.1\"' >&2",
        # Java that never says that it is there.
        "bin/spark-submit": f"echo $$ > {begun}.tmp; mv {begun}.tmp {begun}; exec sleep 300",
    }
    (tmp_path / "bin").mkdir()
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    code = (
        "from cerflow.cli import ended_by_signals\n"
        "from cerflow.cli.spark.session import spark_session\n"
        "with ended_by_signals(), spark_session('local[1]', []): pass"
    )
    homes = {"SPARK_HOME": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **homes})
    end = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seconds", [0, 2, 3, 4, 5])
def test_ctrl_c_while_spark_starts_is_one_line(tmp_path, seconds):
    skip_without_java()
    path = tmp_path / "in.csv"
    path.write_text("type\nA\n")
    command = [sys.executable, "-m", "cerflow", "run", "-e", "SELECT * WHERE A", "-i", str(path), "--runner", "spark"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # On a busy machine it takes long until Java is started.
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        time.sleep(0.05)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert (process.returncode, told) == (130, "interrupted by SIGINT; no file is left half-written\n")
