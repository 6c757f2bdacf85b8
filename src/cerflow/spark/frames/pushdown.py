"""Lets Spark drop irrelevant events, if possible while it reads the files.

`cerflow.pushdown.relevance` gives the condition for relevant events; Spark gets the part of it that it is sure to
evaluate as the engine does (see `cerflow.pushdown.spark`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from cerflow import limits
from cerflow.conditions.connectives import TRUE
from cerflow.conditions.propositions import leaves_of, weakened
from cerflow.language.condition import Condition
from cerflow.pushdown.relevance import Relevance, by_types, or_invalid
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.plan import JobPlan


@dataclass(frozen=True)
class Pushdown:
    """The events that Spark drops: those that do not satisfy ``condition``. TRUE drops none.

    ``left`` are the conditions that only the engine can evaluate, and ``reasons`` say why no more is dropped.
    """

    condition: Condition
    left: tuple[Condition, ...]
    reasons: tuple[str, ...]


def pushdown(relevance: Relevance, types: StructType, events: EventColumns) -> Pushdown:
    """The part of the condition for relevant events that Spark can decide; ``types`` is the schema of the input."""
    conditions = events.conditions(types)
    whole = relevance.condition
    if len(leaves_of(whole)) > limits.PUSHED_LEAVES:
        whole = by_types(whole, events.schema)
    left = tuple(leaf for leaf in leaves_of(whole) if not conditions.decides(leaf))
    return Pushdown(weakened(whole, conditions.decides), left, relevance.reasons)


def relevant(frame: DataFrame, plan: JobPlan, types: StructType, events: EventColumns, *, skip: bool) -> DataFrame:
    """The relevant events of a frame with plain column names, and bad records unless these are skipped."""
    if plan.relevance.condition == TRUE:
        return frame
    pushed = pushdown(plan.relevance, types, events)
    if pushed.condition == TRUE:
        return frame
    condition = pushed.condition if skip else or_invalid(pushed.condition, plan.schema)
    return frame.filter(events.conditions(types).proposition(condition))
