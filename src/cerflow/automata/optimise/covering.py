"""Rows of collections, and configurations of detection only, that others make unnecessary.

One of two runs in a state *covers* the other if it can take all of the other's continuations: in each field of its
registers it holds the same value, or a value that every later comparison treats at least as well. ``x.v < y.v`` needs
only the least x.v, so there a lesser value covers a greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cerflow.automata.model.transducer import Accumulation, Register, Transition
from cerflow.base.graphs import settled_values
from cerflow.base.operators import MIRRORED, Operator
from cerflow.language import condition as c
from cerflow.language.node import Node
from cerflow.logic.conditions.guards import InWindow, Of, Satisfied, Stored, leaves
from cerflow.logic.conditions.register_values import Microseconds

#: A field of a register.
Field = tuple[int, int]
#: How a field of a covering row must compare with the field of the covered one; None: in any way.
Relation = Operator | None

_LESS, _GREATER, _SAME = 1, 2, 3
_RELATIONS: tuple[Relation, ...] = (None, Operator.LE, Operator.GE, Operator.EQ)
_LEFT = {Operator.LT: _LESS, Operator.LE: _LESS, Operator.GT: _GREATER, Operator.GE: _GREATER}
_OTHER_WAY = {_LESS: _GREATER, _GREATER: _LESS}


@dataclass(frozen=True)
class AwaitedEvent:
    """What is known of conditions that wait for an event: the event ``comes_later`` than those in ``instants``.

    These are fields with the time or the position of an event, as read on it.
    """

    instants: Mapping[Field, c.Expression] = field(default_factory=dict)
    comes_later: Callable[[Of], bool] = lambda _: False

    def latest(self, condition: c.Comparison) -> Stored | None:
        """The field of which greater values satisfy a bound on the time from one event to a later one.

        A difference beyond 64 bits is null. A greater value is nearer to the later event, so it cannot get there.
        """
        relation, difference, bound = condition.operator, condition.left, condition.right
        if isinstance(difference, c.Literal):
            relation, difference, bound = MIRRORED[relation], bound, difference
        if not isinstance(bound, c.Literal) or type(bound.value) not in (int, float):
            return None
        least = relation in (Operator.GE, Operator.GT)
        if not least and relation not in (Operator.LE, Operator.LT):
            return None
        turned = False
        match difference:
            case c.Function("abs", (c.Arithmetic("-") as difference,)) if not least:
                turned = self._is_earlier(difference.left)
            case c.Arithmetic("-"):
                turned = self._is_earlier(difference.left)
            case _:
                return None
        earlier, later = (difference.left, difference.right) if turned else (difference.right, difference.left)
        if not (self._is_earlier(earlier) and isinstance(later, Of) and self.comes_later(later)):
            return None
        assert isinstance(earlier, Stored)
        if self.instants[earlier.register, earlier.field] != later.expression:
            return None
        size: int | float = bound.value  # type: ignore[assignment]
        if least == turned or isinstance(condition.left, c.Function) or isinstance(condition.right, c.Function):
            return earlier
        if later.expression == c.Function("time", (c.LabelReference(None),)):
            # The difference of two infinite floats is null.
            return None
        # The difference has one sign: a bound on the other side holds unless it is null.
        strict = relation in (Operator.LT, Operator.GT)
        outside = size > 0 if turned else size < 0
        return earlier if outside or (size == 0 and not strict) else None

    def _is_earlier(self, side: c.Expression) -> bool:
        return type(side) is Stored and (side.register, side.field) in self.instants


def is_instant(expression: c.Expression) -> bool:
    """Whether an expression reads the time or the position of the current event."""
    while isinstance(expression, Microseconds):
        expression = expression.expression
    return isinstance(expression, c.Function) and expression.name in ("time", "position")


def covering_relations(
    transitions: Iterable[Transition],
    live: Sequence[Iterable[int]],
    registers: Sequence[Register],
    waiting: AwaitedEvent | None = None,
) -> list[dict[Field, Relation]]:
    """For each state the relation of each field of its ``live`` registers."""
    waiting = waiting or AwaitedEvent()
    needs = {
        state: dict.fromkeys(((r, k) for r in sorted(places) for k in range(registers[r].fields)), 0)
        for state, places in enumerate(live)
    }
    transitions = list(transitions)
    for t in transitions:
        needs[t.source] = _both(needs[t.source], _together(n for atom in t.atoms for n in _asked(atom, waiting)))
    entering = ((t.target, t.source, t) for t in transitions)
    found = settled_values(needs, entering, lambda t, after: _together(_written(t, after, registers)), _both)
    return [{field: _RELATIONS[need] for field, need in found[state].items()} for state in range(len(live))]


def relations_in(condition: c.Condition, fields: Sequence[Stored], waiting: AwaitedEvent) -> tuple[Relation, ...]:
    """How fields of a row must compare with those of another, so that it satisfies a condition whenever that does."""
    needs = _together(_asked(condition, waiting))
    return tuple(_RELATIONS[needs.get((leaf.register, leaf.field), 0)] for leaf in fields)


def _together(asked: Iterable[tuple[Stored, int]]) -> dict[Field, int]:
    found: dict[Field, int] = {}
    for leaf, need in asked:
        field = (leaf.register, leaf.field)
        found[field] = found.get(field, 0) | need
    return found


def _both(one: dict[Field, int], other: dict[Field, int]) -> dict[Field, int]:
    return one | {field: one.get(field, 0) | need for field, need in other.items()}


def _asked(condition: c.Condition, waiting: AwaitedEvent) -> Iterator[tuple[Stored, int]]:
    """The fields that a condition reads, and how they may change without making it untrue."""
    match condition:
        case c.And() | c.Or():
            yield from _asked(condition.left, waiting)
            yield from _asked(condition.right, waiting)
        case Satisfied():
            yield from _asked(condition.condition, waiting)
        case InWindow(start) if type(start) is Stored:
            yield start, _GREATER
        case c.Comparison() if (latest := waiting.latest(condition)) is not None:
            yield latest, _GREATER
        case c.Comparison() if condition.operator in _LEFT:
            need = _LEFT[condition.operator]
            yield from _compared(condition.left, need)
            yield from _compared(condition.right, _OTHER_WAY[need])
        case _:
            yield from _compared(condition, _SAME)


def _compared(root: Node, need: int) -> Iterator[tuple[Stored, int]]:
    """The fields below a node: one that stands alone may change as ``need`` says, others must stay the same."""
    for leaf in leaves(root):
        if isinstance(leaf, Stored):
            yield leaf, need if type(root) is Stored else _SAME


def _written(t: Transition, after: Mapping[Field, int], registers: Sequence[Register]) -> Iterator[tuple[Stored, int]]:
    """The needs of the source of a transition that follow from the needs of its target."""
    for (register, k), need in after.items():
        if not need:
            continue
        keeps = registers[register].keeps
        for write in (write for write in reversed(t.writes) if write.register == register):
            yield from _compared(write.row[k], need)
            if write.fresh or keeps is Accumulation.VALUE:
                break
            if keeps is Accumulation.SAME:
                need = _SAME
        else:
            yield Stored(register, k), need
