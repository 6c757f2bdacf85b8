"""Where the time of a case goes: ``python -m benchmarks.profiles SUITE CASE [MODE]``, run where cerflow is installed.

Prints the functions of cerflow and Arrow that took most, without what they called. Kernels count as one function each.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from pathlib import Path

from benchmarks.cases import Case, Scale, Stream
from benchmarks.engines import laid_out
from benchmarks.suites import SUITES
from benchmarks.worker import answer

__all__ = ["profile"]

_TICKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "stocks.csv.gz"
_LINES = 15


def profile(case: Case, mode: str) -> pstats.Stats:
    """A profile of one run, after another that loaded everything."""
    request = {"stream": laid_out(case, "encoded"), "query": case.query, "language": case.language, "mode": mode}
    answer(request)
    with cProfile.Profile() as profiler:
        answer(request)
    return pstats.Stats(profiler)


def _main(suite: str, name: str, mode: str = "write") -> None:
    ticks = Stream("stocks", {"path": str(_TICKS)} if _TICKS.exists() else {})
    cases = {case.name: case for case in SUITES[suite](Scale(ticks))}
    if name not in cases:
        sys.exit(f"the cases of {suite} are: {'; '.join(cases)}")
    profile(cases[name], mode).sort_stats("tottime").print_stats(_LINES)


if __name__ == "__main__":
    _main(*sys.argv[1:])
