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

__all__ = ["Directory", "OutputMode"]

#: As in `cerflow.spark.run`; that module needs PySpark.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

#: What Spark calls a format that it has another name for, and what its writer must be told.
_NAMES = {OutputFormat.JSONL: "json"}
_OPTIONS = {OutputFormat.CSV: {"header": "true"}}


@dataclass(frozen=True)
class Directory:
    """A directory of files; raises ValueError for what does not go together."""

    path: str
    mode: OutputMode = "error"
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.path == STANDARD_OUTPUT:
            raise ValueError("--output-mode and --partition-by are for directories; say where with --output PATH")
        if self.mode == "overwrite-partitions" and not self.partition_by:
            raise ValueError("--output-mode overwrite-partitions needs --partition-by COLUMN")

    def ignored(self, spark: SparkSession) -> bool:
        """Whether nothing is to be done; raises InputError if something is there that must not be."""
        from cerflow.spark.frames.output import exists

        if self.mode == "ignore":
            return exists(spark, self._uri)
        if self.mode == "error" and exists(spark, self._uri):
            raise InputError(f"there is already something at '{self.path}'; choose another --output-mode or remove it")
        return False

    def write(self, result: DataFrame, output_format: OutputFormat) -> int:
        """Write the rows of the result; gives their number."""
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
        # A path is one of this machine, as those of inputs are; other file systems have addresses.
        return self.path if "://" in self.path else f"file://{Path(self.path).absolute()}"
