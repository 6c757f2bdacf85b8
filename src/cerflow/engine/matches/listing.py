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
from cerflow.base.array_types import Ints, Smalls
from cerflow.base.arrow_columns import array_of_numbers, nan_as_null, numbers_of
from cerflow.engine.matches.graph import Moments
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.computed_columns import ComputedColumns
from cerflow.engine.results.report import FlatColumn, Report
from cerflow.engine.results.taking import lists_of_texts, repeated_or_taken, spelt, taken, taken_or_null
from cerflow.engine.results.unfolded_events import StoredRows, Unfolded, UnfoldedEvents
from cerflow.language.formula import UNNAMED
from cerflow.language.select import ProjectionKind

#: The number of lists of labels that are made without asking which of them events have.
_FEW_LISTS = 64


class Detected:
    """The columns of detections, one row for each of some positions."""

    def __init__(self, report: Report, positions: Ints, part: Part) -> None:
        self._report = report
        self._positions = positions
        among = Moments.among(positions)
        self._moments = part.graph.moments if among.any() else None
        if self._moments is not None:
            positions = positions.copy()
            positions[among] = self._moments.members[Moments.numbers(positions[among])]
        self._rows = StoredRows(report, part.kept, positions)

    @cached_property
    def places(self) -> pa.Array:
        """The reported position of each event, null where the clock detected it."""
        shown = None if self._moments is None or not self._report.numbered else self._moments.places
        return self._or(self._rows.places, shown)

    @cached_property
    def times(self) -> pa.Array:
        """The time of each detection."""
        return self._or(self._rows.times, None if self._moments is None else self._moments.times)

    def _or(self, of_events: pa.Array, of_moments: pa.Array | None) -> pa.Array:
        if of_moments is None:
            return of_events
        number, among = Moments.numbers(self._positions), Moments.among(self._positions)
        which = np.where(among, len(of_events) + number, np.arange(len(of_events)))
        return pa.concat_arrays([of_events, of_moments.cast(of_events.type)]).take(array_of_numbers(which))

    def leading(self) -> list[pa.Array]:
        """The leading columns of a result with a row for each detecting event."""
        places = [self.places] if self._report.numbered else []
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
        self._part = part
        self._numbers = numbers
        self._made: dict[tuple[str, bool], pa.Array] = {}
        #: All events of the matches, as computed columns see them, and what is shown of them.
        self._all = self._shown = UnfoldedEvents(found, part.label_sets, report, part.kept)
        detects_only = report.select.projection.kind is ProjectionKind.NONE
        if detects_only or report.keep is not None:
            names = frozenset(() if detects_only else (item.label for item in report.listed))
            sets = [labels & names for labels in part.label_sets]
            hidden = np.array([not labels for labels in sets], bool)
            hidden = hidden[found.listed.labels] if hidden.any() else hidden[:0]
            shown = found.without(hidden) if hidden.any() else found
            self._shown = UnfoldedEvents(shown, sets, report, part.kept)

    def __len__(self) -> int:
        return len(self._all.found)

    @cached_property
    def _detected(self) -> Detected:
        return Detected(self._report, self._all.found.detected, self._part)

    @cached_property
    def _computed(self) -> ComputedColumns:
        return ComputedColumns(self._report, self._all, self._part.kept, self._numbers)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The rows with the columns of a schema; see `Report.shown`."""
        report, keys = self._report, len(self._report.select.partition)
        columns: list[Callable[[], pa.Array]] = [partial(self._leading, name) for name in report.leading]
        columns += [partial(self._key, k) for k in range(keys)]
        for item, field in zip(report.computed, list(report.schema)[len(columns) :]):
            columns.append(partial(self._computed.column, item.expression, field.type))
        if report.select.projection.has_events:
            columns.append(partial(self._event_lists, schema))
        make = dict(zip(report.schema.names, columns))
        if not set(schema.names) <= make.keys():
            make |= {column.name: partial(self._flat, column) for column in report.flat}
        return pa.RecordBatch.from_arrays([make[name]() for name in schema.names], schema=schema)

    def _leading(self, name: str) -> pa.Array:
        """A place or time of the detecting, the first or the last event of each match, null if there is none."""
        found, timed = self._shown.found, name.endswith("time")
        of = "end" if name.startswith("detected") and found.end_detects else name.partition("_")[0]
        if (of, timed) not in self._made:
            if of == "detected":
                made = taken(self._detected.times if timed else self._detected.places, found.owner)
            else:
                side = 0 if of == "start" else -1
                rows = self._shown.rows_at(side)
                own = rows or self._shown.rows
                made = own.times if timed else own.places
                if rows is None:
                    made = (taken if found.end_detects else taken_or_null)(made, found.listed.ends[side])
            self._made[of, timed] = made
        return self._made[of, timed]

    def _key(self, k: int) -> pa.Array:
        return taken(self._detected.keys[k], self._all.found.owner)

    def _flat(self, column: FlatColumn) -> pa.Array:
        place = None if column.several or column.label is None else self._shown.place_of(column.label)
        rows = self._shown.rows if place is None else self._shown.rows_at(place)
        assert rows is not None
        if column.attribute is not None:
            values = rows.column(column.attribute)
        else:
            values = rows.places if column.field == "position" else rows.types
        if place is not None:
            return values
        if not column.several:
            return taken_or_null(values, self._shown.one_of(column.label))
        offsets, numbers = self._shown.of(column.label)
        return pa.ListArray.from_arrays(array_of_numbers(offsets), taken(values, numbers))

    # -- lists of events -------------------------------------------------------------------------------------------

    def _event_lists(self, schema: pa.Schema) -> pa.Array:
        if pa.types.is_dictionary(schema.field("events").type.value_type):
            events, _, numbers = self.dictionary
            values = pa.DictionaryArray.from_arrays(array_of_numbers(numbers), events, safe=False)
        else:
            values = self._events_of_matches()
        return pa.ListArray.from_arrays(array_of_numbers(self._shown.found.listed.offsets), values)

    @cached_property
    def dictionary(self) -> tuple[pa.StructArray, Ints, Smalls]:
        """The events that are shown, each once, a key for each, and the numbers of those of each match among them.

        Keys are equal in all listings for the same event with the same label set.
        """
        events, found = self._events, self._shown.found.listed
        keys = found.positions * len(self._shown.sets) + found.labels
        if found is self._all.found.listed:
            return events, keys, found.events
        used, numbers = np.unique(found.events, return_inverse=True)
        return events.take(array_of_numbers(used)), keys[used], numbers.astype(np.int32)

    @cached_property
    def _events(self) -> pa.StructArray:
        lists, numbers = self._coded_labels
        return self._structs([taken(lists, numbers.astype(np.int32)), self._shown.rows.types], self._plain_fields)

    def _events_of_matches(self) -> pa.StructArray:
        at = self._shown.found.listed.events
        if len(at) < limits.GATHERED_ROWS:
            return taken(self._events, at)
        # Without types these are null, which codes cannot be.
        untyped = self._report.events.untyped
        types = taken(self._shown.rows.types, at) if untyped else repeated_or_taken(*self._coded_types, at)
        labels = repeated_or_taken(*self._coded_labels, at)
        return self._structs([labels, types], [taken(values, at) for values in self._plain_fields])

    def _structs(self, texts: Sequence[pa.Array], fields: Sequence[pa.Array]) -> pa.StructArray:
        """Events of their labels and types, and of other fields, a position first."""
        places = len(fields) - len(self._report.attributes)
        made = [*fields[:places], *texts, *fields[places:]]
        return pa.StructArray.from_arrays(made, fields=list(self._report.event_type))

    @cached_property
    def _plain_fields(self) -> list[pa.Array]:
        places = [self._shown.rows.places] if self._report.numbered else []
        return [*places, *map(self._attribute, self._report.attributes)]

    def _attribute(self, name: str) -> pa.Array:
        """An attribute, null for events none of whose labels shows it."""
        values, listed = self._shown.rows.column(name), self._report.listed
        wanted = {item.label for item in listed if item.attributes is None or name in item.attributes}
        if len(wanted) == len({item.label for item in listed}):
            return values
        shows = np.array([bool(labels & wanted) for labels in self._shown.sets], bool)[self._shown.found.listed.labels]
        return pc.if_else(pa.array(shows), values, pa.scalar(None, values.type))

    @cached_property
    def _coded_types(self) -> tuple[pa.Array, Ints]:
        """Names of types, and the code of each event's type."""
        types = self._shown.rows.column(self._report.events.type)
        few = pa.types.is_dictionary(types.type) and len(types.dictionary) <= len(types)
        encoded = types if few else spelt(types).dictionary_encode()
        return encoded.dictionary.cast(pa.string()), numbers_of(encoded.indices.cast(pa.int64()))

    @cached_property
    def _coded_labels(self) -> tuple[pa.ListArray, Ints]:
        """Lists of labels, sorted, and the number of each event's list; its type stands there for the placeholder."""
        index = numbers = self._shown.found.listed.labels
        texts: list[list[str]] = [sorted(s - {TYPE_LABEL, UNNAMED}) for s in self._shown.sets]
        open_ = np.array([TYPE_LABEL in s for s in self._shown.sets], bool)
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


def join_dictionaries(listings: Sequence[Listing]) -> None:
    """Let the matches of several listings share one dictionary of events."""
    own = [listing.dictionary for listing in listings]
    keys, first, place = np.unique(np.concatenate([k for _, k, _ in own]), return_index=True, return_inverse=True)
    events = pa.concat_arrays([events for events, _, _ in own]).take(array_of_numbers(first))
    begin = 0
    for listing, (_, some, numbers) in zip(listings, own):
        listing.dictionary = events, keys, place[begin + numbers].astype(np.int32)
        begin += len(some)
