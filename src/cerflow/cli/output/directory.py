"""Matches in a directory of files that Spark writes in parallel: ``--output-mode`` and ``--partition-by``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cerflow.cli.output.targets import STANDARD_OUTPUT
from cerflow.cli.output.writing import OutputFormat
from cerflow.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The same as in `cerflow.spark.run`, which cannot be imported without PySpark.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

#: Spark's names of formats where they differ, and options for its writers.
_NAMES = {OutputFormat.JSONL: "json"}
_OPTIONS = {OutputFormat.CSV: {"header": "true"}}


@dataclass(frozen=True)
class Directory:
    """A directory of files; raises ValueError for options that do not go together."""

    path: str
    mode: OutputMode = "error"
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.path == STANDARD_OUTPUT:
            raise ValueError("--output-mode and --partition-by are for directories; name one with --output PATH")
        if self.mode == "overwrite-partitions" and not self.partition_by:
            raise ValueError("--output-mode overwrite-partitions needs --partition-by COLUMN")

    def ignored(self, spark: SparkSession) -> bool:
        """Whether the mode says to leave an existing output alone; raises InputError if it must not exist."""
        from cerflow.spark.frames.output import exists

        if self.mode == "ignore":
            return exists(spark, self._uri)
        if self.mode == "error" and exists(spark, self._uri):
            raise InputError(f"'{self.path}' already exists; choose another --output-mode or remove it")
        return False

    def write(self, result: DataFrame, output_format: OutputFormat) -> int:
        """Write the rows of the result; returns their number."""
        from cerflow.spark.frames.output import write_frame

        return write_frame(
            result,
            self._uri,
            format=_NAMES.get(output_format, output_format.value),
            mode=self.mode,
            partition_by=self.partition_by,
            options=_OPTIONS.get(output_format),
        )

    @property
    def _uri(self) -> str:
        # A path without an address lies on this machine, as for inputs; other file systems have addresses.
        return self.path if "://" in self.path else f"file://{Path(self.path).absolute()}"
