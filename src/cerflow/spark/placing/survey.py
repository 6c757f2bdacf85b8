"""Surveys a DataFrame before it is matched: its size, the distribution of its rows, and their order.

A survey reads only the ordering column, in the JVM, and works with Spark Connect too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.schema import ValueKind
from cerflow.engine.slices.cutting import Pieces, keys_of
from cerflow.language.formula import AttributeWindow
from cerflow.spark.frames.events import IDENTIFIER, ROW_BITS, EventColumns
from cerflow.spark.frames.plan import JobPlan

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
_SIZE = re.compile(r"sizeInBytes=([0-9.E+]+) (\w+)")
#: The leaves of physical plans that give the same rows in the same partitions whenever they are read. Not those of
#: local data: Spark computes columns over it as one partition when it plans, and divides it when it runs.
_FILES = re.compile(r"(?:FileScan|BatchScan) (?:parquet|orc|csv|json|text|avro)|Range \(")
_PRUNED = re.compile(r"PartitionFilters: \[[^\]]*\]")
_LEAF = re.compile(r"Scan\b|Relation\b|Range \(")


@dataclass(frozen=True)
class Estimate:
    """Spark's estimate of a DataFrame, for which nothing runs.

    ``size`` are bytes, None if it does not know; ``stays`` whether every reading of it gives the same partitions;
    ``pruned`` are the conditions by which whole files are left out.
    """

    size: int | None
    stays: bool
    pruned: tuple[str, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether it is too small for jobs that find out more."""
        return self.size is not None and self.size < limits.SPARK_SMALL_BYTES


def estimate(frame: DataFrame) -> Estimate:
    """Spark's estimate, from its plan of a DataFrame; without a plan nothing is known."""
    # Without the text there are more jobs.
    text = ""
    with suppress(Exception):
        text = spark_plan(frame, "cost")
    logical, _, physical = text.partition("== Physical Plan ==")
    found = _SIZE.search(logical)
    size = None if found is None else int(float(found[1]) * _UNITS.get(found[2], 1))
    leaves = [line for line in physical.splitlines() if _LEAF.search(line)]
    moved = "Exchange" in physical or "Bucketed: true" in physical
    stays = bool(leaves) and not moved and all(_FILES.search(line) for line in leaves)
    return Estimate(size, stays, tuple(_PRUNED.findall(physical)))


def spark_plan(frame: DataFrame, mode: str) -> str:
    """The text that `DataFrame.explain` would print, for which Spark has no public function."""
    connected = getattr(type(frame), "_explain_string", None)
    if connected is not None:
        return str(connected(frame, mode=mode))
    explained = frame.sparkSession._jvm.PythonSQLUtils.explainString  # type: ignore[union-attr]
    return str(explained(frame._jdf.queryExecution(), mode))


@dataclass(frozen=True)
class Selected:
    """The events of a query in a ``frame`` with plain names, and the plan for the columns that are sent.

    ``whole`` is the plan for the ``input``, the DataFrame as it was given. With ``skip`` events that cannot be used are
    left out of the frame. Surveys find out about the keys of the events; a window on an attribute wants to know its
    measures, too.
    """

    frame: DataFrame
    events: EventColumns
    plan: JobPlan
    skip: bool
    input: DataFrame
    whole: JobPlan

    @cached_property
    def guess(self) -> Estimate:
        """Spark's estimate of the events."""
        return estimate(self.frame)

    def partitions(self, *, by_file: bool) -> Pieces:
        """Count the rows of each piece of the partitions, and find the least and greatest key of each, in one job.

        A piece has ``2 ** SPARK_PIECE_BITS`` rows at most, and with ``by_file`` none has rows of two files.
        """
        # Parts of a file that are read apart begin at different places.
        file = [F.xxhash64(F.input_file_name(), F.input_file_block_start())] if by_file else []
        piece = F.shiftright(IDENTIFIER, limits.SPARK_PIECE_BITS)
        return self._survey(self._numbered(), F.shiftright(IDENTIFIER, ROW_BITS), [piece, *file])

    def parts(self, cuts: Sequence[int], *, by_partition: bool) -> Pieces:
        """The same for the parts of a stream between some keys, apart for each partition or as one."""
        rows = self.events.with_number_of_keys(self._numbered(), "piece", cuts)
        return self._survey(rows, F.spark_partition_id() if by_partition else F.lit(0), [F.col("piece")])

    def sample(self, step: int) -> Ints:
        """The keys of every this many rows of each partition (a power of two), ascending, in one job."""
        rows = self._numbered().filter((F.col(IDENTIFIER) % step == 0) & self.events.valid())
        return np.sort(keys_of(rows.select(self.events.leading().alias("key")).toArrow().column("key")))

    def greatest_share(self) -> float:
        """The events of the most frequent key, as a share of all that have one; 0 with few events. Runs one job."""
        keys = [key.alias(f"key{number}") for number, key in enumerate(self.events.keys(self.plan))]
        known = self.frame.select(*keys).dropna()
        counts = known.groupBy(*known.columns).count()
        (row,) = counts.agg(F.max("count").alias("most"), F.sum("count").alias("all")).collect()
        return 0.0 if (row["all"] or 0) < limits.SPARK_SKEW_EVENTS else row["most"] / row["all"]

    def end(self) -> pa.Array | None:
        """A time, in an array, before which no more events come; None if there are no events. Runs a job.

        It is that of the last event, or a later one that is known.
        """
        events, until = self.events, self.plan.task.until
        latest = self.frame.filter(events.valid()).agg(F.max(events.leading()).alias("time")).toArrow().column("time")
        known = latest.combine_chunks().drop_null().cast(events.schema.columns.field(str(events.schema.time)).type)
        times = known if until is None else pa.concat_arrays([known, until])
        return times.take(pc.sort_indices(times)[-1:]) if len(known) else None

    def _numbered(self) -> DataFrame:
        return self.frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())

    def _survey(self, rows: DataFrame, part: Column, keys: Sequence[Column]) -> Pieces:
        """The rows with the same ``keys`` in each part as a piece."""
        events, window = self.events, self.plan.division.window
        leading = F.when(events.valid(), events.leading())
        aggregates = [
            F.count(F.lit(1)).alias("count"),
            F.count(leading).alias("valid"),
            F.min(leading).alias("low"),
            F.max(leading).alias("high"),
        ]
        if isinstance(window, AttributeWindow):
            measure = F.col(events.plain(window.attribute))
            if events.schema.kind(window.attribute) is ValueKind.FLOAT:
                measure = F.when(~F.isnan(measure), measure)
            aggregates.append(F.max(measure).alias("measure"))
        named = [key.alias(f"key{number}") for number, key in enumerate(keys)]
        pieces = rows.groupBy(part.cast(LongType()).alias("part"), *named).agg(*aggregates)
        found = pieces.toArrow().combine_chunks()
        low, high = keys_of(found.column("low")), keys_of(found.column("high"))
        measured = keys_of(found.column("measure")) if isinstance(window, AttributeWindow) else None
        number, count, valid = (found.column(name).to_numpy() for name in ("part", "count", "valid"))
        return Pieces(number, low, high, count, measured, valid)
