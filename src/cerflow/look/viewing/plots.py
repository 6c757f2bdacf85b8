"""Plots of matches with matplotlib, an optional dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from cerflow.base.errors import CerflowError
from cerflow.base.units import PER_SECOND, UNIT_NAMES, TimeUnit
from cerflow.look.viewing.sparkline import time_numbers

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
    return _labelled(axes, label, "matches", said)


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
    return _labelled(axes, name, "matches", said)


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
    return _labelled(axes, "events per match", "matches", said)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise CerflowError("plots need matplotlib, which is not installed: pip install 'cerflow[plots]'") from error
    return pyplot.subplots(figsize=(8, 3.2), layout="constrained")[1]


def _labelled(axes: Axes, x: str, y: str, said: str) -> Axes:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(said, fontsize="medium", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
