"""Whether two formulas have the same matches in every stream, whether one has all of the other's, whether one has any.

The determinised transducers are searched side by side, breadth first and only as far as they are reached, so the
first difference is one in a shortest stream. It is a difference (n, C): after reading events 0 … n and giving them
the labels of C, one transducer is in a final state and the other is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.deciding.budget import Budget
from cerflow.deciding.event_spaces import event_spaces_of
from cerflow.deciding.finite_memory import Configuration, UnboundedMemoryError
from cerflow.deciding.minterms import EventMinterm, EventMinterms
from cerflow.deciding.subset_construction import Labels, Subset, Subsets
from cerflow.deciding.witnesses import Answer, Replay, witness_of
from cerflow.errors import UnsupportedQueryError
from cerflow.language.formula import Formula, NotFollowedBy
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.schema import Schema

__all__ = ["compare_transducers", "find_difference", "shortest_match"]


@dataclass(frozen=True)
class _PathStep:
    """The last step of a path, with the steps before it."""

    before: _PathStep | None
    minterm: EventMinterm
    labels: Labels


#: Finds a path to a witness and its side, in one event space, perhaps over events that need not exist.
_Search = Callable[[EventMinterms, bool], tuple[_PathStep, int] | None]


def find_difference(
    first: Formula,
    second: Formula,
    *,
    one_sided: bool = False,
    schema: Schema | None = None,
    budget: Budget | None = None,
    replay: Replay | None = None,
) -> Answer:
    """Whether there is a match that one formula has and the other lacks; ``one_sided``: that the second lacks.

    A witness that does not pass ``replay`` is not reported. With it, conditions that relate events are decided, too, by
    Z3. Raises `QueryError` if no events fit both formulas, `UnsupportedQueryError` if the budget is spent, and without
    ``replay`` or Z3 for formulas that relate events to one another or have a window that is not of events.
    """
    _refuse_deadlines(first, second)
    one, other = _compiled(first, second)
    return _compared((first, second), one, other, one_sided, schema, budget or Budget(), replay)


def compare_transducers(
    first: Transducer,
    second: Transducer,
    roots: Sequence[Node],
    *,
    schema: Schema | None = None,
    budget: Budget | None = None,
    replay: Replay | None = None,
) -> Answer:
    """As `find_difference`, for transducers without labels that depend on the type of the event.

    ``roots`` are the conditions that they were made of.
    """
    return _compared(roots, first, second, False, schema, budget or Budget(), replay)


def shortest_match(
    formula: Formula, *, schema: Schema | None = None, budget: Budget | None = None, replay: Replay | None = None
) -> Answer:
    """Whether a formula has a match in any stream; raises as `find_difference` does.

    Conditions that relate events only take matches away: a formula without matches has none with them either.
    """
    budget = budget or Budget()
    _refuse_deadlines(formula)
    transducer = compile_formula(formula)
    try:
        runs = Subsets(transducer, budget)
    except UnboundedMemoryError as error:
        freed = Subsets(_without_memory(transducer), budget)
        algebras = [EventMinterms(w, transducer.mentioned, budget) for w in event_spaces_of((formula,), schema)]
        if all(_match(algebra, freed, assume=True) is None for algebra in algebras):
            return Answer(False)
        if replay is None:
            raise
        answer: Answer = _solver(error).match_with_registers(
            transducer, event_spaces_of((formula,), schema), replay, budget
        )
        return answer

    def search(algebra: EventMinterms, assume: bool) -> tuple[_PathStep, int] | None:
        path = _match(algebra, runs, assume)
        return None if path is None else (path, 0)

    return _searched((formula,), transducer.mentioned, search, schema, budget, replay)


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
    replay: Replay | None,
) -> Answer:
    try:
        left, right = Subsets(one, budget), Subsets(other, budget)
    except UnboundedMemoryError as error:
        if replay is None:
            raise
        event_spaces = event_spaces_of(roots, schema)
        answer: Answer = _solver(error).difference_with_registers(one, other, one_sided, event_spaces, replay, budget)
        return answer

    def search(algebra: EventMinterms, assume: bool) -> tuple[_PathStep, int] | None:
        return _difference(algebra, left, right, one_sided, assume)

    return _searched(roots, one.mentioned, search, schema, budget, replay)


def _solver(error: UnboundedMemoryError) -> ModuleType:
    """The module that decides what has registers; the error with a hint if Z3 is not installed."""
    try:
        return import_module("cerflow.deciding.with_registers")
    except ModuleNotFoundError as missing:
        if missing.name != "z3":
            raise
        error.hint = "The extra 'decide' decides more: pip install 'cerflow[decide]'."
        raise error from None


def _without_memory(transducer: Transducer) -> Transducer:
    transitions = tuple(Transition(t.source, t.target, t.test, (), t.labels) for t in transducer.transitions)
    return Transducer(
        transducer.states, transducer.initial, transducer.final, transitions, mentioned=transducer.mentioned
    )


def _searched(
    roots: Sequence[Node],
    mentioned: frozenset[str],
    search: _Search,
    schema: Schema | None,
    budget: Budget,
    replay: Replay | None,
) -> Answer:
    """Search every event space over events that certainly exist, then over those that might."""
    algebras = [EventMinterms(event_space, mentioned, budget) for event_space in event_spaces_of(roots, schema)]
    found = [(*hit, algebra.event_space) for algebra in algebras if (hit := search(algebra, False)) is not None]
    if found:
        path, side, event_space = min(found, key=lambda f: len(_steps(f[0])))
        steps = _steps(path)
        witness = witness_of([s.minterm.values for s in steps], [s.labels for s in steps], side, event_space)
        if replay is not None and not replay(witness):
            return Answer(None, reason="the stream that was found does not have the match by definition")
        return Answer(True, witness)
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
    """A shortest path to a difference, and the side that detects; with ``assume`` also over assumed events."""
    nothing: Subset = frozenset()
    begin = (left.initial, right.initial)
    seen = {begin}
    pending: deque[tuple[tuple[Subset, Subset], _PathStep | None]] = deque([(begin, None)])
    while pending:
        (a, b), path = pending.popleft()
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
                step = _PathStep(path, minterm, labels)
                detects = left.accepts(pair[0]), right.accepts(pair[1])
                if detects == (True, False) or (detects == (False, True) and not one_sided):
                    return step, int(detects[1])
                pending.append((pair, step))
    return None


def _match(algebra: EventMinterms, runs: Subsets, assume: bool) -> _PathStep | None:
    """A shortest path to a match."""
    seen: set[Configuration] = set(runs.initial)
    pending: deque[tuple[Configuration, _PathStep | None]] = deque((c, None) for c in sorted(seen, key=lambda c: c[0]))
    while pending:
        configuration, path = pending.popleft()
        for test, labels, after in runs.moves(configuration):
            if after in seen:
                continue
            minterm = next((x for x in algebra.minterms((test,)) if x.holds and (assume or not x.assumed)), None)
            if minterm is None:
                continue
            seen.add(after)
            named = labels - {TYPE_LABEL} | {minterm.type} if TYPE_LABEL in labels else labels
            step = _PathStep(path, minterm, named)
            if runs.accepts((after,)):
                return step
            pending.append((after, step))
    return None


def _steps(path: _PathStep | None) -> list[_PathStep]:
    found = []
    while path is not None:
        found.append(path)
        path = path.before
    return found[::-1]
