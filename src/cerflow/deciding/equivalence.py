"""Whether two formulas have the same matches in every stream, whether one has all of the other's, whether one has any.

The determinised transducers are searched side by side, breadth first and only as far as they are reached, so the
first difference is one in a shortest stream. It is a difference (n, C): after reading events 0 … n and giving them
the labels of C, one transducer is in a final state and the other is not.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.deciding.budget import Budget
from cerflow.deciding.event_spaces import EventSpace, event_spaces_of
from cerflow.deciding.finite_memory import Configuration
from cerflow.deciding.minterms import EventMinterm, EventMinterms
from cerflow.deciding.subset_construction import Labels, Subset, Subsets
from cerflow.errors import UnsupportedQueryError
from cerflow.language.formula import Formula, NotFollowedBy
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.schema import Kind, Schema
from cerflow.values.complex_events import ComplexEvent

__all__ = ["Answer", "Witness", "compare_transducers", "find_difference", "shortest_match"]


@dataclass(frozen=True)
class Witness:
    """A match that one formula has and the other lacks: (``detected_at``, ``complex_event``) in ``events``.

    ``side`` is 0 if the first formula has it, 1 if the second. ``columns`` are the Arrow types of the events.
    """

    events: tuple[Mapping[str, Any], ...]
    columns: pa.Schema
    complex_event: ComplexEvent
    side: int

    @property
    def detected_at(self) -> int:
        """The position of the last event."""
        return len(self.events) - 1


@dataclass(frozen=True)
class Answer:
    """Whether there is a witness (None if that is not known, for a ``reason``), and one of the shortest."""

    exists: bool | None
    witness: Witness | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _PathStep:
    """The last step of a way, with the steps before it."""

    before: _PathStep | None
    minterm: EventMinterm
    labels: Labels


#: Finds a way to a witness and its side, in one event space, perhaps over events that need not exist.
_Search = Callable[[EventMinterms, bool], tuple[_PathStep, int] | None]


def find_difference(
    first: Formula,
    second: Formula,
    *,
    one_sided: bool = False,
    schema: Schema | None = None,
    budget: Budget | None = None,
) -> Answer:
    """Whether there is a match that one formula has and the other lacks; ``one_sided``: that the second lacks.

    Raises `QueryError` if no events fit both formulas, `UnsupportedQueryError` if one relates events to one another,
    has a window that is not of events, or if the budget is spent.
    """
    _refuse_deadlines(first, second)
    one, other = _compiled(first, second)
    return _compared((first, second), one, other, one_sided, schema, budget or Budget())


def compare_transducers(
    first: Transducer, second: Transducer, *, schema: Schema | None = None, budget: Budget | None = None
) -> Answer:
    """As `find_difference`, for transducers without labels that depend on the type of the event."""
    roots = [c for t in (*first.transitions, *second.transitions) for c in (t.test, *t.atoms)]
    return _compared(roots, first, second, False, schema, budget or Budget())


def shortest_match(formula: Formula, *, schema: Schema | None = None, budget: Budget | None = None) -> Answer:
    """Whether a formula has a match in any stream; raises as `find_difference` does.

    Conditions that relate events only take matches away: a formula without matches has none with them either.
    """
    budget = budget or Budget()
    _refuse_deadlines(formula)
    transducer = compile_formula(formula)
    try:
        runs = Subsets(transducer, budget)
    except UnsupportedQueryError:
        freed = Subsets(_without_memory(transducer), budget)
        algebras = [EventMinterms(w, transducer.mentioned, budget) for w in event_spaces_of((formula,), schema)]
        if all(_match(algebra, freed, assume=True) is None for algebra in algebras):
            return Answer(False)
        raise

    def search(algebra: EventMinterms, assume: bool) -> tuple[_PathStep, int] | None:
        way = _match(algebra, runs, assume)
        return None if way is None else (way, 0)

    return _searched((formula,), transducer.mentioned, search, schema, budget)


def _refuse_deadlines(*formulas: Formula) -> None:
    """Raise `UnsupportedQueryError` for formulas whose matches depend on the time between events."""
    for node in (node for formula in formulas for node in walk(formula)):
        if isinstance(node, NotFollowedBy):
            raise UnsupportedQueryError(
                "whether a formula with NOT FOLLOWED BY can match is not decided",
                span=node.span,
                hint="Ask about the formulas on its left and right.",
            )


def _compiled(first: Formula, second: Formula) -> tuple[Transducer, Transducer]:
    """Both transducers, with the same names of types set apart, so that their labels can be compared."""
    one = compile_formula(first)
    other = compile_formula(second, named=one.mentioned)
    if other.mentioned != one.mentioned:
        one = compile_formula(first, named=other.mentioned)
    return one, other


def _compared(
    roots: Sequence[Node],
    one: Transducer,
    other: Transducer,
    one_sided: bool,
    schema: Schema | None,
    budget: Budget,
) -> Answer:
    left, right = Subsets(one, budget), Subsets(other, budget)

    def search(algebra: EventMinterms, assume: bool) -> tuple[_PathStep, int] | None:
        return _difference(algebra, left, right, one_sided, assume)

    return _searched(roots, one.mentioned, search, schema, budget)


def _without_memory(transducer: Transducer) -> Transducer:
    transitions = tuple(Transition(t.source, t.target, t.test, (), t.labels) for t in transducer.transitions)
    return Transducer(
        transducer.states, transducer.initial, transducer.final, transitions, mentioned=transducer.mentioned
    )


def _searched(
    roots: Sequence[Node], mentioned: frozenset[str], search: _Search, schema: Schema | None, budget: Budget
) -> Answer:
    """Search every event space over events that certainly exist, then over those that might."""
    algebras = [EventMinterms(event_space, mentioned, budget) for event_space in event_spaces_of(roots, schema)]
    found = [(*hit, algebra.event_space) for algebra in algebras if (hit := search(algebra, False)) is not None]
    if found:
        way, side, event_space = min(found, key=lambda f: len(_steps(f[0])))
        return Answer(True, _witness(_steps(way), side, event_space))
    for algebra in algebras:
        hit = search(algebra, True)
        if hit is not None:
            doubts = dict.fromkeys(c for step in _steps(hit[0]) for c in step.minterm.assumed)
            named = ", ".join(show(c) for c in doubts)
            return Answer(None, reason=f"it is not known which events satisfy {named}")
    return Answer(False)


# -- searches -----------------------------------------------------------------------------------------------------


def _difference(
    algebra: EventMinterms, left: Subsets, right: Subsets, one_sided: bool, assume: bool
) -> tuple[_PathStep, int] | None:
    """A shortest way to a difference, and the side that detects; with ``assume`` also over assumed events."""
    nothing: Subset = frozenset()
    begin = (left.initial, right.initial)
    seen = {begin}
    pending: deque[tuple[tuple[Subset, Subset], _PathStep | None]] = deque([(begin, None)])
    while pending:
        (a, b), way = pending.popleft()
        for minterm in algebra.minterms(tuple(dict.fromkeys((*left.tests(a), *right.tests(b))))):
            if minterm.assumed and not assume:
                continue
            after_a = left.step(a, minterm.holds, minterm.type)
            after_b = right.step(b, minterm.holds, minterm.type)
            for labels in sorted({*after_a, *after_b}, key=sorted):
                pair = (after_a.get(labels, nothing), after_b.get(labels, nothing))
                if pair in seen or (one_sided and not pair[0]):
                    continue
                seen.add(pair)
                step = _PathStep(way, minterm, labels)
                detects = left.accepts(pair[0]), right.accepts(pair[1])
                if detects == (True, False) or (detects == (False, True) and not one_sided):
                    return step, int(detects[1])
                pending.append((pair, step))
    return None


def _match(algebra: EventMinterms, runs: Subsets, assume: bool) -> _PathStep | None:
    """A shortest way to a match."""
    seen: set[Configuration] = set(runs.initial)
    pending: deque[tuple[Configuration, _PathStep | None]] = deque((c, None) for c in sorted(seen, key=lambda c: c[0]))
    while pending:
        configuration, way = pending.popleft()
        for test, labels, after in runs.moves(configuration):
            if after in seen:
                continue
            minterm = next((x for x in algebra.minterms((test,)) if x.holds and (assume or not x.assumed)), None)
            if minterm is None:
                continue
            seen.add(after)
            named = labels - {TYPE_LABEL} | {minterm.type} if TYPE_LABEL in labels else labels
            step = _PathStep(way, minterm, named)
            if runs.accepts((after,)):
                return step
            pending.append((after, step))
    return None


# -- witnesses ----------------------------------------------------------------------------------------------------


def _steps(way: _PathStep | None) -> list[_PathStep]:
    found = []
    while way is not None:
        found.append(way)
        way = way.before
    return found[::-1]


def _witness(steps: Sequence[_PathStep], side: int, event_space: EventSpace) -> Witness:
    minterms = [step.minterm for step in steps]
    columns: dict[str, tuple[pa.DataType, Sequence[Any]]] = {}
    for name in dict.fromkeys(
        (event_space.type, event_space.stream, event_space.time, *sorted(map(event_space.column, event_space.kinds)))
    ):
        if name is None:
            continue
        if name == event_space.time:
            columns[name] = _times(event_space.columns[name], len(minterms))
        else:
            columns[name] = _column(name, [minterm.values.get(name) for minterm in minterms], event_space)
    return Witness(
        tuple({name: values[k] for name, (_, values) in columns.items()} for k in range(len(minterms))),
        pa.schema([(name, kind) for name, (kind, _) in columns.items()]),
        frozenset((label, k) for k, step in enumerate(steps) for label in step.labels),
        side,
    )


def _column(name: str, values: Sequence[Any], event_space: EventSpace) -> tuple[pa.DataType, Sequence[Any]]:
    if name in event_space.columns:
        return event_space.columns[name], values
    if name in (event_space.type, event_space.stream):
        return pa.string(), values
    match event_space.kinds[name]:
        case Kind.FLOAT:
            # Whole numbers read better as such, and where they are only compared they are the same.
            if name not in event_space.computed and all(
                v is None or (v.is_integer() and abs(v) < 2**53) for v in values
            ):
                return pa.int64(), [None if v is None else int(v) for v in values]
            return pa.float64(), values
        case Kind.INTEGER:
            return pa.int64(), values
        case Kind.BOOLEAN:
            return pa.bool_(), values
        case Kind.TIMESTAMP:
            return pa.timestamp("us", "UTC"), values
        case Kind.DURATION:
            return pa.duration("us"), values
    return pa.string(), values


def _times(kind: pa.DataType, count: int) -> tuple[pa.DataType, Sequence[Any]]:
    """Times for events that came one after the other."""
    if not pa.types.is_temporal(kind):
        return kind, range(count)
    start = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    return kind, [start + datetime.timedelta(days=k) for k in range(count)]
