"""No operation of kernels on signed integers overflows where LLVM may assume that it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.runners import EXAMPLES

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.deep
@pytest.mark.skipif(EXAMPLES < 1, reason="make test-deep compiles all kernels with tests for overflows")
def test_on_random_queries_over_values_at_the_limits():
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-m", "support.overflows", "150"],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
