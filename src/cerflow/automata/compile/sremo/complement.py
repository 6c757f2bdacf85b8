"""``!e`` of SREMO: the strings that a fragment does not match, read without marking anything (§5.1.2, §11.11).

Nothing is unrolled. One run follows the set of all runs of the fragment that began with it, as in the subset
construction (see `cerflow.automata.compile.run_sets`), and may end wherever none of these ends. Registers of enclosing
expressions are the following run's own registers, so conditions on them are atoms of the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from cerflow.automata.compile.run_sets import FollowedRuns, RunSet, every
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Register, Transition
from cerflow.language.condition import Condition, Not
from cerflow.logic.conditions.connectives import TRUE, conjunction
from cerflow.logic.conditions.guards import Satisfied

#: The name of the runs that must not end.
_DENIED = "denied"


#: The state of the following run: the runs beside it (None: they will end anyway), and whether none ended now.
_Place = tuple[RunSet | None, bool]


def complement_of(operand: Fragment, registers: RegisterFile) -> Fragment:
    """A deterministic fragment of the strings, except the empty one, that the operand does not match.

    Raises `UnsupportedQueryError` if the runs of the operand remember sets, or divide events into too many cases.
    """
    followed = FollowedRuns(operand, registers, alone=True)
    final, ending = followed.final, _universal(followed.fragment)

    def step(place: _Place, t: Transition) -> Iterator[tuple[_Place, Transition]]:
        run_set, _ = place
        if run_set is None:
            return
        sources = [(_DENIED, run_set, every)]
        for case in followed.cases(t, sources):
            free = _both_ways(followed.none_enters(case, sources, final))
            open_ = _both_ways(followed.none_enters(case, sources, ending))
            after, writes = followed.step(case, _DENIED, sources, run_set)
            for is_free, not_ended in free:
                for is_open, not_lost in open_:
                    if is_free or is_open:
                        asked = t.reguarded([*case.literals, *not_ended, *not_lost])
                        yield (after if is_open else None, is_free), asked.writing(*writes) if is_open else asked

    follower = Fragment(1, {0}, {0}, [Transition(0, 0)])
    start: _Place = followed.beginning(), False
    return track(follower, start, step, lambda place: place[1]).trimmed()


def remembers_without_end(operand: Fragment, registers: Sequence[Register]) -> bool:
    """Whether some run can continue over any number of events before it reads a register that it wrote.

    Then the set of all runs may hold any number of values. Starts of windows do not count: the latest one suffices.
    """
    live = operand.finished(registers).live()
    order: TopologicalSorter[tuple[int, int]] = TopologicalSorter()
    for t in operand.transitions:
        for r in live[t.source] & live[t.target] - {write.register for write in t.writes}:
            if registers[r].window is None:
                order.add((t.source, r), (t.target, r))
    try:
        order.prepare()
    except CycleError:
        return True
    return False


def _both_ways(guards: list[Condition] | None) -> list[tuple[bool, list[Condition]]]:
    """Whether guards hold, with the conditions that decide it; without guards they do, and None never does."""
    if guards is None:
        return [(False, [])]
    held = (True, guards)
    return [held, (False, [Not(Satisfied(conjunction(guards)))])] if guards else [held]


def _universal(fragment: Fragment) -> frozenset[int]:
    """States in which a run can stay over any event, and end with it."""
    ended = {t.source for t in fragment.transitions if t.test == TRUE and not t.atoms and t.target in fragment.final}
    return frozenset(t.source for t in fragment.transitions if t.skips and t.source in ended)
