"""The suite *scale*: one thing at a time grows - events, window, keys, distinct values, length of the pattern."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Case, Mode, Point, Scale, Stream

__all__ = ["cases"]

_SEQUENCE = "SELECT * WHERE A AS a ; B AS b ; C AS c"
_RISE = f"{_SEQUENCE} FILTER c.v > a.v"
_TYPES = "A,B,C,D,E,F,G,H,I,J"
#: Of a thousand events three are of types that the query asks for.
_RARE = "1,1,1,997"


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite."""
    return [*_events(scale), *_windows(scale), *_keys(scale), *_waiting(scale), *_values(scale), *_steps(scale)]


def _events(scale: Scale) -> list[Case]:
    found = []
    for events in _powers(100_000 if not scale.quick else 10_000, scale.most):
        for name, weights in (("", "1,1,1,1"), (" rare", _RARE)):
            stream = _stream(events, weights=weights, values=1000)
            runs = 2 if events > 10_000_000 else 100
            found.append(_case(f"events{name}", f"{_RISE} WITHIN 100 EVENTS", stream, ("events", events), runs=runs))
    return found


def _windows(scale: Scale) -> list[Case]:
    """With and without a condition between events; the last window is the whole stream."""
    found = []
    for window in _powers(100, scale.events):
        stream = _stream(scale.events, weights=_RARE, values=1000)
        axis = ("window (events)", window)
        found.append(_case("window", f"{_SEQUENCE} WITHIN {window} EVENTS", stream, axis))
        found.append(_case("window, condition", f"{_RISE} WITHIN {window} EVENTS", stream, axis))
    return found


def _keys(scale: Scale) -> list[Case]:
    found = []
    for keys in _powers(1, scale.events):
        stream = _stream(scale.events, keys=keys)
        text = f"{_SEQUENCE} PARTITION BY key WITHIN 1000 EVENTS"
        found.append(_case("keys", text, stream, ("keys", keys), ("type", "key")))
        whole = f"{_SEQUENCE} FILTER a.key = b.key AND b.key = c.key WITHIN 1000 EVENTS"
        found.append(_case("keys as conditions", whole, stream, ("keys", keys), ("type", "key")))
    return found


def _waiting(scale: Scale) -> list[Case]:
    """Carts without a checkout for half an hour, in two hours of events of ever more users."""
    every = 2 * 3600 * 10**6 // scale.events
    text = "SELECT c.key AS user WHERE (cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES) PARTITION BY [key]"
    found = []
    for keys in _powers(1, scale.events):
        stream = _stream(scale.events, types="cart,checkout,view", weights="20,15,65", keys=keys, every=every)
        found.append(_case("keys that wait", text, stream, ("keys", keys), ("type", "key", "t")))
    return found


def _values(scale: Scale) -> list[Case]:
    """Distinct values in registers: joined on equality and on order (also detected), in a window of 10,000 events."""
    found = []
    for values in _powers(10, scale.events):
        stream = _stream(scale.events, weights="1,1,8", types="A,B,D", values=values)
        for name, operator in (("equal", "="), ("greater", ">")):
            text = f"SELECT * WHERE A AS a ; B AS b FILTER b.v {operator} a.v WITHIN 10000 EVENTS"
            modes: tuple[Mode, ...] = ("count", "detect") if operator == ">" else ("count",)
            found.append(
                _case(f"values, {name}", text, stream, ("distinct values", values), ("type", "v"), modes=modes)
            )
    return found


def _steps(scale: Scale) -> list[Case]:
    found = []
    types = _TYPES.split(",")
    for length in (3, 10, 30) if scale.quick else (3, 10, 30, 100):
        stream = _stream(scale.events, types=_TYPES)
        formula = " ; ".join(f"{types[i % len(types)]} AS s{i}" for i in range(length))
        text = f"SELECT * WHERE {formula} WITHIN {10 * length} EVENTS"
        found.append(_case("steps", text, stream, ("steps", length), ("type",)))
    return found


def _powers(low: int, high: int) -> list[int]:
    """Powers of ten from one bound to the other."""
    found = []
    while low <= high:
        found.append(low)
        low *= 10
    return found


def _stream(events: int, **arguments: Any) -> Stream:
    return Stream("synthetic", {"events": events, **arguments})


def _case(
    name: str,
    text: str,
    stream: Stream,
    axis: tuple[str, int],
    columns: tuple[str, ...] = ("type", "v"),
    runs: int = 100,
    modes: tuple[Mode, ...] = ("count",),
) -> Case:
    point = Point(*axis, name)
    label = f"{name}: {point.value:,}"
    return Case("scale", label, text, stream, columns, modes, point=point, layouts=("encoded",), runs=runs)
