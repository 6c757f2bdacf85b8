"""Several DataFrames as several streams of one; the rules are those of `cerflow.api.stream_inputs`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, DoubleType, LongType

from cerflow.api import stream_inputs
from cerflow.api.stream_inputs import Input, Roles, Streams
from cerflow.base.graphs import gathered
from cerflow.base.schema import ValueKind, kind_of
from cerflow.base.units import TimeUnit
from cerflow.spark.frames.schemas import arrow_schema, refuse_untransferable


def streams(
    inputs: Mapping[str, Input[DataFrame]],
    *,
    type: str | None = None,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    sequence: str | None = None,
    stream: str = "stream",
) -> Streams[DataFrame]:
    """The events of several DataFrames as one, for queries ``FROM a, b``; the keys are the names of the streams.

    The arguments, the columns of the result and the errors are those of `cerflow.streams`. Nothing is computed. The
    rows of the first input come before those of the second, which counts where nothing else orders events::

        both = streams({"trades": Input(trades, type="kind"), "quotes": Input(quotes, constant_type="QUOTE")}, time="t")
        match(query, both.events, **both.roles)
    """
    common = stream_inputs.common_roles(inputs, type=type, time=time, time_unit=time_unit, sequence=sequence)
    frames: dict[str, DataFrame] = {}
    for name, one in inputs.items():
        frame = one.events
        if one.constant_type is not None:
            # Spark looks up names without regard to case, so there may be such a column; a selection adds another.
            frame = frame.select("*", F.lit(one.constant_type))
        frame = frame.toDF(*stream_inputs.column_names(one.events.columns, one, common, name))
        frames[name] = _in_common_unit(frame, one.time_unit or time_unit, common)
    stream_inputs.refuse_partly_typed(((name, frame.columns) for name, frame in frames.items()), common["type"])
    stream = stream_inputs.free_name(stream, [column for frame in frames.values() for column in frame.columns])
    parts, types = [], _common_types(frames)
    for name, frame in frames.items():
        own = {field.name: (f"c{k}", field.dataType) for k, field in enumerate(frame.schema.fields)}
        columns = []
        for column, wanted in types.items():
            place, found = own.get(column, (None, None))
            value = F.lit(None) if place is None else F.col(place)
            same = found is not None and found.simpleString() == wanted.simpleString()
            columns.append((value if same else value.cast(wanted)).alias(column))
        parts.append(_with_plain_names(frame).select(*columns, F.lit(name).alias(stream)))
    return Streams(reduce(DataFrame.union, parts), {**common, "stream": stream})


def _with_plain_names(frame: DataFrame) -> DataFrame:
    # Names that differ in case only are different here.
    return frame.toDF(*[f"c{k}" for k in range(len(frame.columns))])


def _in_common_unit(frame: DataFrame, unit: TimeUnit | None, common: Roles) -> DataFrame:
    """The events of an input with its times, which count ``unit``, in the unit of all inputs."""
    ratio = stream_inputs.ratio_of_units(unit, common, frame.columns)
    if ratio == 1:
        return frame
    kind = kind_of(arrow_schema(frame).field(common["time"]).type)
    if not kind.numeric:
        return frame
    time = f"c{frame.columns.index(common['time'])}"
    value = F.col(time).cast(LongType() if kind is ValueKind.INTEGER else DoubleType()) * F.lit(ratio)
    return _with_plain_names(frame).withColumn(time, value).toDF(*frame.columns)


def _common_types(frames: Mapping[str, DataFrame]) -> dict[str, DataType]:
    fields = (field for frame in frames.values() for field in frame.schema.fields)
    found = gathered((field.name, field.dataType) for field in fields)
    different = {name for name, types in found.items() if len({t.simpleString() for t in types}) > 1}
    schemas = []
    for name, frame in frames.items():
        schema = arrow_schema(frame)
        mixed = [field for field in schema if field.name in different]
        refuse_untransferable(frame, schema, [field.name for field in mixed])
        schemas.append((name, pa.schema(mixed)))
    wider = {field.name: from_arrow_type(field.type) for field in stream_inputs.common_schema(schemas)}
    return {name: wider.get(name, types[0]) for name, types in found.items()}
