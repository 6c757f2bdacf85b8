"""Ctrl-C ends ``cerflow stream`` in order: what it found is written, and the next start goes on."""

import json
import signal
import subprocess
import sys
import time

import pytest

from support.runners import ONLY_DEEP
from support.spark.servers import skip_without_java

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.deep]

_PATIENCE = 300.0
QUERY = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 1 SECOND"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGTERM, id="kill", marks=ONLY_DEEP),
    ],
)
def test_a_signal_ends_a_stream_in_order(tmp_path, number):
    skip_without_java()
    (tmp_path / "input").mkdir()
    events = [{"type": "AB"[n % 2], "t": 1000 + 100 * n, "k": n % 3, "v": n} for n in range(30)]
    (tmp_path / "input" / "1.jsonl").write_text("\n".join(map(json.dumps, events)))
    given = ["--input", "input", "--time-column", "t", "--delay", "1 second", "--checkpoint", "state", "--buckets", "2"]
    command = [sys.executable, "-m", "cerflow", "stream", "-e", QUERY, *given, "--master", "local[2]"]
    with (tmp_path / "told").open("w") as told:
        running = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=told, text=True, start_new_session=True
        )
    end = time.monotonic() + _PATIENCE
    while "batch 1: " not in (tmp_path / "told").read_text():
        assert running.poll() is None, (tmp_path / "told").read_text()
        assert time.monotonic() < end, (tmp_path / "told").read_text()
        time.sleep(0.1)
    running.send_signal(number)
    written, _ = running.communicate(timeout=_PATIENCE)
    told = (tmp_path / "told").read_text()
    assert running.returncode == 0, told
    assert "ending the stream" in told
    assert "Traceback" not in told
    assert "Python worker" not in told
    matches = written.splitlines()
    assert f"since the checkpoint began: 30 events, 0 late, 0 bad, {len(matches)} matches" in told
    assert len(matches) > 5
