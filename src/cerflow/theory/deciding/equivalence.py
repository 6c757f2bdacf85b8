"""Whether two formulas have the same matches in every stream, whether one has all of the other's, whether one has any.

The determinised transducers are searched in parallel, breadth first and only as far as they are reached, so the
first difference is one in a shortest stream. It is a difference (n, C): after reading events 0 … n and giving them
the labels of C, one transducer is in a final state and the other is not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypedDict, TypeVar, Unpack

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import visited
from cerflow.base.schema import Schema
from cerflow.language.formula import Formula, NotFollowedBy
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.theory.deciding.finite_memory import Configuration, FiniteMemory, Labels, Subset, UnboundedMemoryError
from cerflow.theory.deciding.minterms import EventMinterm, EventMinterms
from cerflow.theory.deciding.witnesses import Answer, Budget, Replay, event_spaces_of, witness_of


class _PathStep(NamedTuple):
    """An event with its labels; ``side`` is that of a transducer that alone detects there."""

    minterm: EventMinterm
    labels: Labels
    side: int | None


_Path = tuple[_PathStep, ...]
T = TypeVar("T", bound=Hashable)


class ComparisonOptions(TypedDict, total=False):
    """What is asked of two formulas or transducers; see `find_difference`."""

    one_sided: bool
    schema: Schema | None
    budget: Budget | None
    replay: Replay | None


def find_difference(first: Formula, second: Formula, **asked: Unpack[ComparisonOptions]) -> Answer:
    """Whether there is a match that one formula has and the other lacks; ``one_sided``: that the second lacks.

    A witness that does not pass ``replay`` is not reported. With it, conditions that relate events are decided, too, by
    Z3. Raises `QueryError` if no events fit both formulas, `UnsupportedQueryError` if the budget is spent, and without
    ``replay`` or Z3 for formulas that relate events to one another or have a window that is not of events.
    """
    _refuse_deadlines(first, second)
    one = compile_formula(first)
    # The same names of types are set apart in both, so that their labels can be compared.
    other = compile_formula(second, named=one.mentioned)
    if other.mentioned != one.mentioned:
        one = compile_formula(first, named=other.mentioned)
    return answer_for((one, other), (first, second), **asked)


def shortest_match(formula: Formula, **asked: Unpack[ComparisonOptions]) -> Answer:
    """Whether a formula has a match in any stream; raises as `find_difference` does."""
    _refuse_deadlines(formula)
    return answer_for((compile_formula(formula),), (formula,), **asked)


def answer_for(transducers: Sequence[Transducer], roots: Sequence[Node], **asked: Unpack[ComparisonOptions]) -> Answer:
    """As `find_difference`, for two transducers made of conditions ``roots``; of a single one, whether it has a match.

    No label of two transducers depends on the type of the event.
    """
    budget, spaces = asked.get("budget") or Budget(), event_spaces_of(roots, asked.get("schema"))
    one_sided, replay = asked.get("one_sided", False), asked.get("replay")
    algebras = [EventMinterms(space, transducers[0].mentioned, budget) for space in spaces]
    single = len(transducers) == 1
    try:
        runs = [FiniteMemory(transducer, budget) for transducer in transducers]
    except UnboundedMemoryError as error:
        # Conditions that relate events only take matches away: a formula without matches has none with them either.
        if single:
            plain = tuple(Transition(t.source, t.target, t.test, (), t.labels) for t in transducers[0].transitions)
            freed = FiniteMemory(replace(transducers[0], transitions=plain, registers=(), window=None), budget)
            if all(_match(freed, algebra, True) is None for algebra in algebras):
                return Answer(False)
        if replay is None:
            raise
        try:
            from cerflow.theory.deciding.solver.with_registers import decided_with_registers
        except ModuleNotFoundError as missing:
            if missing.name != "z3":
                raise
            error.hint = "The extra 'decide' decides more: pip install 'cerflow[decide]'."
            raise error from None
        return decided_with_registers(transducers, one_sided, spaces, replay, budget)
    search = partial(_match, runs[0]) if single else partial(_difference, runs[0], runs[1], one_sided)
    return _searched(algebras, search, replay)


def _refuse_deadlines(*formulas: Formula) -> None:
    """Raise `UnsupportedQueryError` for formulas whose matches depend on the time between events."""
    for node in (node for formula in formulas for node in walk(formula)):
        if isinstance(node, NotFollowedBy):
            raise UnsupportedQueryError(
                "whether a formula with NOT FOLLOWED BY can match cannot be decided",
                span=node.span,
                hint="Ask about the formulas on its left and right.",
            )


def _searched(
    algebras: Sequence[EventMinterms], search: Callable[[EventMinterms, bool], _Path | None], replay: Replay | None
) -> Answer:
    """Search every event space over events that certainly exist, then over those that might."""
    found = [(steps, algebra.event_space) for algebra in algebras if (steps := search(algebra, False)) is not None]
    if found:
        steps, event_space = min(found, key=lambda f: len(f[0]))
        values, labels = [s.minterm.values for s in steps], [s.labels for s in steps]
        witness = witness_of(values, labels, steps[-1].side or 0, event_space)
        if replay is not None and not replay(witness):
            return Answer(None, reason="the stream that was found does not have the match by definition")
        return Answer(True, witness)
    for algebra in algebras:
        hit = search(algebra, True)
        if hit is not None:
            doubts = dict.fromkeys(c for step in hit for c in step.minterm.assumed)
            return Answer(None, reason=f"it is not known which events satisfy {', '.join(map(show, doubts))}")
    return Answer(False)


# -- searches -----------------------------------------------------------------------------------------------------

#: What may follow, each with the step to it.
_Following = Iterator[tuple[T, _PathStep]]


def _breadth_first(begin: Iterable[T], following: Callable[[T, Mapping[T, _Path]], _Following[T]]) -> _Path | None:
    """A shortest path to where one side alone detects; ``following`` is told the paths to what was seen."""
    paths: dict[T, _Path] = dict.fromkeys(begin, ())

    def ahead(current: T) -> Iterator[T]:
        for after, step in following(current, paths):
            if after not in paths:
                paths[after] = (*paths[current], step)
                yield after

    return next((p for one in visited([*paths], ahead) if (p := paths[one]) and p[-1].side is not None), None)


def _difference(
    left: FiniteMemory, right: FiniteMemory, one_sided: bool, algebra: EventMinterms, assume: bool
) -> _Path | None:
    """A shortest path to a difference; with ``assume`` also over assumed events."""
    nothing: Subset = frozenset()

    def following(pair: tuple[Subset, Subset], _: object) -> _Following[tuple[Subset, Subset]]:
        for minterm in algebra.minterms(tuple(dict.fromkeys((*left.tests(pair[0]), *right.tests(pair[1]))))):
            if minterm.assumed and not assume:
                continue
            after_a = left.step(pair[0], minterm.holds, minterm.type)
            after_b = right.step(pair[1], minterm.holds, minterm.type)
            for labels in sorted({*after_a, *after_b}, key=sorted):
                a, b = after_a.get(labels, nothing), after_b.get(labels, nothing)
                detects = left.accepts(a), right.accepts(b)
                if a or not one_sided:
                    alone = detects == (True, False) or (detects == (False, True) and not one_sided)
                    yield (a, b), _PathStep(minterm, labels, int(detects[1]) if alone else None)

    return _breadth_first([(left.initial, right.initial)], following)


def _match(runs: FiniteMemory, algebra: EventMinterms, assume: bool) -> _Path | None:
    """A shortest path to a match."""

    def following(configuration: Configuration, seen: Container[Configuration]) -> _Following[Configuration]:
        for test, labels, after in runs.moves(configuration):
            # Whether there is such an event is asked only where it matters.
            found = () if after in seen else algebra.minterms((test,))
            minterm = next((x for x in found if x.holds and (assume or not x.assumed)), None)
            if minterm is not None:
                yield after, _PathStep(minterm, labels, 0 if runs.accepts((after,)) else None)

    return _breadth_first(sorted(runs.initial, key=lambda c: c[0]), following)
