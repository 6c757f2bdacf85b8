"""The queries, and the ways in which Spark is asked: what is measured of each is a job that counts its rows."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.spark.ticks import NARROW, WIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ORDINARY", "PASS", "QUESTIONS", "SCAN", "SOURCE", "TAKE", "WAYS", "Question", "frame_of", "missing"]

#: The ways: names of engines in the results.
SCAN, PASS, TAKE, ORDINARY, SOURCE = (
    "scan, no Python",
    "mapInArrow, pass-through",
    "mapInArrow, takes in",
    "cerflow.spark.match",
    "cerflow data source",
)
WAYS = (SCAN, PASS, TAKE, ORDINARY, SOURCE)


@dataclass(frozen=True)
class Question:
    """A query, the columns that it reads or reports, and the words that bars look for.

    Without a query there are only the scan, the pass-through, which hands on the same columns, and the floor, which
    takes them in and returns nothing.
    """

    name: str
    columns: tuple[str, ...]
    tags: frozenset[str]
    query: str | None = None


_REPORTED = "SELECT s[price, volume], b[price, volume] WHERE (SELL AS s ; BUY AS b)"
_LARGE = "s.volume >= 1000 AND b.volume >= 1000"
_SAME = "s.price = b.price AND s.volume = b.volume"

#: Selective: one event of a hundred can be part of a match. Unselective: any can, and what decides is a condition
#: between events. Both unselective queries mean the same.
QUESTIONS = (
    Question("5 columns", NARROW, frozenset({"floor"})),
    Question("12 columns", WIDE, frozenset({"floor"})),
    Question(
        "selective",
        NARROW,
        frozenset({"selective"}),
        f"{_REPORTED} FILTER s.name = 'MSFT' AND b.name = 'ORCL' AND {_LARGE} WITHIN 10 SECONDS",
    ),
    Question(
        "selective, by key",
        NARROW,
        frozenset({"selective"}),
        f"{_REPORTED} FILTER {_LARGE} AND b.price < s.price PARTITION BY name WITHIN 10 SECONDS",
    ),
    Question(
        "selective, by key, all attributes",
        WIDE,
        frozenset(),
        f"SELECT * WHERE (SELL AS s ; BUY AS b) FILTER {_LARGE} AND b.price < s.price "
        "PARTITION BY name WITHIN 10 SECONDS",
    ),
    Question(
        "unselective",
        NARROW,
        frozenset({"same", "unselective"}),
        f"{_REPORTED} FILTER s.name = b.name AND {_SAME} WITHIN 1 SECONDS",
    ),
    Question(
        "unselective, by key",
        NARROW,
        frozenset({"same", "unselective"}),
        f"{_REPORTED} FILTER {_SAME} PARTITION BY name WITHIN 1 SECONDS",
    ),
    # Its window counts the events of each key, so no slices of time can share the work.
    Question(
        "no slices, by key",
        NARROW,
        frozenset(),
        f"{_REPORTED} FILTER {_SAME} PARTITION BY name WITHIN 5 EVENTS",
    ),
)


def missing() -> dict[str, str]:
    """The ways that cannot be asked here, and why."""
    if find_spec("pyspark") is None:
        return dict.fromkeys(WAYS, "PySpark is not installed (it comes with the extra 'spark')")
    if find_spec("pyspark_cerflow") is None:
        return {SOURCE: "this version of cerflow has no data source"}
    return {}


def frame_of(session: SparkSession, way: str, question: Question, path: str) -> DataFrame:
    """What the job computes: the events as they are, or the matches."""
    if question.query is None:
        events = session.read.parquet(path).select(*question.columns)
        if way == SCAN:
            return events
        keeps = way == PASS
        return events.mapInArrow(lambda batches: (batch for batch in batches if keeps), events.schema)
    if way == ORDINARY:
        from cerflow.spark import match

        return match(question.query, session.read.parquet(path), time="time")
    return session.read.format("cerflow").option("query", question.query).option("time", "time").load(path)
