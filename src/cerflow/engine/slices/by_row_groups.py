"""Where to cut a stream in row groups, by facts about each that are known without reading it.

A slice reports the matches detected at its own events. It reads all row groups that may have one of these or one that
lies less than a window before them, so row groups at borders are read twice; the cut is by key, never between events
of the same key. Keys are whole numbers (of the units of a timestamp, of milliseconds for dates) or floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Floats, Ints
from cerflow.base.arrow_columns import array_of_numbers
from cerflow.base.units import DAY, UNIT_NAMES
from cerflow.engine.evaluate.vectors import plain_numbers
from cerflow.engine.slices.by_keys import Key, Keys, Lookback, Pieces, Slice, slices_by_key


@dataclass(frozen=True)
class RowGroup:
    """A row group: number ``index`` of file number ``file``, whose rows before it are ``first``.

    ``least`` and ``greatest`` bound the keys of its events that have one; both are None if nothing is known. ``valid``
    is the number of events with a type and a time, None if that is not known without reading them.
    """

    file: int
    index: int
    first: int
    rows: int
    least: Key | None
    greatest: Key | None
    valid: int | None

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the input."""
        return self.file, self.index


@dataclass(frozen=True)
class GroupSlice(Slice[Any]):
    """A slice by keys, with the row groups that it reads.

    ``groups`` have to be read, in the order of their least keys. ``before`` is the number of events before those that
    are read and not dropped, as far as ``valid`` is known of all groups.
    """

    groups: tuple[RowGroup, ...] = ()
    before: int = 0


@dataclass(frozen=True)
class Slices:
    """The slices of a stream, and what was taken into account: rows read in all of them, rows that wait at most."""

    slices: tuple[GroupSlice, ...]
    rows_read: int
    most_waiting: int

    @property
    def again(self) -> float:
        """The share of the events that is read more than once, or how many times all are."""
        rows = sum({group.place: group.rows for some in self.slices for group in some.groups}.values())
        return (self.rows_read - rows) / rows if rows else 0.0


class RowGroups(Pieces):
    """Row groups with bounds as pieces, in the order of their least keys."""

    def __init__(self, groups: Sequence[RowGroup]) -> None:
        self.groups = sorted(groups, key=lambda group: (group.least, group.place))
        facts = ((g.file, g.least, g.greatest, g.rows, g.valid or 0) for g in self.groups)
        part, low, high, count, sure = map(np.array, zip(*facts)) if groups else [np.zeros(0, np.int64)] * 5
        super().__init__(part, low, high, count, sure=sure)
        by_end = np.argsort(self.high, kind="stable")
        self._ends: Keys = self.high[by_end]
        self._ended: Ints = np.append(0, np.cumsum(self.sure[by_end]))

    @property
    def certain(self) -> Keys:
        """The keys of events that can certainly be used, ascending."""
        whole = (self.count > 0) & (self.sure == self.count)
        found: Keys = np.unique(np.concatenate([self.low[whole], self.high[whole]]))
        return found

    def ended(self, begin: Key) -> int:
        """The events of row groups that end before ``begin``."""
        return int(self._ended[np.searchsorted(self._ends, begin, "left")])

    def waiting(self, some: Ints, shares: Floats) -> int:
        """About how many of these events are in memory at a time, waiting for others that may come before them."""
        order = np.argsort(self.high[some], kind="stable")
        gone = np.append(0, np.cumsum(shares[order]))
        read = np.cumsum(shares)
        edges = np.append(self.low[some][1:], np.inf)
        # Groups that end before the next one begins are done; the one being read continues in batches if it can.
        left = read - gone[np.searchsorted(self.high[some][order], edges, "right")]
        return int(left.max(initial=0))


def slices_of_row_groups(
    known: RowGroups, lookback: Lookback | None, *, slice_rows: int, cores: int, most_waiting: int
) -> Slices:
    """The slices of a stream, of about ``slice_rows`` events where the window is not too long for that.

    Without ``lookback`` there is one. Slices are chosen so that ``cores`` finish as early as possible, and that at most
    ``most_waiting`` events wait in one, if that is possible; see the result.
    """
    total = known.total
    best = cut_at(known, [], lookback)
    if lookback is None or not total:
        return best
    most = max(1, total // slice_rows)
    # Halves, and as many that all cores have the same to do; they begin where row groups do, or anywhere.
    numbers = {most >> k for k in range(most.bit_length())}
    numbers |= {k * cores for k in range(1, limits.SOURCE_CUT_ROUNDS + 1) if k * cores <= most}
    tried = [
        cut_at(known, borders, lookback)
        for number in sorted(numbers - {1})
        for borders in (_borders(known, known.low, known.count, number, after=1), _inside(known, number))
    ]
    return min([best, *tried], key=lambda found: _cost(found, total, cores, most_waiting))


def _cost(found: Slices, total: int, cores: int, most_waiting: int) -> tuple[bool, float]:
    """The cost of slices: first whether they exceed the memory, then their time in passes over the stream."""
    number = len(found.slices)
    at_once = min(number, cores)
    # The last ones leave cores without work, by their number and as some take longer than others.
    uneven = -(-number // at_once) * at_once / number * (1 + 0.25 * at_once / number if number > 1 else 1.0)
    return found.most_waiting > most_waiting, (found.rows_read + total) / total / at_once * uneven


def _inside(known: RowGroups, number: int) -> list[Key]:
    """About ``number`` slices with the same number of events each, wherever they begin."""
    steps = (np.arange(limits.SOURCE_CUT_PLACES) + 0.5) / limits.SOURCE_CUT_PLACES
    low = known.low.astype(float)[:, None]
    keys = (low + (known.high.astype(float)[:, None] - low) * steps).ravel()
    weights = np.repeat(known.count / limits.SOURCE_CUT_PLACES, limits.SOURCE_CUT_PLACES)
    order = np.argsort(keys, kind="stable")
    exact = keys if known.low.dtype.kind == "f" else np.round(keys).astype(np.int64)
    return _borders(known, exact[order], weights[order], number, after=0)


def _borders(known: RowGroups, keys: Keys, weights: Floats | Ints, number: int, *, after: int) -> list[Key]:
    """The keys that cut events with these weights into as many parts, or those ``after`` them."""
    sums = np.cumsum(weights)
    places = np.searchsorted(sums, sums[-1] * np.arange(1, number) / number, "left") + after
    return sorted({key for key in keys[places[places < len(keys)]].tolist() if key > known.low[0]})


def cut_at(known: RowGroups, borders: Sequence[Key], lookback: Lookback | None) -> Slices:
    """The slices that begin at ``borders``, which ascend, and the one before the first of them."""
    slices = []
    read = waiting = 0
    for cut in slices_by_key(borders, lookback or Lookback(lambda key: None), known):
        some = known.touching(cut.begin, cut.stop)
        waiting = max(waiting, known.waiting(some, known.shares(some, cut.begin, cut.stop)))
        read += int(known.count[some].sum())
        groups = tuple(known.groups[k] for k in some.tolist())
        slices.append(GroupSlice(**vars(cut), groups=groups, before=known.ended(cut.begin)))
    return Slices(tuple(slices), read, waiting)


def is_orderly(data_type: pa.DataType) -> bool:
    """Whether the values of a type can be ordered as numbers here, as statistics order them."""
    whole = pa.types.is_integer(data_type) and data_type != pa.uint64()
    real = pa.types.is_float32(data_type) or pa.types.is_float64(data_type)
    return bool(whole or real or pa.types.is_timestamp(data_type) or pa.types.is_date32(data_type))


def extremes_of(statistics: Any, data_type: pa.DataType) -> tuple[Key, Key] | None:
    """The least and greatest key that the statistics of a column chunk allow; None if they say nothing of it.

    ``data_type`` is the type in which the column is read.
    """
    if statistics is None or not statistics.has_min_max:
        return None
    low, high = (_key(value, statistics, data_type) for value in (statistics.min_raw, statistics.max_raw))
    return None if low is None or high is None or not low <= high else (low, high)


def _key(raw: Any, statistics: Any, data_type: pa.DataType) -> Key | None:
    if pa.types.is_floating(data_type):
        # Infinite keys have no distance from others, by which slices are cut.
        return float(raw) if isinstance(raw, float) and math.isfinite(raw) else None
    if not isinstance(raw, int):
        return None
    if pa.types.is_date32(data_type):
        return raw * (DAY // 1000)
    if pa.types.is_timestamp(data_type):
        text = statistics.logical_type.to_json()
        stored = next((unit for unit, name in UNIT_NAMES.items() if f'"{name}"' in text), None)
        if stored is None:
            return None
        # Arrow reads seconds, say, that are stored as milliseconds.
        found = array_of_numbers(np.array([raw])).cast(pa.timestamp(stored))
        return int(plain_numbers(found.cast(pa.timestamp(data_type.unit), safe=False))[0])
    if pa.types.is_unsigned_integer(data_type) and raw < 0:
        return raw + (1 << 32)
    return raw
