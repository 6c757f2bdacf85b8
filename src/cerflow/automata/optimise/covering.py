"""Rows of collections, and configurations in mere detection, that others make unnecessary.

One of two runs in a state *covers* the other if it can take all of the other's continuations: in each field of its
registers it holds the same value, or a value that every later comparison treats at least as well. ``x.v < y.v`` needs
only the least x.v, so there a lesser value covers a greater one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cerflow.automata.model.transducer import Accumulation, Register, Transition
from cerflow.conditions.guards import InWindow, Satisfied, Stored, leaves
from cerflow.language.condition import (
    And,
    Comparison,
    Condition,
    Expression,
    Or,
)
from cerflow.language.node import Node
from cerflow.values.operators import Operator

__all__ = ["Field", "Relation", "covering_relations"]

#: A field of a register.
Field = tuple[int, int]
#: How a field of a covering row must compare with the field of the covered one; None: in any way.
Relation = Operator | None

_LESS, _GREATER = 1, 2
_RELATIONS: tuple[Relation, ...] = (None, Operator.LE, Operator.GE, Operator.EQ)
_LEFT = {Operator.LT: _LESS, Operator.LE: _LESS, Operator.GT: _GREATER, Operator.GE: _GREATER}
_OTHER_WAY = {_LESS: _GREATER, _GREATER: _LESS}


def covering_relations(
    transitions: Iterable[Transition], live: Sequence[Iterable[int]], registers: Sequence[Register]
) -> list[dict[Field, Relation]]:
    """For each state the relation of each field of its ``live`` registers."""
    needs: list[dict[Field, int]] = [
        {(r, k): 0 for r in sorted(places) for k in range(registers[r].fields)} for places in live
    ]
    entering: list[list[Transition]] = [[] for _ in live]
    for t in transitions:
        entering[t.target].append(t)
        for atom in t.atoms:
            for leaf, need in _asked(atom):
                _add(needs[t.source], leaf, need)
    pending = list(range(len(live)))
    while pending:
        state = pending.pop()
        for t in entering[state]:
            found = [_add(needs[t.source], leaf, n) for leaf, n in _written(t, needs[state], registers)]
            if any(found):
                pending.append(t.source)
    return [{field: _RELATIONS[need] for field, need in own.items()} for own in needs]


def _add(needs: dict[Field, int], leaf: Stored, need: int) -> bool:
    field = (leaf.register, leaf.field)
    before = needs.get(field, 0)
    if before | need == before:
        return False
    needs[field] = before | need
    return True


def _asked(condition: Condition) -> Iterator[tuple[Stored, int]]:
    """The fields that a condition reads, and how they may change without making it untrue."""
    match condition:
        case And() | Or():
            yield from _asked(condition.left)
            yield from _asked(condition.right)
        case Satisfied():
            yield from _asked(condition.condition)
        case InWindow(start) if type(start) is Stored:
            yield start, _GREATER
        case Comparison() if condition.operator in _LEFT:
            need = _LEFT[condition.operator]
            yield from _compared(condition.left, need)
            yield from _compared(condition.right, _OTHER_WAY[need])
        case _:
            yield from _fixed(condition)


def _compared(side: Expression, need: int) -> Iterator[tuple[Stored, int]]:
    if type(side) is Stored:
        yield side, need
    else:
        yield from _fixed(side)


def _fixed(root: Node) -> Iterator[tuple[Stored, int]]:
    for leaf in leaves(root):
        if isinstance(leaf, Stored):
            yield leaf, _LESS | _GREATER


def _written(t: Transition, after: Mapping[Field, int], registers: Sequence[Register]) -> Iterator[tuple[Stored, int]]:
    """The needs of the source of a transition that follow from the needs of its target."""
    for (register, k), need in after.items():
        if not need:
            continue
        keeps = registers[register].keeps
        stays = True
        for write in reversed(t.writes):
            if write.register != register:
                continue
            yield from _compared(write.row[k], need)
            if write.fresh or keeps is Accumulation.VALUE:
                stays = False
                break
            if keeps is Accumulation.SAME:
                need = _LESS | _GREATER
        if stays:
            yield Stored(register, k), need
