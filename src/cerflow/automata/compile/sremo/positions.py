"""The strings of an expression of SREMO as runs over positions (Glushkov): what the parts of a construction are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cerflow.automata.compile.sremo.terminals import Place
from cerflow.automata.model.fragment import Fragment, without_dead_states
from cerflow.automata.model.transducer import Transition
from cerflow.logic.conditions.connectives import TRUE

#: The registers that hold an event, each with the number of its place, in order.
Held = tuple[Place, ...]


#: The beginning of a part. It is not a state: the part before continues with the transitions that begin here.
START = -1


@dataclass
class Positions:
    """The strings of an expression: whether the empty one, and the runs over all others, by position (Glushkov).

    ``beginnings`` are the transitions that leave the start, ``transitions`` all others. ``ends`` are the states that
    are entered with the last event of a match, by the registers held there. State numbers are unique in the
    construction.
    """

    empty: bool = False
    beginnings: list[Transition] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    ends: dict[Held, list[int]] = field(default_factory=dict)

    def end(self, held: Held, states: Iterable[int]) -> None:
        """Make these states ends, too."""
        self.ends.setdefault(held, []).extend(states)

    def follow(self, states: Iterable[int], following: Positions) -> None:
        """Let the next part begin where these ends are."""
        self.transitions += [t.moved(state, t.target) for state in states for t in following.beginnings]

    def join(self, other: Positions) -> None:
        """Also the strings of another expression, which begins with the same registers held."""
        self.empty |= other.empty
        self.beginnings += other.beginnings
        self.transitions += other.transitions
        for held, ends in other.ends.items():
            self.end(held, ends)


def restricted(held: Held, names: frozenset[str]) -> Held:
    """The held registers that have one of these names."""
    return tuple(place for place in held if place[0] in names)


def waiting_anywhere(fragment: Fragment) -> Fragment:
    """The fragment begun in a state where it can wait, if such a state has the same transitions as its beginning.

    After an initial part that reads anything, such as ``[TRUE]*``, grouping makes a separate case of the first event,
    which is unnecessary.
    """
    leaving = [frozenset(t.moved(0, t.target) for t in transitions) for transitions in fragment.leaving()]
    for state in sorted(fragment.initial):
        for other in {t.target for t in fragment.transitions if t.source == state and t.test == TRUE} - {state}:
            if leaving[other] == leaving[state]:
                return without_dead_states(Fragment(fragment.states, {other}, fragment.final, fragment.transitions))
    return fragment
