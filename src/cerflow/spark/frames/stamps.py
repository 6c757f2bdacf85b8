"""Time and type of an event in one integer on its way to a task.

Each column costs Spark about as much as recognising the events in it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType

from cerflow.conditions.guards import TypeTest
from cerflow.values.arrow_columns import array_of_numbers, array_of_texts, numbers_of, truths_of

if TYPE_CHECKING:
    from cerflow.pushdown.spark import SparkConditions

#: The lower bits have the number of the type, the others the time.
_BITS = 5
_NO_TYPE, _OTHER = 31, 30
#: Times, in the unit of their column, are less than this; negative ones, too.
LARGEST_TIME = 1 << (62 - _BITS)


@dataclass(frozen=True)
class Stamps:
    """The columns at the places ``type`` and ``time`` of an event, as one where the time was.

    ``types`` are those that relevant events have, ``data_type`` is that of the time.
    """

    types: tuple[str, ...]
    type: int
    time: int
    data_type: pa.DataType

    def columns(self, names: list[str], conditions: SparkConditions) -> list[Column | str]:
        """The columns to be sent in the place of those with these names."""
        type, time = F.col(names[self.type]), F.col(names[self.time])
        number = F.when(type.isNull(), _NO_TYPE)
        for k, name in enumerate(self.types):
            number = number.when(conditions.proposition(TypeTest(name)), k)
        whole = F.unix_micros(time) if pa.types.is_timestamp(self.data_type) else time.cast(LongType())
        stamp = F.shiftleft(whole, _BITS).bitwiseOR(number.otherwise(_OTHER).cast(LongType()))
        sent: list[Column | str] = [*names]
        sent[self.time] = stamp.alias("stamp")
        del sent[self.type]
        return sent

    def restored(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the first columns again."""
        # Relevant events have one of the types, so others belong to bad records, which messages show.
        names = array_of_texts([*self.types, *[None] * (_OTHER - len(self.types)), "?", None])
        for batch in batches:
            columns = batch.columns
            at = self.time - (self.type < self.time)
            missing = truths_of(columns[at].is_null()) if columns[at].null_count else None
            stamps = numbers_of(columns[at], _NO_TYPE)
            columns[at] = array_of_numbers(stamps >> _BITS, missing).cast(self.data_type)
            columns.insert(self.type, names.take(array_of_numbers((stamps & _NO_TYPE).astype(np.int8))))
            yield pa.RecordBatch.from_arrays(columns, names=[str(k) for k in range(len(columns))])
