"""The satisfaction of a condition by a complex event (spec §3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product

from cerflow.base.events import Event
from cerflow.language.condition import And, Bracket, Condition, Or, Some, combined, reads_previous
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
    return combined(condition, lambda atom, positive: _holds(atom, not positive, events_of), _both_or_either)


def satisfies_with_registers(condition: Condition, current: Event, registers: Mapping[str, Event]) -> bool:
    """``(u, v) ⊨ φ`` (register transducers §2, Definition 13): bare attributes belong to the current event.

    An atom on an empty register is false, and its negation true. If an atom is unknown, neither holds.
    """

    def holds(atom: Condition, positive: bool) -> bool:
        read = labels_outside_aggregates(atom)
        single: dict[str | None, Event | None] = {r: registers[r] for r in read if r in registers}
        single[None] = current
        value = value_of(atom, single, lambda _: ()) if all(r in registers for r in read) else False
        return value is not None and bool(value) == positive

    return combined(condition, holds, _both_or_either)


def _both_or_either(join: type[And | Or], left: bool, right: bool) -> bool:
    return left and right if join is And else left or right


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
