"""Which events of a table or DataFrame are relevant to a query, as a condition on the columns of one event.

The condition is a proposition (see `cerflow.conditions.propositions`): events that do not satisfy it can be left out,
and the matches are the same. Evaluators outside the engine (readers of files, Spark) use `weakened` to replace leaves
by TRUE that they are not sure to decide as the engine does. To make that easy, leaves are of few kinds here: a type, a
comparison, membership in literals that are all text or all integers, LIKE, REGEXP, whether a value is null, and
conditions that only the engine can evaluate, such as predicates.
"""

from __future__ import annotations

import math
from functools import reduce

import pyarrow as pa

from cerflow.analysis.columns import attributes_in
from cerflow.analysis.kinds import kind_of_expression
from cerflow.automata.model.clock import has_ticks
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.relevance import Relevance, relevance_of_transducer
from cerflow.conditions.connectives import FALSE, TRUE, spelled_out
from cerflow.conditions.guards import Satisfied, StreamTest, TypeTest
from cerflow.conditions.propositions import (
    is_not_true,
    is_true,
    simplified_conjunction,
    simplified_disjunction,
    substituted,
    weakened,
)
from cerflow.engine.evaluate.ranges import MOST, limits
from cerflow.errors import QueryError
from cerflow.language.condition import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    operands,
)
from cerflow.language.select import Select
from cerflow.schema import Schema, ValueKind
from cerflow.values.operators import MIRRORED, Operator

__all__ = ["Relevance", "by_types", "or_unusable", "plainly", "relevant_events", "types_named"]


def relevant_events(select: Select, transducer: Transducer, schema: Schema, *, counted: bool) -> Relevance:
    """The relevant events of a query on such a schema; ``transducer`` is the one that evaluates it.

    ``counted`` says that whoever gets the events counts them to know their positions in the whole stream, and that
    positions are reported or read; then none can be left out. Events of other streams than those named, and events
    without a partition key, are never relevant.
    """
    if has_ticks(transducer):
        return Relevance(TRUE, ("any event may show that a deadline has passed",))
    if schema.forget is not None:
        return Relevance(TRUE, ("every event keeps its key from beginning again",))
    if counted:
        return Relevance(TRUE, ("positions are those in the whole stream, so every event is counted",))
    found = relevance_of_transducer(transducer)
    stream = schema.stream if select.streams else None
    only: list[Condition] = []
    if stream is not None:
        only.append(In(Attribute(None, stream), tuple(map(Literal, select.streams))))
    for key in select.partition:
        columns = map(schema.column, key)
        only.append(simplified_disjunction([IsNull(Attribute(None, name), negated=True) for name in columns]))
    condition = simplified_conjunction([*only, plainly(found.condition, schema, stream)])
    return Relevance(_types_together(condition, schema), found.reasons)


def or_unusable(condition: Condition, schema: Schema) -> Condition:
    """The proposition that an event satisfies another one, or cannot be used and has to be reported.

    It lacks a type or a time, or has an integer that cannot be held; of times that cannot nothing is said.
    """
    roles = [name for name in (schema.type, schema.time) if name is not None]
    bad: list[Condition] = [IsNull(Attribute(None, name)) for name in roles]
    for name, most in limits(schema).items():
        if schema.kind(name) is ValueKind.INTEGER:
            column = Attribute(None, name)
            bad.append(Comparison(Operator.LT, column, Literal(-most)))
            if most < MOST or pa.types.is_unsigned_integer(schema.columns.field(name).type):
                bad.append(Comparison(Operator.GT, column, Literal(most)))
    return simplified_disjunction([*bad, condition])


def plainly(proposition: Condition, schema: Schema, stream: str | None = None) -> Condition:
    """A proposition with leaves of few kinds; ``stream`` is the column with the names of streams, if they count."""
    return substituted(proposition, lambda leaf: _plain_leaf(leaf, schema, stream))


def by_types(condition: Condition, schema: Schema) -> Condition:
    """A proposition, weakened to what the type of an event and the nulls among its values decide."""

    def known(leaf: Condition) -> bool:
        return isinstance(leaf, IsNull) or attributes_in(leaf) <= {schema.type}

    return weakened(condition, known)


def types_named(condition: Condition, schema: Schema) -> tuple[str, ...] | None:
    """The types of which an event must have one to satisfy a proposition; None if there may be others."""
    names: dict[str, None] = {}

    def of_another(leaf: Condition) -> Condition:
        match leaf:
            case TypeTest(name):
                names[name] = None
                return FALSE
            case In(Attribute(None, schema.type), items, False):
                names.update(dict.fromkeys(str(item.value) for item in items))
                return FALSE
        return TRUE

    return tuple(names) if substituted(condition, of_another) == FALSE else None


def _types_together(proposition: Condition, schema: Schema, depth: int = 4) -> Condition:
    """Alternatives that only ask for a type as one, in the upper levels of a proposition."""
    if not isinstance(proposition, And | Or) or not depth:
        return proposition
    join = type(proposition)
    asked: list[str] = []
    others: list[Condition] = []
    for part in operands(proposition, join):
        match part:
            case TypeTest(name) if join is Or:
                asked.append(name)
            case Not(Satisfied(TypeTest(name))) if join is And:
                asked.append(name)
            case _:
                others.append(_types_together(part, schema, depth - 1))
    if asked:
        types: Condition = TypeTest(asked[0])
        if len(asked) > 1:
            types = In(Attribute(None, schema.type), tuple(map(Literal, asked)))
        others.insert(0, types if join is Or else Not(Satisfied(types)))
    return reduce(join, others)


def _plain_leaf(leaf: Condition, schema: Schema, stream: str | None) -> Condition:
    match leaf:
        case Not(Satisfied(condition)):
            asked = is_not_true
        case condition:
            asked = is_true
    if isinstance(condition, Between) or (isinstance(condition, In) and not _are_plain(condition, schema)):
        return plainly(asked(spelled_out(condition)), schema, stream)
    return asked(_plain(condition, schema, stream))


def _are_plain(condition: In, schema: Schema) -> bool:
    """Whether the items of IN are all text or all integers, and so is the value."""
    kind = _kind(condition.operand, schema)
    of_kind = str if kind is ValueKind.STRING else int if kind is ValueKind.INTEGER else None
    return of_kind is not None and all(type(item.value) is of_kind for item in condition.items)


def _plain(condition: Condition, schema: Schema, stream: str | None) -> Condition:
    """A condition that is true of the same events (but not unknown of the same), made of few kinds of others."""
    match condition:
        case TypeTest(name, origin):
            if origin is None or stream is None:
                return TypeTest(name)
            return And(TypeTest(name), Comparison(Operator.EQ, Attribute(None, stream), Literal(origin)))
        case StreamTest(origin):
            same = Comparison(Operator.EQ, Attribute(None, stream or ""), Literal(origin))
            return TRUE if stream is None else same
        case Comparison(operator, left, right):
            return _comparison(operator, left, right, schema)
    return condition


def _comparison(operator: Operator, left: Expression, right: Expression, schema: Schema) -> Condition:
    """A comparison with a literal on the right, and whole numbers compared with whole numbers where that is exact."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        operator, left, right = MIRRORED[operator], right, left
    if right == Literal(None):
        return Constant(False)
    if not isinstance(right, Literal) or _kind(left, schema) is not ValueKind.INTEGER:
        return Comparison(operator, left, right)
    value = right.value
    # Integers beyond this are rounded when they are compared with floats.
    if not isinstance(value, float) or not abs(value) < 2**53:
        return Comparison(operator, left, right)
    if value.is_integer():
        return Comparison(operator, left, Literal(int(value)))
    match operator:
        case Operator.LT | Operator.LE:
            return Comparison(Operator.LE, left, Literal(math.floor(value)))
        case Operator.GT | Operator.GE:
            return Comparison(Operator.GE, left, Literal(math.ceil(value)))
        case Operator.NE:
            return IsNull(left, negated=True)
    return Constant(False)


def _kind(expression: Expression, schema: Schema) -> ValueKind:
    if isinstance(expression, Attribute):
        return schema.kind(schema.column(expression.name))
    try:
        return kind_of_expression(expression, schema)
    except QueryError:
        return ValueKind.OTHER  # what occurs in automata only
