"""The registers of a transducer under construction, and the least part of a set of events that a condition needs."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.automata.model.transducer import Accumulation, Register
from cerflow.base.operators import MIRRORED, Operator
from cerflow.language.condition import Comparison, Condition, Expression
from cerflow.language.formula import Window
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.guards import Shown, Stored

_LEFT = {
    Operator.LT: Accumulation.MAX,
    Operator.LE: Accumulation.MAX,
    Operator.GT: Accumulation.MIN,
    Operator.GE: Accumulation.MIN,
    Operator.EQ: Accumulation.SAME,
}
_RIGHT = {MIRRORED[operator]: kept for operator, kept in _LEFT.items()}


class RegisterFile:
    """Hands out registers by number."""

    def __init__(self) -> None:
        self.registers: list[Register] = []
        #: The fields that hold the time or the position of an event for a condition that waits, as read on it.
        self.instants: dict[tuple[int, int], Expression] = {}

    def add(self, register: Register) -> int:
        """The number of a new register."""
        self.registers.append(register)
        return len(self.registers) - 1

    def value(self, fields: int, meaning: str, window: Window | None = None) -> int:
        """The number of a new register for one row of values."""
        return self.add(Register(Accumulation.VALUE, fields, meaning, window))

    def describe(self, expression: Expression) -> str:
        """An expression for users, in which each register is shown by its meaning."""

        def name(current: Node) -> Node:
            if not isinstance(current, Stored):
                return current
            register = self.registers[current.register]
            field = "" if register.fields == 1 else f".{current.field}"
            return Shown(f"{register.meaning}{field}")

        return show(transform(expression, name))


def accumulation_for(atom: Condition, units: Sequence[Expression]) -> Accumulation:
    """How to keep many rows of some ``units``: a bound or a single value where the atom that reads them allows it.

    ``X.p < Y.p`` for all pairs needs only a maximum and a minimum, equality one value. An atom without the only unit
    alone on one side of a comparison needs all values.
    """
    if len(units) == 1 and isinstance(atom, Comparison):
        if atom.left == units[0]:
            return _LEFT.get(atom.operator, Accumulation.SET)
        if atom.right == units[0]:
            return _RIGHT.get(atom.operator, Accumulation.SET)
    return Accumulation.SET
