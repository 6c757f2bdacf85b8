"""The suite *everyday*: questions to plain tables for which nothing in cerflow is made; Polars and DuckDB, one thread.

cerflow answers by `Query.match`, as no event follows the table. The first eight were asked by others, the second eight
are of the kind that the cookbook answers. Polars answers by the functions of `benchmarks/peers/polars_everyday.py`,
DuckDB by the SQL that stands here.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.cases import Case, Language, Peer, Scale, Stream

__all__ = ["QUESTIONS", "Question", "cases"]


class Question(NamedTuple):
    """A query on one of the streams of `benchmarks.everyday_streams`, and the same in SQL if it can be said there."""

    stream: str
    query: str
    columns: tuple[str, ...]
    sql: str | None
    language: Language = "ceql"


def _rows(kind: str, condition: str = "true") -> str:
    return f"(SELECT rowid AS i, * FROM shop WHERE type = '{kind}' AND {condition})"


def _neighbours(count: int, condition: str, columns: str = "value") -> str:
    """The runs of rows of a machine, ``v0`` to the last, that satisfy a condition."""
    later = ", ".join(f"lead({columns}, {n}) OVER w AS v{n}" for n in range(1, count))
    window = "WINDOW w AS (PARTITION BY machine ORDER BY rowid)"
    return f"SELECT count(*) FROM (SELECT {columns} AS v0, {later} FROM machines {window}) WHERE {condition}"


_BY_USER = "b.user = a.user AND b.i > a.i"
_ABSENT = """
    SELECT count(*) FROM {first} a ASOF LEFT JOIN {then} b ON b.user = a.user AND b.i > a.i
    WHERE (b.ts IS NULL OR b.ts >= a.ts + INTERVAL {wait}) AND a.ts + INTERVAL {wait} <= (SELECT max(ts) FROM shop)
"""

#: By name; see `Question`.
QUESTIONS = {
    "funnel": Question(
        "shop",
        "SELECT * WHERE (view AS a ; cart AS b ; buy AS c) FILTER b.amount > a.amount AND c.amount > b.amount "
        "PARTITION BY user WITHIN 1 HOUR",
        ("type", "user", "amount", "ts"),
        f"SELECT count(*) FROM {_rows('view')} a JOIN {_rows('cart')} b ON {_BY_USER} AND b.amount > a.amount "
        f"JOIN {_rows('buy')} c ON c.user = b.user AND c.i > b.i AND c.amount > b.amount "
        "AND c.ts - a.ts < INTERVAL 1 HOUR",
    ),
    "two countries": Question(
        "shop",
        "SELECT * WHERE (buy AS a ; buy AS b) FILTER a.user = b.user AND a.country != b.country "
        "AND b.amount > 2 * a.amount WITHIN 10 MINUTES",
        ("type", "user", "amount", "country", "ts"),
        f"SELECT count(*) FROM {_rows('buy')} a JOIN {_rows('buy')} b ON {_BY_USER} AND a.country != b.country "
        "AND b.amount > 2 * a.amount AND b.ts - a.ts < INTERVAL 10 MINUTES",
    ),
    "rising": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a : EVENT AS b : EVENT AS c : EVENT AS d : EVENT AS e) FILTER b.value > a.value "
        "AND c.value > b.value AND d.value > c.value AND e.value > d.value PARTITION BY machine",
        ("machine", "value"),
        _neighbours(5, "v1 > v0 AND v2 > v1 AND v3 > v2 AND v4 > v3"),
    ),
    "jump": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a : EVENT AS b) FILTER b.value - a.value > 1.5 PARTITION BY machine",
        ("machine", "value"),
        _neighbours(2, "v1 - v0 > 1.5"),
    ),
    "abandoned": Question(
        "shop",
        "SELECT * WHERE cart NOT FOLLOWED BY buy FOR 30 MINUTES PARTITION BY user",
        ("type", "user", "ts"),
        _ABSENT.format(first=_rows("cart"), then=_rows("buy"), wait="30 MINUTES"),
    ),
    "dearer": Question(
        "shop",
        "SELECT * WHERE (view AS a ; buy AS b) FILTER a.amount > 300 AND b.amount > a.amount "
        "PARTITION BY user WITHIN 1 DAY",
        ("type", "user", "amount", "ts"),
        f"SELECT count(*) FROM {_rows('view', 'amount > 300')} a JOIN {_rows('buy')} b ON {_BY_USER} "
        "AND b.amount > a.amount AND b.ts - a.ts < INTERVAL 1 DAY",
    ),
    "next": Question(
        "shop",
        "next([type = 'login' AND amount > 490] AS a INTO r, [type = 'buy'] AS b, "
        "[type = 'support' AND amount > r.amount] AS c)",
        ("type", "amount"),
        None,
        "sremo",
    ),
    "strict": Question(
        "shop",
        "SELECT * WHERE (view AS a : view AS b : cart AS c) FILTER a.country = b.country AND b.country = c.country "
        "AND b.amount > a.amount AND c.amount > b.amount",
        ("type", "country", "amount"),
        "SELECT count(*) FROM (SELECT type, country, amount, lead(type, 1) OVER () AS t1, lead(type, 2) OVER () AS t2, "
        "lead(country, 1) OVER () AS c1, lead(country, 2) OVER () AS c2, lead(amount, 1) OVER () AS a1, "
        "lead(amount, 2) OVER () AS a2 FROM shop) WHERE type = 'view' AND t1 = 'view' AND t2 = 'cart' "
        "AND country = c1 AND c1 = c2 AND a1 > amount AND a2 > a1",
    ),
    "rare by key": Question(
        "shop",
        "SELECT * WHERE (support AS a ; buy AS b) FILTER a.amount > 480 AND b.amount > 480 "
        "PARTITION BY user WITHIN 1 DAY",
        ("type", "user", "amount", "ts"),
        f"SELECT count(*) FROM {_rows('support', 'amount > 480')} a JOIN {_rows('buy', 'amount > 480')} b "
        f"ON {_BY_USER} AND b.ts - a.ts < INTERVAL 1 DAY",
    ),
    "pause": Question(
        "shop",
        "SELECT * WHERE (EVENT AS a : EVENT AS b) FILTER b.ts - a.ts > 1 DAY PARTITION BY user",
        ("user", "ts"),
        "SELECT count(*) FROM (SELECT ts, lead(ts) OVER (PARTITION BY user ORDER BY rowid) AS t1 FROM shop) "
        "WHERE t1 - ts > INTERVAL 1 DAY",
    ),
    "silence": Question(
        "shop",
        "SELECT * WHERE login NOT FOLLOWED BY EVENT FOR 1 HOUR PARTITION BY user",
        ("type", "user", "ts"),
        _ABSENT.format(first=_rows("login"), then="(SELECT rowid AS i, * FROM shop)", wait="1 HOUR"),
    ),
    "threshold": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a : EVENT AS b) FILTER a.value <= 2 AND b.value > 2 PARTITION BY machine",
        ("machine", "value"),
        _neighbours(2, "v0 <= 2 AND v1 > 2"),
    ),
    "outliers": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a ; EVENT AS b) FILTER a.value > 3 AND b.value > 3 AND a.machine != b.machine "
        "WITHIN 1 SECOND",
        ("machine", "value", "ts"),
        "WITH high AS (SELECT rowid AS i, * FROM machines WHERE value > 3) SELECT count(*) FROM high a JOIN high b "
        "ON b.i > a.i AND b.ts < a.ts + INTERVAL 1 SECOND AND a.machine != b.machine",
    ),
    "jump, then outlier": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a : EVENT AS b ; EVENT AS c) FILTER b.value - a.value > 4 AND c.value > 3 "
        "PARTITION BY machine WITHIN 1 MINUTE",
        ("machine", "value", "ts"),
        "WITH all_rows AS (SELECT rowid AS i, *, lag(value) OVER w AS before, lag(ts) OVER w AS begun FROM machines "
        "WINDOW w AS (PARTITION BY machine ORDER BY rowid)) SELECT count(*) FROM all_rows b JOIN all_rows c "
        "ON c.machine = b.machine AND c.i > b.i AND c.value > 3 AND b.value - b.before > 4 "
        "AND c.ts - b.begun < INTERVAL 1 MINUTE",
    ),
    "same country": Question(
        "shop",
        "SELECT * WHERE (login AS a ; buy AS b) FILTER a.country = b.country AND a.amount > 490 AND b.amount > 490 "
        "WITHIN 1 HOUR",
        ("type", "country", "amount", "ts"),
        f"SELECT count(*) FROM {_rows('login', 'amount > 490')} a JOIN {_rows('buy', 'amount > 490')} b "
        "ON b.country = a.country AND b.i > a.i AND b.ts - a.ts < INTERVAL 1 HOUR",
    ),
    "sum of three": Question(
        "machines",
        "SELECT * WHERE (EVENT AS a : EVENT AS b : EVENT AS c) FILTER a.value + b.value + c.value > 6 "
        "PARTITION BY machine",
        ("machine", "value"),
        _neighbours(3, "v0 + v1 + v2 > 6"),
    ),
}


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite; where the stream has text that is read, on plain text and on dictionaries."""
    return [
        _case(name, question, layout, 2 * scale.events)
        for name, question in QUESTIONS.items()
        for layout in (("text", "encoded") if question.stream == "shop" and not scale.quick else ("text",))
    ]


def _case(name: str, question: Question, layout: str, events: int) -> Case:
    stream = Stream(question.stream, {"events": events})
    request = {"question": name, "stream": {**stream.description, "layout": layout}}
    peers = [Peer("Polars", request, mode="count")]
    if question.sql is not None:
        peers.append(Peer("DuckDB", {**request, "sql": question.sql}, mode="count"))
    return Case(
        "everyday",
        f"{name}, {layout}",
        question.query,
        stream,
        question.columns,
        ("count",),
        tuple(peers),
        layouts=(layout,),
        language=question.language,
    )
