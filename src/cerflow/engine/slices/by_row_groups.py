"""Where to cut a stream in row groups, by facts about each that are known without reading it.

A slice reports the matches detected at its own events. It reads all row groups that may have one of these or one that
lies less than a window before them, so row groups at borders are read twice; the cut is by key, never between events
of the same key. Keys are whole numbers (of the units of a timestamp, of milliseconds for dates) or floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Floats, Ints
from cerflow.base.arrow_columns import array_of_numbers, numbers_of
from cerflow.base.units import DAY, UNIT_NAMES
from cerflow.engine.evaluate.measures import first_inside
from cerflow.engine.slices.by_keys import Keys, Slice, last_key_before, last_piece_before

#: Whole numbers or floats.
Key = int | float


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
class GroupSlice(Slice[Key | None]):
    """A slice by keys, with the row groups that it reads.

    None means unbounded. ``groups`` have to be read, in the order of their least keys. ``before`` is the number
    of events before those that are read and not dropped, as far as ``valid`` is known of all groups.
    """

    groups: tuple[RowGroup, ...]
    before: int


@dataclass(frozen=True)
class GroupLookback:
    """How far back matches go: keys that are less than ``width`` lower, or ``events`` events.

    With ``late`` the width ends with the last event before the one that detects, see `LateLookback`.
    """

    width: Fraction | None = None
    events: int = 0
    late: bool = False


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


class RowGroups:
    """The row groups as arrays, in the order of their least keys."""

    def __init__(self, groups: Sequence[RowGroup]) -> None:
        ordered = sorted(groups, key=lambda group: (group.least, group.place))
        self.groups = ordered
        self.least: Keys = np.array([group.least for group in ordered])
        self.greatest: Keys = np.array([group.greatest for group in ordered])
        self.rows: Ints = np.array([group.rows for group in ordered], np.int64)
        #: Events that are certainly there.
        self.valid: Ints = np.array([group.valid or 0 for group in ordered], np.int64)
        self.reached: Keys = np.maximum.accumulate(self.greatest)
        by_end = np.argsort(self.greatest, kind="stable")
        self.ends: Keys = self.greatest[by_end]
        self.ended: Ints = np.append(0, np.cumsum(self.valid[by_end]))
        #: Keys of events that can certainly be used, ascending.
        whole = (self.rows > 0) & (self.valid == self.rows)
        self.found: Keys = np.unique(np.concatenate([self.least[whole], self.greatest[whole]]))

    def touching(self, begin: Key | None, stop: Key | None) -> Ints:
        """The row groups that may have events with keys in ``[begin, stop)``."""
        low = 0 if begin is None else int(np.searchsorted(self.reached, begin, "left"))
        high = len(self.groups) if stop is None else int(np.searchsorted(self.least, stop, "left"))
        some = np.arange(low, max(low, high))
        return some if begin is None else some[self.greatest[some] >= begin]

    def earliest(self, start: Key, lookback: GroupLookback) -> Key | None:
        """From where on events must be read for what is detected from ``start`` on; None from the beginning."""
        if lookback.width is not None:
            end = self.found_before(start) if lookback.late else start
            return None if end is None else first_inside(end, lookback.width)
        first = last_piece_before(start, self.least, self.greatest, self.valid, lookback.events)
        found: Key | None = None if first is None else self.least[first].item()
        return found

    def found_before(self, start: Key) -> Key | None:
        """The key of the last event before ``start`` of which it is known that it is there."""
        return last_key_before(start, self.found)

    def before(self, begin: Key | None) -> int:
        """The events of row groups that end before ``begin``."""
        return 0 if begin is None else int(self.ended[np.searchsorted(self.ends, begin, "left")])

    def share(self, some: Ints, begin: Key | None, stop: Key | None) -> Floats:
        """About how many events of row groups have keys in ``[begin, stop)``, as if they were spread evenly."""
        least = self.least.astype(float)[some]
        length = np.maximum(1e-9, self.greatest.astype(float)[some] - least)
        low = 0.0 if begin is None else np.clip((begin - least) / length, 0, 1)
        high = 1.0 if stop is None else np.clip((stop - least) / length, 0, 1)
        found: Floats = self.rows[some] * np.maximum(high - low, 0.0)
        return found

    def waiting(self, some: Ints, shares: Floats) -> int:
        """About how many of these events are in memory at a time, waiting for others that may come before them."""
        order = np.argsort(self.greatest[some], kind="stable")
        gone = np.append(0, np.cumsum(shares[order]))
        read = np.cumsum(shares)
        edges = np.append(self.least[some][1:], np.inf)
        # Groups that end before the next one begins are done; the one being read continues in batches if it can.
        left = read - gone[np.searchsorted(self.greatest[some][order], edges, "right")]
        return int(left.max(initial=0))


def slices_of_row_groups(
    groups: Sequence[RowGroup], lookback: GroupLookback | None, *, slice_rows: int, cores: int, most_waiting: int
) -> Slices:
    """The slices of a stream, of about ``slice_rows`` events where the window is not too long for that.

    Without ``lookback`` there is one. All row groups must have bounds. Slices are chosen so that ``cores`` finish as
    early as possible, and that at most ``most_waiting`` events wait in one, if that is possible; see the result.
    """
    known = RowGroups(groups)
    total = int(known.rows.sum())
    best = cut_at(known, [], lookback)
    if lookback is None or not total:
        return best
    most = max(1, total // slice_rows)
    best_cost = _cost(best, total, cores, most_waiting)
    halves = {most >> k for k in range(most.bit_length())}
    # This many that all cores have the same to do.
    even = {k * cores for k in range(1, limits.SOURCE_CUT_ROUNDS + 1) if k * cores <= most}
    for number in sorted((halves | even) - {1}):
        for borders in (_between(known, number), _inside(known, number)):
            found = cut_at(known, borders, lookback)
            cost = _cost(found, total, cores, most_waiting)
            if cost < best_cost:
                best, best_cost = found, cost
    return best


def _cost(found: Slices, total: int, cores: int, most_waiting: int) -> tuple[bool, float]:
    """The cost of slices: first whether they exceed the memory, then their time in passes over the stream."""
    number = len(found.slices)
    at_once = min(number, cores)
    # The last ones leave cores without work, by their number and as some take longer than others.
    uneven = -(-number // at_once) * at_once / number * (1 + 0.25 * at_once / number if number > 1 else 1.0)
    return found.most_waiting > most_waiting, (found.rows_read + total) / total / at_once * uneven


def _between(known: RowGroups, number: int) -> list[Key]:
    """About ``number`` slices that begin where row groups do."""
    sums = np.cumsum(known.rows)
    places = np.searchsorted(sums, sums[-1] * np.arange(1, number) / number, "left") + 1
    return sorted(set(known.least[places[places < len(sums)]].tolist()) - {known.least[0].item()})


def _inside(known: RowGroups, number: int) -> list[Key]:
    """About ``number`` slices with the same number of events each, wherever they begin."""
    steps = (np.arange(limits.SOURCE_CUT_PLACES) + 0.5) / limits.SOURCE_CUT_PLACES
    least = known.least.astype(float)[:, None]
    keys = (least + (known.greatest.astype(float)[:, None] - least) * steps).ravel()
    weights = np.repeat(known.rows / limits.SOURCE_CUT_PLACES, limits.SOURCE_CUT_PLACES)
    order = np.argsort(keys, kind="stable")
    sums = np.cumsum(weights[order])
    places = np.searchsorted(sums, sums[-1] * np.arange(1, number) / number, "left")
    found = keys[order][np.minimum(places, len(keys) - 1)]
    exact = found if known.least.dtype.kind == "f" else np.round(found).astype(np.int64)
    return sorted({key for key in exact.tolist() if key > known.least[0]})


def cut_at(known: RowGroups, borders: Sequence[Key], lookback: GroupLookback | None) -> Slices:
    """The slices that begin at ``borders``, which ascend, and the one before the first of them."""
    slices = []
    read = waiting = 0
    for start, stop in zip([None, *borders], [*borders, None]):
        begin = None if start is None or lookback is None else known.earliest(start, lookback)
        some = known.touching(begin, stop)
        shares = known.share(some, begin, stop)
        waiting = max(waiting, known.waiting(some, shares))
        read += int(known.rows[some].sum())
        groups = tuple(known.groups[k] for k in some.tolist())
        late = begin is not None and lookback is not None and lookback.late
        found = known.found_before(start) if late and start is not None else None
        slices.append(GroupSlice(begin, start, stop, groups, known.before(begin), found=found))
    return Slices(tuple(slices), read, waiting)


def is_orderly(data_type: pa.DataType) -> bool:
    """Whether the values of a type can be ordered as numbers here, as statistics order them."""
    return bool(
        pa.types.is_signed_integer(data_type)
        or pa.types.is_uint8(data_type)
        or pa.types.is_uint16(data_type)
        or pa.types.is_uint32(data_type)
        or pa.types.is_timestamp(data_type)
        or pa.types.is_date32(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
    )


def keys_of(column: pa.Array) -> Keys:
    """The values of a column of such a type; NaN for null floats, anything for other nulls."""
    if pa.types.is_floating(column.type):
        floats: Floats = numbers_of(column.cast(pa.float64()), np.nan)
        return floats
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("ms"))
    integers: Ints = numbers_of(column.cast(pa.int64()))
    return integers


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
        return float(raw) if isinstance(raw, float) else None
    if not isinstance(raw, int):
        return None
    if pa.types.is_date32(data_type):
        return raw * (DAY // 1000)
    if pa.types.is_timestamp(data_type):
        stored = _stored_unit(statistics)
        if stored is None:
            return None
        # Arrow reads seconds, say, that are stored as milliseconds.
        found = array_of_numbers(np.array([raw])).cast(pa.timestamp(stored))
        return int(keys_of(found.cast(pa.timestamp(data_type.unit), safe=False))[0])
    if pa.types.is_unsigned_integer(data_type) and raw < 0:
        return raw + (1 << 32)
    return raw


def _stored_unit(statistics: Any) -> str | None:
    text = statistics.logical_type.to_json()
    return next((unit for unit, name in UNIT_NAMES.items() if f'"{name}"' in text), None)
