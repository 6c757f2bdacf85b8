"""The construction for SREMO (Glushkov) joins these parts: terminals as transitions, and runs over positions.

A terminal has conditions on the event read and on registers, and writes. While an expression is compiled, a register
has any number of *places*, numbered copies of it, so that writes in one part do not touch places that another still
reads. A read of a place is an `Of` leaf (label: the register, scope: the number), and a write names only its place.
When all reads of a place are known, it gets a register of the transducer for each expression that they read: `settled`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cerflow.automata.compile.conditions import read_on_event
from cerflow.automata.model.fragment import Fragment, RegisterFile
from cerflow.automata.model.transducer import Transition, Write
from cerflow.language.condition import Attribute, Condition, Expression, LabelReference, Not
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.connectives import FALSE, TRUE, with_atoms
from cerflow.logic.conditions.guards import Of, Satisfied, Stored, leaves, separate, substitute

#: A register of an expression, and the number of its copy.
Place = tuple[str, int]
#: The registers that hold an event, each with the number of its place, in order.
Held = tuple[Place, ...]
#: The beginning of a part. It is not a state: the part before continues with the transitions that begin here.
START = -1

#: Stands for the current event while registers are distinguished; no register has this name.
_HERE = "\0here"


def on_places(condition: Condition, held: Mapping[str, int]) -> Condition:
    """The guard that a condition is where its registers are held at the numbered places."""
    if isinstance(condition, Not) and isinstance(condition.operand, Satisfied):
        # Of what must not be true the same is stored as of what must be.
        return Not(Satisfied(on_places(condition.operand.condition, held)))

    def name(current: Node) -> Node:
        # With a name for the current event, conditions on registers alone differ from those that also read the event.
        if isinstance(current, Attribute | LabelReference) and current.label is None:
            return replace(current, label=_HERE)
        return current

    return read_on_event(separate(transform(condition, name), {**held, _HERE: 0}), lambda leaf: leaf.label == _HERE)


def with_empty_registers(condition: Condition, held: Collection[str]) -> Condition:
    """The condition with FALSE for every atom on a register that is not held, and constants simplified.

    An atom on an empty register is false, and its negation true.
    """
    return with_atoms(condition, lambda atom: atom if all(r in held for r in condition_labels(atom)) else FALSE)


class Places:
    """The places of an expression under construction, referred to by number in writes that are not settled yet."""

    def __init__(self) -> None:
        self._numbers: dict[Place, int] = {}

    def write(self, place: Place) -> Write:
        """Store the current event at a place, as far as it will be read."""
        number = self._numbers.setdefault(place, len(self._numbers))
        return Write(-1 - number, (), fresh=True)

    def written(self, transitions: Iterable[Transition]) -> frozenset[Place]:
        """The places that transitions which are not settled write."""
        places = {number: place for place, number in self._numbers.items()}
        return frozenset(places[-1 - w.register] for t in transitions for w in t.writes if w.register < 0)

    def settled(
        self, transitions: Sequence[Transition], registers: RegisterFile, own: Callable[[Place], bool]
    ) -> list[Transition]:
        """The transitions with registers for their ``own`` places; other reads stay as they are."""
        read: dict[Place, dict[Expression, Stored]] = {}
        stored: dict[Expression, Expression] = {}
        for leaf in dict.fromkeys(leaf for t in transitions for tree in t.trees for leaf in leaves(tree)):
            if isinstance(leaf, Of) and own(place := (leaf.label, leaf.scope)):
                kept = Stored(registers.value(1, f"{leaf.label}.{show(leaf.expression)}"), 0)
                stored[leaf] = read.setdefault(place, {})[leaf.expression] = kept
        places = {number: place for place, number in self._numbers.items() if own(place)}

        def written(w: Write) -> list[Write]:
            if w.register >= 0 or -1 - w.register not in places:
                return [w]
            asked = read.get(places[-1 - w.register], {})
            return [Write(kept.register, (expression,), fresh=True) for expression, kept in asked.items()]

        told = (t.with_trees(lambda tree: substitute(tree, stored)) for t in transitions)
        return [replace(t, writes=tuple(new for w in t.writes for new in written(w))) if t.writes else t for t in told]


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
                return Fragment(fragment.states, {other}, fragment.final, fragment.transitions).trimmed()
    return fragment
