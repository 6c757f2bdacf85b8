"""The process that runs DuckDB: a request is one line of JSON with ``stream`` and ``question``, and so is its answer.

Each question counts the matches of a query in SQL on a table of ticks in memory, with one thread. Texts in dictionaries
become enumerations.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.processes import answer_lines
from benchmarks.streams import load

__all__ = ["answer", "main"]


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answer_lines(answer)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The number of matches, and the time that counting took."""
    session, events = _session(json.dumps(request["stream"]))
    question = request.get("sql") or QUESTIONS[request["question"]].format(window=request.get("window"))
    used, begin = time.process_time(), time.perf_counter()
    row = session.execute(question).fetchone()
    seconds, processor = time.perf_counter() - begin, time.process_time() - used
    assert row is not None
    return {"events": events, "matches": str(row[0]), "seconds": seconds, "processor": processor}


@lru_cache(maxsize=2)
def _session(stream: str) -> tuple[duckdb.DuckDBPyConnection, int]:
    """A database with the events in a table, called as the stream (``ticks`` of stocks), and the number of its rows."""
    (table,) = load(json.loads(stream)).chunks()
    kind = json.loads(stream)["kind"]
    session = duckdb.connect(config={"threads": 1})
    session.register("events", table)
    columns = []
    for name in table.column_names:
        if pa.types.is_dictionary(table.schema.field(name).type):
            texts = ", ".join(f"'{text}'" for text in sorted(table.column(name).unique().to_pylist()))
            session.execute(f"CREATE TYPE {name}s AS ENUM ({texts})")
            columns.append(f"{name}::{name}s AS {name}")
        else:
            columns.append(name)
    session.execute(f"CREATE TABLE {'ticks' if kind == 'stocks' else kind} AS SELECT {', '.join(columns)} FROM events")
    session.unregister("events")
    return session, table.num_rows


def _step(kind: str, name: str) -> str:
    moment = "stock_time AS t, stock_time - stock_time % {window} AS bucket"
    return f"SELECT rowid AS i, price, {moment} FROM ticks WHERE type = '{kind}' AND name = '{name}'"


def _sequence(names: tuple[str, str, str], second: str = "true", third: str = "true") -> str:
    """Joins on buckets of time as long as the window: each pair is in one bucket, or in two neighbours."""
    return f"""
        WITH a AS ({_step("SELL", names[0])}), b AS ({_step("BUY", names[1])}), c AS ({_step("BUY", names[2])}),
        begun AS (SELECT *, unnest([bucket, bucket + {{window}}]) AS own FROM a),
        pairs AS (
            SELECT a.t, b.i, b.price, unnest([a.bucket, a.bucket + {{window}}]) AS own
            FROM begun a JOIN b ON b.bucket = a.own WHERE b.i > a.i AND b.t - a.t < {{window}} AND {second}
        )
        SELECT count(*) FROM pairs b JOIN c ON c.bucket = b.own WHERE c.i > b.i AND c.t - b.t < {{window}} AND {third}
    """


def _following(names: tuple[str, str, str]) -> str:
    """ASOF joins: each event of a step with the next one of the following step."""
    steps = [f"(SELECT rowid AS i FROM ticks WHERE type = 'BUY' AND name = '{name}')" for name in names[1:]]
    first = f"(SELECT rowid AS i FROM ticks WHERE type = 'SELL' AND name = '{names[0]}')"
    return f"SELECT count(*) FROM {first} a ASOF JOIN {steps[0]} b ON b.i > a.i ASOF JOIN {steps[1]} c ON c.i > b.i"


def _strict(own: str) -> str:
    """The rows as they lie; a window without an order needs no sorting."""
    rows = f"SELECT type = 'SELL' AND {own} AS s, type = 'BUY' AND {own} AS b FROM ticks"
    return f"""
        SELECT count(*) FROM (SELECT s, lead(b, 1) OVER () AS b, lead(s, 2) OVER () AS c FROM ({rows}))
        WHERE s AND b AND c
    """


_BY_NAME = "WINDOW w AS (PARTITION BY name ORDER BY rowid)"
_V = f"""
    SELECT count(*) FROM (
        SELECT price AS a, lead(price, 1) OVER w AS b, lead(price, 2) OVER w AS c, lead(price, 3) OVER w AS d,
               lead(price, 4) OVER w AS e
        FROM ticks {_BY_NAME}
    ) WHERE b < a AND c < b AND d > c AND e > d
"""
#: Of turns two events apart only every other one counts, as events are consumed.
_TURNS = f"""
    WITH found AS (
        SELECT name, i FROM (
            SELECT name, row_number() OVER w AS i, price, lag(price, 1) OVER w AS low, lag(price, 2) OVER w AS high
            FROM ticks {_BY_NAME}
        ) WHERE low < high AND low < price
    ), runs AS (
        SELECT name, i - 2 * row_number() OVER (PARTITION BY name ORDER BY i) AS run FROM found
    )
    SELECT sum((n + n % 2) / 2)::BIGINT FROM (SELECT count(*) AS n FROM runs GROUP BY name, run)
"""

#: The questions by the names of the queries.
QUESTIONS = {
    "sequence": _sequence(("INTC", "RIMM", "QQQ")),
    "rise3": _sequence(("INTC", "INTC", "INTC"), "b.price > a.price", "c.price > b.price"),
    "next": _following(("INTC", "RIMM", "QQQ")),
    "strict": _strict("true"),
    "strict, name": _strict("name = 'INTC'"),
    "v": _V,
    "turns, max, consumed": _TURNS,
}


if __name__ == "__main__":
    main()
