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

from cerflow.base.arrow_columns import Rows, with_plain_columns, without_codes
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.logic.rewriting.keys import key_source, total_key


class TotalKeys:
    """Adds the columns of some ``keys`` that events of a schema do not have; ``schema`` has them."""

    def __init__(self, keys: Sequence[tuple[str, ...]], schema: Schema) -> None:
        sources = dict.fromkeys(key_source(name) for key in keys for name in key if key_source(name) != name)
        types = [without_codes(schema.columns.field(source).type) for source in sources]
        # Any value will do for events without one.
        fill = ["" if kind_of(t) is ValueKind.STRING else 0 for t in types]
        scalars = [pa.scalar(bool(v) if pa.types.is_boolean(t) else v, t) for v, t in zip(fill, types)]
        #: For each attribute the names of its two columns, and what stands for null.
        self._columns = [(source, *total_key(source), *other) for source, *other in zip(sources, fill, scalars)]
        #: The names of the columns.
        self.names = [name for source in sources for name in total_key(source)]
        added = chain.from_iterable((data_type, pa.bool_()) for data_type in types)
        columns = pa.schema([*schema.columns, *map(pa.field, self.names, added)])
        self.schema = replace(schema, columns=columns) if types else schema

    def added(self, rows: Rows) -> Rows:
        """The rows with the columns."""
        rows = with_plain_columns(rows) if self.names else rows
        for source, value, missing, _, other in self._columns:
            column = rows.column(source)
            if pa.types.is_dictionary(column.type):
                column = column.cast(other.type)
            rows = rows.append_column(value, column.fill_null(other)).append_column(missing, column.is_null())
        return rows

    def of_one(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The plain ``values`` of a single event with those of the columns."""
        found = dict(values)
        for source, value, missing, other, _ in self._columns:
            own = values[source]
            found[value], found[missing] = (other, True) if own is None else (own, False)
        return found
