"""Standard streams that the caller has closed, or whose reader has gone."""

import subprocess
import sys

import pytest

from support.runners import ONLY_DEEP

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell of Windows cannot close streams")
EXPLAIN = ["explain", "-e", "SELECT * WHERE A AS x ; B AS y"]


def shell(arguments, rest):
    command = " ".join(f"'{a}'" for a in [sys.executable, "-m", "cerflow", *arguments]) + " " + rest
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)


@pytest.mark.parametrize("output", [["--output", "-"], ["--output", "PATH"]])
def test_run_with_a_closed_output(tmp_path, output):
    (tmp_path / "a.csv").write_text("type\nA\nB\n")
    target = tmp_path / "found.jsonl"
    output = [str(target) if one == "PATH" else one for one in output]
    query = ["run", "-e", "SELECT * WHERE A AS x ; B AS y", "--runner", "local", "--input", str(tmp_path / "a.csv")]
    done = shell([*query, *output], ">&-")
    assert "Traceback" not in done.stderr
    if output[1] == "-":
        assert done.returncode == 1
        assert "error: cannot write to standard output: Bad file descriptor" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert len(target.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("2>&-", 0),
        ("| true", 0),
        (">/dev/full", 1),
        ("<&- >&- 2>&-", 1),
        # Each is closed as above.
        pytest.param(">&-", 1, marks=ONLY_DEEP),
        pytest.param("| head -1", 0, marks=ONLY_DEEP),
    ],
)
def test_explain_without_streams(rest, code):
    done = shell(EXPLAIN, rest)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
