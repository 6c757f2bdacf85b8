"""Keys that events without a value have, too: two columns, of values and of whether there is one.

Queries divided by what conditions say need them where a match of a single event may have no value, see
`cerflow.logic.rewriting.keys`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from cerflow.base.schema import Rows, Schema, ValueKind, kind_of
from cerflow.logic.rewriting.keys import key_source, total_key


class TotalKeys:
    """Adds the columns of some ``keys`` that events of a schema do not have; ``schema`` has them."""

    def __init__(self, keys: Sequence[tuple[str, ...]], schema: Schema) -> None:
        sources = (key_source(name) for key in keys for name in key if key_source(name) != name)
        self._sources = tuple(dict.fromkeys(sources))
        #: The names of the columns.
        self.names = [name for source in self._sources for name in total_key(source)]
        types = [_without_codes(schema.columns.field(source).type) for source in self._sources]
        added = (pa.field(n, t) for n, t in zip(self.names, chain.from_iterable((t, pa.bool_()) for t in types)))
        self.schema = replace(schema, columns=pa.schema([*schema.columns, *added])) if types else schema
        # Any value will do for events without one.
        self._values = ["" if kind_of(t) is ValueKind.STRING else 0 for t in types]
        self._scalars = [pa.scalar(bool(v) if pa.types.is_boolean(t) else v, t) for v, t in zip(self._values, types)]

    def added(self, rows: Rows) -> Rows:
        """The rows with the columns."""
        for source, other in zip(self._sources, self._scalars):
            column = rows.column(source)
            if pa.types.is_dictionary(column.type):
                column = column.cast(other.type)
            value, missing = total_key(source)
            rows = rows.append_column(value, column.fill_null(other)).append_column(missing, column.is_null())
        return rows

    def of_one(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a single event with these plain values."""
        found: dict[str, Any] = {}
        for source, other in zip(self._sources, self._values):
            own, (value, missing) = values[source], total_key(source)
            found |= {value: other if own is None else own, missing: own is None}
        return found


def _without_codes(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type
