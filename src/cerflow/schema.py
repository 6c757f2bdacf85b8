"""What an event looks like: which column is its type, which its time, and the attributes with their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from cerflow.errors import InputError, nearest

__all__ = ["Kind", "Schema", "kind_of"]


class Kind(StrEnum):
    """The kinds of value that conditions tell apart."""

    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    OTHER = "other"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic and comparison with numbers make sense."""
        return self in (Kind.INTEGER, Kind.FLOAT)


def kind_of(data_type: pa.DataType) -> Kind:
    """The kind of an Arrow type; types no condition can read (lists, structs, …) are ``OTHER``."""
    if pa.types.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    if pa.types.is_boolean(data_type):
        return Kind.BOOLEAN
    if pa.types.is_integer(data_type):
        return Kind.INTEGER
    if pa.types.is_floating(data_type) or pa.types.is_decimal(data_type):
        return Kind.FLOAT
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return Kind.STRING
    if pa.types.is_timestamp(data_type) or pa.types.is_date(data_type):
        return Kind.TIMESTAMP
    return Kind.OTHER


@dataclass(frozen=True)
class Schema:
    """The columns of an event table and the roles of some of them.

    ``columns`` is the Arrow schema of the input. ``type`` names the column that holds the event type, ``time`` the
    one that holds its time (None: time is the position), ``stream`` the one that holds the name of the input stream
    (None: one unnamed stream). Every column is an attribute of every event (null where an event does not carry it),
    the type column too. A numeric time column counts milliseconds.
    """

    columns: pa.Schema
    type: str = "type"
    time: str | None = None
    stream: str | None = None
    _kinds: Mapping[str, Kind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = self.columns.names
        for role, name in (("type", self.type), ("time", self.time), ("stream", self.stream)):
            if name is not None and name not in names:
                near = nearest(name, names)
                hint = f"; did you mean '{near}'?" if near else f"; the columns are {', '.join(names)}"
                raise InputError(f"the {role} column '{name}' is not in the input{hint}")
        doubles = sorted({n for n in names if names.count(n) > 1})
        if doubles:
            raise InputError(f"the input has more than one column called '{doubles[0]}'")
        # Compute functions do not take views of strings; batches are cast to the columns named here.
        plain = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in self.columns]
        object.__setattr__(self, "columns", pa.schema(plain, self.columns.metadata))
        object.__setattr__(self, "_kinds", {f.name: kind_of(f.type) for f in self.columns})
        if self.time is not None and self.kind(self.time) not in (Kind.INTEGER, Kind.FLOAT, Kind.TIMESTAMP):
            raise InputError(
                f"the time column '{self.time}' has type {self.columns.field(self.time).type}; "
                "it must be a timestamp, a date, or a number of milliseconds"
            )

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names, in the order of the columns."""
        return tuple(self.columns.names)

    def kind(self, attribute: str) -> Kind:
        """The kind of an attribute; raises KeyError if there is none of that name."""
        return self._kinds[attribute]
