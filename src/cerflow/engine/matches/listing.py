"""Unfolded matches as record batches.

The columns of an event are gathered once for every event of a batch, however many matches contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.automata.model.transducer import TYPE_LABEL
from cerflow.base import limits
from cerflow.base.array_types import Ints, Mask, Smalls
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, nan_as_null, numbers_of, one_array, truths_of
from cerflow.engine.events.store import StoredEvents
from cerflow.engine.matches.graph import Moments
from cerflow.engine.matches.unfolding import Part, Unfolded
from cerflow.engine.results.computed_columns import LabelAttributes
from cerflow.engine.results.report import FlatColumn, Report
from cerflow.engine.results.taking import lists_of_texts, repeated_or_taken, spelt, taken, taken_or_null
from cerflow.language.formula import UNNAMED
from cerflow.language.select import ProjectionKind

#: The number of lists of labels that are made without asking which of them events have.
_FEW_LISTS = 64


class StoredRows:
    """The columns of the events at some positions, fetched on demand."""

    def __init__(self, report: Report, kept: StoredEvents, positions: Ints) -> None:
        self._report = report
        self._kept = kept
        self._positions = positions
        self._columns: dict[str, pa.Array] = {}

    @cached_property
    def _one_piece(self) -> tuple[pa.RecordBatch, pa.Array] | None:
        found = self._kept.in_one_piece(self._positions) if len(self._positions) else None
        return None if found is None else (found[0], array_of_numbers(found[1]))

    @cached_property
    def _table(self) -> pa.Table:
        return self._kept.at(self._positions)

    @cached_property
    def places(self) -> pa.Array:
        """The reported positions, null if there are none."""
        if not self._report.numbered:
            return pa.nulls(len(self._positions), pa.int64())
        column = self._report.position
        return array_of_numbers(self._positions) if column is None else self.column(column).cast(pa.int64())

    @property
    def times(self) -> pa.Array:
        """The times, or else the reported positions."""
        return self.places if self._report.events.time is None else self.column(self._report.events.time)

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        if name not in self._columns:
            if self._one_piece is not None:
                piece, rows = self._one_piece
                self._columns[name] = pc.take(piece.column(name), rows, boundscheck=False)
            else:
                self._columns[name] = one_array(self._table.column(name))
        return self._columns[name]


class Detected:
    """The columns of detections, one row for each of some positions."""

    def __init__(self, report: Report, positions: Ints, part: Part) -> None:
        self._report = report
        moments, among = part.graph.moments, Moments.among(positions)
        self._moments = moments if among.any() else None
        self._positions = positions
        if self._moments is not None:
            positions = positions.copy()
            positions[among] = self._moments.members[Moments.numbers(positions[among])]
        self._rows = StoredRows(report, part.kept, positions)

    def places(self) -> pa.Array:
        """The reported position of each event, null where the clock detected it."""
        shown = None if self._moments is None or not self._report.numbered else self._moments.places
        return self._or(self._rows.places, shown)

    @cached_property
    def times(self) -> pa.Array:
        """The time of each detection."""
        shown = None if self._moments is None else self._moments.times
        return self._or(self._rows.times, shown)

    def _or(self, of_events: pa.Array, of_moments: pa.Array | None) -> pa.Array:
        if of_moments is None:
            return of_events
        numbers, own = Moments.numbers(self._positions), np.arange(len(of_events))
        which = np.where(Moments.among(self._positions), len(of_events) + numbers, own)
        return pa.concat_arrays([of_events, of_moments.cast(of_events.type)]).take(array_of_numbers(which))

    def leading(self) -> list[pa.Array]:
        """The leading columns of a result with a row for each detecting event."""
        places = [self.places()] if self._report.numbered else []
        return [*places, self.times, self.times, *self.keys]

    @cached_property
    def keys(self) -> list[pa.Array]:
        """The partition keys."""
        result = []
        for key in self._report.select.partition:
            target = self._report.key_type(key)
            values = [self._rows.column(self._report.events.column(name)).cast(target) for name in key]
            # Here, too, NaN is null.
            known = [nan_as_null(v) for v in values[:-1]]
            result.append(pc.coalesce(*known, values[-1]) if known else values[0])
        return result


class Listing:
    """The rows of some matches of a part; ``numbers`` are those of the matches, if the query asks for them."""

    def __init__(self, report: Report, found: Unfolded, part: Part, numbers: Ints) -> None:
        self._report = report
        self._numbers = numbers
        self._found = found
        self._part = part
        self._labels = label_sets = part.label_sets
        self._renumbered: Smalls | None = None
        self._made: dict[str, pa.Array] = {}
        self._by_label: dict[str | None, tuple[Smalls, Smalls]] = {}
        if report.select.projection.kind is ProjectionKind.NONE:
            self._labels = [frozenset()] * len(label_sets)
        elif report.keep is not None:
            names = frozenset(item.label for item in report.listed)
            self._labels = [labels & names for labels in label_sets]

    def __len__(self) -> int:
        return len(self._found)

    @cached_property
    def _shown(self) -> Unfolded:
        if self._labels is self._part.label_sets:
            return self._found
        hidden = np.array([not labels for labels in self._labels], bool)[self._found.labels]
        return self._found.without(hidden) if hidden.any() else self._found

    @cached_property
    def _rows(self) -> StoredRows:
        return StoredRows(self._report, self._part.kept, self._shown.positions)

    @cached_property
    def _detected(self) -> Detected:
        return Detected(self._report, self._found.detected, self._part)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The rows with the columns of a schema; see `Report.shown`."""
        make = self._columns(schema)
        return pa.RecordBatch.from_arrays([make[name]() for name in schema.names], schema=schema)

    def _columns(self, schema: pa.Schema) -> dict[str, Callable[[], pa.Array]]:
        report = self._report
        makers: list[Callable[[], pa.Array]] = [partial(self._leading, name) for name in report.leading]
        makers += [partial(self._key, k) for k in range(len(report.select.partition))]
        makers += [partial(self._computed, k) for k in range(len(report.computed))]
        if report.select.projection.has_events:
            makers.append(partial(self._event_lists, schema))
        found = dict(zip(report.schema.names, makers))
        if not set(schema.names) <= set(report.schema.names):
            found |= {column.name: partial(self._flat, column) for column in report.flat}
        return found

    def _leading(self, name: str) -> pa.Array:
        """A place or time of the detecting, the first or the last event of each match, null if there is none."""
        shown, timed = self._shown, name.endswith("time")
        if shown.end_detects and not name.startswith("start"):
            name = "detected_time" if timed else "detected_at"
        if name not in self._made:
            values = self._rows.times if timed else self._rows.places
            if name.startswith("detected") and not shown.end_detects:
                values = self._detected.times if timed else self._detected.places()
                self._made[name] = taken(values, self._found.owner)
            else:
                take = taken if shown.end_detects else taken_or_null
                self._made[name] = take(values, shown.ends[0 if name.startswith("start") else 1])
        return self._made[name]

    def _key(self, k: int) -> pa.Array:
        return taken(self._detected.keys[k], self._found.owner)

    def _computed(self, k: int) -> pa.Array:
        report, found = self._report, self._found
        target = report.schema.field(len(report.leading) + len(report.select.partition) + k).type
        expression = report.computed[k].expression
        return LabelAttributes(report, found, self._part, self._numbers).compute(expression, target)

    def _event_lists(self, schema: pa.Schema) -> pa.Array:
        numbers = self._shown.events
        if pa.types.is_dictionary(schema.field("events").type.value_type):
            if self._renumbered is not None:
                numbers = self._renumbered[numbers]
            values = pa.DictionaryArray.from_arrays(array_of_numbers(numbers), self.events, safe=False)
        else:
            values = self._events_of_matches()
        return pa.ListArray.from_arrays(array_of_numbers(self._shown.offsets), values)

    # -- the flat form ---------------------------------------------------------------------------------------------

    def _flat(self, column: FlatColumn) -> pa.Array:
        offsets, numbers = self._of_label(column.label)
        if column.attribute is not None:
            values = self._rows.column(column.attribute)
        else:
            values = self._rows.places if column.field == "position" else self._types
        if column.several:
            return pa.ListArray.from_arrays(array_of_numbers(offsets), taken(values, numbers))
        sizes = np.diff(offsets)
        assert sizes.max(initial=0) <= 1, f"'{column.label}' has several events in a match"
        at = np.zeros(len(self), np.int32)
        at[sizes == 1] = numbers
        return values.take(array_of_numbers(at, sizes == 0))

    @cached_property
    def _types(self) -> pa.Array:
        types = spelt(self._rows.column(self._report.events.type))
        if not self._report.events.untyped:
            return types
        # Events of definitions have types.
        return pc.if_else(pc.equal(types, UNNAMED), pa.scalar(None, types.type), types)

    def _of_label(self, label: str | None) -> tuple[Smalls, Smalls]:
        """The events with a label: the first event of each match, and the numbers of all."""
        if label in self._by_label:
            return self._by_label[label]
        shown = self._shown
        if label is not None:
            having = self._having(label)
        else:
            named = [self._having(each) for each in {c.label for c in self._report.flat} if each is not None]
            having = ~np.logical_or.reduce([np.zeros(len(shown.labels), bool), *named])
        having = having[shown.events]
        found = np.append(0, np.cumsum(having)).astype(np.int32)[shown.offsets], shown.events[having]
        self._by_label[label] = found
        return found

    def _having(self, label: str) -> Mask:
        return having_label(label, self._labels, self._shown.labels, lambda: self._types)

    # -- lists of events -------------------------------------------------------------------------------------------

    @cached_property
    def events(self) -> pa.StructArray:
        """The events as they are reported."""
        lists, numbers = self._coded_labels
        return self._structs([taken(lists, numbers.astype(np.int32)), self._types], self._plain_fields)

    def _events_of_matches(self) -> pa.StructArray:
        at = self._shown.events
        if len(at) < limits.GATHERED_ROWS:
            return taken(self.events, at)
        texts = repeated_or_taken([self._coded_labels, self._coded_types], at)
        return self._structs(texts, [taken(values, at) for values in self._plain_fields])

    def _structs(self, texts: Sequence[pa.Array], fields: Sequence[pa.Array]) -> pa.StructArray:
        """Events of their labels and types, and of other fields, a position first."""
        places = len(fields) - len(self._report.attributes)
        made = [*fields[:places], *texts, *fields[places:]]
        return pa.StructArray.from_arrays(made, fields=list(self._report.event_type))

    @cached_property
    def _plain_fields(self) -> list[pa.Array]:
        places = [self._rows.places] if self._report.numbered else []
        return [*places, *map(self._attribute, self._report.attributes)]

    @cached_property
    def _coded_types(self) -> tuple[pa.Array, Ints]:
        """Names of types, and the code of each event's type."""
        types = self._rows.column(self._report.events.type)
        few = pa.types.is_dictionary(types.type) and len(types.dictionary) <= len(types)
        encoded = types if few else spelt(types).dictionary_encode()
        return encoded.dictionary.cast(pa.string()), numbers_of(encoded.indices.cast(pa.int64()))

    @cached_property
    def _coded_labels(self) -> tuple[pa.ListArray, Ints]:
        """Lists of labels, sorted, and the number of each event's list; its type stands there for the placeholder."""
        index = numbers = self._shown.labels
        texts: list[list[str]] = [sorted(s - {TYPE_LABEL, UNNAMED}) for s in self._labels]
        open_ = np.array([TYPE_LABEL in s for s in self._labels], bool)
        if open_.any():
            names, codes = self._coded_types
            width = len(names) + 1
            index = np.where(open_[numbers], codes, len(names)) + numbers * width
            used: Sequence[int] = range(len(texts) * width)
            if len(used) > _FEW_LISTS:
                distinct, index = np.unique(index, return_inverse=True)
                used = distinct.tolist()
            spelt_names = names.to_pylist()
            texts = [sorted({*texts[p // width], *spelt_names[p % width :][:1]} - {UNNAMED}) for p in used]
        return lists_of_texts(tuple(map(tuple, texts))), index

    @property
    def keys(self) -> Ints:
        """A number for each event: equal in all listings for the same event with the same label set."""
        return self._shown.positions * len(self._part.label_sets) + self._shown.labels

    def renumber(self, numbers: Smalls, events: pa.StructArray) -> None:
        """Refer to other events; ``numbers`` gives the place of each own event among them."""
        self._renumbered = numbers
        self.events = events

    def _attribute(self, name: str) -> pa.Array:
        values = self._rows.column(name)
        listed = self._report.listed
        if all(i.attributes is None or name in i.attributes for i in listed):
            return values
        wanted = {i.label for i in listed if i.attributes is None or name in i.attributes}
        shows = np.array([bool(s & wanted) for s in self._labels], bool)[self._shown.labels]
        return pc.if_else(pa.array(shows), values, pa.scalar(None, values.type))


def having_label(label: str, sets: Sequence[frozenset[str]], numbers: Ints, types: Callable[[], pa.Array]) -> Mask:
    """Marks the events with a label, by the ``numbers`` of their label sets; the type stands for the placeholder."""
    found = np.array([label in s for s in sets], bool)[numbers]
    open_ = np.array([TYPE_LABEL in s for s in sets], bool)[numbers]
    if open_.any():
        found |= open_ & truths_of(pc.is_in(types(), value_set=array_of_texts([label])))
    return found


def join_dictionaries(listings: Sequence[Listing]) -> None:
    """Let the matches of several listings share one array of events, without repetitions."""
    keys = [listing.keys for listing in listings]
    _, first, which = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    events = pa.concat_arrays([listing.events for listing in listings]).take(array_of_numbers(first))
    ends = np.cumsum([len(k) for k in keys])
    for listing, numbers in zip(listings, np.split(which.astype(np.int32), ends[:-1])):
        listing.renumber(numbers, events)
