"""Matches over time as a line of text, and plots of matches with matplotlib, an optional dependency."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.errors import CerflowError, counted
from cerflow.base.units import MICROSECONDS, PER_SECOND, UNIT_NAMES, TimeUnit

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
        ends = time_numbers(pa.array([bounds["min"], bounds["max"]], times.type).drop_null()).tolist() or [0.0, 0.0]
        self._step = max((ends[1] - ends[0]) / stretches, 1e-9)
        self._edges = ends[0] + self._step * np.arange(stretches + 1)
        self._ends = bounds["min"], bounds["max"]
        self._counts = np.zeros(stretches)
        self._timeless = False

    def add(self, times: pa.Array, numbers: np.ndarray[Any, Any] | None = None) -> None:
        """Count one match detected at each time, or this many as ``numbers`` say."""
        known = times.is_valid().to_numpy(zero_copy_only=False)
        self._timeless |= not known.all()
        values = np.clip(time_numbers(times.drop_null()), self._edges[0], self._edges[-1])
        self._counts += np.histogram(values, self._edges, weights=None if numbers is None else numbers[known])[0]

    def __str__(self) -> str:
        if not self._counts.any():
            return f"matches over time: {'unknown, because their times are not known' if self._timeless else 'none'}"
        most = self._counts.max()
        first, last = (str(end.as_py()) for end in self._ends)
        return (
            f"matches over time: |{sparkline(self._counts)}|\n"
            f"from {first} to {last}, each character covers {self._stretch()}, "
            f"at most {counted(round(most), 'match', 'matches')}"
        )

    def _stretch(self) -> str:
        unit = self._type.unit if pa.types.is_timestamp(self._type) else self._unit
        if pa.types.is_date(self._type):
            unit = "ms"
        if unit is None:
            return f"{self._step:,.0f} events" if self._step >= 1 else "one event"
        shown = str(timedelta(microseconds=round(self._step * float(MICROSECONDS[unit]), -3)))
        return shown.rstrip("0") if "." in shown else shown


def time_numbers(times: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Times as numbers in their unit, dates in milliseconds, NaN for null."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.int64())
    found: np.ndarray[Any, Any] = times.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


if TYPE_CHECKING:
    from matplotlib.axes import Axes

PlotKind = Literal["over_time", "duration", "size"]

_BINS = 100
_COLOUR = "#2f7ed8"
#: Units of durations, the largest first, with their seconds.
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1), ("milliseconds", 1e-3))


def plot_over_time(
    times: pa.Array, numbers: np.ndarray[Any, Any], unit: TimeUnit | None, said: str, ax: Axes | None
) -> Axes:
    """The number of matches in a hundred stretches of the stream; ``numbers`` counts those detected at each time."""
    axes = _axes(ax)
    known = times.is_valid().to_numpy(zero_copy_only=False)
    values = times.drop_null()
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    counts, edges = np.histogram(time_numbers(values), bins=_BINS, weights=numbers[known])
    places: Any = edges
    label = f"time ({UNIT_NAMES[unit]})" if unit else "time"
    if pa.types.is_timestamp(values.type):
        from matplotlib.dates import ConciseDateFormatter

        formatter: Any = ConciseDateFormatter
        places = edges.astype(np.int64).astype(f"datetime64[{values.type.unit}]")
        label = "time (UTC)" if values.type.tz else "time"
    axes.stairs(counts, places, fill=True, color=_COLOUR)
    if places is not edges:
        axes.xaxis.set_major_formatter(formatter(axes.xaxis.get_major_locator()))
    return _labelled(axes, label, said)


def plot_durations(durations: np.ndarray[Any, Any], unit: TimeUnit | None, said: str, ax: Axes | None) -> Axes:
    """The number of matches by their duration, in a unit of time, or in positions if there is none."""
    axes = _axes(ax)
    name = "events from start to end"
    if unit is not None:
        seconds = durations / PER_SECOND[unit]
        longest = float(seconds.max()) if len(seconds) else 0.0
        name, scale = next(((n, s) for n, s in _UNITS if longest >= 2 * s), _UNITS[-1])
        durations, name = seconds / scale, f"duration ({name})"
    axes.hist(durations, bins=_BINS if len(durations) else 1, color=_COLOUR)
    return _labelled(axes, name, said)


def plot_sizes(sizes: np.ndarray[Any, Any], said: str, ax: Axes | None) -> Axes:
    """The number of matches by the number of their events."""
    axes = _axes(ax)
    least, most = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    if most - least <= _BINS:
        counts = np.bincount(sizes - least)
        axes.bar(np.arange(least, most + 1) if len(sizes) else [], counts, color=_COLOUR)
        axes.locator_params(axis="x", integer=True)
    else:
        axes.hist(sizes, bins=_BINS, color=_COLOUR)
    return _labelled(axes, "events per match", said)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise CerflowError("plots need matplotlib, which is not installed: pip install 'cerflow[plots]'") from error
    return pyplot.subplots(figsize=(8, 3.2), layout="constrained")[1]


def _labelled(axes: Axes, x: str, said: str) -> Axes:
    axes.set_xlabel(x)
    axes.set_ylabel("matches")
    axes.set_title(said, fontsize="medium", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
