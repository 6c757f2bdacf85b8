"""The same queries and events with some attributes in fields of structs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import cerflow
from cerflow.base.nested import joined
from cerflow.language.condition import Attribute
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import Node, transform
from cerflow.language.select import LabelItem, Select

__all__ = ["below_structs"]

#: Where attributes may go; names of fields are those of other columns, too.
_PLACES = {"v": ("d", "v"), "w": ("d", "type", "w"), "s": ("d", "v.s"), "k": ("g", "k"), "n": ("d", "type", "t")}


@st.composite
def below_structs(draw: st.DrawFn, query: cerflow.Query, table: pa.Table) -> tuple[cerflow.Query, pa.Table]:
    """A query and its events with some attributes moved; structs without any value may be null."""
    moved = {name: place for name, place in _PLACES.items() if draw(st.integers(0, 3))}

    def name(old: str) -> str:
        return joined(moved.get(old, (old,)))

    def visit(current: Node) -> Node:
        match current:
            case Attribute():
                return replace(current, name=name(current.name))
            case AttributeWindow():
                return replace(current, attribute=name(current.attribute))
            case LabelItem(attributes=tuple(names)):
                return replace(current, attributes=tuple(map(name, names)))
            case Select():
                return replace(current, partition=tuple(tuple(map(name, key)) for key in current.partition))
        return current

    tree = transform(query.tree, visit)
    assert isinstance(tree, Select)
    missing = draw(st.booleans())
    types: dict[str, Any] = {}
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for field in table.schema:
        *above, last = moved.get(field.name, (field.name,))
        inner = types
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = field.type
        for row, value in zip(rows, table.column(field.name).to_pylist()):
            for part in above:
                row = row.setdefault(part, {})
            row[last] = value
    columns = pa.schema([(column, _type(found)) for column, found in types.items()])
    return cerflow.Query(tree), pa.Table.from_pylist([_shortened(row) for row in rows] if missing else rows, columns)


def _type(found: Any) -> pa.DataType:
    return pa.struct([(n, _type(t)) for n, t in found.items()]) if isinstance(found, dict) else found


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    """The row with None in place of dicts without values."""
    found = {name: _shortened(value) if isinstance(value, dict) else value for name, value in row.items()}
    return {n: None if isinstance(v, dict) and all(x is None for x in v.values()) else v for n, v in found.items()}
