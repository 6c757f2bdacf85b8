"""Computed columns: expressions over the events of each match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.evaluate import Rows, finest_unit
from cerflow.engine.store import Kept
from cerflow.engine.vectors import Vector
from cerflow.language.condition import Attribute, Expression, Function, LabelReference
from cerflow.language.node import Node, transform, walk
from cerflow.schema import Kind, Schema

if TYPE_CHECKING:
    from cerflow.engine.results import Unfolded

__all__ = ["compute"]


def compute(
    expression: Expression,
    found: Unfolded,
    label_sets: Sequence[frozenset[str]],
    kept: Kept,
    schema: Schema,
    target: pa.DataType,
    position: str | None,
) -> pa.Array:
    """The value of an expression for each match; null where a label has no event.

    Every label has at most one event in a match (aggregates are refused before). ``position`` names the column with
    the positions of events in the whole stream, if they are not those of ``found``.
    """
    events = _Gathered(found, label_sets, kept, schema, position)
    if isinstance(expression, Attribute):
        assert expression.label is not None
        column = events.column(expression.label, expression.name)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column.cast(target)
    flat = transform(expression, events.flatten)
    assert isinstance(flat, Expression)
    for leaf in walk(flat):
        if isinstance(leaf, Attribute):
            events.make(leaf.name)
    rows = events.rows()
    return _array(rows.value(flat), target, len(found.detected))


class _Gathered:
    """The attributes of the events of labels, one row per match, under flat names."""

    def __init__(
        self,
        found: Unfolded,
        label_sets: Sequence[frozenset[str]],
        kept: Kept,
        schema: Schema,
        position: str | None,
    ) -> None:
        self.found = found
        self.label_sets = label_sets
        self.kept = kept
        self.schema = schema
        self.numbered = position
        self._position: dict[str, NDArray[np.int64]] = {}
        self._flat: dict[str, tuple[str, str]] = {}
        self._columns: dict[str, pa.Array] = {}

    def positions(self, label: str) -> NDArray[np.int64]:
        """The position of the label's event in each match, -1 if it has none."""
        if label not in self._position:
            having = np.array([label in s for s in self.label_sets], bool)[self.found.labels]
            match = np.repeat(np.arange(len(self.found.detected)), np.diff(self.found.offsets))
            result = np.full(len(self.found.detected), -1, np.int64)
            result[match[having]] = self.found.positions[having]
            self._position[label] = result
        return self._position[label]

    def column(self, label: str, name: str) -> pa.Array:
        """An attribute of the label's event in each match."""
        positions = self.positions(label)
        column = self.schema.type if name == "type" and "type" not in self.schema.attributes else name
        return self.kept.column(column, positions)

    def flatten(self, current: Node) -> Node:
        """Replace ``x.a`` and ``time(x)`` by bare attributes of the gathered rows."""
        if isinstance(current, Attribute) and current.label is not None:
            return self._name(current.label, current.name)
        if isinstance(current, Function) and current.name in ("position", "time"):
            (argument,) = current.arguments
            assert isinstance(argument, LabelReference)
            assert argument.label is not None
            return self._name(argument.label, f"\0{current.name}")
        return current

    def _name(self, label: str, name: str) -> Attribute:
        flat = f"{label}.{name}"
        self._flat[flat] = (label, name)
        return Attribute(None, flat)

    def make(self, flat: str) -> None:
        """Gather the column behind a flat name."""
        label, name = self._flat[flat]
        if name == "\0position" or (name == "\0time" and self.schema.time is None):
            self._columns[flat] = self._places(label)
        elif name == "\0time":
            assert self.schema.time is not None
            column = self.column(label, self.schema.time)
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
            self._columns[flat] = column
        else:
            self._columns[flat] = self.column(label, name)

    def _places(self, label: str) -> pa.Array:
        """The position of the label's event in the whole stream."""
        if self.numbered is not None:
            return self.column(label, self.numbered).cast(pa.int64())
        positions = self.positions(label)
        return pa.array(positions, mask=positions < 0)

    def rows(self) -> Rows:
        """What was gathered, as rows to evaluate on."""
        count = len(self.found.detected)
        columns = {"\0type": pa.nulls(count, pa.string()), **self._columns}
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        schema = Schema(batch.schema, type="\0type")
        return Rows(batch, schema, np.zeros(count, np.int64), finest_unit(self.schema))


def _array(vector: Vector, target: pa.DataType, count: int) -> pa.Array:
    if pa.types.is_null(target):
        return pa.nulls(count)
    data = np.broadcast_to(vector.data, (count,))
    mask = np.broadcast_to(vector.missing(), (count,))
    if vector.kind is Kind.STRING:
        texts = pa.array(list(vector.dictionary), pa.string())
        return texts.take(pa.array(data, mask=mask)) if len(texts) else pa.nulls(count, pa.string())
    return pa.array(data, mask=mask).cast(target)
