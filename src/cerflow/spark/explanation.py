"""An explanation of `match` for a query and a DataFrame: the events sent to the tasks, and how they are divided."""

from __future__ import annotations

from pyspark.sql.types import StructType

from cerflow.base import limits
from cerflow.base.errors import dotted
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import TRUE
from cerflow.look.explaining.text import relevant_lines, section, table
from cerflow.spark.frames.events import EventColumns, Pushdown, pushdown
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.placing.placement import Cut, Placement, PlacementKind
from cerflow.spark.source.planned import Planned


def explained(
    plan: JobPlan, sent: JobPlan, types: StructType, placement: Placement, greatest_share: float | None
) -> str:
    """Two paragraphs about a plan, what it became for the columns that are ``sent``, and where the events go.

    ``types`` is the schema of the input; ``greatest_share`` that of the events of one key, if it was counted.
    """
    paragraphs = [section("Sent to the tasks", table(_sent(plan, sent, types, placement)))]
    paragraphs.append(section("Divided", table(_divided(plan, placement, greatest_share))))
    return dotted("\n".join(paragraphs).rstrip())


def _sent(plan: JobPlan, sent: JobPlan, types: StructType, placement: Placement) -> list[tuple[str, str]]:
    pushed = pushdown(plan.relevance, types, EventColumns(plan.schema))
    if plan.positions and placement.kind is not PlacementKind.BY_KEY:
        # By key events are numbered before; else tasks count them.
        pushed = Pushdown(TRUE, (), ("positions count every event",))
    condition = None if pushed.condition == TRUE else show(pushed.condition)
    if isinstance(placement.how, Planned):
        return [("rows", "tasks read what the query needs from the files themselves")]
    lines = relevant_lines({"condition": condition, "reasons": pushed.reasons})
    rows = [("", line) for line in lines]
    rows[0] = ("rows", lines[0])
    if pushed.left:
        rows.append(("left to the tasks", "; ".join(map(show, pushed.left))))
    rows.append(("columns", ", ".join(name for name in sent.needed if name != PRECOMPUTED)))
    if sent.task.precomputed:
        rows.append(("as bits", "; ".join(map(show, sent.task.precomputed))))
    return rows


def _divided(plan: JobPlan, placement: Placement, greatest_share: float | None) -> list[tuple[str, str]]:
    rows = [("how", str(placement.kind)), ("why", placement.reason)]
    if isinstance(placement.how, Cut) and placement.how.at_home:
        rows.append(("put in order", "by Spark"))
    if greatest_share is not None and greatest_share > limits.SPARK_SKEW:
        way_out = "a window of time for the whole query" if plan.division.window is None else "input in order of time"
        rows.append(
            (
                "skew",
                f"one key has {greatest_share:.0%} of these events, so all tasks together are at most "
                f"{1 / greatest_share:.1f} times as fast as one; {way_out} lets slices of time share the work",
            )
        )
    rows.append(("positions", "numbered" if plan.positions else "not asked for"))
    return rows
