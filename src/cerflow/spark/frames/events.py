"""Events as Spark expressions: bad records, order, keys, and which events Spark drops as irrelevant.

Spark also evaluates conditions, so that columns that only they read need not be sent: the results travel as bits of one
integer column (see `cerflow.engine.evaluate.precomputed_conditions`).

Internally the columns of the input are called ``c0``, ``c1``, …, so names that differ only in case, or that contain
dots, need no care.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name under which everybody knows it)
from pyspark.sql import types as T  # noqa: N812

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.automata.model.clock import has_ticks
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, dotted
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.base.units import DAY
from cerflow.engine.evaluate import ranges
from cerflow.engine.evaluate.measures import floats_of
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED_BITS, with_bits
from cerflow.engine.pushdown.relevance import Relevance, by_types, or_invalid, plainly
from cerflow.engine.recognize.plan import Plan as EnginePlan
from cerflow.engine.slices.cutting import GREATEST, LEAST
from cerflow.language.condition import Condition, Not
from cerflow.language.predicates.registry import predicates_in
from cerflow.language.sremo import with_fields
from cerflow.logic.conditions.connectives import TRUE, atomic_conditions
from cerflow.logic.conditions.propositions import is_true, leaves_of, weakened
from cerflow.logic.rewriting.times import with_times_as_numbers
from cerflow.spark.frames.conditions import SparkConditions
from cerflow.spark.frames.plan import JobPlan

#: Numbers the rows of the input: the partition in the upper bits, the row in the partition in the lower ones.
IDENTIFIER, ROW_BITS = "row", 33
#: Each event's position in the whole stream.
POSITION = "position"

#: The column in which Spark's readers put records that they cannot read, and why such a record is bad.
CORRUPT = "_corrupt_record"
MALFORMED = "it is malformed, or a value does not have the type of its column"
#: The number of conditions whose bits fit a column of 32.
_NARROW = 15


def record_as_json(columns: Sequence[Column]) -> Column:
    """All columns of a record as JSON.

    For it Spark parses every value, so whether a record is malformed depends on the record alone.
    """
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


class EventColumns:
    """The expressions that a plan needs, over a DataFrame with plain column names.

    ``types`` is the schema of the DataFrame as it was given.
    """

    def __init__(self, schema: Schema, types: T.StructType) -> None:
        self.schema = schema
        self._plain = {name: f"c{k}" for k, name in enumerate(schema.columns.names)}
        #: Conditions on these events as columns.
        self.conditions = SparkConditions({f.name: f.dataType for f in types.fields}, self._plain, schema.type)
        #: The type of the values that Spark compares in place of keys (see `cerflow.engine.slices.cutting`).
        self.key_type = _key_type(schema)

    def plain(self, name: str) -> str:
        """The name of an input column inside."""
        return self._plain[name]

    def renamed(self, frame: DataFrame) -> DataFrame:
        """The frame with plain column names."""
        return frame.toDF(*self._plain.values())

    def reason(self) -> Column:
        """The reason why an event cannot be used, null if it can; the same text as the engine's (spec §7)."""
        return F.coalesce(*[F.when(bad, F.lit(text)) for text, bad in self.reasons().items()])

    def reasons(self) -> dict[str, Column]:
        """The reasons why an event cannot be used, each with its condition; the first that holds counts."""
        schema = self.schema
        found = {}
        if CORRUPT in self._plain:
            columns = [F.col(name) for name in self._plain.values()]
            found[MALFORMED] = F.col(self.plain(CORRUPT)).isNotNull() & record_as_json(columns).isNotNull()
        found[f"no event type in '{schema.type.removeprefix(chr(0))}'"] = F.col(self.plain(schema.type)).isNull()
        if schema.time is not None:
            found[f"no time in '{schema.time}'"] = self._missing(schema.time)
        return {dotted(reason): bad for reason, bad in (found | self.beyond(schema.columns.names)).items()}

    def beyond(self, names: Sequence[str]) -> dict[str, Column]:
        """The reasons why values of some columns cannot be held, each with its condition."""
        found = {}
        for name, most in ranges.limits(self.schema).items():
            # All of Spark's times fit 64 bits.
            if name in names and self.schema.kind(name) is ValueKind.INTEGER:
                value = F.col(self.plain(name)).cast(T.LongType())
                found[f"a value of '{name}' {ranges.why(name, self.schema, most)}"] = (value < -most) | (value > most)
        return found

    def valid(self) -> Column:
        """Whether an event can be used."""
        return self.reason().isNull()

    def _missing(self, name: str) -> Column:
        column = F.col(self.plain(name))
        missing = column.isNull()
        return missing | F.isnan(column) if self.schema.kind(name) is ValueKind.FLOAT else missing

    def keys(self, plan: JobPlan) -> list[Column]:
        """The partition keys: null where an event has none, and equal wherever they are to the engine."""
        return [F.coalesce(*[self._key(name, key) for name in key]) for key in plan.keys]

    def _key(self, name: str, key: Sequence[str]) -> Column:
        column = F.col(self.plain(name))
        kinds = {self.schema.kind(n) for n in key}
        if ValueKind.FLOAT in kinds:
            # Zero has two bit patterns, and NaN is null.
            number = column.cast(T.DoubleType()) + F.lit(0.0)
            return F.when(~F.isnan(number), number)
        return column.cast(T.LongType()) if ValueKind.INTEGER in kinds else column

    def has_keys(self, plan: JobPlan) -> Column:
        """Whether an event belongs to a substream; true of events that cannot be used, which are not lost so.

        Without a value of a key that follows from conditions it may be a match of its own.
        """
        total = {key.attribute for key in plan.implied if key.total}
        needed = [key for names, key in zip(plan.keys, self.keys(plan)) if total.isdisjoint(names)]
        known = reduce(Column.__and__, [key.isNotNull() for key in needed], F.lit(True))
        return known | ~self.valid()

    def leading(self) -> Column:
        """The value that has a key: the time, or, without one, the identifier of the row."""
        return F.col(IDENTIFIER if self.schema.time is None else self.plain(self.schema.time))

    def at_least(self, key: int) -> Column:
        """Whether the leading value has at least a key, which is none of the ends."""
        return self._compared() >= F.lit(self._literal(key)).cast(self.key_type)

    def with_number_of_keys(self, rows: DataFrame, name: str, keys: Sequence[int]) -> DataFrame:
        """Rows with the number of keys (ascending) at which to cut that are not greater than their own."""
        inner = [self._literal(key) for key in keys if key not in (LEAST, GREATEST)]
        rows = with_number_of_cuts(rows, name, self._compared(), inner, self.key_type)
        return rows.withColumn(name, F.col(name) + keys.count(LEAST))

    def _compared(self) -> Column:
        return (
            self.leading().cast(self.key_type)
            if isinstance(self.key_type, T.LongType | T.DoubleType)
            else self.leading()
        )

    def _literal(self, key: int) -> int | float | str:
        """The least value with at least a key; cast it to ``key_type``."""
        match self.key_type:
            case T.LongType():
                return key
            case T.DoubleType():
                return float(floats_of(np.array([key]))[0])
            case T.DateType():
                return str(np.datetime64(-(-key * 1000 // DAY), "D"))
        zone = "Z" if isinstance(self.key_type, T.TimestampType) else ""
        return f"{np.datetime64(key, 'us')}{zone}"

    def order(self, plan: JobPlan) -> list[Column]:
        """The columns that order the input: time, sequence, and then place (nulls last, as in-process)."""
        names = [name for name in (plan.schema.time, plan.sequence) if name is not None]
        return [F.col(self.plain(name)).asc_nulls_last() for name in names] + [F.col(IDENTIFIER).asc()]


def _key_type(schema: Schema) -> T.DataType:
    found = pa.int64() if schema.time is None else schema.columns.field(schema.time).type
    if pa.types.is_date(found):
        return T.DateType()
    match kind_of(found):
        case ValueKind.FLOAT:
            return T.DoubleType()
        case ValueKind.TIMESTAMP:
            return T.TimestampNTZType() if found.tz is None else T.TimestampType()
    return T.LongType()


def exact(schema: Schema) -> bool:
    """Whether Spark compares the times of a schema as the engine does."""
    data_type = None if schema.time is None else schema.columns.field(schema.time).type
    return data_type is None or not (pa.types.is_timestamp(data_type) and data_type.unit == "ns")


def array_column(values: Iterable[object], data_type: T.DataType) -> Column:
    """Values as an array, made of one text: thousands of literals would take long to plan."""
    return F.split(F.lit(",".join(map(str, values))), ",").cast(T.ArrayType(data_type))


def with_number_of_cuts(
    rows: DataFrame, name: str, value: Column, cuts: Sequence[object], data_type: T.DataType
) -> DataFrame:
    """Rows with the number of cuts (ascending, as in `array_column`) not greater than a value; all of them for null.

    A binary search finds it, so a row costs a few comparisons; there may be thousands of cuts.
    """
    rows = rows.withColumn(name, F.when(value.isNull(), len(cuts)).otherwise(0))
    array, found = array_column(cuts, data_type), F.col(name)
    step = 1 << len(cuts).bit_length() >> 1
    while step:
        # Beyond the array there is null.
        rows = rows.withColumn(name, F.when(F.get(array, found + (step - 1)) <= value, found + step).otherwise(found))
        step //= 2
    return rows


def pushdown(relevant: Condition, events: EventColumns) -> tuple[Condition, tuple[Condition, ...]]:
    """The condition by which Spark drops irrelevant events, TRUE for none, and what only the engine decides."""
    decides = events.conditions.decides
    if len(leaves_of(relevant)) > limits.PUSHED_LEAVES:
        relevant = by_types(relevant, events.schema)
    return weakened(relevant, decides), tuple(leaf for leaf in leaves_of(relevant) if not decides(leaf))


def relevant(frame: DataFrame, plan: JobPlan, events: EventColumns, *, skip: bool) -> DataFrame:
    """The relevant events of a frame with plain column names, and bad records unless these are skipped."""
    condition, _ = pushdown(plan.relevance.condition, events)
    if condition == TRUE:
        return frame
    condition = condition if skip else or_invalid(condition, plan.schema)
    return frame.filter(events.conditions.proposition(condition))


def narrowed(plan: JobPlan, events: EventColumns) -> tuple[JobPlan, Column | None]:
    """A plan that needs fewer columns, and the column of bits; the same plan, and None, if that does not pay.

    It never pays for programs, whose statements read different events. The bits are over plain names, and for relevant
    events alone.
    """
    query = plan.query
    if isinstance(query, Program):
        return plan, None
    conditions = events.conditions
    stream = plan.schema.stream if query.tree.streams else None
    transducer = query.plan(plan.schema).transducer
    # Ticks have a type, so types must be sent.
    unfit = plan.positions or has_ticks(transducer)
    precomputed = () if unfit else conditions_to_precompute(query, plan.schema, conditions, stream)
    if not precomputed:
        return plan, None
    wide = len(precomputed) > _NARROW
    schema = with_bits(plan.schema, pa.int64() if wide else pa.int32())
    engine = EnginePlan(query.tree, schema, transducer=transducer, precomputed=precomputed)
    needed = tuple(name for name in schema.attributes if name in engine.needs)
    found = []
    for number, condition in enumerate(precomputed):
        true, false = (conditions.proposition(known) for known in _known(condition, plan.schema, stream))
        found.append(F.when(true, 1 << 2 * number).when(false, 0).otherwise(2 << 2 * number).cast(T.LongType()))
    bits = reduce(Column.bitwiseOR, found)
    bits = _checked(bits, events, [name for name in ranges.limits(plan.schema) if name not in needed])
    bits = bits.cast(T.LongType() if wide else T.IntegerType())
    # An event without a type is a bad record, even if types are not sent.
    bits = F.when(F.col(events.plain(schema.type)).isNotNull(), bits)
    # Later steps cannot look at values that are not sent.
    schema = replace(schema, held={name: most for name, most in schema.held.items() if name in needed})
    task = replace(plan.task, precomputed=precomputed)
    return replace(plan, schema=schema, needed=needed, relevance=Relevance(TRUE), task=task), bits


def conditions_to_precompute(
    query: Query, schema: Schema, conditions: SparkConditions, stream: str | None
) -> tuple[Condition, ...]:
    """The conditions to evaluate in Spark; none if that saves no column, or only one no larger than the bits."""
    # Predicates get the values of columns, and arithmetic on times depends on the types of columns.
    tree = with_fields(query.tree, schema.attributes)
    if predicates_in(tree) or with_times_as_numbers(tree, schema) is not tree:
        return ()
    engine = query.plan(schema)
    parts = dict.fromkeys(part for test in engine.tests for part in atomic_conditions(test))
    if len(parts) > limits.NARROWED_CONDITIONS:
        return ()
    leaves = {part: chain(*map(leaves_of, _known(part, schema, stream))) for part in parts}
    sure = [part for part in parts if all(map(conditions.decides, leaves[part]))]
    if not sure:
        return ()
    saved = (
        engine.needs - EnginePlan(query.tree, with_bits(schema), transducer=engine.transducer, precomputed=sure).needs
    )
    if len(saved) < 2 and not any(schema.kind(name) is ValueKind.STRING for name in saved):
        return ()
    chosen = tuple(part for part in sure if engine.reading(part) & saved)
    return chosen if len(chosen) <= PRECOMPUTED_BITS else ()


def _known(condition: Condition, schema: Schema, stream: str | None) -> tuple[Condition, Condition]:
    """Two conditions: that a condition is true, and that it is false."""
    return plainly(is_true(condition), schema, stream), plainly(is_true(Not(condition)), schema, stream)


def _checked(bits: Column, events: EventColumns, names: Sequence[str]) -> Column:
    """The bits, or the error of a bad record for a value of these columns that the engine could not hold."""
    for reason, bad in events.beyond(names).items():
        values = F.concat_ws(
            ", ", *(F.concat(F.lit(f"{n}: "), F.col(events.plain(n)).cast(T.StringType())) for n in names)
        )
        text = F.concat(F.lit(f"{BadRecordError.__module__}.BadRecordError: row {{"), values, F.lit(f"}}: {reason}"))
        bits = F.when(bad, F.raise_error(text).cast(T.LongType())).otherwise(bits)
    return bits
