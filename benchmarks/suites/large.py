"""The suite *large*: stock queries on the ticks twenty times over - threads, and all matches in two forms.

The ticks once also have a window of 100,000 events: with a sum over the matches of every detecting event, and, where
few events detect, with one of the matches of each. And they have sets of events, so many that their numbers need more
than 64 bits.

Two threads are compared with one; matches whose events are structs with NumPy gathering the same columns.
"""

from __future__ import annotations

from benchmarks.cases import Case, Mode, Scale, Stream
from benchmarks.suites import core
from benchmarks.suites.srt import PATTERNS

__all__ = ["cases"]

_TIMES = 20
_COLUMNS = ("type", "name", "stock_time")
#: Of suite core: the queries by their names there, and whether all matches are written.
_CORE = {
    "seq3, nothing matches": False,
    "seq24, nothing matches": False,
    "partition, consume none": False,
    "seq3, consume none": True,
}


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite, on dictionaries."""
    stream = Stream("stocks", {**scale.stocks.arguments, "times": 2 if scale.quick else _TIMES})
    queries = {case.name: case.query for case in core.cases(scale) if case.name in _CORE}
    found = [_case(name, query, stream, writes=_CORE[name]) for name, query in queries.items()]
    lengths = ("seq3",) if scale.quick else ("seq3", "seq12")
    pairs = "SELECT * WHERE SELL ; BUY WITHIN 100000 EVENTS"
    wide: tuple[Mode, ...] = ("count", "aggregate")
    found.append(
        Case("large", "pairs in a wide window", pairs, scale.stocks, ("type", "price"), wide, layouts=("encoded",))
    )
    few: tuple[Mode, ...] = ("count", "aggregate", "first", "sample")
    for name, formula, events, modes in (
        ("pairs in a wide window, few detections", "SELL ; BUY AS b", 100_000, few),
        ("sets of events, numbers beyond 64 bits", "SELL+ ; BUY AS b", 200, ("count",)),
    ):
        query = f"SELECT * WHERE ({formula}) FILTER b[name = 'QQQ'] AND b[volume = 4000] WITHIN {events} EVENTS"
        columns = ("type", "name", "volume", "price")
        found.append(Case("large", name, query, scale.stocks, columns, modes, layouts=("encoded",)))
    return [*found, *(_case(f"{name}, 500 ms", PATTERNS["seq"][name].cel(500), stream) for name in lengths)]


def _case(name: str, query: str, stream: Stream, *, writes: bool = False) -> Case:
    modes: tuple[Mode, ...] = ("count", "threads", *(("write", "structs") if writes else ()))
    return Case("large", name, query, stream, _COLUMNS, modes, layouts=("encoded",))
