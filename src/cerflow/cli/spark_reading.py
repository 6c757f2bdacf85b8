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

from cerflow.cli.reading import Columns, require_columns
from cerflow.cli.sources import InputFormat, Source, stem
from cerflow.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["SparkEvents", "read_frame"]

_REASON = "_cerflow_reason"
_LINE = "_cerflow_line"
_ROW = "_cerflow_row"
_Options: TypeAlias = "dict[str, bool | float | int | str | None]"
_HEAD = ("row", "reason", "text")

_INTEGER = r"^[+-]?\d{1,18}$"
_FLOAT = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:nan|[+-]?inf|[+-]?infinity))$"
_TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclass(frozen=True)
class SparkEvents:
    """What was read.

    ``everything`` has a row for each row of the input, its columns converted; ``usable`` leaves out those that
    cannot be used. ``flagged`` is the input as it stood, with the reason against each row, or null. ``doubtful`` is
    False when only the type or the time of a row can be missing, which the recogniser notices itself. ``stream`` as
    in `cerflow.cli.reading.Events`.
    """

    everything: DataFrame
    usable: DataFrame
    flagged: DataFrame
    doubtful: bool
    stream: str | None

    def refused_count(self) -> int:
        """How many rows cannot be used."""
        return self.flagged.filter(F.col(_REASON).isNotNull()).count()

    def refused(self) -> DataFrame:
        """The rows that cannot be used: ``row``, ``reason``, ``text``, and the attributes as text."""
        attributes = [c for c in self.flagged.columns if c not in (_LINE, _REASON)]
        line = F.col(_LINE) if _LINE in self.flagged.columns else F.lit(None).cast("string")
        return (
            _numbered(self.flagged)
            .filter(F.col(_REASON).isNotNull())
            .select(
                F.col(_ROW).alias("row"),
                F.col(_REASON).alias("reason"),
                line.alias("text"),
                *[F.col(_quoted(c)).cast("string").alias(_free_name(c, _HEAD)) for c in attributes],
            )
        )


def read_frame(spark: SparkSession, sources: Sequence[Source], columns: Columns, *, named: bool) -> SparkEvents:
    """Read all sources, in the order given; raises InputError as `cerflow.cli.reading.read_events` does."""
    frames = []
    stream = None
    for source in sources:
        # Spark reads the files of a directory in an order of its own; without a time that order would be lost.
        groups = [source.path] if columns.time is not None else [str(f) for f in source.files]
        for path in groups:
            frame = _read(spark, path, source.format, columns)
            require_columns([c for c in frame.columns if c != _LINE], columns)
            if named:
                stream = stream or _free_name("stream", frame.columns)
                frame = frame.withColumn(stream, F.lit(source.name or stem(source)))
            frames.append(frame)
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other, allowMissingColumns=True)
    return _usable(frame, columns, stream)


def _read(spark: SparkSession, path: str, input_format: InputFormat, columns: Columns) -> DataFrame:
    reader = spark.read
    uri = Path(path).absolute().as_uri()
    if input_format is InputFormat.PARQUET:
        return reader.parquet(uri)
    if input_format is InputFormat.ORC:
        return reader.orc(uri)
    if input_format is InputFormat.CSV:
        options: _Options = {"header": True, "columnNameOfCorruptRecord": _LINE, "escape": '"'}
        inferred = reader.options(**options).csv(uri, inferSchema=True).schema
        fields = [
            T.StructField(f.name, T.StringType() if f.name in columns.text else f.dataType) for f in inferred.fields
        ]
        schema = T.StructType([*fields, T.StructField(_LINE, T.StringType())])
        return spark.read.options(**options).csv(uri, schema=schema)
    return reader.json(uri, columnNameOfCorruptRecord=_LINE, multiLine=_is_array(Path(path)))


def _is_array(path: Path) -> bool:
    """Whether a JSON file is one array, which Spark must be told."""
    if path.is_dir() or path.suffix in (".gz", ".bz2", ".zst", ".lz4"):
        return False
    with path.open("rb") as file:
        return file.read(1024).lstrip()[:1] == b"["


def _usable(frame: DataFrame, columns: Columns, stream: str | None) -> SparkEvents:
    attributes = [c for c in frame.columns if c != _LINE]
    converted, wrong = _conversions(frame, columns)
    reasons: list[Column] = [
        F.when(bad, F.concat(F.lit(f"{name} is not {what}: '"), F.col(_quoted(name)), F.lit("'")))
        for name, (what, bad) in wrong.items()
    ]
    whole = F.col(_LINE).isNull() if _LINE in frame.columns else F.lit(True)
    reasons.append(F.when(~whole, F.lit("the line cannot be split into columns")))
    for role, name in (("type", columns.type), ("time", columns.time)):
        if name is not None:
            missing = converted.get(name, F.col(_quoted(name))).isNull()
            if isinstance(frame.schema[name].dataType, T.DoubleType | T.FloatType):
                missing = missing | F.isnan(_quoted(name))
            if name in wrong:
                missing = missing & ~wrong[name][1]
            reasons.append(F.when(missing & whole, F.lit(f"the {role} is null")))
    reason = F.nullif(F.concat_ws("; ", *reasons), F.lit(""))
    flagged = frame.withColumn(_REASON, reason)
    kept = [converted.get(c, F.col(_quoted(c))).alias(c) for c in attributes]
    return SparkEvents(
        everything=flagged.select(*kept),
        usable=flagged.filter(F.col(_REASON).isNull()).select(*kept),
        flagged=flagged,
        doubtful=_LINE in frame.columns or bool(wrong),
        stream=stream,
    )


def _conversions(frame: DataFrame, columns: Columns) -> tuple[dict[str, Column], dict[str, tuple[str, Column]]]:
    """Columns of text that the query takes for numbers or times: their values, and which of them are wrong."""
    usage = columns.usage
    wanted = [
        f.name
        for f in frame.schema.fields
        if isinstance(f.dataType, T.StringType)
        and f.name in usage.numbers | usage.ordered | {columns.time, columns.sequence}
    ]
    values: dict[str, Column] = {}
    wrong: dict[str, tuple[str, Column]] = {}
    if not wanted:
        return values, wrong
    patterns = {"integers": _INTEGER, "numbers": _FLOAT, "times": _TIME, "zones": _ZONE}
    counts = []
    for index, name in enumerate(wanted):
        text = F.trim(F.col(_quoted(name)))
        counts.append(F.count(text).alias(f"all{index}"))
        counts += [F.count_if(text.rlike(p)).alias(f"{key}{index}") for key, p in patterns.items()]
    found = frame.agg(*counts).collect()[0].asDict()
    for index, name in enumerate(wanted):
        text = F.trim(F.col(_quoted(name)))
        total, integers, numbers, times, zones = (found[f"{key}{index}"] for key in ("all", *patterns))
        if name == columns.time and times >= numbers:
            what, pattern = "a time", _TIME
            as_time = F.try_to_timestamp(text) if zones else F.expr(f"try_cast(trim({_quoted(name)}) AS timestamp_ntz)")
            value, right = F.when(text.rlike(pattern), as_time), times
        else:
            what = "a time" if name == columns.time else "a number"
            kind = "bigint" if integers == numbers else "double"
            cast = F.expr(f"try_cast(trim({_quoted(name)}) AS {kind})")
            value, right = F.when(text.rlike(_FLOAT), cast), numbers
            if name not in usage.numbers and name != columns.time and 2 * numbers <= total:
                continue
        if total and not right:
            raise InputError(f"no value of the column '{name}' is {what}")
        values[name] = value
        wrong[name] = (what, text.isNotNull() & value.isNull())
    return values, wrong


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


def _free_name(wish: str, taken: Sequence[str]) -> str:
    while wish in taken:
        wish = f"_{wish}"
    return wish
