"""The suites of cases: what is measured of cerflow and its peers."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.cases import Case, Scale
from benchmarks.suites import cel, core, dataframes, everyday, large, scale, srt

__all__ = ["SUITES"]

#: The suites by name, in the order in which they are run.
SUITES: dict[str, Callable[[Scale], list[Case]]] = {
    "core": core.cases,
    "srt": srt.cases,
    "cel": cel.cases,
    "scale": scale.cases,
    "dataframes": dataframes.cases,
    "everyday": everyday.cases,
    "large": large.cases,
}
