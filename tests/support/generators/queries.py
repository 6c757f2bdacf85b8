"""Random streams, formulas and queries (Hypothesis strategies) to compare two evaluations of the same thing.

Formulas are well-scoped, and built so that most of them match something: conditions speak of labels that are in
scope, and their atoms are true of many events. Attributes: ``v`` small integers, ``w`` floats, ``s`` and ``e``
strings, ``k`` a key, ``n`` an integer that never decreases; v, w, s, e and k are sometimes null. ``t`` is the
time, with ties.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from cerflow.base.errors import QueryError
from cerflow.base.events import Stream
from cerflow.language import formula as f
from cerflow.language.condition import (
    Condition,
    LabelReference,
)
from cerflow.language.node import walk
from cerflow.logic.analysis.scopes import labels_of, resolve
from support.generators.conditions import FIRST, STRINGS, TYPES, Fragment, atom_on_several, conditions
from support.generators.limits import FLOATS, INTEGERS, SIZES, TEXTS, first, later, mostly

CHOICES = ("NEXT", "LAST", "MAX")
#: What `Fragment.more` adds.
BY_LABELS = tuple(f"{name} BY" for name in CHOICES)
OPERATORS = ("AND", "ALL", "TIMES", "OPTIONAL", "UNLESS", "WITHOUT", "START", "STRICT", *CHOICES, *BY_LABELS)
#: What `Fragment.deadlines` adds.
DEADLINE = "NOT FOLLOWED BY"
LABELS = ("x", "y", "z", "u", "o")
Row = dict[str, Any]


@st.composite
def streams(
    draw: st.DrawFn,
    min_size: int = 4,
    max_size: int = 10,
    nulls: bool = True,
    like: f.Formula | None = None,
    ends: bool = True,
) -> list[Row]:
    """Rows of a stream in the order of their times ``t`` (milliseconds), with ties.

    With ``like`` the types often follow one another as in that formula. One stream of three has values at the limits
    of their kinds, and with ``ends`` ``t`` and ``n`` too.
    """
    size = draw(st.integers(min_size, max_size))
    limits = draw(st.integers(0, 2)) == 2
    ends = ends and limits
    time, ordered = first(draw, ends), first(draw, ends)
    rows: list[Row] = []
    # Now and then a type has the name of a label, so that EVENT gives the event two.
    types = (*TYPES, *LABELS[:2]) if draw(st.integers(0, 7)) == 7 else TYPES
    # Events that are not named in the formula stand in for EVENT.
    guide = [] if like is None else [n.name for n in walk(like) if isinstance(n, f.EventType)]

    def value(strategy: st.SearchStrategy[Any]) -> Any:
        return None if nulls and draw(st.integers(0, 15)) == 0 else draw(strategy)

    def one_of(strategy: st.SearchStrategy[Any], far: Sequence[Any]) -> Any:
        return value(mostly(strategy, far, 3) if limits else strategy)

    for place in range(size):
        time = later(draw, time, st.sampled_from((0, 1, 1, 2, 3)), ends)
        ordered = later(draw, ordered, st.integers(0, 2), ends)
        rows.append(
            {
                "type": guide[place % len(guide)]
                if guide and draw(st.integers(0, 3))
                else draw(st.sampled_from(types)),
                "t": time,
                "v": one_of(st.integers(-1, 3), INTEGERS),
                "w": one_of(st.sampled_from((-0.0, 0.0, 0.5, 1.0, 2.5)), FLOATS),
                "s": one_of(st.sampled_from(STRINGS), TEXTS),
                "e": one_of(st.sampled_from(STRINGS), TEXTS),
                "k": one_of(st.integers(0, 1), INTEGERS),
                "n": ordered,
            }
        )
    return rows


def stream_of(rows: list[Row]) -> Stream:
    """The rows as the semantics takes them."""
    return Stream.from_dicts(rows, time="t")


# --- formulas --------------------------------------------------------------------------------------------------------


@dataclass
class _Names:
    """The labels given so far, so that most are given once."""

    used: list[str] = field(default_factory=list)

    def draw(self, draw: st.DrawFn) -> str:
        fresh = [label for label in LABELS if label not in self.used]
        if not fresh or (self.used and draw(st.integers(0, 9)) == 0):
            return draw(st.sampled_from(LABELS))
        self.used.append(fresh[0])
        return fresh[0]


def draw_window(draw: st.DrawFn) -> f.Window:
    match draw(st.integers(0, 3)):
        case 0:
            return f.AttributeWindow(draw(mostly(st.sampled_from((2, 4, 6, 4.5)), SIZES, 12)), "n")
        case 1:
            return f.DurationWindow(draw(mostly(st.integers(1, 12).map(lambda n: n * 1000), SIZES, 12)))
    return f.CountWindow(draw(st.integers(1, 8)))


def _single(draw: st.DrawFn, outer: list[str], fragment: Fragment, names: _Names) -> f.Formula:
    """A formula that reads one event."""
    kind = draw(st.integers(0 if fragment.wild else 2, 11))
    formula: f.Formula
    if kind == 0:
        formula = f.AnyEvent()
    elif kind == 1:
        event = f.EventType(draw(st.sampled_from(TYPES)))
        wanted: Condition | None = None
        if draw(st.booleans()):
            wanted = draw(conditions([event.name, *outer], fragment, 1))
        formula = f.NotEvent(event, wanted)
    else:
        formula = f.EventType(draw(st.sampled_from(TYPES)))
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2)))):
        match draw(st.integers(0, 5)):
            case 0 | 1 | 2:
                formula = f.As(formula, names.draw(draw))
            case 3:
                formula = _renamed(draw, formula, names)
            case _:
                formula = _filtered(draw, formula, outer, fragment)
    return formula


def _renamed(draw: st.DrawFn, formula: f.Formula, names: _Names) -> f.Formula:
    assigned = sorted(labels_of(formula).assigned) or ["A"]
    return f.Rename(formula, draw(st.sampled_from(assigned)), names.draw(draw))


def _filtered(draw: st.DrawFn, formula: f.Formula, outer: list[str], fragment: Fragment) -> f.Formula:
    labels = labels_of(formula)
    own = sorted(labels.assigned)
    if labels.wildcard and draw(st.booleans()):
        # Of an enclosing formula, if that binds the name, and otherwise an event of this one.
        own = sorted({*own, draw(st.sampled_from(TYPES))})
    further = [label for label in outer if label not in own]
    # Labels of the formula stand twice: filters speak more often of them than of those further out.
    known = [*own, *own, *further]
    if fragment.relating and own and further and draw(st.booleans()):
        return f.Filter(formula, atom_on_several(draw, [draw(st.sampled_from(own)), draw(st.sampled_from(further))]))
    return f.Filter(formula, draw(conditions(known, fragment))) if known else formula


def _formula(draw: st.DrawFn, depth: int, outer: list[str], fragment: Fragment, names: _Names) -> f.Formula:
    if depth == 0:
        return _single(draw, outer, fragment, names)

    def below(also: list[str] = outer) -> f.Formula:
        return _formula(draw, depth - 1, also, fragment, names)

    def pair(make: Callable[[f.Formula, f.Formula], f.Formula]) -> f.Formula:
        return make(*_two(draw, depth, outer, fragment, names))

    match draw(st.integers(0, 19)):
        case 0 | 1 | 2 | 3 | 4 | 7:
            return pair(f.Sequence)
        case 5 | 6:
            return f.Iteration(below())
        case 8:
            return pair(f.StrictSequence if fragment.strict else f.Sequence)
        case 9:
            return f.StrictIteration(below()) if fragment.strict else f.Iteration(below())
        case 10 | 11:
            return f.Disjunction(below(), below())
        case 12:
            return f.As(below(), names.draw(draw))
        case 13:
            return _renamed(draw, below(), names)
        case 14 | 15 | 16:
            return _filtered(draw, below(), outer, fragment)
        case 17 if fragment.windows:
            return f.Within(below(), draw_window(draw))
        case 18 if fragment.projection:
            inner = below()
            assigned = sorted(labels_of(inner).assigned) or ["A"]
            kept = draw(st.lists(st.sampled_from(assigned), min_size=1, max_size=2, unique=True))
            return f.Project(tuple(kept), inner)
        case 19 if fragment.more or fragment.deadlines:
            return _more(draw, fragment, below, pair)
    return _single(draw, outer, fragment, names)


def _two(
    draw: st.DrawFn, depth: int, outer: list[str], fragment: Fragment, names: _Names
) -> tuple[f.Formula, f.Formula]:
    """Two formulas of a sequence; one may use the labels that the other binds, be it before or after it."""
    if not (fragment.outer and fragment.relating):
        return _formula(draw, depth - 1, outer, fragment, names), _formula(draw, depth - 1, outer, fragment, names)
    backwards = draw(st.integers(0, 3)) == 0
    first = _formula(draw, depth - 1, outer, fragment, names)
    # The names of event types are left out half of the time, as the other side often assigns them too.
    types = draw(st.booleans())
    bound = [label for label in sorted(labels_of(first).bound) if types or label not in TYPES]
    further = [*outer, *(label for label in bound if label not in outer)]
    second = _formula(draw, depth - 1, further, fragment, names)
    if bound and draw(st.integers(0, 2)) == 0:
        second = _filtered(draw, second, further, fragment)
    return (second, first) if backwards else (first, second)


def _more(
    draw: st.DrawFn,
    fragment: Fragment,
    below: Callable[..., f.Formula],
    pair: Callable[[Callable[..., f.Formula]], f.Formula],
) -> f.Formula:
    operators = (OPERATORS if fragment.more else ()) + ((DEADLINE,) * 4 if fragment.deadlines else ())
    return _operated(draw, draw(st.sampled_from(operators)), below, pair)


def _operated(
    draw: st.DrawFn,
    operator: str,
    below: Callable[..., f.Formula],
    pair: Callable[[Callable[..., f.Formula]], f.Formula],
) -> f.Formula:
    """A formula with one of `OPERATORS`, or `DEADLINE`, on top."""
    match operator:
        case "AND":
            first = below()
            # Two formulas drawn apart rarely have a complex event in common.
            return f.Conjunction(first, below() if draw(st.booleans()) else _variant(draw, first))
        case "ALL":
            return pair(f.All)
        case "UNLESS" | "WITHOUT":
            first = below()
            inner = sorted(labels_of(first).bound)
            make = f.Unless if operator == "UNLESS" else f.Without
            return make(first, below(inner) if draw(st.booleans()) else below())
        case "NOT FOLLOWED BY":
            first = below()
            inner = sorted(labels_of(first).bound)
            return f.NotFollowedBy(first, below(inner) if draw(st.booleans()) else below(), draw_window(draw))
        case "START":
            return f.Start(below())
        case "TIMES":
            return _repeated(draw, below(), 1)
        case "OPTIONAL":
            first, second = pair(lambda *both: both)
            make = draw(st.sampled_from((f.Sequence, f.Sequence, f.StrictSequence, f.All)))
            if draw(st.booleans()):
                return make(_repeated(draw, first, 0), second)
            whole = make(first, _repeated(draw, second, 0))
            return f.Sequence(whole, f.EventType(draw(st.sampled_from(TYPES)))) if draw(st.booleans()) else whole
    inner = below()
    name, _, compared = operator.partition(" ")
    return f.Selection(f.Strategy[name], inner, draw_by(draw, inner) if compared else ())


def _repeated(draw: st.DrawFn, formula: f.Formula, least: int) -> f.Formula:
    least = draw(st.integers(1, 3)) if least else 0
    most = draw(st.one_of(st.none(), st.integers(max(least, 1), 4)))
    return f.Repetition(formula, least, most, draw(st.integers(0, 3)) == 0)


def draw_by(draw: st.DrawFn, formula: f.Formula) -> tuple[LabelReference, ...]:
    """Some labels of a formula, for a choice to compare."""
    labels = labels_of(formula)
    known = sorted(labels.assigned | {name for name in TYPES if labels.by_type(name)})
    by = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True)) if known else []
    return tuple(map(LabelReference, by))


def _variant(draw: st.DrawFn, formula: f.Formula) -> f.Formula:
    """A formula that has some complex events in common with another."""
    match draw(st.integers(0, 2)):
        case 0:
            return f.Selection(f.Strategy.STRICT, formula)
        case 1:
            return f.Within(formula, draw_window(draw))
    return _filtered(draw, formula, [], FIRST)


def _well_scoped(formula: f.Formula) -> bool:
    try:
        resolve(formula)
    except QueryError:
        return False
    return True


@st.composite
def _formulas(draw: st.DrawFn, fragment: Fragment) -> f.Formula:
    names = _Names()
    formula = _formula(draw, draw(st.integers(1, fragment.depth)), [], fragment, names)
    if draw(st.integers(0, 3)) == 0:
        formula = _filtered(draw, formula, [], fragment)
    return formula


@st.composite
def _around(draw: st.DrawFn, operator: str, fragment: Fragment) -> f.Formula:
    names = _Names()
    shallow = dataclasses.replace(fragment, more=draw(st.booleans()))

    def below(outer: Sequence[str] = ()) -> f.Formula:
        return _formula(draw, draw(st.integers(1, 2)), list(outer), shallow, names)

    def pair(make: Callable[[f.Formula, f.Formula], f.Formula]) -> f.Formula:
        return make(*_two(draw, 2, [], shallow, names))

    formula = _operated(draw, operator, below, pair)
    for _ in range(draw(st.integers(0, 2))):
        match draw(st.integers(0, 9)):
            case 0 | 1:
                formula = f.Sequence(formula, below(sorted(labels_of(formula).bound)))
            case 2 | 3:
                formula = f.Sequence(below(), formula)
            case 4:
                formula = f.Iteration(formula)
            case 5:
                formula = f.StrictSequence(formula, below())
            case 6:
                formula = f.Disjunction(formula, below())
            case 7:
                formula = f.Within(formula, draw_window(draw))
            case 8:
                formula = f.As(formula, names.draw(draw))
            case _:
                formula = _filtered(draw, formula, [], shallow)
    return formula


def around(operator: str, fragment: Fragment = FIRST) -> st.SearchStrategy[f.Formula]:
    """Well-scoped formulas with one of `OPERATORS`, or `DEADLINE`, (and perhaps others) not far below the top."""
    return _around(operator, fragment).filter(_well_scoped)


def formulas(fragment: Fragment = FIRST) -> st.SearchStrategy[f.Formula]:
    """Well-scoped formulas of a fragment."""
    return _formulas(fragment).filter(_well_scoped)


@st.composite
def overlapping(draw: st.DrawFn, source: st.SearchStrategy[f.Formula]) -> f.Formula:
    """Formulas in which several runs often lead to one match: parts that overlap, iterated, in nested iterations."""
    formula = draw(source)
    for _ in range(draw(st.integers(1, 2))):
        match draw(st.integers(0, 3)):
            case 0:
                formula = f.Sequence(f.Iteration(formula), f.Iteration(draw(source)))
            case 1:
                formula = f.Iteration(f.Sequence(formula, f.Iteration(f.Disjunction(draw(source), draw(source)))))
            case 2:
                formula = f.Disjunction(formula, f.Iteration(formula))
            case 3:
                formula = f.Sequence(f.EventType("A"), formula)
    return formula
