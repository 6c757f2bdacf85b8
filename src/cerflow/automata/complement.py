"""``!e`` of SREMO: the strings that a fragment does not match, read without marking anything (§5.1.2, §11.11).

Nothing is unrolled: one run follows the set of all runs of the fragment that began where it did, as in the subset
construction (see `cerflow.automata.crowd`), and may end wherever none of these ends. Registers of enclosing
expressions are atoms of the event, asked of the following run's own registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cerflow.automata.conditions import reguarded
from cerflow.automata.crowd import EMPTY, Crowd, Crowds
from cerflow.automata.fragment import Fragment, track, trimmed
from cerflow.automata.guards import TRUE
from cerflow.automata.registers import RegisterFile
from cerflow.automata.transducer import Transition

__all__ = ["complement_of"]

#: The name of the runs that must not end.
_DENIED = "denied"

#: The states of the following run: on its way, and at its end.
_GOING_ON, _DONE = 0, 1


def complement_of(operand: Fragment, registers: RegisterFile) -> Fragment:
    """A fragment of the strings, other than the empty one, that the operand does not match.

    Raises `UnsupportedQueryError` if the runs of the operand remember sets, or divide events into too many cases.
    """
    crowds = Crowds(operand, registers)
    final, settled = crowds.final, _universal(crowds.fragment)

    def step(crowd: Crowd, t: Transition) -> Iterator[tuple[Crowd, Transition]]:
        sources = [(_DENIED, crowd, _any)]
        for situation in crowds.situations(t, [crowd]):
            # Beside a run that will end with every event, no end can be awaited.
            guards = crowds.none_enters(situation, sources, final if t.target == _DONE else settled)
            if guards is None:
                continue
            asked = reguarded(t, [*situation.literals, *guards])
            if t.target == _DONE:
                yield EMPTY, asked
                continue
            after, writes = crowds.step(situation, _DENIED, sources, crowd)
            yield after, replace(asked, writes=tuple(writes))

    follower = Fragment(2, {_GOING_ON}, {_DONE}, [Transition(_GOING_ON, _GOING_ON), Transition(_GOING_ON, _DONE)])
    return trimmed(track(follower, crowds.beginning(), step))


def _any(_: Transition) -> bool:
    return True


def _universal(fragment: Fragment) -> frozenset[int]:
    """States in which a run can stay over any event, and end with it."""
    staying = {t.source for t in fragment.transitions if t.skips}
    return frozenset(
        t.source
        for t in fragment.transitions
        if t.source in staying and t.test == TRUE and not t.atoms and t.target in fragment.final
    )
