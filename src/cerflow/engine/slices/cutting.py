"""Where to cut a stream whose events have keys, and which events each slice needs from before its own.

Keys are 64-bit integers that order the events: their times, as windows measure them, or the numbers of their rows. What
is known of them is said of pieces of the stream: parts of partitions, or row groups of files.

A slice of row groups reads all that may have one of its own events or one that lies less than a window before them, so
row groups at borders are read twice; the cut is by key, never between events of the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Floats, Ints
from cerflow.base.arrow_columns import array_of_numbers, nearest_floats, one_array, plain_array, plain_type, truths_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.engine.evaluate.measures import Duration, floats_of, order_of_floats, outside, window_size
from cerflow.engine.evaluate.vectors import plain_numbers
from cerflow.engine.layout import NULL
from cerflow.engine.slices.division import Division
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow

#: Keys before and after all events.
LEAST, GREATEST = -(2**63) + 1, 2**63 - 1


def keys_of(column: pa.Array | pa.ChunkedArray) -> Ints:
    """The keys of times or other numbers, null (the least integer) where there are none.

    Times count units of their type, dates count milliseconds.
    """
    array = plain_array(one_array(column), plain_type(column.type))
    if kind_of(array.type) is ValueKind.FLOAT:
        floats = nearest_floats(array)
        return np.where(np.isnan(floats), NULL, order_of_floats(floats))
    numbers = plain_numbers(array).astype(np.int64, copy=False)
    return np.where(truths_of(array.is_null()), NULL, numbers) if array.null_count else numbers


def values_of(keys: Ints, data_type: pa.DataType) -> pa.Array:
    """The times or numbers of a type that have these keys."""
    values = array_of_numbers(floats_of(keys) if pa.types.is_floating(data_type) else keys)
    return (values.cast(pa.timestamp("ms")) if pa.types.is_date(data_type) else values).cast(data_type)


def duration_of_keys(window: DurationWindow, schema: Schema) -> Duration:
    """A window of time as the keys of a schema's times measure it."""
    data_type = schema.columns.field(str(schema.time)).type
    return Duration(window, schema, data_type.unit if pa.types.is_timestamp(data_type) else "ms")


@dataclass(frozen=True)
class Slice:
    """Events from ``begin`` on are recognised, matches detected in ``[start, stop)`` are reported.

    The places are keys, or numbers of rows. If ``begin`` relies on an event before ``start`` that was found there,
    ``found`` is its place. With a ``home`` all these events are in that partition, and other events from ``begin`` to
    ``start`` change nothing. Where it matters and is known, ``first`` is the position of the first event that is read,
    and ``own`` the number of events from ``start`` on.
    """

    begin: int = LEAST
    start: int = LEAST
    stop: int = GREATEST
    found: int | None = None
    home: int | None = None
    first: int | None = None
    own: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether it reaches to the end of the stream, if places are keys."""
        return self.stop == GREATEST


class Pieces:
    """Facts about pieces of a stream, one element for each, in the order of ``low``.

    All keys of a piece lie in ``[low, high]``; it has ``count`` events and is (a piece of) partition ``part``. At least
    ``sure`` events of it can be used. If a window measures an attribute, ``measure`` is the greatest there, null if
    there is none.
    """

    def __init__(
        self, part: Ints, low: Ints, high: Ints, count: Ints, measure: Ints | None = None, sure: Ints | None = None
    ) -> None:
        order = np.argsort(low, kind="stable")
        self.part, self.low, self.high, self.count = part[order], low[order], high[order], count[order]
        self.measure: Ints = np.full(len(low), NULL) if measure is None else measure[order]
        self.sure: Ints = self.count if sure is None else sure[order]

    @property
    def total(self) -> int:
        """The number of events."""
        return int(self.count.sum())

    def before(self, key: int, part: int | None = None) -> int:
        """The events before a key, which lies in no piece, in one partition or all."""
        own = np.full(len(self.low), True) if key == GREATEST else self.low < key
        assert key == GREATEST or (self.high[own] < key).all(), "pieces lie before the key or after it"
        return int(self.count[own if part is None else own & (self.part == part)].sum())

    @cached_property
    def _reached(self) -> Ints:
        found: Ints = np.maximum.accumulate(self.high)
        return found

    def touching(self, begin: int, stop: int) -> Ints:
        """The pieces that may have events with keys in ``[begin, stop)``."""
        low, high = int(np.searchsorted(self._reached, begin)), int(np.searchsorted(self.low, stop))
        some = np.arange(low, max(low, high))
        return some[self.high[some] >= begin]

    def shares(self, some: Ints, begin: int, stop: int) -> Floats:
        """About how many events of pieces have keys in ``[begin, stop)``, as if they were spread evenly."""
        low = self.low[some].astype(float)
        length = np.maximum(1e-9, self.high[some].astype(float) - low)
        found: Floats = self.count[some] * np.maximum(
            np.clip((stop - low) / length, 0, 1) - np.clip((begin - low) / length, 0, 1), 0.0
        )
        return found

    def counted(self, some: Slice, *, positions: bool) -> Slice:
        """The slice with what is known of its events, as no piece has events on both sides of its begin or start."""
        before = self.before(some.start)
        first = None
        if positions:
            # Before its start, a slice with a home reads only events of that partition.
            first = before - self.before(some.start, some.home) + self.before(some.begin, some.home)
        return replace(some, first=first, own=self.before(some.stop) - before)

    def load(self, slices: Sequence[Slice]) -> float:
        """About how many events are read for these slices."""
        return sum(float(self.shares(self.touching(s.begin, s.stop), s.begin, s.stop).sum()) for s in slices)


class Lookback:
    """How far back the matches of a query go in a stream of which some ``pieces`` are known.

    If a match may be detected by the first event after its window, however late that comes, the ``events`` matter: the
    keys, ascending, of some that are certainly there.
    """

    def __init__(self, division: Division, schema: Schema, pieces: Pieces, events: Ints) -> None:
        self.pieces = pieces
        self._window = division.window
        self._schema = schema
        self._events = events if division.late else None

    def slice(self, start: int, stop: int) -> Slice:
        """The slice of the stream that reports the matches detected in ``[start, stop)``."""
        found: int | None = None
        begin: int | None = None
        if start != LEAST:
            if self._events is not None:
                at = int(np.searchsorted(self._events, start))
                found = self._events[at - 1].item() if at else None
            if self._events is None or found is not None:
                begin = self._first_inside(start if found is None else found)
        if begin is None or begin <= self.pieces.low[0]:
            return Slice(LEAST, start, stop)
        return Slice(min(begin, start), start, stop, found=found)

    def _first_inside(self, key: int) -> int | None:
        """A key such that matches detected at ``key`` or later have no event before it; None if they may have any."""
        window, pieces = self._window, self.pieces
        if isinstance(window, DurationWindow):
            return max(LEAST, int(duration_of_keys(window, self._schema).bounds(np.array([key]))[0]) + 1)
        if isinstance(window, CountWindow):
            # Where the pieces before begin that surely hold the window.
            counts = np.cumsum(np.where(pieces.high < key, pieces.sure, 0)[::-1])
            after = int(np.searchsorted(counts, window.events))
            return None if after == len(counts) else int(pieces.low[len(counts) - 1 - after])
        # The attribute does not decrease: where the first piece begins with a measure inside.
        assert isinstance(window, AttributeWindow)
        known = pieces.measure != NULL
        before = pieces.measure[known & (pieces.high < key)]
        if not len(before):
            return None
        floats = self._schema.kind(window.attribute) is ValueKind.FLOAT
        bound = outside(before.max(keepdims=True), window_size(window, self._schema, "us"), floats=floats)
        return int(pieces.low[np.flatnonzero(known & (pieces.measure > bound[0]))[0]])


def slices_by_key(starts: Sequence[int], lookback: Lookback) -> list[Slice]:
    """The slices of a whole stream of pieces that begin at these keys (ascending).

    The first one always begins with the stream.
    """
    pieces = lookback.pieces
    inner = [start for start in dict.fromkeys(starts) if pieces.low[0] < start <= pieces.high.max()]
    return [lookback.slice(start, stop) for start, stop in pairwise([LEAST, *inner, GREATEST])]


def slices_at_home(lookback: Lookback) -> list[Slice]:
    """The slices of a whole stream of partitions: those with a home, and between them those with events of several.

    They begin where pieces do. Detections from there on depend on one partition alone if no piece of another one
    reaches into the window before. Partitions may come, and return, in any order.
    """
    homes: list[tuple[int, int | None]] = []
    # The keys that any partition has reached, and any but that one.
    first = second = LEAST - 1
    owner: int | None = None
    pieces = lookback.pieces
    lows: list[int] = pieces.low.tolist()
    for low, after, high, part in zip(lows, [*lows[1:], GREATEST], pieces.high.tolist(), pieces.part.tolist()):
        others = second if part == owner else first
        if part == owner:
            first = max(first, high)
        elif high > first:
            first, second, owner = high, first, part
        else:
            second = max(second, high)
        if low == after:
            continue
        # As long as a partition is alone it stays alone.
        alone = bool(homes) and homes[-1][1] == part and others < homes[-1][0]
        home = part if alone or others < lookback.slice(low, after).begin else None
        if not homes or homes[-1][1] != home:
            homes.append((low if homes else LEAST, home))
    found: list[Slice] = []
    for (start, home), (stop, _) in pairwise([*homes, (GREATEST, None)]):
        if home is None:
            found.append(lookback.slice(start, stop))
        else:
            begin = found[-1].start if found and found[-1].home is None else start
            found.append(Slice(begin, start, stop, home=home))
    return found


# -- slices of row groups


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
    least: int | None
    greatest: int | None
    valid: int | None

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the input."""
        return self.file, self.index


@dataclass(frozen=True)
class GroupSlice(Slice):
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
        part, low, high, count, sure = np.array([*facts], np.int64).reshape(-1, 5).T
        super().__init__(part, low, high, count, sure=sure)
        by_end = np.argsort(self.high, kind="stable")
        self._ends: Ints = self.high[by_end]
        self._ended: Ints = np.append(0, np.cumsum(self.sure[by_end]))

    @property
    def certain(self) -> Ints:
        """The keys of events that can certainly be used, ascending."""
        whole = (self.count > 0) & (self.sure == self.count)
        found: Ints = np.unique(np.concatenate([self.low[whole], self.high[whole]]))
        return found

    def ended(self, begin: int) -> int:
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
    known: RowGroups, lookback: Lookback, *, slice_rows: int, cores: int, most_waiting: int
) -> Slices:
    """The slices of a stream, of about ``slice_rows`` events where the window is not too long for that.

    They are chosen so that ``cores`` finish as early as possible, and that at most ``most_waiting`` events wait in one,
    if that is possible; see the result.
    """
    total = known.total
    best = cut_at(known, [], lookback)
    if not total:
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


def _inside(known: RowGroups, number: int) -> list[int]:
    """About ``number`` slices with the same number of events each, wherever they begin."""
    steps = (np.arange(limits.SOURCE_CUT_PLACES) + 0.5) / limits.SOURCE_CUT_PLACES
    low = known.low.astype(float)[:, None]
    keys = (low + (known.high.astype(float)[:, None] - low) * steps).ravel()
    weights = np.repeat(known.count / limits.SOURCE_CUT_PLACES, limits.SOURCE_CUT_PLACES)
    order = np.argsort(keys, kind="stable")
    return _borders(known, np.round(keys[order]).astype(np.int64), weights[order], number, after=0)


def _borders(known: RowGroups, keys: Ints, weights: Floats | Ints, number: int, *, after: int) -> list[int]:
    """The keys that cut events with these weights into as many parts, or those ``after`` them."""
    sums = np.cumsum(weights)
    places = np.searchsorted(sums, sums[-1] * np.arange(1, number) / number, "left") + after
    return sorted({key for key in keys[places[places < len(keys)]].tolist() if key > known.low[0]})


def cut_at(known: RowGroups, borders: Sequence[int], lookback: Lookback) -> Slices:
    """The slices that begin at ``borders``, which ascend, and the one before the first of them."""
    slices = []
    read = waiting = 0
    for cut in slices_by_key(borders, lookback):
        some = known.touching(cut.begin, cut.stop)
        waiting = max(waiting, known.waiting(some, known.shares(some, cut.begin, cut.stop)))
        read += int(known.count[some].sum())
        groups = tuple(known.groups[k] for k in some.tolist())
        slices.append(GroupSlice(**vars(cut), groups=groups, before=known.ended(cut.begin)))
    return Slices(tuple(slices), read, waiting)
