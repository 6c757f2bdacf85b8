"""Brackets with ``prev``: a condition on every two neighbouring events of a label (spec §10).

Each is checked as soon as the second event is read, so a run that violates it goes no further. A register keeps the
values of the first event that the condition needs.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import cast

from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transition, Write
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.condition import Attribute, Bracket, Condition, Expression, Function, Not, reads_previous
from cerflow.language.node import Node, node, rebuild, transform, with_children
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Of, Stored, bare, leaves, separate, substitute

_FORMER = "\0prev "


@node
class Neighbours(Condition):
    """``condition`` holds for every two neighbouring events of ``label``.

    It reads the second event as the current event; `Stored` leaves of register -1 stand for ``previous`` of the first.
    """

    label: str
    condition: Condition
    previous: tuple[Expression, ...]

    template = "{label}[{condition}]"


def neighbours(part: Condition, scopes: dict[str, int], scope: int, one: Container[str]) -> Condition | None:
    """A bracket with ``prev``, perhaps under NOT, as `Neighbours`; TRUE if its label has one event; else None.

    ``scopes`` are the occurrences that bind the labels, ``scope`` is that of the filter. Raises `UnsupportedQueryError`
    for another label that the filtered formula itself gives.
    """
    negated, bracket = False, part
    while isinstance(bracket, Not):
        negated, bracket = not negated, bracket.operand
    if not isinstance(bracket, Bracket) or not reads_previous(bracket):
        return None
    label = bracket.label
    if label in one:
        return TRUE
    previous: list[Expression] = []

    def visit(current: Node, children: Sequence[Node]) -> Node:
        if not isinstance(current, Function) or current.name != "prev":
            return with_children(current, children)
        argument = bare(current.arguments[0])
        previous.append(argument)
        # As long as labels are distinguished, it counts as an attribute of its label.
        return Attribute(label, f"{_FORMER}{len(previous) - 1}")

    def stored(current: Node) -> Node:
        if isinstance(current, Attribute) and current.name.startswith(_FORMER):
            return Stored(-1, int(current.name.removeprefix(_FORMER)))
        return current

    condition = separate(rebuild(cast(Condition, bracket), visit), scopes)
    here: dict[Expression, Expression] = {}
    for leaf in leaves(condition):
        if isinstance(leaf, Of) and leaf.label == label:
            here[leaf] = leaf.expression
        elif isinstance(leaf, Of) and leaf.scope == scope:
            raise UnsupportedQueryError(
                f"a bracket with prev cannot read '{leaf.label}', which the filtered formula gives itself",
                span=bracket.span,
                hint=f"Put FILTER on the part that gives '{label}' alone: ({leaf.label} ; ({label} FILTER …)).",
            )
    condition = transform(substitute(condition, here), stored)
    return Neighbours(label, Not(condition) if negated else condition, tuple(previous))


def apply_neighbours(operand: Fragment, atoms: Sequence[Neighbours], registers: RegisterFile) -> Fragment:
    """Keep the runs in which every two neighbouring events satisfy the atoms."""
    checks: list[tuple[Neighbours, Condition, Write]] = []
    for atom in dict.fromkeys(atoms):
        shown = ", ".join(map(registers.describe, atom.previous))
        register = registers.value(len(atom.previous), f"prev {atom.label}.({shown})")
        stored: dict[Expression, Expression] = {Stored(-1, k): Stored(register, k) for k in range(len(atom.previous))}
        checks.append((atom, substitute(atom.condition, stored), Write(register, atom.previous, fresh=True)))
    names = frozenset(atom.label for atom in atoms)

    def step(seen: frozenset[str], t: Transition) -> list[tuple[frozenset[str], Transition]]:
        given = t.labels & names
        if not given:
            return [(seen, t)]
        guards = [condition for atom, condition, _ in checks if atom.label in given & seen]
        writes = [write for atom, _, write in checks if atom.label in given]
        return [(seen | given, t.guarded(guards).writing(*writes))]

    return track(operand, frozenset[str](), step)
