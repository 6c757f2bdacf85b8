"""Nested attributes: ``device.os`` is the field ``os`` of the structs in the column ``device`` (spec §11).

From the parser on such an attribute has one name, and each runner makes a column of that name from the structs before
anything else. So all that reads columns needs to know nothing of structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from cerflow.base.arrow_columns import plain_type
from cerflow.base.errors import DOT


def joined(parts: Iterable[str]) -> str:
    """The name of a nested attribute, or of a column if there is one part."""
    return DOT.join(parts)


def parts_of(name: str) -> list[str]:
    """The column and the fields that a name goes through."""
    return name.split(DOT)


def root_of(name: str) -> str:
    """The column that an attribute is in."""
    return name.partition(DOT)[0]


def is_nested(name: str) -> bool:
    """Whether a name is that of a nested attribute."""
    return DOT in name


def unnested(name: str) -> str:
    """The name that a column of results has for an attribute: ``device_os``."""
    return name.replace(DOT, "_")


def untaken(name: str, taken: set[str], form: Callable[[str], str] = str) -> str:
    """A name with underscores until its form is not ``taken``, to which it is added."""
    while form(name) in taken:
        name += "_"
    taken.add(form(name))
    return name


def field_type(columns: pa.Schema, parts: list[str]) -> pa.DataType | None:
    """The type of the column or field that the parts lead to; None if there is none."""
    if columns.get_field_index(parts[0]) < 0:
        return None
    found: pa.DataType = columns.field(parts[0]).type
    for part in parts[1:]:
        if not pa.types.is_struct(found) or found.get_field_index(part) < 0:
            return None
        found = found.field(part).type
    return plain_type(found)


def nested_names(columns: pa.Schema) -> Iterator[str]:
    """The nested attributes of the structs in some columns, from left to right, each before those below it."""
    stack = [(field.name, field.type) for field in reversed(columns)]
    while stack:
        name, data_type = stack.pop()
        if is_nested(name):
            yield name
        if pa.types.is_struct(data_type):
            stack += [(joined((name, field.name)), field.type) for field in reversed(data_type)]


def attribute_named(columns: pa.Schema, name: str) -> str:
    """The attribute that ``meta.at`` names: a field of a struct, unless a column is called so or there is no field."""
    found = joined(name.split("."))
    return found if name not in columns.names and field_type(columns, parts_of(found)) is not None else name


def field_values(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """The values of a nested attribute, given the column of its structs; null where a struct on the way is null."""
    import pyarrow.compute as pc

    values = pc.struct_field(column, parts_of(name)[1:])
    return values.cast(plain_type(values.type))


def flattened(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of a row and, for dicts in it, those of their fields, under the names of nested attributes."""
    stack = [*row.items()][::-1]
    while stack:
        name, value = stack.pop()
        yield name, value
        if isinstance(value, Mapping):
            stack += [(f"{name}{DOT}{field}", below) for field, below in value.items()][::-1]
