"""Events of a model of Z3: values that are only compared are replaced by plainer ones in the same order."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import z3

from cerflow.base.events import Value, moment_at
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.theory.deciding.samples import floats, fresh_word, integers, place_of, strings_between
from cerflow.theory.deciding.solver.symbolic_values import TEXTS_BETWEEN, SymbolicEvent, SymbolicValues, Term, ValueSort


def plain_numbers(events: Sequence[SymbolicEvent]) -> Any:
    """The formula that floats that are computed with are small whole numbers."""
    numbers = [t.number for e in events for t in e.values.values() if t.sort is ValueSort.FLOAT]
    limit = z3.FPVal(100.0, z3.Float64())
    return z3.And(
        *(z3.fpLEQ(z3.fpAbs(n), limit) for n in numbers),
        *(z3.fpEQ(z3.fpRoundToIntegral(z3.RNE(), n), n) for n in numbers),
    )


def plain_events(values: SymbolicValues, events: Sequence[SymbolicEvent], model: Any) -> list[dict[str, Value]]:
    """The events of a model, by column."""
    space, many = values.event_space, len(events) * len(values.columns())
    found: list[dict[str, Value]] = [{} for _ in events]
    for sort in {term.sort for event in events for term in event.values.values()}:
        numbers = {
            (k, column): _number(term, model)
            for k, event in enumerate(events)
            for column, term in event.values.items()
            if term.sort is sort
        }
        plain = _plain(values, sort, sorted({n for n in numbers.values() if n is not None}), many)
        for (k, column), number in numbers.items():
            found[k][column] = None if number is None else plain[number]
    read = set(map(space.column, space.kinds))
    for name in (c for c in (space.type, space.stream) if c is not None and c not in read):
        for row in found:
            # Where only some texts are distinguished, any other one will do.
            if row[name] == "" or row[name] not in values.texts:
                row[name] = fresh_word({*values.texts, *values.mentioned})
    return found


def _number(term: Term, model: Any) -> int | float | None:
    """The number of a term in a model; null where the model leaves open what it is."""
    null, number = model.eval(term.null), model.eval(term.number)
    if not z3.is_false(term.null) and (
        z3.is_true(null) or not (z3.is_false(null) or z3.is_int_value(number) or z3.is_fp_value(number))
    ):
        return None
    number = model.eval(term.number, model_completion=True)
    if term.sort is not ValueSort.FLOAT:
        return int(number.as_long())
    # Zero has no sign.
    return 0.0 + float(struct.unpack(">d", z3.simplify(z3.fpToIEEEBV(number)).as_long().to_bytes(8, "big"))[0])


def _plain(values: SymbolicValues, sort: ValueSort, used: Sequence[int | float], many: int) -> dict[int | float, Value]:
    """For each number of a sort a value, in the same order, and the same beside the constants of the query."""
    numeric = [c for c in values.constants if isinstance(c, int | float) and not isinstance(c, bool)]
    match sort:
        case ValueSort.FLOAT:
            return {n: float(n) for n in used}
        case ValueSort.TRUTH:
            return {n: bool(n) for n in used}
        case ValueSort.DURATION:
            return {n: datetime.timedelta(microseconds=int(n)) for n in used}
        case ValueSort.MOMENT:
            return {n: moment_at(int(n)) for n in used}
        case ValueSort.TEXT:
            return _plain_texts(values, used, many)
        case ValueSort.PLACE:
            found: dict[int, Value] = {place_of(f): f for f in floats(numeric, many)}
            return _respaced(used, found, {place_of(float(c)) for c in numeric})
    limited = bool(values.event_space.columns) or any(isinstance(c, float) for c in numeric)
    if values.computing or limited:
        return {n: int(n) for n in used}
    whole = integers(numeric, many, -LARGEST_INTEGER, LARGEST_INTEGER)
    return _respaced(used, {i: i for i in whole}, {int(c) for c in numeric})


def _plain_texts(values: SymbolicValues, used: Sequence[int | float], many: int) -> dict[int | float, Value]:
    found: dict[int | float, Value] = {}
    words, places = sorted(strings_between(values.texts, many)), values.text_places
    for low, high in pairwise([*values.texts, None]):
        assert low is not None
        inside = [n for n in used if places[low] < n and (high is None or n < places[high])]
        found[places[low]] = low
        if high is not None and places[high] - places[low] < TEXTS_BETWEEN:
            found.update((n, low + "\0" * int(n - places[low])) for n in inside)
        else:
            found.update(zip(inside, (w for w in words if low < w and (high is None or w < high))))
    return found


def _respaced(used: Sequence[int | float], candidates: dict[int, Value], fixed: set[int]) -> dict[int | float, Value]:
    """The candidates that lie between the same fixed numbers as the used ones, in order."""
    found: dict[int | float, Value] = {n: candidates[int(n)] for n in used if n in fixed}
    points = [-math.inf, *sorted(fixed), math.inf]
    for low, high in pairwise(points):
        inside = [n for n in used if low < n < high]
        between = sorted(place for place in candidates if low < place < high)
        # Below all of them, those beside the least one are the plainest.
        chosen = between[-len(inside) :] if low == -math.inf and fixed else between
        found.update((n, candidates[place]) for n, place in zip(inside, chosen))
    return found
