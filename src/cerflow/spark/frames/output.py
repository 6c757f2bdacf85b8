"""Writes rows of a DataFrame as a directory of files, with Spark's own writers and committers."""

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

#: The treatment of an existing output; see `cerflow.spark.run`.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

_NESTED = (ArrayType, MapType, StructType)
#: Options that write nulls as the command line does in JSON lines, and quotes as is usual in CSV.
_JSON = {"ignoreNullFields": "false"}
_OPTIONS = {"json": _JSON, "csv": {"escape": '"'}}


def check_output(mode: str, partition_by: Sequence[str]) -> None:
    """Raise `ValueError` for an unknown mode, or one that needs partitions."""
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
    """A path for Spark's readers, which unlike its writers read paths as patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is anything at a path, on whatever file system Spark finds it."""
    try:
        # This format takes files of any kind, and reads only their names here.
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
    """Write the rows; returns their number. Raises `InputError` for columns that the rows cannot be partitioned by.

    In CSV, which holds no lists, lists and structs become JSON text.
    """
    check_partition_columns(frame, partition_by)
    if format.lower() == "csv":
        nested = {
            f.name: F.to_json(_column(f.name), _JSON) for f in frame.schema.fields if isinstance(f.dataType, _NESTED)
        }
        frame = frame.withColumns(nested)
    # The last stage of the job counts, and each of its tasks counts once, even if it is repeated.
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
