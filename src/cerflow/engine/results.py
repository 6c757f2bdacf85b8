"""What a result looks like: its Arrow schema, and the arrays of unfolded matches turned into record batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.analysis.scopes import condition_labels
from cerflow.analysis.types import kind_of_expression
from cerflow.automata.transducer import TYPE_LABEL
from cerflow.engine.computed import ARROW_TYPES, compute, selected_attribute
from cerflow.engine.store import Kept
from cerflow.language.condition import Attribute, Expression
from cerflow.language.node import walk
from cerflow.language.select import CountItem, ExpressionItem, LabelItem, ProjectionKind, Select
from cerflow.schema import Schema, kind_of

__all__ = ["POSITION", "Report", "Unfolded", "kept_labels"]

Ints = NDArray[np.int64]

#: The stored column with an event's position in the whole stream, if the caller numbers events.
POSITION = "\0position"

#: Counts of matches may be exponential in the length of the stream.
COUNT_TYPE = pa.decimal128(38, 0)


@dataclass(frozen=True)
class Unfolded:
    """Matches as flat arrays: match m was detected at ``detected[m]`` and has the entries from ``offsets[m]`` on."""

    detected: Ints
    offsets: Ints
    positions: Ints
    labels: Ints


def kept_labels(select: Select) -> frozenset[str] | None:
    """The labels that distinguish matches: those listed and those that computed columns read; None for all."""
    items = select.projection.items
    listed = [item.label for item in items if isinstance(item, LabelItem)]
    if not listed:
        return None
    computed = [item for item in items if isinstance(item, ExpressionItem)]
    return frozenset([*listed, *(label for item in computed for label in condition_labels(item.expression))])


class Report:
    """Turns matches of one query into record batches of ``schema``."""

    def __init__(self, select: Select, schema: Schema, *, positions: bool, position: str | None) -> None:
        self.select = select
        self.events = schema
        self.numbered = positions
        self.position = position
        items = select.projection.items
        self.counts = [i for i in items if isinstance(i, CountItem)]
        self.computed = [i for i in items if isinstance(i, ExpressionItem)]
        self.listed = [i for i in items if isinstance(i, LabelItem)]
        self.attributes = self._reported_attributes()
        #: The labels that distinguish matches, None for all; see the language guide on SELECT.
        self.keep = kept_labels(select)
        self.time_type = pa.int64() if schema.time is None else schema.columns.field(schema.time).type
        #: The columns before the partition keys.
        self.leading = ["detected_at", *([] if self.counts else ["start", "end", "start_time"]), "end_time"]
        self.event_fields = self._event_fields()
        self.schema = pa.schema(self._fields())

    # -- schema --------------------------------------------------------------------------------------------------

    def _reported_attributes(self) -> list[str]:
        """The attributes of reported events, in the order of the input; the type has a field of its own."""
        if self.counts or self.select.projection.kind is ProjectionKind.NONE:
            return []
        wanted: set[str] | None = set()
        for item in self.listed:
            if item.attributes is None:
                wanted = None
                break
            assert wanted is not None
            wanted.update(item.attributes)
        if not self.listed:
            wanted = None
        names = [n for n in self.events.attributes if n not in (self.events.type, self.position)]
        return [n for n in names if wanted is None or n in wanted]

    @property
    def stored(self) -> list[str]:
        """The input columns that results are made of."""
        found = {self.events.type, *self.attributes}
        if self.events.time is not None:
            found.add(self.events.time)
        for key in self.select.partition:
            found.update(map(self._column, key))
        for item in self.computed:
            for current in walk(item.expression):
                if isinstance(current, Attribute):
                    found.add(self._column(current.name))
        if self.position is not None:
            found.add(self.position)
        return [n for n in self.events.attributes if n in found]

    def _column(self, name: str) -> str:
        """The column that holds an attribute: ``type`` is the type of the event if no attribute is called so."""
        return self.events.type if name == "type" and name not in self.events.attributes else name

    def _fields(self) -> list[pa.Field]:
        taken = {"detected_at", "start", "end", "start_time", "end_time", "events"}
        fields = [pa.field("detected_at", pa.int64())]
        if not self.counts:
            fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())]
            fields.append(pa.field("start_time", self.time_type))
        fields.append(pa.field("end_time", self.time_type))
        for key in self.select.partition:
            name = _unused(key[0], taken)
            taken.add(name)
            fields.append(pa.field(name, self._key_type(key)))
        if self.counts:
            return fields + [pa.field(item.name, COUNT_TYPE) for item in self.counts]
        fields += [pa.field(item.name, self._computed_type(item.expression)) for item in self.computed]
        if self.select.projection.kind is not ProjectionKind.NONE:
            fields.append(pa.field("events", pa.list_(self._event_type())))
        return fields

    def _computed_type(self, expression: Expression) -> pa.DataType:
        attribute = selected_attribute(expression)
        if attribute is not None:
            if attribute.name == "type" and "type" not in self.events.attributes:
                return pa.string()
            return _plain(self.events.columns.field(attribute.name).type)
        return ARROW_TYPES[kind_of_expression(expression, self.events)]

    def _event_fields(self) -> dict[str, str]:
        """For each reported attribute the field that holds it."""
        taken = {"position", "labels", "type"}
        names: dict[str, str] = {}
        for name in self.attributes:
            names[name] = _unused(name, taken)
            taken.add(names[name])
        return names

    def _event_type(self) -> pa.StructType:
        fields = [pa.field("position", pa.int64()), pa.field("labels", pa.list_(pa.string()))]
        fields.append(pa.field("type", pa.string()))
        for name, field in self.event_fields.items():
            fields.append(pa.field(field, self.events.columns.field(name).type))
        return pa.struct(fields)

    # -- batches -------------------------------------------------------------------------------------------------

    def counted(self, detected: Ints, numbers: Sequence[int], kept: Kept) -> pa.RecordBatch:
        """One row per detecting event with the number of its matches. Raises OverflowError beyond 38 digits."""
        rows = kept.at(detected)
        if any(n >= 10**38 for n in numbers):
            raise OverflowError(f"the number of matches of one event, {max(numbers)}, does not fit 38 digits")
        arrays = [self._places(detected, rows), self._times(detected, rows), *self._keys(rows)]
        amounts = pa.array(list(numbers), COUNT_TYPE)
        return pa.RecordBatch.from_arrays([*arrays, *[amounts for _ in self.counts]], schema=self.schema)

    def batch(self, found: Unfolded, label_sets: Sequence[frozenset[str]], kept: Kept) -> pa.RecordBatch:
        """The rows of some matches."""
        detected = kept.at(found.detected)
        columns = [
            compute(item.expression, found, label_sets, kept, self.events, field.type, self.position)
            for item, field in zip(self.computed, (self.schema.field(i.name) for i in self.computed))
        ]
        shown = found
        if self.select.projection.kind is ProjectionKind.NONE:
            label_sets = [frozenset()] * len(label_sets)
            shown = _without_unlabelled(found, label_sets)
        elif self.keep is not None:
            names = frozenset(item.label for item in self.listed)
            label_sets = [labels & names for labels in label_sets]
            shown = _without_unlabelled(found, label_sets)
        sizes = np.diff(shown.offsets)
        rows = kept.at(shown.positions)
        first = np.minimum(shown.offsets[:-1], max(0, len(shown.positions) - 1))
        last = np.maximum(shown.offsets[1:] - 1, 0)
        places = self._places(shown.positions, rows)
        times = self._times(shown.positions, rows)
        none = pa.array(sizes == 0)
        arrays = [self._places(found.detected, detected)]
        for values in (places, times):
            for at in (first, last):
                arrays.append(_pick(values, at, none))
        arrays += [*self._keys(detected), *columns]
        if "events" in self.schema.names:
            arrays.append(self._event_lists(shown, label_sets, rows, places))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _places(self, positions: Ints, rows: pa.Table) -> pa.Array:
        """The positions as reported."""
        if self.position is not None:
            return _whole(rows.column(self.position)).cast(pa.int64())
        return pa.array(positions) if self.numbered else pa.nulls(len(positions), pa.int64())

    def _times(self, positions: Ints, rows: pa.Table) -> pa.Array:
        if self.events.time is None:
            return self._places(positions, rows)
        return _whole(rows.column(self.events.time))

    def _key_type(self, key: tuple[str, ...]) -> pa.DataType:
        """The type of a key: that of its attributes, or float64 where integers meet floats."""
        types = [_plain(self.events.columns.field(self._column(name)).type) for name in key]
        return types[0] if len({kind_of(t) for t in types}) == 1 else pa.float64()

    def _keys(self, rows: pa.Table) -> list[pa.Array]:
        result = []
        for key in self.select.partition:
            target = self._key_type(key)
            values = [_whole(rows.column(self._column(name))).cast(target) for name in key]
            # NaN is null, here as everywhere.
            known = [_without_nan(v) for v in values[:-1]]
            result.append(pc.coalesce(*known, values[-1]) if known else values[0])
        return result

    def _event_lists(
        self, shown: Unfolded, label_sets: Sequence[frozenset[str]], rows: pa.Table, places: pa.Array
    ) -> pa.Array:
        types = _whole(rows.column(self.events.type)).cast(pa.string())
        fields = [places, _labels(shown.labels, label_sets, types), types]
        fields += [self._attribute(name, shown.labels, label_sets, rows) for name in self.attributes]
        struct = self._event_type()
        children = [pa.array(f) if not isinstance(f, pa.Array) else f for f in fields]
        entries = pa.StructArray.from_arrays(children, fields=list(struct))
        return pa.ListArray.from_arrays(pa.array(shown.offsets, pa.int32()), entries)

    def _attribute(self, name: str, labels: Ints, label_sets: Sequence[frozenset[str]], rows: pa.Table) -> pa.Array:
        values = _whole(rows.column(name))
        limited = [i for i in self.listed if i.attributes is not None and name not in i.attributes]
        if not limited:
            return values
        wanted = {i.label for i in self.listed if i.attributes is None or name in i.attributes}
        shows = np.array([bool(s & wanted) for s in label_sets], bool)[labels]
        return pc.if_else(pa.array(shows), values, pa.scalar(None, values.type))


def _unused(name: str, taken: set[str]) -> str:
    """A name that clashes with a field of results gets an underscore."""
    while name in taken:
        name += "_"
    return name


def _plain(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _pick(values: pa.Array, at: Ints, none: pa.Array) -> pa.Array:
    if len(values) == 0:
        return pa.nulls(len(at), values.type)
    return pc.if_else(none, pa.scalar(None, values.type), values.take(pa.array(at)))


def _without_unlabelled(found: Unfolded, label_sets: Sequence[frozenset[str]]) -> Unfolded:
    """Leave out the entries whose label set is empty."""
    shown = np.array([bool(s) for s in label_sets], bool)[found.labels]
    before = np.concatenate([[0], np.cumsum(shown)])
    return Unfolded(found.detected, before[found.offsets], found.positions[shown], found.labels[shown])


def _labels(numbers: Ints, label_sets: Sequence[frozenset[str]], types: pa.Array) -> pa.Array:
    """The labels of each entry, sorted; the placeholder for the type of the event is filled in."""
    texts: list[list[str]] = [sorted(s - {TYPE_LABEL}) for s in label_sets]
    index = numbers.copy()
    open_ = np.array([TYPE_LABEL in s for s in label_sets], bool)[numbers]
    if open_.any():
        encoded = types.dictionary_encode()
        codes = encoded.indices.to_numpy()
        names = encoded.dictionary.to_pylist()
        pairs: dict[tuple[int, int], int] = {}
        for entry in np.flatnonzero(open_).tolist():
            pair = (int(numbers[entry]), int(codes[entry]))
            if pair not in pairs:
                pairs[pair] = len(texts)
                texts.append(sorted({*texts[pair[0]], names[pair[1]]}))
            index[entry] = pairs[pair]
    return pa.array(texts, pa.list_(pa.string())).take(pa.array(index))
