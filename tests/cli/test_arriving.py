"""A process that writes a line gets the match before it writes the next."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "cerflow", "run", "-e", "SELECT b.v AS v WHERE A ; B AS b", "--time-column", "t"]


@pytest.mark.parametrize(
    ("kind", "first", "form"),
    [
        ("json", [b'{"type": "A", "t": 0, "v": 0}\n'], b'{"type": "B", "t": %d, "v": %d}\n'),
        ("csv", [b"type,t,v\n", b"A,0,0\n"], b'"B",%d,%d\n'),
    ],
)
def test_a_match_is_written_when_its_line_has_come(kind, first, form):
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "--input", "-", "--input-format", kind], bufsize=0, **options) as process:
        try:
            for line in first:
                process.stdin.write(line)
            for number in range(1, 4):
                process.stdin.write(form % (number, number))
                # Waits for ever if the match waits for the next line.
                assert json.loads(process.stdout.readline())["v"] == number
            process.stdin.close()
            assert process.wait() == 0
            assert b"4 events, 3 matches" in process.stderr.read()
        finally:
            process.kill()


def test_a_wrong_time_is_told_when_the_first_line_has_come():
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [*COMMAND, "--input", "-", "--input-format", "json", "--until", "soon"]
    with subprocess.Popen(command, bufsize=0, **options) as process:
        try:
            process.stdin.write(b'{"type": "A", "t": 0, "v": 0}\n')
            assert process.wait(60) == 1
            assert b"'soon' is not a time of the column 't'" in process.stderr.read()
        finally:
            process.kill()
