"""Lets Spark evaluate conditions, so that columns that only they read need not be sent.

The results travel as bits of one integer column (see `cerflow.engine.evaluate.precomputed_conditions`). So types of
events, and texts that only conditions read, never leave Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.automata.model.clock import has_ticks
from cerflow.base import limits
from cerflow.base.errors import BadRecordError
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED_BITS, with_bits
from cerflow.engine.evaluate.ranges import limits as limits_of
from cerflow.engine.pushdown.relevance import Relevance, plainly
from cerflow.engine.recognize.plan import Plan as EnginePlan
from cerflow.language.condition import Condition, Not
from cerflow.language.predicates.registry import predicates_in
from cerflow.language.sremo import with_fields
from cerflow.logic.conditions.connectives import TRUE, atomic_conditions
from cerflow.logic.conditions.propositions import is_true, leaves_of
from cerflow.logic.rewriting.times import with_times_as_numbers
from cerflow.spark.frames.conditions import SparkConditions
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.plan import JobPlan

#: The number of conditions whose bits fit a column of 32.
_NARROW = 15


def narrowed(query: Query | Program, plan: JobPlan, types: StructType) -> tuple[JobPlan, Column | None]:
    """A plan that needs fewer columns, and the column of bits; the same plan, and None, if that does not pay.

    It never pays for programs, whose statements read different events. The bits are over plain names of the columns of
    ``types``, and for relevant events alone.
    """
    if isinstance(query, Program):
        return plan, None
    events = EventColumns(plan.schema)
    conditions = events.conditions(types)
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
    bits = _bits(precomputed, plan.schema, conditions, stream)
    bits = _checked(bits, events, [name for name in limits_of(plan.schema) if name not in needed])
    bits = bits.cast(LongType() if wide else IntegerType())
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
    sure = [part for part in parts if all(conditions.decides(leaf) for leaf in _leaves(part, schema, stream))]
    if not sure:
        return ()
    saved = (
        engine.needs - EnginePlan(query.tree, with_bits(schema), transducer=engine.transducer, precomputed=sure).needs
    )
    if len(saved) < 2 and not any(schema.kind(name) is ValueKind.STRING for name in saved):
        return ()
    chosen = tuple(part for part in sure if engine.reading(part) & saved)
    return chosen if len(chosen) <= PRECOMPUTED_BITS else ()


def _leaves(condition: Condition, schema: Schema, stream: str | None) -> list[Condition]:
    return [leaf for known in _known(condition, schema, stream) for leaf in leaves_of(known)]


def _known(condition: Condition, schema: Schema, stream: str | None) -> tuple[Condition, Condition]:
    """Two conditions: that a condition is true, and that it is false."""
    return plainly(is_true(condition), schema, stream), plainly(is_true(Not(condition)), schema, stream)


def _checked(bits: Column, events: EventColumns, names: Sequence[str]) -> Column:
    """The bits, or the error of a bad record for a value of these columns that the engine could not hold."""
    for reason, bad in events.beyond(names).items():
        values = F.concat_ws(
            ", ", *(F.concat(F.lit(f"{n}: "), F.col(events.plain(n)).cast(StringType())) for n in names)
        )
        text = F.concat(F.lit(f"{BadRecordError.__module__}.BadRecordError: row {{"), values, F.lit(f"}}: {reason}"))
        bits = F.when(bad, F.raise_error(text).cast(LongType())).otherwise(bits)
    return bits


def _bits(precomputed: Sequence[Condition], schema: Schema, conditions: SparkConditions, stream: str | None) -> Column:
    found = []
    for number, condition in enumerate(precomputed):
        true, false = (conditions.proposition(known) for known in _known(condition, schema, stream))
        found.append(F.when(true, 1 << 2 * number).when(false, 0).otherwise(2 << 2 * number).cast(LongType()))
    return reduce(Column.bitwiseOR, found)
