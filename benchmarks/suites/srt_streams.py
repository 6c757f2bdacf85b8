"""The patterns of the suite *srt* on the other two streams of its paper: the power of smart homes, and taxi trips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from benchmarks.cases import Case, Mode, Peer, Point, Question, Scale, Stream
from benchmarks.patterns import Attribute, Group, Pattern, Step
from cerflow.examples.taxis import ROUTES

__all__ = ["SMART_HOMES", "TAXIS", "cases_on_streams", "in_sremo", "peers_of"]

_CLOCK = "timestamp"
#: What was found of nested8 on ticks, whose 36 detecting events the definitions were asked for one by one.
_NESTED_IN_FLINK = "FlinkCEP counts more matches of nested iterations than there are by definition"
#: Of each group of three steps the households; the third draws more than the first.
_HOMES = ((0, 2, 4), (6, 9, 10), (12, 14, 17), (20, 21, 23))
#: Of each group of four steps of a nested iteration.
_NESTED_HOMES = ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15))
_LOAD, _TRIP = ("LOAD",), ("TRIP",)
_ABOVE = ("value", ">", 236)
_SHORT = ("total_amount", "<", 10)


def _home(label: str, household: int, *, repeated: bool = False) -> Step:
    return Step(label, _LOAD, (("household", "=", household), _ABOVE), repeated)


def _above(label: str, household: int, first: Step) -> Step:
    return Step(label, _LOAD, (("household", "=", household), ("value", ">", first.at("value"))))


def _homes(length: int, *, repeated: bool) -> Pattern:
    steps: list[Step | Group] = []
    for number, (first, middle, last) in enumerate(_HOMES[: length // 3]):
        x = _home(f"x{number}", first)
        steps += [x, _home(f"y{number}", middle, repeated=repeated), _above(f"z{number}", last, x)]
    return Pattern(tuple(steps), _CLOCK)


def _nested_homes(length: int) -> Pattern:
    parts: list[Step | Group] = []
    for number, (first, second, third, last) in enumerate(_NESTED_HOMES[: length // 4]):
        x = _home(f"x{number}", first)
        group = Group((_home(f"y{number}", second), _home(f"z{number}", third, repeated=True)))
        parts += [x, group, _above(f"w{number}", last, x)]
    return Pattern(tuple(parts), _CLOCK)


def _route(zones: tuple[str, str]) -> tuple[tuple[str, str, object], ...]:
    return (("pickup_zone", "=", zones[0]), ("dropoff_zone", "=", zones[1]))


def _trips(length: int, *, repeated: bool) -> Pattern:
    steps: list[Step | Group] = []
    for number, chain in enumerate(ROUTES[: length // 3]):
        first, middle, last = map(_route, pairwise(chain))
        x = Step(f"x{number}", _TRIP, first)
        y = Step(f"y{number}", _TRIP, (*middle, *((_SHORT,) if repeated else ())), repeated)
        steps += [x, y, Step(f"z{number}", _TRIP, (*last, ("total_amount", ">", x.at("total_amount"))))]
    return Pattern(tuple(steps), _CLOCK)


def _nested_trips(length: int) -> Pattern:
    parts: list[Step | Group] = []
    for number, chain in enumerate(ROUTES[: length // 4]):
        first, middle, last = map(_route, pairwise(chain))
        x = Step(f"x{number}", _TRIP, first)
        y = Step(f"y{number}", _TRIP, (*middle, ("total_amount", ">=", 10)))
        z = Step(f"z{number}", _TRIP, (*middle, _SHORT), repeated=True)
        w = Step(f"w{number}", _TRIP, (*last, ("total_amount", ">", x.at("total_amount"))))
        parts += [x, Group((y, z)), w]
    return Pattern(tuple(parts), _CLOCK)


#: All patterns by kind and name.
SMART_HOMES: dict[str, dict[str, Pattern]] = {
    "seq": {f"seq{n}": _homes(n, repeated=False) for n in (3, 6, 9, 12)},
    "kleene": {f"kleene{n}": _homes(n, repeated=True) for n in (3, 6, 9, 12)},
    "nested": {f"nested{n}": _nested_homes(n) for n in (4, 8, 12, 16)},
}
TAXIS: dict[str, dict[str, Pattern]] = {
    "seq": {f"seq{n}": _trips(n, repeated=False) for n in (3, 6, 9, 12)},
    "kleene": {f"kleene{n}": _trips(n, repeated=True) for n in (3, 6, 9, 12)},
    "nested": {f"nested{n}": _nested_trips(n) for n in (4, 8, 12, 16)},
}
#: Of each stream its events in the paper, the columns that patterns read, and the windows (s) of the paper's figures:
#: for sequences of three, for nested iterations, and for all others.
_STREAMS = {
    "smart_homes": (
        SMART_HOMES,
        1_000_000,
        ("type", "household", "value", _CLOCK),
        ((5, 10, 50, 100, 500), (5, 10, 20, 30, 40), (5,)),
    ),
    "taxis": (
        TAXIS,
        585_762,
        ("type", "pickup_zone", "dropoff_zone", "total_amount", _CLOCK),
        ((100, 200, 400, 1000, 10_000), (100, 200, 300, 400, 500, 1000), (100,)),
    ),
}


def cases_on_streams(scale: Scale) -> Iterator[Case]:
    """Every pattern in the windows that the paper has for it; matches are written in the narrowest."""
    for kind, (patterns, events, columns, (of_three, of_nested, of_others)) in _STREAMS.items():
        stream = Stream(kind, {"events": min(scale.events, events)})
        for shape, named in patterns.items():
            for name, pattern in named.items():
                if scale.quick and name not in ("seq3", "kleene3"):
                    continue
                windows = of_three if name == "seq3" else of_nested if shape == "nested" else of_others
                for window in windows[:1] if scale.quick else windows:
                    modes: tuple[Mode, ...] = ("count", *(("write",) if window == windows[0] else ()), "detect")
                    title = kind.replace("_", " ")
                    case = Case(
                        "srt",
                        f"{title}: {name}, {window} s",
                        pattern.cel(window),
                        stream,
                        columns,
                        modes,
                        peers_of(_in_ticks(pattern), window, f"{title}: {name}"),
                        point=Point(f"{title}, {shape}: window (s)", window, name) if len(windows) > 1 else None,
                        question=Question(f"{title}: {name}", f"{window} s"),
                    )
                    yield case
                    yield in_sremo(case, pattern.sremo(window))


def peers_of(pattern: Pattern, window: int, family: str) -> tuple[Peer, ...]:
    """The pattern, on columns of ticks, in the words of the other engines of the paper that can say it."""
    nested = any(isinstance(part, Group) for part in pattern.parts)
    differs = _NESTED_IN_FLINK if nested else None
    flink = Peer("FlinkCEP", {"window": window, "pattern": pattern.flink()}, differs, family)
    statement = pattern.esper(window)
    if statement is None:
        return (flink,)
    return (flink, Peer("Esper", {"question": "statement", "statement": statement}, family=family, mode="count"))


def _in_ticks(pattern: Pattern) -> Pattern:
    """The pattern on columns of ticks as `benchmarks.streams.TickFiles` writes them."""
    return replace(pattern, parts=tuple(map(_part_in_ticks, pattern.parts)))


def _part_in_ticks(part: Step | Group) -> Step | Group:
    if isinstance(part, Group):
        return Group(tuple(map(_part_in_ticks, part.parts)))
    conditions: list[tuple[str, str, object]] = []
    for attribute, operator, value in part.conditions:
        if attribute == "dropoff_zone":
            _, _, pickup = conditions.pop()
            conditions.append(("name", operator, f"{pickup} to {value}"))
        elif attribute == "household":
            conditions.append(("name", operator, str(value)))
        elif attribute in ("value", "total_amount"):
            limit = Attribute(value.label, "price") if isinstance(value, Attribute) else value
            conditions.append(("price", operator, limit))
        else:
            conditions.append((attribute, operator, value))
    return replace(part, conditions=tuple(conditions))


def in_sremo(case: Case, text: str) -> Case:
    """The same question in SREMO: counted and detected, by cerflow alone."""
    return replace(
        case,
        name=f"{case.name}, SREMO",
        query=text,
        language="sremo",
        modes=("count", "detect"),
        peers=(),
        tags=frozenset(),
        point=case.point and case.point._replace(line=f"{case.point.line}, SREMO"),
        layouts=("encoded",),
    )
