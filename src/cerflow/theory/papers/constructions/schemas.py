"""The six schemas of 004 (Theorem 27, App. A.2, Figure 11), which combine automata with one start and one final state.

States are numbers from `Schemas`. Combined automata share their registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from cerflow.language.condition import Condition
from cerflow.theory.papers.model.automaton import SKIPPED, A, Automaton, State, TransitionLike, sorted_states
from cerflow.theory.papers.model.srt import SymbolicRegisterTransducer, SymbolicTransition


@dataclass(frozen=True, slots=True)
class SingleEnded:
    """An automaton with one start and one final state."""

    start: int
    final: int
    transitions: tuple[TransitionLike, ...]

    def automaton(self, model: type[A], registers: Iterable[str] = ()) -> A:
        """The same in a model with registers, which are those used and ``registers``."""
        used = {r for t in self.transitions for r in (*t.reads, *t.writes)}
        return model.made(
            self.transitions, starts=(self.start,), finals=(self.final,), registers=sorted(used.union(registers))
        )

    def transducer(self, registers: Iterable[str]) -> SymbolicRegisterTransducer:
        """The same as a transducer."""
        return self.automaton(SymbolicRegisterTransducer, registers)


class Schemas:
    """The schemas, over states that have not been used yet."""

    def __init__(self) -> None:
        self._numbers = count()

    def nothing(self) -> SingleEnded:
        """``∅``: no transition."""
        return self._between()

    def empty_string(self) -> SingleEnded:
        """``ε`` (Figure 11a)."""
        start, final = self._new(), self._new()
        return SingleEnded(start, final, (_epsilon(start, final),))

    def terminal(
        self, condition: Condition, output: frozenset[str] = SKIPPED, writes: Iterable[str] = ()
    ) -> SingleEnded:
        """``φ ↑ o ↓ W`` (Figures 11b and 11c)."""
        start, final = self._new(), self._new()
        t = SymbolicTransition(source=start, target=final, condition=condition, output=output, writes=frozenset(writes))
        return SingleEnded(start, final, (t,))

    def concatenation(self, left: SingleEnded, right: SingleEnded) -> SingleEnded:
        """``e · f`` (Figure 11d): no new states."""
        joined = _epsilon(left.final, right.start)
        return SingleEnded(left.start, right.final, (*left.transitions, joined, *right.transitions))

    def alternation(self, left: SingleEnded, right: SingleEnded) -> SingleEnded:
        """``e + f`` (Figure 11e)."""
        return self._between(left, right)

    def star(self, body: SingleEnded) -> SingleEnded:
        """``e*`` (Figure 11f); registers are not reset between repetitions."""
        once = self._between(body)
        back = (_epsilon(once.start, once.final), _epsilon(body.final, body.start))
        return SingleEnded(once.start, once.final, (*once.transitions, *back))

    def embedded(self, automaton: Automaton) -> SingleEnded:
        """An automaton over new states; several start or final states get a common new one."""
        number: dict[State, int] = {}

        def of(state: State) -> int:
            if state not in number:
                number[state] = self._new()
            return number[state]

        starts = [of(state) for state in sorted_states(automaton.starts)]
        transitions = [t.between(of(t.source), of(t.target)) for t in automaton.transitions]
        finals = [of(state) for state in sorted_states(automaton.finals)]
        start = starts[0] if len(starts) == 1 else self._new()
        final = finals[0] if len(finals) == 1 else self._new()
        transitions += [_epsilon(start, q) for q in starts if q != start]
        transitions += [_epsilon(q, final) for q in finals if q != final]
        return SingleEnded(start, final, tuple(transitions))

    def _between(self, *parts: SingleEnded) -> SingleEnded:
        """The parts in parallel between a new start and a new final state."""
        start, final = self._new(), self._new()
        found: list[TransitionLike] = []
        for part in parts:
            found += (_epsilon(start, part.start), *part.transitions, _epsilon(part.final, final))
        return SingleEnded(start, final, tuple(found))

    def _new(self) -> int:
        return next(self._numbers)


def _epsilon(source: int, target: int) -> SymbolicTransition:
    return SymbolicTransition(source=source, target=target)
