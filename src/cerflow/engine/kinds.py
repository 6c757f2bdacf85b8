"""What kinds of values the registers of a transducer hold for a schema."""

from __future__ import annotations

from cerflow.analysis.types import kind_of_expression
from cerflow.automata.guards import Measure, Stored, leaves
from cerflow.automata.guards import Truth as TruthOf
from cerflow.automata.transducer import Transducer
from cerflow.language.condition import Expression
from cerflow.schema import Kind, Schema

__all__ = ["register_kinds"]


def register_kinds(transducer: Transducer, schema: Schema) -> list[list[Kind]]:
    """The kind of each field of each register; integers that meet floats become floats."""
    kinds: list[list[Kind | None]] = [[None] * r.fields for r in transducer.registers]
    changed = True
    while changed:
        changed = False
        for t in transducer.transitions:
            for write in t.writes:
                for k, expression in enumerate(write.row):
                    found = _kind(expression, schema, kinds)
                    old = kinds[write.register][k]
                    joined = found if old is None else old if found is None else _join(old, found)
                    if joined != old:
                        kinds[write.register][k] = joined
                        changed = True
                    if isinstance(expression, Stored) and joined is Kind.FLOAT and found is Kind.INTEGER:
                        # What is copied from register to register must have one form.
                        kinds[expression.register][expression.field] = joined
                        changed = True
    return [[kind or Kind.INTEGER for kind in row] for row in kinds]


def _kind(expression: Expression, schema: Schema, kinds: list[list[Kind | None]]) -> Kind | None:
    if isinstance(expression, Stored):
        return kinds[expression.register][expression.field]
    if isinstance(expression, TruthOf):
        return Kind.BOOLEAN
    if isinstance(expression, Measure):
        return Kind.INTEGER
    assert not leaves(expression)
    return kind_of_expression(expression, schema)


def _join(a: Kind, b: Kind) -> Kind:
    if a is b:
        return a
    return Kind.FLOAT if Kind.FLOAT in (a, b) else a
