"""The suite *dataframes*: stock queries that plain DataFrame code and SQL can answer, too; Polars, DuckDB and Esper.

Polars and DuckDB, each with one thread, count the matches by joins, shifts and comparisons of whole columns, as
`benchmarks/peers/polars_worker.py` and `duckdb_worker.py` have them; Esper by its patterns and `match_recognize`. The
ticks come ten times one after another.
"""

from __future__ import annotations

from benchmarks.cases import Case, Peer, Scale, Stream

__all__ = ["cases"]

#: Milliseconds of the sequence.
_WINDOW = 500
_ROW = "(SELL AS a : BUY AS b : SELL AS c)"
_TICK = "(BUY OR SELL)"
_V = " : ".join(f"{_TICK} AS {label}" for label in "abcde")
_FALL = f"(({_TICK} AS a : ({_TICK} AS d) :+) AS down : {_TICK} AS u)"

#: Name, query in CEQL, columns.
_QUERIES = {
    "sequence": (
        "SELECT * WHERE (SELL AS a ; BUY AS b ; BUY AS c) FILTER a.name = 'INTC' AND b.name = 'RIMM' "
        f"AND c.name = 'QQQ' WITHIN {_WINDOW} [stock_time]",
        ("type", "name", "stock_time"),
    ),
    "next": (
        "next([type = 'SELL' AND name = 'INTC'] AS a, [type = 'BUY' AND name = 'RIMM'] AS b, "
        "[type = 'BUY' AND name = 'QQQ'] AS c)",
        ("type", "name"),
    ),
    "strict": (f"SELECT * WHERE {_ROW}", ("type",)),
    "strict, name": (
        f"SELECT * WHERE {_ROW} FILTER a.name = 'INTC' AND b.name = 'INTC' AND c.name = 'INTC'",
        ("type", "name"),
    ),
    "v": (
        f"SELECT * WHERE ({_V}) FILTER b.price < a.price AND c.price < b.price AND d.price > c.price "
        "AND e.price > d.price PARTITION BY name",
        ("type", "name", "price"),
    ),
    "turns, max, consumed": (
        f"SELECT MAX * WHERE {_FALL} FILTER down[price < prev(price)] AND u.price > last(d.price) "
        "PARTITION BY name CONSUME BY PARTITION",
        ("type", "name", "price"),
    ),
}


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite: each query on plain text and on dictionaries, which Polars has as categories."""
    stream = Stream("stocks", {**scale.stocks.arguments, "times": 1 if scale.quick else 10})
    names = ("sequence", "next", "v") if scale.quick else tuple(_QUERIES)
    return [_case(name, layout, stream) for name in names for layout in ("text", "encoded")]


def _case(name: str, layout: str, stream: Stream) -> Case:
    query, columns = _QUERIES[name]
    request = {"question": name, "stream": {**stream.description, "layout": layout}}
    if name == "sequence":
        request["window"] = _WINDOW
    # Esper has objects, whatever the layout.
    engines = ("Polars", "DuckDB", "Esper") if layout == "text" else ("Polars", "DuckDB")
    return Case(
        "dataframes",
        f"{name}, {layout}",
        query,
        stream,
        columns,
        ("count",),
        tuple(Peer(engine, request, mode="count") for engine in engines),
        layouts=(layout,),
        language="sremo" if name == "next" else "ceql",
    )
