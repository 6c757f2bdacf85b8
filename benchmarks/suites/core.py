"""The suite *core*: the stock queries of the engine CORE as its authors published them, window 10 s; peer CORE.

The same text goes to both engines. Where nothing can match, the last step asks for a company that does not exist.
Beside them *rise3*, whose conditions relate prices, which CORE cannot say; in its place stand four other engines.
"""

from __future__ import annotations

from benchmarks.cases import Case, Mode, Peer, Scale, Stream
from benchmarks.patterns import Pattern, Step

__all__ = ["cases"]

#: The names asked for by the steps, one SELL and two BUY in turn.
_NAMES = ("INTC", "RIMM", "QQQ", "IPIX", "AMAT", "CSCO", "YHOO", "DELL", "ORCL", "MSFT", "INTC", "RIMM") * 2
_LENGTHS = (3, 6, 9, 12, 24)
_COLUMNS = ("type", "name", "stock_time")

_DISJUNCTION = (
    "(SELL as msft; (BUY OR SELL) as oracle; (BUY OR SELL) as csco; SELL as amat) FILTER msft[name = 'MSFT'] "
    "AND oracle[name = 'ORCL'] AND csco[name = 'CSCO'] AND amat[name = 'AMAT']"
)
_KLEENE = (
    "(SELL as msft; (BUY OR SELL)+ as qqq; SELL as amat) FILTER msft[name = 'MSFT'] AND qqq[name = 'QQQ'] "
    "AND qqq[volume = 4000] AND amat[name = 'AMAT']"
)
_PARTITION = " PARTITION BY [volume]"

_SOLD = Step("a", ("SELL",), (("name", "=", "INTC"),))
_DEARER = Step("b", ("BUY",), (("name", "=", "INTC"), ("price", ">", _SOLD.at("price"))))
#: An INTC sold, one bought for more, and another for still more.
RISE = Pattern((_SOLD, _DEARER, Step("c", ("BUY",), (("name", "=", "INTC"), ("price", ">", _DEARER.at("price"))))))
#: Milliseconds; all matches in the longest window are too many to write.
_WINDOWS: dict[int, tuple[Mode, ...]] = {5000: ("count", "write"), 30_000: ("count", "write"), 120_000: ("count",)}


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite; `nothing` and `matches` are what their bars go by."""
    lengths = (3, 24) if scale.quick else _LENGTHS
    found = [_case(f"seq{n}", _sequence(n, fails=True), "NONE", scale.stocks) for n in lengths]
    found += [_case("kleene", _with_nothing(_KLEENE), "NONE", scale.stocks, ("volume",))]
    found += [_case("disjunction", _with_nothing(_DISJUNCTION), "NONE", scale.stocks)]
    found += [_case("partition", _with_nothing(_DISJUNCTION) + _PARTITION, "NONE", scale.stocks, ("volume",))]
    found = [_nothing(case) for case in found]
    # All matches of longer sequences without consumption are millions, of which CORE writes 200 bytes each.
    found += [_case("seq3", _sequence(3), "NONE", scale.stocks)]
    found += [_case(f"seq{n}", _sequence(n), "ANY", scale.stocks) for n in lengths if n <= 9]
    found += [_case("kleene", _KLEENE, "ANY", scale.stocks, ("volume",))]
    found += [_case("partition", _DISJUNCTION + _PARTITION, "NONE", scale.stocks, ("volume",))]
    if not scale.quick:
        found += [_case("kleene", _KLEENE, "NONE", scale.stocks, ("volume",))]
        found += [_case("disjunction", _DISJUNCTION, "ANY", scale.stocks)]
        found += [_case("partition", _DISJUNCTION + _PARTITION, "ANY", scale.stocks, ("volume",))]
        found += [_case("partition", _DISJUNCTION + _PARTITION, "PARTITION", scale.stocks, ("volume",))]
    return found + [_rise(window, scale.stocks) for window in list(_WINDOWS)[: 1 if scale.quick else None]]


def _rise(window: int, stream: Stream) -> Case:
    libraries = {"question": "rise3", "window": window, "stream": {**stream.description, "layout": "encoded"}}
    peers = (
        Peer("FlinkCEP", {"window": window, "pattern": RISE.flink()}, family="rise3"),
        Peer("Esper", {"question": "rise3", "window": window}, family="rise3", mode="count"),
        Peer("Polars", libraries, mode="count"),
        Peer("DuckDB", libraries, mode="count"),
    )
    columns = (*_COLUMNS, "price")
    return Case("core", f"rise3, {window} ms", RISE.cel(window), stream, columns, _WINDOWS[window], peers)


def _case(name: str, formula: str, consume: str, stream: Stream, more: tuple[str, ...] = ()) -> Case:
    text = f"SELECT * FROM S WHERE {formula} WITHIN 10000 [stock_time] CONSUME BY {consume}"
    return Case(
        "core",
        f"{name}, consume {consume.lower()}",
        text,
        stream,
        _COLUMNS + more,
        peers=(Peer("CORE", {"query": text}),),
        tags=frozenset({"matches"}),
    )


def _nothing(case: Case) -> Case:
    """The same with the name and the tag of a case in which nothing matches."""
    name = case.name.replace("consume none", "nothing matches")
    modes: tuple[Mode, ...] = ("write",)
    return Case(case.suite, name, case.query, case.stream, case.columns, modes, case.peers, frozenset({"nothing"}))


def _sequence(length: int, *, fails: bool = False) -> str:
    steps = [f"{'BUY' if i % 3 else 'SELL'} as T{i + 1}" for i in range(length)]
    filters = [f"T{i + 1}[name = '{_NAMES[i]}']" for i in range(length)]
    formula = f"({'; '.join(steps)}) FILTER {' AND '.join(filters)}"
    return _with_nothing(formula) if fails else formula


def _with_nothing(formula: str) -> str:
    """One step more, which no event is."""
    pattern, filters = formula.split(") FILTER ", 1)
    return f"{pattern}; BUY as NE) FILTER {filters} AND NE[name = 'NotExists']"
