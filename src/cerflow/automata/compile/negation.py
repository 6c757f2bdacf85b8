"""UNLESS and WITHOUT: runs without a match of another formula beside them (P2 §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cerflow.automata.compile.conditions import reguarded
from cerflow.automata.compile.run_sets import FollowedRuns, RunSet
from cerflow.automata.model.fragment import Fragment, reachable_states, track, without_dead_states
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.model.transducer import Transition

__all__ = ["ExcludedRuns", "unless", "without"]

#: The name of the runs that must not end.
_EXCLUDED = "excluded"


def unless(operand: Fragment, excluded: Fragment, registers: RegisterFile) -> Fragment:
    """``φ UNLESS ψ``: no match of ψ on the events that the run has read, marked or not.

    The runs of ψ are followed from every event on. When one ends, the run of φ dies.
    """
    watch = ExcludedRuns(excluded, registers)
    return without_dead_states(track(operand, watch.followed.beginning(), watch.past))


class ExcludedRuns:
    """The runs of the excluded formula, begun at every event."""

    def __init__(self, excluded: Fragment, registers: RegisterFile) -> None:
        self.followed = FollowedRuns(excluded, registers, alone=True)

    def past(self, run_set: RunSet, t: Transition) -> Iterator[tuple[RunSet, Transition]]:
        """The versions of a transition, given the runs begun before: all cases in which none of these ends."""
        sources = [(_EXCLUDED, run_set, _any)]
        for case in self.followed.cases(t, [run_set]):
            guards = self.followed.none_ends(case, sources)
            if guards is None:
                continue
            after, writes = self.followed.step(case, _EXCLUDED, sources, run_set)
            asked = reguarded(t, [*case.literals, *guards])
            yield after.with_states(self.followed.initial), replace(asked, writes=(*t.writes, *writes))


def _any(_: Transition) -> bool:
    return True


#: The states of a run of WITHOUT before its first mark and after its last.
_BEFORE, _CLOSED = "before", "closed"


def without(operand: Fragment, excluded: Fragment, registers: RegisterFile) -> Fragment:
    """``φ WITHOUT ψ``: no match of ψ between the first and the last marked event.

    The last marked event is guessed if a run can end with events that are only read (PROJECT).
    """
    watch = ExcludedRuns(excluded, registers)
    quiet = _ending_unmarked(operand)
    loud = _marking_on(operand)

    def step(memory: RunSet | str, t: Transition) -> Iterator[tuple[RunSet | str, Transition]]:
        if not t.labels and isinstance(memory, str):
            yield memory, t
            return
        if memory == _CLOSED:
            return
        if not t.labels and t.target in quiet:
            yield _CLOSED, t
            if t.target not in loud:
                return
        yield from watch.past(memory if isinstance(memory, RunSet) else watch.followed.beginning(), t)

    start: RunSet | str = _BEFORE
    return without_dead_states(track(operand, start, step))


def _ending_unmarked(operand: Fragment) -> set[int]:
    """The states from which a run can end without marking another event, final ones included."""
    return reachable_states(operand.final, _before(operand, lambda t: not t.labels))


def _marking_on(operand: Fragment) -> set[int]:
    """The states from which a run can mark another event."""
    return reachable_states((t.source for t in operand.transitions if t.labels), _before(operand, lambda _: True))


def _before(operand: Fragment, counts: Callable[[Transition], bool]) -> list[list[int]]:
    """For each state, the states from which a counted transition leads to it."""
    found: list[list[int]] = [[] for _ in range(operand.states)]
    for t in operand.transitions:
        if counts(t):
            found[t.target].append(t.source)
    return found
