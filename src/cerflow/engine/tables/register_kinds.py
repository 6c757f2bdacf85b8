"""The kinds of the values that a transducer's registers hold for a schema."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from cerflow.automata.model.transducer import Transducer
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language.node import Node, fold
from cerflow.logic.analysis.kinds import sort_of_node
from cerflow.logic.conditions.guards import Measure, Stored
from cerflow.logic.conditions.register_values import Joined, Known, SquareRoot, Word

#: The kind of each field of each register; None while it is unknown.
RegisterKinds = Sequence[Sequence[ValueKind | None]]


def register_kinds(transducer: Transducer, schema: Schema) -> list[list[ValueKind]]:
    """The kind of each field of each register; integers that meet floats become floats."""
    kinds: list[list[ValueKind | None]] = [[None] * r.fields for r in transducer.registers]
    # Many transitions have the same writes.
    rows = dict.fromkeys((write.register, write.row) for t in transducer.transitions for write in t.writes)
    changed = True
    while changed:
        changed = False
        for register, row in rows:
            for k, expression in enumerate(row):
                found = register_expression_kind(expression, schema, kinds)
                joined = _join(kinds[register][k], found)
                if joined != kinds[register][k]:
                    kinds[register][k] = joined
                    changed = True
                if isinstance(expression, Stored) and joined is ValueKind.FLOAT and found is ValueKind.INTEGER:
                    # Values copied between registers must have one form.
                    kinds[expression.register][expression.field] = joined
                    changed = True
    return [[kind or ValueKind.INTEGER for kind in row] for row in kinds]


def register_expression_kind(
    expression: c.Expression,
    schema: Schema,
    kinds: RegisterKinds,
    known: dict[c.Expression, ValueKind | None] | None = None,
) -> ValueKind | None:
    """The kind of an expression on the current event and registers; None if it is still unknown.

    ``known`` remembers the kinds of its parts as well.
    """

    def visit(current: Node, below: Sequence[ValueKind | None]) -> ValueKind | None:
        found = kind(current, below)
        if known is not None and isinstance(current, c.Expression):
            known[current] = found
        return found

    def kind(current: Node, below: Sequence[ValueKind | None]) -> ValueKind | None:
        if not isinstance(current, c.Expression) or isinstance(current, c.LabelReference):
            return None  # conditions below `If`, windows below `Measure`
        match current:
            case c.Attribute():
                return schema.kind(schema.column(current.name))
            case Stored():
                return kinds[current.register][current.field]
            case Measure() | Known() | Word(_, True):
                return ValueKind.INTEGER
            case SquareRoot():
                return ValueKind.FLOAT
            case Joined():
                return ValueKind.FLOAT if current.floating else below[1]
            case c.If():
                return _join(below[1], below[2])
            case c.Arithmetic():
                if ValueKind.OTHER in below:
                    return ValueKind.OTHER
                return ValueKind.FLOAT if current.operator == "/" else _join(*below)
            case c.Function("coalesce"):
                return reduce(_join, below)
            case Word() | c.Negative() | c.Function("abs" | "floor" | "ceil" | "round" | "prev"):
                return below[0]
        # The kinds of all others do not depend on those of their operands.
        return sort_of_node(current, (), schema).kind or ValueKind.OTHER

    return fold(expression, visit)


def _join(a: ValueKind | None, b: ValueKind | None) -> ValueKind | None:
    """The common kind of values of two kinds; NULL fits every kind."""
    if a is None or a is ValueKind.OTHER:
        return a if b is None else b
    return ValueKind.FLOAT if b is ValueKind.FLOAT else a
