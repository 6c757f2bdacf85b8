"""NEXT, LAST, MAX and ANY of a formula: a run ends only if no preferred run ends at the same event (P1 Theorem 4).

A run is accompanied by the sets of other runs that matter: those with the same marks so far, those that are better, or
all. The paper's A_NEXT and A_LAST order all states into a total preorder T1 … Tk and follow one state of some Ti. Only
Ti and the union of the sets before it matter, so these two sets suffice here, as in the paper's A_MAX. Errata E4 and E5
of the notes do not arise: ends are compared at the event that ends the run, marked or not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, permutations

from cerflow.automata.compile.run_sets import EMPTY, FollowedRuns, RunSet, Source, every
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.automata.optimise.ambiguity import enlarged
from cerflow.automata.optimise.detection import Simulation
from cerflow.automata.optimise.simplify import simplify, with_other_transitions
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import gathered, reached_along
from cerflow.language.formula import Strategy
from cerflow.logic.conditions.cases import contradicts, merged_cases
from cerflow.logic.conditions.connectives import conjunction, conjuncts

#: Whether another run that takes the second transition counts, for a run that takes the first.
_Counts = Callable[[Transition, Transition], bool]
_Sources = list[Source]

#: The names of the followed runs: with the same marks, preferred, all.
_EQUAL, _BETTER, _ALL = "equal", "preferred", "all"


@dataclass(frozen=True)
class _Rivals:
    """The runs compared with a run: its equals (for LAST, all), and those preferred to it."""

    others: RunSet
    better: RunSet
    #: Whether runs that began to mark before would be compared, too.
    compared: bool = True


def next_of_each_start(transducer: Transducer) -> Transducer:
    """Among all runs that begin to mark with one event and end with one, those that NEXT prefers.

    The match that NEXT picks in a window is the one at the earliest start there. Raises `UnsupportedQueryError` if this
    takes a too large automaton, or registers.
    """
    if transducer.registers:
        raise UnsupportedQueryError("runs with registers are not followed in sets that are known beforehand")
    chosen = preferred(Fragment.of(transducer), Strategy.NEXT, RegisterFile(), each_start=True)
    found = simplify(chosen, (), transducer.window, transducer.mentioned)
    return replace(with_few_tests(found), one_support=True)


def with_few_tests(transducer: Transducer) -> Transducer:
    """The same with as few tests as possible: sets of runs divide events into more cases than matter."""
    while len(together := _together(transducer.transitions)) < len(transducer.transitions):
        transducer = with_other_transitions(transducer, together)
    return transducer


def _together(transitions: Iterable[Transition]) -> list[Transition]:
    """Transitions that do the same as one, wherever their tests together are one."""
    alike = gathered(((t.source, t.target, t.atoms, t.labels, t.writes), t) for t in transitions)
    return [
        replace(several[0], test=conjunction(list(test)))
        for several in alike.values()
        for test in merged_cases(conjuncts(t.test) for t in several)
    ]


def preferred(
    operand: Fragment,
    strategy: Strategy,
    registers: RegisterFile,
    by: frozenset[str] = frozenset(),
    *,
    each_start: bool = False,
) -> Fragment:
    """``NEXT(φ)``, ``LAST(φ)``, ``MAX(φ)``, ``ANY(φ)``: the runs without a preferred run that ends at the same event.

    With labels ``by`` an event counts as marked if it gets one of these labels, and otherwise if it gets any.

    With ``each_start`` a run is only compared with those that do not begin to mark before it. So whatever window it is
    in, they are in, too.
    """
    if strategy is Strategy.MAX and not enlarged(operand, by):
        return operand
    followed = FollowedRuns(operand, registers)
    fragment = followed.fragment
    going_on = {t.source for t in fragment.transitions}
    name = _ALL if strategy is Strategy.LAST else _EQUAL
    overtaken: Callable[[int, int], bool] = operator.eq
    if strategy is Strategy.NEXT:
        # A preferred run stays preferred, wherever it goes. A cheap test shows which may end whenever another does.
        # The followed runs begin together, but may then be anywhere.
        pairs = permutations(range(fragment.states), 2) if fragment.states**2 <= limits.ABREAST_STATES else ()
        overtaken = Simulation(fragment.finished(registers.registers), pairs).holds
    order = _order(strategy, (lambda t: not by.isdisjoint(t.labels)) if by else (lambda t: bool(t.labels)))
    others_counts, better_from_better, better_from_others = order
    others_matter, better_matter = _rivals_that_matter(fragment, order)

    def step(rivals: _Rivals | None, t: Transition) -> Iterator[tuple[_Rivals | None, Transition]]:
        if rivals is None:
            return
        better: _Sources = [
            (_BETTER, rivals.better, partial(better_from_better, t)),
            (name, rivals.others, partial(better_from_others, t)),
        ]
        others: _Sources = [(name, rivals.others, partial(others_counts, t))]
        if not rivals.compared and not t.labels:
            # Nothing has been marked.
            better, others = [], [(name, rivals.others, lambda u: not u.labels)]
        for case in followed.cases(t, [(name, rivals.others, every), (_BETTER, rivals.better, every)]):
            overtaking = followed.moves(case, better)
            if t.target in fragment.final:
                guards = followed.none_enters(overtaking, followed.final)
                if guards is not None:
                    yield None, t.reguarded([*case.literals, *guards])
            if t.target not in going_on:
                continue
            alone = followed.none_covers(overtaking, t, overtaken)
            if alone is None:
                continue  # whatever ends this run, ends a preferred one
            guards, empty = alone
            ahead, writes = followed.step(_BETTER, overtaking, rivals.better, empty)
            ahead = ahead.within(better_matter[t.target])
            beside, more = followed.step(name, followed.moves(case, others), rivals.others)
            beside = beside.within(others_matter[t.target])
            if strategy is not Strategy.LAST:
                beside = RunSet(beside.states - ahead.states, beside.rows)
            asked = t.reguarded([*case.literals, *guards])
            yield _Rivals(beside, ahead, rivals.compared or bool(t.labels)), asked.writing(*writes, *more)

    start: _Rivals | None = _Rivals(followed.beginning(), EMPTY, not each_start)
    chosen = track(fragment, start, step, lambda rivals: rivals is None).trimmed()
    # Sets of runs divide events into more cases than matter.
    return chosen.with_transitions(_together(chosen.transitions))


def _rivals_that_matter(
    fragment: Fragment, order: tuple[_Counts, ...]
) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """For each state of a run: in which states others may still become preferred and end with it, and preferred ones.

    An EVENT after a choice, for example, tells how many events a run still takes; rivals that take another number
    need not be followed.
    """
    transitions = fragment.transitions
    if len(transitions) ** 2 > limits.ABREAST_PAIRS:
        every = [frozenset(range(fragment.states))] * fragment.states
        return every, every
    others_counts, better_from_better, better_from_others = order
    #: Pairs of a run's state and its rival's, and whether the rival is preferred.
    edges: list[tuple[tuple[int, int, bool], tuple[int, int, bool]]] = []
    start: list[tuple[int, int, bool]] = []
    tests = [conjuncts(t.test) for t in transitions]
    for (k, t), (j, u) in combinations_with_replacement(enumerate(transitions), 2):
        if k != j and contradicts([*tests[k], *tests[j]]):
            continue
        for a, b in ((t, u), (u, t)):
            for was, counts, becomes in (
                (True, better_from_better, True),
                (False, better_from_others, True),
                (False, others_counts, False),
            ):
                if counts(a, b):
                    source, target = (a.source, b.source, was), (a.target, b.target, becomes)
                    edges.append((target, source))
                    if becomes and a.target in fragment.final and b.target in fragment.final:
                        start.append(source)
    matter: list[list[set[int]]] = [[set() for _ in range(fragment.states)] for _ in range(2)]
    for state, rival, preferred_already in reached_along(edges, start):
        matter[preferred_already][state].add(rival)
    return list(map(frozenset, matter[False])), list(map(frozenset, matter[True]))


def _order(strategy: Strategy, marked: Callable[[Transition], bool]) -> tuple[_Counts, ...]:
    """The order of runs after an event, given their order before and whether each marks the event.

    Given the run's own transition: which transitions of the other runs keep them equal, which keep preferred runs
    preferred, and which make others preferred.
    """

    def whichever(_: Transition, __: Transition) -> bool:
        return True

    def alike(t: Transition, u: Transition) -> bool:
        return marked(u) == marked(t)

    def more_marked(t: Transition, u: Transition) -> bool:
        return marked(u) and not marked(t)

    match strategy:
        case Strategy.NEXT:
            # The first difference decides.
            return alike, whichever, more_marked
        case Strategy.LAST:
            # The last difference decides; earlier ones no longer count.
            return whichever, alike, more_marked
        case Strategy.MAX:
            # The marks of a superset include all marks of the run.
            return alike, lambda t, u: marked(u) or not marked(t), more_marked
        case Strategy.ANY:
            # As NEXT, with an arbitrary order of all label sets; sorted, the empty one is least.
            return lambda t, u: u.labels == t.labels, whichever, lambda t, u: sorted(u.labels) > sorted(t.labels)
    raise TypeError(f"{strategy} has no order")
