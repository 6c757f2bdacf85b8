"""Example streams and queries, and the demonstration that ``make demo`` runs.

`stocks` and `sensors` make seeded streams as Arrow tables; `query_text` reads a query that comes with the package.
"""

from __future__ import annotations

from importlib.resources import files

from cerflow.examples.sensors import farm_readings, sensors
from cerflow.examples.stocks import stocks

__all__ = ["farm_readings", "query_names", "query_text", "sensors", "stocks"]


def query_names() -> tuple[str, ...]:
    """The names of the queries that come with the package, sorted."""
    queries = files("cerflow.examples") / "queries"
    return tuple(sorted(q.name.removesuffix(".ceql") for q in queries.iterdir() if q.name.endswith(".ceql")))


def query_text(name: str) -> str:
    """The text of one of the queries in `query_names`; raises FileNotFoundError for any other name."""
    return (files("cerflow.examples") / "queries" / f"{name}.ceql").read_text(encoding="utf-8")
