"""Writes rows of a DataFrame to a directory of files or a table by Spark's own writers, or fetches them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, MapType, StructType

from cerflow.base import limits
from cerflow.base.errors import ArgumentError, InputError, OutputError, did_you_mean
from cerflow.spark.frames.schemas import in_backticks

#: The treatment of an existing output; see `cerflow.spark.run`.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

_NESTED = (ArrayType, MapType, StructType)
#: Options that write nulls as the command line does in JSON lines, and quotes as is usual in CSV.
_JSON = {"ignoreNullFields": "false"}
_OPTIONS = {"json": _JSON, "csv": {"escape": '"'}}
#: The format whose outputs are tables that a catalog knows, unless they are paths.
_TABLES = "iceberg"


def _is_table(output: str, format: str) -> bool:
    return format.lower() == _TABLES and "/" not in output


def check_output(mode: str, partition_by: Sequence[str], output: str = "", format: str = "parquet") -> None:
    """Raise `ValueError` for an unknown mode, or one that needs partitions or a table with a name."""
    if mode not in get_args(OutputMode):
        raise ArgumentError(f"the output mode must be one of {', '.join(get_args(OutputMode))}, not {mode!r}")
    if mode == "overwrite-partitions" and not partition_by:
        raise ArgumentError("the output mode 'overwrite-partitions' needs columns to partition by")
    if mode == "overwrite-partitions" and format.lower() == _TABLES and not _is_table(output, format):
        raise ArgumentError(
            f"'{output}' is the path of a table of Iceberg, where Spark would replace all partitions; name the table "
            "in a catalog, as in 'catalog.database.table'"
        )


def check_partitions_of_table(spark: SparkSession, output: str, format: str, partition_by: Sequence[str]) -> None:
    """Raise `InputError` for a table that is partitioned otherwise: other rows would be replaced than it seems."""
    if not _is_table(output, format) or not exists(spark, output, format):
        return
    found = [column.name for column in spark.catalog.listColumns(output) if column.isPartition]
    if set(found) != set(partition_by):
        raise InputError(
            f"the table '{output}' is partitioned by {', '.join(found) or 'no column as it is'}, so there are no "
            f"partitions by {', '.join(partition_by)} to overwrite"
        )


def check_partition_columns(frame: DataFrame, partition_by: Sequence[str]) -> None:
    """Raise `InputError` for columns that the rows cannot be partitioned by."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name in partition_by:
        if name not in types:
            raise InputError(f"the result has no column '{name}' to partition by{did_you_mean(name, types)}")
        if isinstance(types[name], _NESTED):
            raise InputError(f"the result cannot be partitioned by '{name}', which is {types[name].simpleString()}")
    if len(set(partition_by)) == len(types):
        raise InputError("the result cannot be partitioned by all its columns: nothing would be left for the files")


def exists(spark: SparkSession, path: str, format: str = "parquet") -> bool:
    """Whether there is anything at a path, on whatever file system Spark finds it, or a table of this name."""
    if _is_table(path, format):
        return spark.catalog.tableExists(path)
    try:
        # This format takes files of any kind, and reads only their names here; readers take paths as patterns.
        literal = re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
        _ = spark.read.format("binaryFile").load(literal).schema
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
            f.name: F.to_json(F.col(in_backticks(f.name)), _JSON)
            for f in frame.schema.fields
            if isinstance(f.dataType, _NESTED)
        }
        frame = frame.withColumns(nested)
    # The last stage of the job counts, and each of its tasks counts once, even if it is repeated.
    counted = Observation()
    frame = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    settings = _OPTIONS.get(format.lower(), {}) | dict(options or {})
    # Whether to write at all was decided before: Spark would count nothing, and the count would never come.
    mode = "error" if mode == "ignore" else mode
    if _is_table(path, format):
        _write_table(frame, path, format, mode, partition_by, settings)
    else:
        partitions = "dynamic" if mode == "overwrite-partitions" else "static"
        writer = frame.write.format(format).mode("overwrite" if mode == "overwrite-partitions" else mode)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.options(**{"partitionOverwriteMode": partitions} | settings).save(path)
    return int(observed(counted, path)["rows"])


def _write_table(
    frame: DataFrame, name: str, format: str, mode: OutputMode, partition_by: Sequence[str], options: Mapping[str, str]
) -> None:
    writer = frame.writeTo(name).using(format).options(**options)
    new = mode in ("error", "overwrite") or not exists(frame.sparkSession, name, format)
    if new and partition_by:
        writer = writer.partitionedBy(*map(F.col, map(in_backticks, partition_by)))
    match mode:
        case "overwrite":
            writer.createOrReplace()
        case "append" if not new:
            writer.append()
        case "overwrite-partitions" if not new:
            writer.overwritePartitions()
        case _:
            writer.create()


def observed(counts: Observation, output: str) -> dict[str, Any]:
    """The counts of a job that has written to an output; raises `OutputError` if Spark does not tell them."""
    found: list[dict[str, Any]] = []
    # Spark tells them a little later, by a queue from which it drops what it has no room for, and waits for ever.
    waiting = threading.Thread(target=lambda: found.append(counts.get), daemon=True)
    waiting.start()
    waiting.join(limits.SPARK_OBSERVED_SECONDS)
    if not found:
        raise OutputError(
            f"the rows for '{output}' are written, but Spark did not report their number within "
            f"{limits.SPARK_OBSERVED_SECONDS} seconds; raise spark.scheduler.listenerbus.eventqueue.capacity"
        )
    return found[0]


def arrow_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame as Arrow batches, computed by all tasks at once, fetched one partition at a time.

    Batches wait on the disks of the executors until they are fetched.
    """
    # PySpark finds no columns with dots in their names here.
    plain = frame.toDF(*(f"c{k}" for k in range(len(frame.columns))))
    # Not persist(): Spark does not adapt the number of partitions of a persisted frame.
    packed = plain.mapInArrow(_as_rows, "payload binary").localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    for batch in unpacked_batches(row["payload"] for row in packed.toLocalIterator()):
        yield batch.rename_columns(frame.columns)


def _as_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"payload": [packed_batch(batch)]})


def packed_batch(batch: pa.RecordBatch) -> bytes:
    """A batch with its schema as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked_batches(payloads: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """The batches that `packed_batch` packed."""
    for payload in payloads:
        with pa.ipc.open_stream(payload) as reader:
            yield from reader
