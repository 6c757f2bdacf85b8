"""Where Spark looks for the data source ``cerflow``: `pyspark_*` packages with a class `DefaultSource`.

Spark imports this in every session that looks for a data source, and in a process of its own to plan a read. So
nothing of cerflow is imported before it is needed: by `schema`, where everything is planned, and in the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from cerflow.spark.source.planned import Planned
    from cerflow.spark.source.row_groups import Task, Work

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Matches of a query in Parquet files: ``spark.read.format("cerflow").option("query", …).load(path)``.

    The tasks read the files themselves. The options are those of `cerflow.spark.source.planned`. Wrong options, a
    wrong query, and files that do not fit are refused when the source is loaded.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        #: The plan made when the schema was asked for; it travels with the source.
        self._plan: Planned | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "cerflow"

    def schema(self) -> StructType:
        """The schema of the matches; plans the whole read. Raises the errors of cerflow."""
        self._plan = self._plan or self._planned()
        return self._plan.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader; raises `InputError` if the user gave a schema that the matches do not have."""
        plan = self._plan or self._planned()
        if schema.simpleString() != plan.schema.simpleString():
            from cerflow.base.errors import InputError

            raise InputError(f"the matches have the schema {plan.schema.simpleString()}; leave out schema(…)")
        return _Reader(plan.work, plan.tasks)

    def explain(self) -> str:
        """How the files will be read, in words: what is cut into slices, or why it is not."""
        return self._planned().explanation

    def _planned(self) -> Planned:
        from cerflow.spark.source.planned import plan_read

        return plan_read(self.options)


class _Reader(DataSourceReader):
    """Tasks get the work with this, and their slice as their partition."""

    def __init__(self, work: Work, tasks: Sequence[Task]) -> None:
        self._work = work
        self._tasks = tasks

    def __getstate__(self) -> dict[str, Any]:
        # The slices of all other tasks need not travel to each of them.
        return {"_work": self._work, "_tasks": ()}

    def partitions(self) -> list[InputPartition]:
        """One for each slice."""
        return [InputPartition(task) for task in self._tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The matches of one slice."""
        from cerflow.spark.source.task import matches_of

        return matches_of(self._work, partition.value)
