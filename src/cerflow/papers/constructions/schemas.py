"""The six schemas of 004 (Theorem 27, App. A.2, Figure 11), which combine automata with one start and one final state.

States are numbers from `Schemas`. Combined automata share their registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from cerflow.language.condition import Condition
from cerflow.papers.model.srt import SKIPPED, State, SymbolicRegisterTransducer, SymbolicTransition

__all__ = ["Schemas", "SingleEnded"]


@dataclass(frozen=True, slots=True)
class SingleEnded:
    """An automaton with one start and one final state."""

    start: int
    final: int
    transitions: tuple[SymbolicTransition, ...]

    def transducer(self, registers: Iterable[str]) -> SymbolicRegisterTransducer:
        """The same as a transducer; ``registers`` are registers that it has in any case."""
        used = {r for t in self.transitions for r in (*t.reads, *t.writes)}
        return SymbolicRegisterTransducer.of(
            self.transitions, start=self.start, finals=(self.final,), registers=sorted({*registers, *used})
        )


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

    def embedded(self, transducer: SymbolicRegisterTransducer) -> SingleEnded:
        """A transducer over new states; several final states get a common new one behind them."""
        number: dict[State, int] = {transducer.start: self._new()}

        def of(state: State) -> int:
            if state not in number:
                number[state] = self._new()
            return number[state]

        transitions = [
            SymbolicTransition(
                source=of(t.source), target=of(t.target), condition=t.condition, output=t.output, writes=t.writes
            )
            for t in transducer.transitions
        ]
        if len(transducer.finals) == 1:
            (last,) = transducer.finals
            final = of(last)
        else:
            final = self._new()
            transitions += [_epsilon(of(state), final) for state in transducer.finals]
        return SingleEnded(number[transducer.start], final, tuple(transitions))

    def _between(self, *parts: SingleEnded) -> SingleEnded:
        """The parts side by side between a new start and a new final state."""
        start, final = self._new(), self._new()
        found: list[SymbolicTransition] = []
        for part in parts:
            found += (_epsilon(start, part.start), *part.transitions, _epsilon(part.final, final))
        return SingleEnded(start, final, tuple(found))

    def _new(self) -> int:
        return next(self._numbers)


def _epsilon(source: int, target: int) -> SymbolicTransition:
    return SymbolicTransition(source=source, target=target)
