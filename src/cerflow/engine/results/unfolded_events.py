"""The events of unfolded matches: their stored columns, and which of them have a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.automata.model.transducer import TYPE_LABEL
from cerflow.base.array_types import Ints, Mask, SmallRows, Smalls
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, one_array, truths_of, values_taken
from cerflow.engine.events.store import StoredEvents
from cerflow.engine.results.report import Report
from cerflow.engine.results.taking import spelt
from cerflow.language.formula import UNNAMED


@dataclass(frozen=True)
class ListedEvents:
    """The events of matches as flat arrays.

    Match m has the events ``events[offsets[m] : offsets[m + 1]]``; ``ends[0, m]`` is the first of them and
    ``ends[1, m]`` the last, -1 if there are none. Event e is the mark ``used[e]``, at ``positions[e]`` with the label
    set ``labels[e]``; it is there once, however many matches contain it.
    """

    offsets: Smalls
    events: Smalls
    ends: SmallRows  # (2, matches)
    used: Smalls
    positions: Ints
    labels: Ints

    def of(self, matches: Ints) -> ListedEvents:
        """The events of some matches, in this order, alone."""
        lengths = np.diff(self.offsets)[matches]
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
        own = self.events[np.repeat(self.offsets[matches] - offsets[:-1], lengths) + np.arange(offsets[-1])]
        used, first, places = np.unique(self.used[own], return_index=True, return_inverse=True)
        kept, events = own[first], places.astype(np.int32)
        return ListedEvents(offsets, events, ends_of(offsets, events), used, self.positions[kept], self.labels[kept])

    def without(self, hidden: Mask) -> ListedEvents:
        """The same without hidden events; events keep their numbers."""
        shown = ~hidden[self.events]
        offsets = np.append(0, np.cumsum(shown)).astype(np.int32)[self.offsets]
        events = self.events[shown]
        return replace(self, offsets=offsets, events=events, ends=ends_of(offsets, events))


@dataclass(frozen=True)
class Place:
    """The events at one place of all matches: their ``positions``, and their label sets or the one of all."""

    positions: Ints
    labels: Any


class Unfolded:
    """Matches, of which m was detected at ``detected[owner[m]]``, with their events, or what lists these when asked.

    With ``end_detects`` the last event of each match is known to be the one that detected it. ``places`` are those of
    the events, if all matches have the same.
    """

    def __init__(
        self,
        detected: Ints,
        owner: Smalls,
        listed: ListedEvents | Callable[[], ListedEvents],
        *,
        end_detects: bool = False,
        places: Sequence[Place] = (),
    ) -> None:
        self.detected = detected
        self.owner = owner
        self.end_detects = end_detects
        self.places = places
        self._listed = listed

    @cached_property
    def listed(self) -> ListedEvents:
        """The events of the matches."""
        return self._listed if isinstance(self._listed, ListedEvents) else self._listed()

    def __len__(self) -> int:
        return len(self.owner)

    def chosen(self, numbers: Ints) -> Unfolded:
        """Some of the matches, in this order, with their events alone."""
        return Unfolded(self.detected, self.owner[numbers], self.listed.of(numbers), end_detects=self.end_detects)

    def without(self, hidden: Mask) -> Unfolded:
        """The same matches without hidden events; events keep their numbers."""
        return Unfolded(self.detected, self.owner, partial(self.listed.without, hidden))


def all_in_one(some: Sequence[Unfolded]) -> Unfolded:
    """The matches of several, one after the other; events that several have are there as often."""
    if len(some) == 1:
        return some[0]
    each = [one.listed for one in some]
    detected = np.cumsum([0, *(len(one.detected) for one in some)], dtype=np.int32)
    marks, events = (
        np.cumsum([0, *sizes], dtype=np.int32) for sizes in zip(*((len(one.used), len(one.events)) for one in each))
    )
    offsets = np.concatenate([[0], *(one.offsets[1:] + at for one, at in zip(each, events))]).astype(np.int32)
    numbers = np.concatenate([one.events + at for one, at in zip(each, marks)])
    parts = ([getattr(one, name) for one in each] for name in ("used", "positions", "labels"))
    listed = ListedEvents(offsets, numbers, ends_of(offsets, numbers), *(np.concatenate(part) for part in parts))
    owner = np.concatenate([one.owner + at for one, at in zip(some, detected)])
    found = np.concatenate([one.detected for one in some])
    return Unfolded(found, owner, listed, end_detects=all(one.end_detects for one in some))


def ends_of(offsets: Smalls, events: Smalls) -> SmallRows:
    """The first and the last event of each match, -1 if it has none."""
    begins, ends = offsets[:-1], offsets[1:]
    # There is no event before the first match, and none after the last one.
    around = np.concatenate([[-1], events, [-1]]).astype(np.int32)
    return np.where(begins < ends, around[[begins + 1, ends]], np.int32(-1))


class StoredRows:
    """The columns of the events at some positions, fetched on demand."""

    def __init__(self, report: Report, kept: StoredEvents, positions: Ints) -> None:
        self.report = report
        self._kept = kept
        self._positions = positions
        self._columns: dict[str, pa.Array] = {}

    @cached_property
    def _source(self) -> tuple[pa.RecordBatch | pa.Table, Ints | None]:
        """Where the columns come from, and the rows there (None: all)."""
        found = self._kept.in_one_piece(self._positions) if len(self._positions) else None
        return (self._kept.at(self._positions), None) if found is None else found

    @cached_property
    def places(self) -> pa.Array:
        """The reported positions, null if there are none."""
        if not self.report.numbered:
            return pa.nulls(len(self._positions), pa.int64())
        column = self.report.position
        return array_of_numbers(self._positions) if column is None else self.column(column).cast(pa.int64())

    @property
    def times(self) -> pa.Array:
        """The times, or else the reported positions."""
        return self.places if self.report.events.time is None else self.column(self.report.events.time)

    @cached_property
    def types(self) -> pa.Array:
        """The names of the types, null for events without one."""
        types = spelt(self.column(self.report.events.type))
        if not self.report.events.untyped:
            return types
        # Events of definitions have types.
        return pc.if_else(pc.equal(types, UNNAMED), pa.scalar(None, types.type), types)

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        if name not in self._columns:
            source, rows = self._source
            values = one_array(source.column(name))
            self._columns[name] = values if rows is None else values_taken(values, rows)
        return self._columns[name]


class UnfoldedEvents:
    """The events of matches; ``sets`` are the label sets that the numbers of ``found`` refer to."""

    def __init__(self, found: Unfolded, sets: Sequence[frozenset[str]], report: Report, kept: StoredEvents) -> None:
        self.found = found
        self.sets = sets
        self._report = report
        self._kept = kept
        self._of: dict[str | None, tuple[Smalls, Smalls]] = {}
        self._one_of: dict[str | None, Smalls] = {}
        self._rows_at: dict[int, StoredRows] = {}
        self._types: dict[int, frozenset[str]] = {}

    @cached_property
    def rows(self) -> StoredRows:
        """The columns of all events."""
        return StoredRows(self._report, self._kept, self.found.listed.positions)

    def rows_at(self, place: int) -> StoredRows | None:
        """The columns of the events at a place, such as -1 for the last ones, for each match; None if it is unknown."""
        places = self.found.places
        if not places:
            return None
        place %= len(places)
        if place not in self._rows_at:
            self._rows_at[place] = StoredRows(self._report, self._kept, places[place].positions)
        return self._rows_at[place]

    def place_of(self, label: str) -> int | None:
        """The only place whose events have a label, which they have in all matches; None if that is not known."""
        found = None
        having, open_ = (np.array([some in s for s in self.sets], bool) for some in (label, TYPE_LABEL))
        for number, place in enumerate(self.found.places):
            own = having[place.labels]
            if found is None and own.all():
                found = number
            elif own.any() or (open_[place.labels].any() and label in self._types_at(number)):
                return None
        return found

    def _types_at(self, place: int) -> frozenset[str]:
        """The types of the events at a place."""
        if place not in self._types:
            rows = self.rows_at(place)
            self._types[place] = frozenset() if rows is None else frozenset(rows.types.unique().to_pylist())
        return self._types[place]

    def having(self, label: str | None) -> Mask:
        """Marks the events with a label; None stands for events with none of the labels that have columns."""
        labels = self.found.listed.labels
        if label is not None:
            return having_label(label, self.sets, labels, lambda: self.rows.types)
        found: Mask = np.ones(len(labels), bool)
        for named in {column.label for column in self._report.flat} - {None}:
            found &= ~self.having(named)
        return found

    def of(self, label: str | None) -> tuple[Smalls, Smalls]:
        """The events with a label: where those of each match begin (and the last end), and the numbers of all."""
        if label not in self._of:
            found = self.found.listed
            own = self.having(label)[found.events]
            self._of[label] = np.append(0, np.cumsum(own)).astype(np.int32)[found.offsets], found.events[own]
        return self._of[label]

    def one_of(self, label: str | None) -> Smalls:
        """The number of the event with a label in each match, which has at most one; -1 without one."""
        if label not in self._one_of:
            self._one_of[label] = ends_of(*self.of(label))[1]
        return self._one_of[label]


def having_label(label: str, sets: Sequence[frozenset[str]], numbers: Ints, types: Callable[[], pa.Array]) -> Mask:
    """Marks the events with a label, by the ``numbers`` of their label sets; the type stands for the placeholder."""
    found = np.array([label in s for s in sets], bool)[numbers]
    open_ = np.array([TYPE_LABEL in s for s in sets], bool)[numbers]
    if open_.any():
        found |= open_ & truths_of(pc.is_in(types(), value_set=array_of_texts([label])))
    return found
