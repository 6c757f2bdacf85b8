"""What `explain` says of a query on Spark, in words."""

from __future__ import annotations

from cerflow.spark.placement import Clustered, Placement
from cerflow.spark.plan import Plan

__all__ = ["explained"]


def explained(plan: Plan, placement: Placement) -> str:
    """One line for each thing that was decided."""
    lines = [f"evaluated: {placement.way}", f"because: {placement.reason}"]
    if isinstance(placement.how, Clustered):
        ordered = "by the tasks, as they read" if placement.how.in_order else "by Spark, within each partition"
        lines.append(f"put in order: {ordered}")
    lines.append(f"columns sent: {', '.join(plan.needed)}")
    lines.append(f"positions: {'numbered' if plan.positions else 'not asked for'}")
    return "\n".join(lines)
