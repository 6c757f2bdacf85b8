"""UNLESS and WITHOUT: runs that end if another formula matches (P2 §5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cerflow.automata.compile.run_sets import FollowedRuns, RunSet, every
from cerflow.automata.compile.waiting import Reference, postponed, references
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transition
from cerflow.base.graphs import reached, reached_along

#: The name of the runs that must not end.
_EXCLUDED = "excluded"


def unless(operand: Fragment, excluded: Fragment, registers: RegisterFile, read: EventsRead | None = None) -> Fragment:
    """``φ UNLESS ψ``: no match of ψ on the events that the run has read, marked or not.

    The runs of ψ are followed from every event on. When one ends, the run of φ dies.
    """
    read = read or EventsRead(-1)
    watch = ExcludedRuns(excluded, read, read.along(operand, excluded), registers)

    def step(memory: _Memory, t: Transition) -> Iterator[tuple[_Memory, Transition]]:
        run_set, seen = memory
        seen = watch.seen(seen, t)
        for after, changed in watch.past(run_set, t, seen):
            yield (after, seen), changed

    start: _Memory = (watch.followed.beginning(), read.before)
    return track(operand, start, step).trimmed()


@dataclass(frozen=True)
class EventsRead:
    """Which events that conditions of an excluded part ask for have been read before it looks at an event.

    ``scope`` is the occurrence of the formula that excludes; it binds the labels of the part before. Of enclosing
    formulas, the events ``before`` always come earlier; nothing is known of others.
    """

    scope: int
    before: frozenset[Reference] = frozenset()

    def after(self, seen: frozenset[Reference], t: Transition) -> frozenset[Reference]:
        """The events that have been read after a transition of the part before."""
        return seen | {(label, self.scope) for label in t.labels}

    def all_of(self, operand: Fragment, excluded: Fragment) -> frozenset[Reference]:
        """The events that have been read where the part before has ended."""
        given = {(label, self.scope) for t in operand.transitions for label in t.labels}
        return (self.before | given) & _asked(excluded)

    def along(self, operand: Fragment, excluded: Fragment) -> set[frozenset[Reference]]:
        """The sets of events that runs of the part before may have read, of those that the other part asks for."""
        asked = _asked(excluded)
        leaving = operand.leaving()

        def following(place: tuple[int, frozenset[Reference]]) -> Iterator[tuple[int, frozenset[Reference]]]:
            return ((t.target, self.after(place[1], t) & asked) for t in leaving[place[0]])

        return {seen for _, seen in reached([(q, self.before & asked) for q in operand.initial], following)}


def _asked(excluded: Fragment) -> frozenset[Reference]:
    """The events that conditions of an excluded part ask for."""
    return frozenset().union(*(references(atom) for t in excluded.transitions for atom in t.atoms))


#: The runs of the excluded part, and the events read that its conditions ask for.
_Memory = tuple[RunSet, frozenset[Reference]]


class ExcludedRuns:
    """The runs of the excluded formula, begun at every event.

    ``moments`` are the sets of events that may have been read.
    """

    def __init__(
        self, excluded: Fragment, read: EventsRead, moments: Iterable[frozenset[Reference]], registers: RegisterFile
    ) -> None:
        self._read = read
        self._asked = _asked(excluded)
        self._when: dict[Transition, set[frozenset[Reference]]] | None = None
        if self._asked:
            excluded, self._when = postponed(excluded, moments, registers)
        self.followed = FollowedRuns(excluded, registers, alone=True, comes_later=lambda leaf: leaf.scope == read.scope)

    def seen(self, before: frozenset[Reference], t: Transition) -> frozenset[Reference]:
        """The events read after a transition, of those that matter."""
        return self._read.after(before, t) & self._asked

    def past(self, run_set: RunSet, t: Transition, seen: frozenset[Reference]) -> Iterator[tuple[RunSet, Transition]]:
        """The versions of a transition, given the runs begun before: all cases in which none of these ends.

        ``seen`` are the events read, that of the transition included.
        """
        when = self._when
        sources = [(_EXCLUDED, run_set, every if when is None else lambda u: seen in when[u])]
        for case in self.followed.cases(t, sources):
            guards = self.followed.none_enters(case, sources, self.followed.final)
            if guards is None:
                continue
            after, writes = self.followed.step(case, _EXCLUDED, sources, run_set)
            asked = t.reguarded([*case.literals, *guards])
            yield RunSet(after.states | self.followed.initial, after.rows), asked.writing(*writes)


#: The states of a run of WITHOUT before its first mark and after its last.
_BEFORE, _CLOSED = "before", "closed"


def without(operand: Fragment, excluded: Fragment, registers: RegisterFile, read: EventsRead) -> Fragment:
    """``φ WITHOUT ψ``: no match of ψ between the first and the last marked event.

    The last marked event is guessed if a run can end with events that are only read (PROJECT).
    """
    watch = ExcludedRuns(excluded, read, read.along(operand, excluded), registers)
    #: The states from which a run can end without marking another event, and those from which it can mark one.
    quiet = reached_along(((t.target, t.source) for t in operand.transitions if not t.labels), operand.final)
    marking = (t.source for t in operand.transitions if t.labels)
    loud = reached_along(((t.target, t.source) for t in operand.transitions), marking)

    def step(memory: _Memory | str, t: Transition) -> Iterator[tuple[_Memory | str, Transition]]:
        if not t.labels and isinstance(memory, str):
            yield memory, t
            return
        if memory == _CLOSED:
            return
        if not t.labels and t.target in quiet:
            yield _CLOSED, t
            if t.target not in loud:
                return
        run_set, seen = (watch.followed.beginning(), read.before) if isinstance(memory, str) else memory
        seen = watch.seen(seen, t)
        for after, changed in watch.past(run_set, t, seen):
            yield (after, seen), changed

    start: _Memory | str = _BEFORE
    return track(operand, start, step).trimmed()
