"""The satisfaction of a condition by a complex event (spec §3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise, product

from cerflow.base.events import Event
from cerflow.language.condition import And, Bracket, Condition, Not, Or, Some, reads_previous
from cerflow.theory.semantics.values import EventsOf, labels_outside_aggregates, value_of


def satisfies(condition: Condition, events_of: EventsOf) -> bool:
    """Whether a complex event satisfies a condition.

    ``events_of`` gives the events of each label by position: those of the complex event, or the one event of a label
    that is bound further out. AND and OR are about the whole complex event. An atom (a bracket is one) must hold for
    every choice of one event for each label outside its aggregates. NOT negates atoms.

    ``SOME x1, …, xn: c`` is the existential extension (P2 §4): c is true for some x1 ∈ S1, …, xn ∈ Sn, where Si are the
    events of xi, so it does not hold without events. All other labels of c have one event each.
    ``NOT SOME x1, …, xn: c`` is the atom NOT c: for every choice c is false, and not unknown.
    """
    stack: list[bool] = []
    for current, negated in atoms_of(condition):
        if isinstance(current, And | Or):
            right, left = stack.pop(), stack.pop()
            conjunction = isinstance(current, And) != negated
            stack.append(left and right if conjunction else left or right)
        else:
            stack.append(_holds(current, negated, events_of))
    return stack[-1]


def satisfies_with_registers(condition: Condition, current: Event, registers: Mapping[str, Event]) -> bool:
    """``(u, v) ⊨ φ`` (register transducers §2, Definition 13): bare attributes belong to the current event.

    An atom on an empty register is false, and its negation true. If an atom is unknown, neither holds.
    """
    stack: list[bool] = []
    for atom, negated in atoms_of(condition):
        if isinstance(atom, And | Or):
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if isinstance(atom, And) != negated else left or right)
            continue
        read = labels_outside_aggregates(atom)
        single: dict[str | None, Event | None] = {r: registers[r] for r in read if r in registers}
        single[None] = current
        value = value_of(atom, single, lambda _: ()) if all(r in registers for r in read) else False
        stack.append(value is not None and bool(value) != negated)
    return stack[-1]


@lru_cache(maxsize=4096)
def atoms_of(condition: Condition) -> tuple[tuple[Condition, bool], ...]:
    """The atoms, and the AND and OR between them, children first; the flag is true below an odd number of NOTs."""
    found: list[tuple[Condition, bool]] = []
    stack: list[tuple[Condition, bool, bool]] = [(condition, False, False)]
    while stack:
        current, negated, ready = stack.pop()
        if isinstance(current, Not):
            stack.append((current.operand, not negated, False))
        elif isinstance(current, And | Or) and not ready:
            stack.append((current, negated, True))
            stack.append((current.right, negated, False))
            stack.append((current.left, negated, False))
        else:
            found.append((current, negated))
    return tuple(found)


def _holds(atom: Condition, negated: bool, events_of: EventsOf) -> bool:
    if isinstance(atom, Bracket) and reads_previous(atom):
        return _holds_between(atom, negated, events_of)
    condition = atom.condition if isinstance(atom, Some) else atom
    labels = labels_outside_aggregates(condition)
    values = (
        value_of(condition, dict(zip(labels, choice)), events_of)
        for choice in product(*(events_of(label) for label in labels))
    )
    if isinstance(atom, Some) and not negated:
        return any(value is True for value in values)
    return all(value is not None and bool(value) != negated for value in values)


def _holds_between(bracket: Bracket, negated: bool, events_of: EventsOf) -> bool:
    """A bracket with ``prev`` (spec §10): it holds for every two neighbouring events of its label."""
    others = [label for label in labels_outside_aggregates(bracket) if label != bracket.label]
    for former, latter in pairwise(events_of(bracket.label)):
        for choice in product(*(events_of(label) for label in others)):
            single: dict[str | None, Event | None] = {**dict(zip(others, choice)), bracket.label: latter}
            value = value_of(bracket, single, events_of, former)
            if value is None or bool(value) == negated:
                return False
    return True
