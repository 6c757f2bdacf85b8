"""Rows of a file as they are, before their types are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from cerflow import limits
from cerflow.errors import InputError
from cerflow.values.array_types import Ints

#: Number of the row in its file (from 0), its text, what is wrong with it.
Malformed = tuple[int, str, str]


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in order.

    ``rows`` numbers the rows of ``table`` in the file, from 0; blank lines are not rows. ``spoilt`` says of rows of the
    table (by place) why they cannot be used whatever they are taken for. ``malformed`` are rows that are not in the
    table at all. ``plain`` are columns of text as numbers or times, if whoever looked at them found that every value is
    one.
    """

    table: pa.Table
    rows: Ints
    spoilt: dict[int, list[str]] = field(default_factory=dict)
    malformed: list[Malformed] = field(default_factory=list)
    plain: dict[str, pa.Array] = field(default_factory=dict)

    def behind(self, rows: int) -> Block:
        """The same with this many rows of the file before it, which were read elsewhere."""
        if not rows:
            return self
        malformed = [(row + rows, text, reason) for row, text, reason in self.malformed]
        return replace(self, rows=self.rows + rows, malformed=malformed)


def too_long(name: str, kind: str, done: int, hint: str) -> InputError:
    """The error about a row that is too long to be read; ``done`` is the last row before it, −1 if there is none."""
    where = "a row at the beginning" if done < 0 else f"a row after row {done}"
    return InputError(f"cannot read {name} as {kind}: {where} has more than {limits.TEXT_ROW_BYTES >> 20} MB; {hint}")
