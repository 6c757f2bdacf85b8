"""What `match` does with a query and a DataFrame, in words: what is sent to the tasks, and how it is divided."""

from __future__ import annotations

from pyspark.sql import DataFrame

from cerflow.automata.guards import TRUE
from cerflow.engine.given import GIVEN
from cerflow.explain_text import relevant_lines, section, table
from cerflow.language.printer import show
from cerflow.query import Query, parse
from cerflow.spark.frames import Events
from cerflow.spark.narrowing import narrowed
from cerflow.spark.plan import Plan, make_plan
from cerflow.spark.pushdown import pushdown
from cerflow.spark.schemas import arrow_schema

__all__ = ["explain"]


def explain(
    query: Query | str,
    df: DataFrame,
    *,
    type: str = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    positions: bool = False,
) -> str:
    """What `match` does with the same arguments, as text; `Query.explain` tells the rest of a query.

    Nothing is computed. Raises what `match` raises for a query that does not fit the DataFrame.
    """
    compiled = parse(query) if isinstance(query, str) else query
    columns = arrow_schema(df)
    plan = make_plan(compiled, columns, type=type, time=time, sequence=sequence, stream=stream, positions=positions)
    return _sent(compiled, plan, df).rstrip()


def _sent(query: Query, plan: Plan, df: DataFrame) -> str:
    """Which rows and columns leave Spark."""
    pushed = pushdown(plan.relevance, df.schema, Events(plan.schema))
    condition = None if pushed.condition == TRUE else show(pushed.condition)
    lines = relevant_lines({"condition": condition, "reasons": pushed.reasons})
    rows = [("", line) for line in lines]
    rows[0] = ("rows", lines[0])
    if pushed.left:
        rows.append(("left to the tasks", "; ".join(map(show, pushed.left))))
    plan, _ = narrowed(query, plan, df, skip=False)
    rows.append(("columns", ", ".join(name for name in plan.needed if name != GIVEN)))
    if plan.given:
        rows.append(("as bits", "; ".join(map(show, plan.given))))
    return section("Sent to the tasks", table(rows))
