"""Input files become one DataFrame of usable events; rows that cannot be used are told apart by their reason.

The rules are those of `cerflow.cli.reading`, written as Spark expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812  (the name under which everybody knows it)
from pyspark.sql import types as T  # noqa: N812

from cerflow.cli.file_groups import file_groups, is_array, json_names
from cerflow.cli.mappings import label, names_in_files
from cerflow.cli.reading import REFUSED, Columns
from cerflow.cli.request import Inputs
from cerflow.cli.sources import InputFormat, Source, partition_values
from cerflow.errors import InputError
from cerflow.schema import Schema
from cerflow.spark.output import literal
from cerflow.spark.schemas import arrow_schema
from cerflow.spark.stream_frames import united
from cerflow.stream_inputs import Input, column_names, free_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["SparkEvents", "read_frame"]

_REASON = "_cerflow_reason"
_LINE = "_cerflow_line"
_ROW = "_cerflow_row"
_Options: TypeAlias = "dict[str, bool | float | int | str | None]"

_INTEGER = r"^[+-]?\d{1,18}$"
_FLOAT = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:nan|[+-]?inf|[+-]?infinity))$"
_TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclass(frozen=True)
class SparkEvents:
    """What was read.

    ``everything`` has a row for each row of the input, its columns converted; ``usable`` leaves out those that
    cannot be used. ``_reasons`` are the rows with the reason against each, or null, and ``_written`` the same as they
    stood, as text. ``stream`` as in `cerflow.cli.reading.Events`.
    """

    everything: DataFrame
    usable: DataFrame
    stream: str | None
    _reasons: DataFrame
    _written: DataFrame

    def counts(self) -> tuple[int, int]:
        """How many rows can be used, and how many cannot."""
        reason = F.col(_REASON)
        (row,) = self._reasons.agg(F.count_if(reason.isNull()), F.count_if(reason.isNotNull())).collect()
        return int(row[0]), int(row[1])

    def refused(self) -> DataFrame:
        """The rows that cannot be used: ``row``, ``reason``, ``text``, and the attributes as text."""
        head = [name for name, _ in REFUSED]
        attributes = [c for c in self._written.columns if c not in (_LINE, _REASON)]
        return (
            _numbered(self._written)
            .filter(F.col(_REASON).isNotNull())
            .select(
                *[F.col(name).alias(called) for name, called in zip((_ROW, _REASON, _LINE), head)],
                *[F.col(_quoted(c)).alias(free_name(c, head)) for c in attributes],
            )
        )


def read_frame(spark: SparkSession, read: Inputs) -> SparkEvents:
    """Read all inputs, in the order given; raises InputError as `cerflow.cli.reading.read_events` does."""
    columns = read.columns
    values: list[tuple[str, DataFrame]] = []
    written: list[tuple[str, DataFrame]] = []
    streams: list[str] = []
    for one in read.inputs:
        source = one.events
        for files in file_groups(source, together=columns.time is not None):
            frame = _named(_read(spark, source, files, names_in_files(one, columns.roles, columns.text)), one, read)
            part = str(files[0]) if len(source.files) > 1 else label(source)
            converted, reason = _usable(frame, columns, source.format)
            values.append((part, frame.select(*converted, reason.alias(_REASON))))
            streams.append(label(source))
            attributes = [F.col(_quoted(c)).cast("string").alias(c) for c in frame.columns]
            written.append((part, frame.select(*attributes, reason.alias(_REASON))))
    stream = None
    frames = _without_empty(values)
    if read.named:
        stream = free_name("stream", [c for _, frame in frames for c in frame.columns])
        frames = [(part, f.select("*", F.lit(name).alias(stream))) for (part, f), name in zip(frames, streams)]
    reasons = united(frames, last=stream)
    everything = reasons.drop(_REASON)
    Schema(arrow_schema(everything), type=columns.type, time=columns.time, stream=stream)
    usable = reasons.filter(F.col(_REASON).isNull()).drop(_REASON)
    return SparkEvents(everything, usable, stream, reasons, united(written))


def _read(spark: SparkSession, source: Source, files: Sequence[Path], text: frozenset[str]) -> DataFrame:
    """Files with the same columns as they stand; lines that cannot be split are in a column of their own."""
    # Not as_uri(), which escapes what Spark does not unescape.
    uris = [literal(f"file://{file.absolute()}") for file in files]
    reader = spark.read
    partitions = list(partition_values(source, files[0]))
    if partitions and source.root is not None:
        reader = reader.option("basePath", f"file://{source.root.absolute()}")
    if source.format in (InputFormat.PARQUET, InputFormat.ORC):
        frame = reader.format(source.format.value).load(uris)
    elif source.format is InputFormat.CSV:
        # An empty field is null, "" is not; so null is written as something that no file has.
        options: _Options = {"header": True, "columnNameOfCorruptRecord": _LINE, "escape": '"', "nullValue": "\0"}
        reader = reader.options(**options)
        inferred = reader.csv(uris, inferSchema=True).schema
        fields = [T.StructField(f.name, T.StringType() if f.name in text else f.dataType) for f in inferred.fields]
        frame = reader.csv(uris, schema=T.StructType([*fields, T.StructField(_LINE, T.StringType())]))
    else:
        array = is_array(files[0])
        frame = reader.json(uris, columnNameOfCorruptRecord=_LINE, multiLine=array)
        if array and _LINE in frame.columns:
            raise InputError(f"the JSON array is broken, or has something else than objects in it: {files[0]}")
        order = {name: place for place, name in enumerate(json_names(files[0]))}
        frame = frame.select(*sorted(map(_quoted, frame.columns), key=lambda c: order.get(c[1:-1], len(order))))
    # What directories say is text, whatever the session takes it for.
    return frame.withColumns({name: F.col(_quoted(name)).cast("string") for name in partitions})


def _named(frame: DataFrame, one: Input[Source], read: Inputs) -> DataFrame:
    """The frame with the columns that all inputs have, and the line that could not be split, or null, at the end."""
    columns = [c for c in frame.columns if c != _LINE]
    names = column_names(columns, one, read.columns.roles, label(one.events) if len(read.inputs) > 1 else None)
    values = [F.col(_quoted(c)) for c in columns]
    if one.constant_type is not None:
        values.append(F.lit(one.constant_type))
    line = F.col(_LINE) if _LINE in frame.columns else F.lit(None).cast("string")
    return frame.select(*[value.alias(name) for value, name in zip(values, names)], line.alias(_LINE))


def _usable(frame: DataFrame, columns: Columns, input_format: InputFormat) -> tuple[list[Column], Column]:
    """The attributes, converted, and why a row cannot be used, or null."""
    converted, wrong = _conversions(frame, columns, times=input_format is InputFormat.JSON)
    if isinstance(frame.schema[columns.type].dataType, T.IntegralType):
        converted[columns.type] = F.col(_quoted(columns.type)).cast("string")
    reasons: list[Column] = [
        F.when(bad, F.concat(F.lit(f"{name} is not {what}: '"), F.col(_quoted(name)), F.lit("'")))
        for name, (what, bad) in wrong.items()
    ]
    whole = F.col(_LINE).isNull()
    reasons.append(F.when(~whole, F.lit("the line cannot be split into columns")))
    for role, name in (("type", columns.type), ("time", columns.time)):
        if name is not None:
            missing = converted.get(name, F.col(_quoted(name))).isNull()
            if isinstance(frame.schema[name].dataType, T.DoubleType | T.FloatType):
                missing = missing | F.isnan(_quoted(name))
            if name in wrong:
                missing = missing & ~wrong[name][1]
            reasons.append(F.when(missing & whole, F.lit(f"the {role} is null")))
    attributes = [c for c in frame.columns if c != _LINE]
    kept = [converted.get(c, F.col(_quoted(c))).alias(c) for c in attributes]
    return kept, F.nullif(F.concat_ws("; ", *reasons), F.lit(""))


def _without_empty(frames: list[tuple[str, DataFrame]]) -> list[tuple[str, DataFrame]]:
    """The frames with nothing in columns of text that have no value in one file and are no text in others.

    Spark takes a column without values for text.
    """
    others = {f.name for _, frame in frames for f in frame.schema.fields if not isinstance(f.dataType, T.StringType)}
    found = []
    for part, frame in frames:
        doubtful = [f.name for f in frame.schema.fields if isinstance(f.dataType, T.StringType) and f.name in others]
        if doubtful:
            row = frame.agg(*[F.count(_quoted(name)) for name in doubtful]).collect()[0]
            empty = {name for name, number in zip(doubtful, row) if not number}
            frame = frame.select(*[(F.lit(None) if c in empty else F.col(_quoted(c))).alias(c) for c in frame.columns])
        found.append((part, frame))
    return found


def _conversions(
    frame: DataFrame, columns: Columns, *, times: bool
) -> tuple[dict[str, Column], dict[str, tuple[str, Column]]]:
    """Columns of text that the query takes for numbers or times: their values, and which of them are wrong.

    With ``times`` also columns in which every value is a time, for formats that have times as text only.
    """
    usage = columns.usage
    text = [f.name for f in frame.schema.fields if isinstance(f.dataType, T.StringType) and f.name != _LINE]
    used = usage.numbers | usage.ordered | {columns.time, columns.sequence}
    wanted = [name for name in text if name in used or (times and name not in columns.text)]
    values: dict[str, Column] = {}
    wrong: dict[str, tuple[str, Column]] = {}
    if not wanted:
        return values, wrong
    found = _looks(frame, wanted)
    for name in wanted:
        look = found[name]
        text_of = F.trim(F.col(_quoted(name)))
        as_time = F.when(text_of.rlike(_TIME), _cast(name, "timestamp_ltz" if look["zones"] else "timestamp_ntz"))
        if name not in used:
            if look["all"] and look["all"] == look["moments"]:
                values[name] = as_time
            continue
        if name == columns.time and look["times"] >= look["numbers"]:
            what, value, right = "a time", as_time, look["times"]
        else:
            what = "a time" if name == columns.time else "a number"
            kind = "bigint" if look["integers"] == look["numbers"] else "double"
            value, right = F.when(text_of.rlike(_FLOAT), _cast(name, kind)), look["numbers"]
            if name not in usage.numbers and name != columns.time and 2 * look["numbers"] <= look["all"]:
                continue
        if look["all"] and not right:
            raise InputError(f"no value of the column '{name}' is {what}")
        values[name] = value
        wrong[name] = (what, text_of.isNotNull() & value.isNull())
    return values, wrong


def _looks(frame: DataFrame, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many values of each of these columns look like what, by one job."""
    patterns = {"integers": _INTEGER, "numbers": _FLOAT, "times": _TIME, "zones": _ZONE}
    counts = []
    for name in names:
        text = F.trim(F.col(_quoted(name)))
        counts += [F.count(text), *[F.count_if(text.rlike(pattern)) for pattern in patterns.values()]]
        counts.append(F.count(F.when(text.rlike(_TIME), _cast(name, "timestamp_ltz"))))
    row = list(frame.agg(*[count.alias(f"c{k}") for k, count in enumerate(counts)]).collect()[0])
    kinds = ("all", *patterns, "moments")
    return {name: dict(zip(kinds, row[k * len(kinds) :])) for k, name in enumerate(names)}


def _cast(name: str, kind: str) -> Column:
    return F.expr(f"try_cast(trim({_quoted(name)}) AS {kind})")


def _numbered(frame: DataFrame) -> DataFrame:
    """The frame with a column that numbers its rows from 0, in the order in which they were read."""
    counts = frame.groupBy(F.spark_partition_id().alias("part")).count().collect()
    offsets, total = {}, 0
    for part, count in sorted((r["part"], r["count"]) for r in counts):
        offsets[part], total = total, total + count
    # The upper bits of this identifier are the partition, the lower 33 count within it.
    identifier = F.monotonically_increasing_id()
    starts = F.create_map(*[F.lit(v) for pair in offsets.items() for v in pair]) if offsets else F.create_map()
    part = F.shiftright(identifier, 33).cast("int")
    return frame.withColumn(_ROW, identifier.bitwiseAND(F.lit((1 << 33) - 1)) + starts[part].cast("long"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
