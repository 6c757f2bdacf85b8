"""A line of text that shows the number of matches over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.units import MICROSECONDS, TimeUnit

_SIGNS = "▁▂▃▄▅▆▇█"


def sparkline(numbers: np.ndarray[Any, Any]) -> str:
    """A sign for each number, the higher the greater; a space for 0."""
    most = max(1.0, float(numbers.max(initial=0)))
    heights = np.ceil(numbers / most * len(_SIGNS)).astype(int)
    return "".join(_SIGNS[height - 1] if height else " " for height in heights)


class MatchesOverTime:
    """Counts matches in equal stretches of time, from the least to the greatest of the times of a stream."""

    def __init__(self, times: pa.ChunkedArray, unit: TimeUnit | None, stretches: int = 60) -> None:
        bounds = pc.min_max(times)
        self._type = times.type
        self._unit = unit
        self._least, most = (_number(bounds[name]) for name in ("min", "max"))
        self._step = max((most - self._least) / stretches, 1e-9)
        self._ends = bounds["min"], bounds["max"]
        self._counts = np.zeros(stretches)
        self._timeless = False

    def add(self, times: pa.Array, numbers: np.ndarray[Any, Any] | None = None) -> None:
        """Count one match detected at each time, or this many as ``numbers`` say."""
        known = times.is_valid().to_numpy(zero_copy_only=False)
        self._timeless |= not known.all()
        values = time_numbers(times.drop_null()) - self._least
        places = np.clip(values / self._step, 0, len(self._counts) - 1).astype(int)
        weights = np.ones(len(known)) if numbers is None else numbers
        np.add.at(self._counts, places, weights[known])

    def __str__(self) -> str:
        if not self._counts.any():
            return f"matches over time: {'unknown, because their times are not known' if self._timeless else 'none'}"
        most = self._counts.max()
        first, last = (str(end.as_py()) for end in self._ends)
        return (
            f"matches over time: |{sparkline(self._counts)}|\n"
            f"from {first} to {last}, each character covers {self._stretch()}, "
            f"at most {most:,.0f} {'match' if most == 1 else 'matches'}"
        )

    def _stretch(self) -> str:
        unit = self._type.unit if pa.types.is_timestamp(self._type) else self._unit
        if pa.types.is_date(self._type):
            unit = "s"
        if unit is None:
            return f"{self._step:,.0f} events" if self._step >= 1 else "one event"
        shown = str(timedelta(microseconds=round(self._step * float(MICROSECONDS[unit]), -3)))
        return shown.rstrip("0") if "." in shown else shown


def time_numbers(times: pa.Array) -> np.ndarray[Any, Any]:
    """Times as numbers in their unit, dates in seconds."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.int64())
    found: np.ndarray[Any, Any] = times.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _number(time: pa.Scalar) -> float:
    return float(time_numbers(pa.array([time], time.type))[0]) if time.is_valid else 0.0
