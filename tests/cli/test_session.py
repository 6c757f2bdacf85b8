"""What Spark's processes write to standard error."""

import subprocess
import sys
import time

from cerflow.cli.spark import session

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
