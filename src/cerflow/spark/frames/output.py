"""Rows of a DataFrame become a directory of files, by Spark's own writers and committers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, MapType, StructType

from cerflow.errors import InputError, nearest

__all__ = ["OutputMode", "check_output", "check_partition_columns", "exists", "literal_path", "write_frame"]

#: What happens to what is there already; see `cerflow.spark.run`.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

_NESTED = (ArrayType, MapType, StructType)
#: Nulls as in the JSON lines of the command line, and quotes as in everybody else's CSV.
_JSON = {"ignoreNullFields": "false"}
_OPTIONS = {"json": _JSON, "csv": {"escape": '"'}}


def check_output(mode: str, partition_by: Sequence[str]) -> None:
    """Raise `ValueError` for a mode that there is not, or that needs partitions."""
    if mode not in get_args(OutputMode):
        raise ValueError(f"the output mode must be one of {', '.join(get_args(OutputMode))}, not {mode!r}")
    if mode == "overwrite-partitions" and not partition_by:
        raise ValueError("the output mode 'overwrite-partitions' needs columns to partition by")


def check_partition_columns(frame: DataFrame, partition_by: Sequence[str]) -> None:
    """Raise `InputError` for columns that the rows cannot be partitioned by."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name in partition_by:
        if name not in types:
            near = nearest(name, types)
            hint = f"; did you mean '{near}'?" if near else f"; the columns are {', '.join(types)}"
            raise InputError(f"the result has no column '{name}' to partition by{hint}")
        if isinstance(types[name], _NESTED):
            raise InputError(f"the result cannot be partitioned by '{name}', which is {types[name].simpleString()}")
    if len(set(partition_by)) == len(types):
        raise InputError("the result cannot be partitioned by all its columns: nothing would be left for the files")


def literal_path(path: str) -> str:
    """A path for Spark's readers, which take it for a pattern, as its writers do not."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is anything at a path, on whatever file system Spark finds it."""
    try:
        # Files of any kind; only their names are looked at.
        _ = spark.read.format("binaryFile").load(literal_path(path)).schema
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


def write_frame(
    frame: DataFrame,
    path: str,
    *,
    format: str,
    mode: OutputMode,
    partition_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> int:
    """Write the rows, and say how many there were. Raises `InputError` for columns to partition by that do not fit.

    In CSV, which holds no lists, lists and structs become JSON text.
    """
    check_partition_columns(frame, partition_by)
    if format.lower() == "csv":
        nested = {
            f.name: F.to_json(_column(f.name), _JSON) for f in frame.schema.fields if isinstance(f.dataType, _NESTED)
        }
        frame = frame.withColumns(nested)
    # The last stage of the job counts: each of its tasks once, however often it is tried.
    counted = Observation()
    frame = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    partitions = "dynamic" if mode == "overwrite-partitions" else "static"
    writer = frame.write.format(format).mode("overwrite" if mode == "overwrite-partitions" else mode)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    settings = {"partitionOverwriteMode": partitions} | _OPTIONS.get(format.lower(), {}) | dict(options or {})
    writer.options(**settings).save(path)
    return int(counted.get["rows"])


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
