"""The suite *srt*: the patterns of the paper on symbolic register transducers; peers FlinkCEP and Esper.

Sequences and sequences with iterations of 3 to 12 steps, one condition between events for every three of them;
nested iterations of 4 to 16 steps; and the queries q1 to q5. All with skip-till-any-match, in CEQL and in SREMO.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases import Case, Mode, Point, Question, Scale
from benchmarks.patterns import Group, Pattern, Step
from benchmarks.suites.srt_streams import cases_on_streams, in_sremo, peers_of

__all__ = ["PATTERNS", "cases"]

#: Of each group of three steps the names; the third costs more than the first, and is bought.
_NAMES = (("INTC", "RIMM", "QQQ"), ("IPIX", "AMAT", "CSCO"), ("YHOO", "DELL", "ORCL"), ("MSFT", "INTC", "RIMM"))
#: Of each group of four steps of a nested iteration; the last costs less than the first, and is sold.
_NESTED = (
    ("INTC", "RIMM", "QQQ", "MSFT"),
    ("IPIX", "AMAT", "CSCO", "ORCL"),
    ("YHOO", "DELL", "ORCL", "ORCL"),
    ("MSFT", "INTC", "RIMM", "AMAT"),
)
_SELL, _BUY, _BOTH = ("SELL",), ("BUY",), ("BUY", "SELL")
_LIMIT = ("price", "<", 500)
_COLUMNS = ("type", "name", "price", "stock_time")

_WINDOWS = (500, 1000, 2000, 5000, 10_000, 30_000)
_QUICK_WINDOWS = (500, 5000)
#: The window of the paper for the queries, which find little in narrower ones.
_OF_QUERIES = 1000
#: The patterns that nothing matches in generated ticks, and in recorded ones, up to windows (ms).
_EMPTY = {"q2": 1000}
_EMPTY_IN_RECORDED = {
    "q2": 1000,
    "seq6": 2000,
    "kleene6": 2000,
    **dict.fromkeys(("seq9", "seq12", "kleene9", "kleene12"), 30_000),
}
_APART = "what it asks for does not come together in so short a time"
#: Beyond these windows (ms) the matches are too many to be written; they are still counted.
_WRITABLE = {"seq": 10_000, "kleene": 2000, "nested": 1000, "q": 2000}


def _sequence(length: int, *, repeated: bool) -> Pattern:
    steps: list[Step | Group] = []
    for number, (first, middle, last) in enumerate(_NAMES[: length // 3]):
        x = Step(f"x{number}", _SELL, (("name", "=", first),))
        limit = (_LIMIT,) if repeated else ()
        y = Step(f"y{number}", _BUY, (("name", "=", middle), *limit), repeated=repeated)
        z = Step(f"z{number}", _BUY, (("name", "=", last), ("price", ">", x.at("price"))))
        steps += [x, y, z]
    return Pattern(tuple(steps))


def _nested(length: int) -> Pattern:
    parts: list[Step | Group] = []
    for number, (first, second, third, last) in enumerate(_NESTED[: length // 4]):
        x = Step(f"x{number}", _SELL, (("name", "=", first),))
        y = Step(f"y{number}", _BUY, (("name", "=", second), _LIMIT))
        z = Step(f"z{number}", _BUY, (("name", "=", third),), repeated=True)
        w = Step(f"w{number}", _SELL, (("name", "=", last), ("price", "<", x.at("price"))))
        parts += [x, Group((y, z)), w]
    return Pattern(tuple(parts))


def _chain(middle: tuple[str, ...], *, thresholds: bool) -> Pattern:
    """The queries q1 to q4: MSFT, ORCL, CSCO, and AMAT at a lower price than the first."""
    above = (("price", ">", 26.0),) if thresholds else ()
    x = Step("x", _SELL, (("name", "=", "MSFT"), *above))
    y = Step("y", middle, (("name", "=", "ORCL"), *((("price", ">", 11.14),) if thresholds else ())))
    z = Step("z", middle, (("name", "=", "CSCO"),))
    low = (("price", ">=", 18.92),) if thresholds else ()
    w = Step("w", _SELL, (("name", "=", "AMAT"), ("price", "<", x.at("price")), *low))
    return Pattern((x, y, z, w))


def _q5() -> Pattern:
    x = Step("x", _SELL, (("name", "=", "MSFT"),))
    y = Step("y", _BOTH, (("name", "=", "QQQ"), ("volume", "=", 4000)), repeated=True)
    z = Step("z", _SELL, (("name", "=", "AMAT"), ("price", "<", x.at("price"))))
    return Pattern((x, y, z))


#: All patterns by kind and name.
PATTERNS: dict[str, dict[str, Pattern]] = {
    "seq": {f"seq{n}": _sequence(n, repeated=False) for n in (3, 6, 9, 12)},
    "kleene": {f"kleene{n}": _sequence(n, repeated=True) for n in (3, 6, 9, 12)},
    "nested": {f"nested{n}": _nested(n) for n in (4, 8, 12, 16)},
    "q": {
        "q1": _chain(_BUY, thresholds=False),
        "q2": _chain(_BUY, thresholds=True),
        "q3": _chain(_BOTH, thresholds=False),
        "q4": _chain(_BOTH, thresholds=True),
        "q5": _q5(),
    },
}


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite, every pattern in every window; `at bar` marks the windows that a bar speaks of."""
    found = [
        case for kind, named in PATTERNS.items() for name, p in named.items() for case in _all(kind, name, p, scale)
    ]
    return [*found, *cases_on_streams(scale)]


def _all(kind: str, name: str, pattern: Pattern, scale: Scale) -> Iterator[Case]:
    if scale.quick and name not in ("seq3", "seq12", "kleene3", "nested4", "q1", "q5"):
        return
    empty = _EMPTY_IN_RECORDED if "path" in scale.stocks.arguments else _EMPTY
    windows = _QUICK_WINDOWS if scale.quick else _WINDOWS
    for window in [w for w in windows if kind != "q" or w >= _OF_QUERIES]:
        modes: tuple[Mode, ...] = ("count", *(("write",) if window <= _WRITABLE[kind] else ()), "detect")
        case = Case(
            "srt",
            f"{name}, {window} ms",
            pattern.cel(window),
            scale.stocks,
            _COLUMNS + (("volume",) if name == "q5" else ()),
            modes,
            peers_of(pattern, window, name),
            frozenset({"at bar"} if window in (500, 5000) else set()),
            Point(f"{kind}: window (ms)", window, name),
            question=Question(name, f"{window} ms"),
            empty=_APART if window <= empty.get(name, 0) else None,
        )
        yield case
        yield in_sremo(case, pattern.sremo(window))
