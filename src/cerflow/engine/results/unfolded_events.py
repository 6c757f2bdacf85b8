"""The events of unfolded matches: their stored columns, and which of them have a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
class Unfolded:
    """Matches as flat arrays.

    Match m was detected at ``detected[owner[m]]`` and has the events ``events[offsets[m] : offsets[m + 1]]``.
    ``ends[0, m]`` is the first of them and ``ends[1, m]`` the last, -1 if there are none. Event e is the mark
    ``used[e]``, at ``positions[e]`` with the label set ``labels[e]``; it is there once, however many matches contain
    it. With ``end_detects`` the last event of each match is known to be the one that detected it. ``by_place``, if
    known, has for each place of an event in all matches its label set, and its number in each match.
    """

    detected: Ints
    owner: Smalls
    offsets: Smalls
    events: Smalls
    ends: SmallRows  # (2, matches)
    used: Smalls
    positions: Ints
    labels: Ints
    end_detects: bool = False
    by_place: Sequence[tuple[int, Smalls]] | None = None

    def __len__(self) -> int:
        return len(self.owner)

    def without(self, hidden: Mask) -> Unfolded:
        """The same matches without hidden events; events keep their numbers."""
        shown = ~hidden[self.events]
        offsets = np.append(0, np.cumsum(shown)).astype(np.int32)[self.offsets]
        events = self.events[shown]
        return replace(
            self, offsets=offsets, events=events, ends=ends_of(offsets, events), end_detects=False, by_place=None
        )


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

    def __init__(self, found: Unfolded, sets: Sequence[frozenset[str]], rows: StoredRows) -> None:
        self.found = found
        self.sets = sets
        self.rows = rows
        self._of: dict[str | None, tuple[Smalls, Smalls]] = {}
        self._one_of: dict[str | None, Smalls] = {}

    def having(self, label: str | None) -> Mask:
        """Marks the events with a label; None stands for events with none of the labels that have columns."""
        if label is not None:
            return having_label(label, self.sets, self.found.labels, lambda: self.rows.types)
        found: Mask = np.ones(len(self.found.labels), bool)
        for named in {column.label for column in self.rows.report.flat} - {None}:
            found &= ~self.having(named)
        return found

    def of(self, label: str | None) -> tuple[Smalls, Smalls]:
        """The events with a label: where those of each match begin (and the last end), and the numbers of all."""
        if label not in self._of:
            found, places = self.found, self._places(label)
            if places is not None:
                offsets = len(places) * np.arange(len(found) + 1, dtype=np.int32)
                self._of[label] = offsets, np.stack(places, axis=1).ravel() if places else found.events[:0]
                return self._of[label]
            own = self.having(label)[found.events]
            self._of[label] = np.append(0, np.cumsum(own)).astype(np.int32)[found.offsets], found.events[own]
        return self._of[label]

    def one_of(self, label: str | None) -> Smalls:
        """The number of the event with a label in each match, which has at most one; -1 without one."""
        if label not in self._one_of:
            places = self._places(label)
            self._one_of[label] = places[0] if places is not None and len(places) == 1 else ends_of(*self.of(label))[1]
        return self._one_of[label]

    def _places(self, label: str | None) -> list[Smalls] | None:
        """The numbers of the events at each place that has a label in all matches; None if that is not known."""
        by_place = self.found.by_place
        if by_place is None or label is None or any(TYPE_LABEL in self.sets[labels] for labels, _ in by_place):
            return None
        return [events for labels, events in by_place if label in self.sets[labels]]


def having_label(label: str, sets: Sequence[frozenset[str]], numbers: Ints, types: Callable[[], pa.Array]) -> Mask:
    """Marks the events with a label, by the ``numbers`` of their label sets; the type stands for the placeholder."""
    found = np.array([label in s for s in sets], bool)[numbers]
    open_ = np.array([TYPE_LABEL in s for s in sets], bool)[numbers]
    if open_.any():
        found |= open_ & truths_of(pc.is_in(types(), value_set=array_of_texts([label])))
    return found
