"""UNLESS and WITHOUT: runs that end if another formula matches (P2 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from cerflow.automata.compile.run_sets import FollowedRuns, RunSet, every
from cerflow.automata.compile.waiting import Reference, postponed, references
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transition
from cerflow.base.graphs import reached, reached_along

#: The name of the runs that must not end.
_EXCLUDED = "excluded"
#: The runs of the excluded part, and the events read that its conditions ask for.
Memory = tuple[RunSet, frozenset[Reference]]


def unless(operand: Fragment, excluded: Fragment, registers: RegisterFile, read: EventsRead | None = None) -> Fragment:
    """``φ UNLESS ψ``: no match of ψ on the events that the run has read, marked or not.

    The runs of ψ are followed from every event on. When one ends, the run of φ dies.
    """
    watch = ExcludedRuns(operand, excluded, read or EventsRead(-1), registers)
    return track(operand, watch.begin, watch.past).trimmed()


@dataclass(frozen=True)
class EventsRead:
    """Which events that conditions of an excluded part ask for have been read before it looks at an event.

    ``scope`` is the occurrence of the formula that excludes; it binds the labels of the part before. Of enclosing
    formulas, the events ``before`` always come earlier; nothing is known of others.
    """

    scope: int
    before: frozenset[Reference] = frozenset()


class ExcludedRuns:
    """The runs of an excluded formula, begun at every event that a run of the operand reads.

    With ``after`` they begin at the events after those of the operand instead, all of which have been read then.
    """

    def __init__(
        self, operand: Fragment, excluded: Fragment, read: EventsRead, registers: RegisterFile, *, after: bool = False
    ) -> None:
        self._scope = read.scope
        self._asked = frozenset().union(*(references(atom) for t in excluded.transitions for atom in t.atoms))
        before = read.before & self._asked
        if after:
            before = reduce(self._seen, operand.transitions, before)
        self._when: dict[Transition, set[frozenset[Reference]]] | None = None
        if self._asked:
            leaving = operand.leaving()

            def following(place: tuple[int, frozenset[Reference]]) -> Iterator[tuple[int, frozenset[Reference]]]:
                return ((t.target, self._seen(place[1], t)) for t in leaving[place[0]])

            # The sets of events that may have been read.
            moments = {seen for _, seen in reached([(q, before) for q in operand.initial], following)}
            excluded, self._when = postponed(excluded, moments, registers)
        self._followed = FollowedRuns(excluded, registers, alone=True, comes_later=lambda of: of.scope == self._scope)
        #: Where no event has been read.
        self.begin: Memory = (self._followed.beginning(), before)

    def _seen(self, before: frozenset[Reference], t: Transition) -> frozenset[Reference]:
        """The events read after a transition, of those that matter."""
        return before | (self._asked & {(label, self._scope) for label in t.labels})

    def past(self, memory: Memory, t: Transition) -> Iterator[tuple[Memory, Transition]]:
        """The versions of a transition, given the runs begun before: all cases in which none of these ends."""
        followed, when = self._followed, self._when
        run_set, seen = memory[0], self._seen(memory[1], t)
        sources = [(_EXCLUDED, run_set, every if when is None else lambda u: seen in when[u])]
        for case in followed.cases(t, sources):
            moves = followed.moves(case, sources)
            guards = followed.none_enters(moves, followed.final)
            if guards is None:
                continue
            after, writes = followed.step(_EXCLUDED, moves, run_set)
            asked = t.reguarded([*case.literals, *guards])
            yield (RunSet(after.states | followed.initial, after.rows), seen), asked.writing(*writes)


#: The states of a run of WITHOUT before its first mark and after its last.
_BEFORE, _CLOSED = "before", "closed"


def without(operand: Fragment, excluded: Fragment, registers: RegisterFile, read: EventsRead) -> Fragment:
    """``φ WITHOUT ψ``: no match of ψ between the first and the last marked event.

    The last marked event is guessed if a run can end with events that are only read (PROJECT).
    """
    watch = ExcludedRuns(operand, excluded, read, registers)
    #: The states from which a run can end without marking another event, and those from which it can mark one.
    quiet = reached_along(((t.target, t.source) for t in operand.transitions if not t.labels), operand.final)
    marking = (t.source for t in operand.transitions if t.labels)
    loud = reached_along(((t.target, t.source) for t in operand.transitions), marking)

    def step(memory: Memory | str, t: Transition) -> Iterator[tuple[Memory | str, Transition]]:
        if not t.labels and isinstance(memory, str):
            yield memory, t
            return
        if memory == _CLOSED:
            return
        if not t.labels and t.target in quiet:
            yield _CLOSED, t
            if t.target not in loud:
                return
        yield from watch.past(watch.begin if isinstance(memory, str) else memory, t)

    start: Memory | str = _BEFORE
    return track(operand, start, step).trimmed()
