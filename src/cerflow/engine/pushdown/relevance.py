"""Which events of a table or DataFrame are relevant to a query, as a condition on the columns of one event.

The condition is a proposition (see `cerflow.logic.conditions.propositions`): events that do not satisfy it can be left
out, and the matches are the same. Evaluators outside the engine (readers of files, Spark) use `weakened` to replace
leaves by TRUE that they are not sure to decide as the engine does. To make that easy, leaves are of few kinds here: a
type, a comparison, membership in literals that are all text or all integers, LIKE, REGEXP, whether a value is null, and
conditions that only the engine can evaluate, such as predicates.
"""

from __future__ import annotations

import math
from functools import reduce

import pyarrow as pa

from cerflow.automata.model.clock import has_ticks
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.relevance import Relevance, relevance_of_transducer
from cerflow.base.errors import QueryError
from cerflow.base.operators import MIRRORED, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.ranges import MOST, limits
from cerflow.language import condition as c
from cerflow.language.select import Select
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.conditions import propositions
from cerflow.logic.conditions.connectives import FALSE, TRUE, spelled_out
from cerflow.logic.conditions.guards import Satisfied, StreamTest, TypeTest

__all__ = ["Relevance", "by_types", "or_invalid", "plainly", "relevant_events", "types_named"]


def relevant_events(select: Select, transducer: Transducer, schema: Schema, *, counted: bool) -> Relevance:
    """The relevant events of a query on such a schema; ``transducer`` is the one that evaluates it.

    ``counted`` says that whoever gets the events counts them to know their positions in the whole stream, and that
    positions are reported or read; then none can be left out. Events of other streams than those named, and events
    without a partition key, are never relevant.
    """
    if has_ticks(transducer):
        return Relevance(TRUE, ("any event may show that a deadline has passed",))
    if schema.forget is not None:
        return Relevance(TRUE, ("every event keeps the session of its key open",))
    if counted:
        return Relevance(TRUE, ("positions are those in the whole stream, so every event is counted",))
    found = relevance_of_transducer(transducer)
    stream = schema.stream if select.streams else None
    only: list[c.Condition] = []
    if stream is not None:
        only.append(c.In(c.Attribute(None, stream), tuple(map(c.Literal, select.streams))))
    for key in select.partition:
        columns = map(schema.column, key)
        known = [c.IsNull(c.Attribute(None, name), negated=True) for name in columns]
        only.append(propositions.simplified(c.Or, known))
    condition = propositions.simplified(c.And, [*only, plainly(found.condition, schema, stream)])
    return Relevance(_types_together(condition, schema), found.reasons)


def or_invalid(condition: c.Condition, schema: Schema) -> c.Condition:
    """The proposition that an event satisfies another one, or cannot be used and has to be reported.

    It lacks a type or a time, or has an integer that cannot be held; of times that cannot nothing is said.
    """
    roles = [name for name in (schema.type, schema.time) if name is not None]
    bad: list[c.Condition] = [c.IsNull(c.Attribute(None, name)) for name in roles]
    for name, most in limits(schema).items():
        if schema.kind(name) is ValueKind.INTEGER:
            column = c.Attribute(None, name)
            bad.append(c.Comparison(Operator.LT, column, c.Literal(-most)))
            if most < MOST or pa.types.is_unsigned_integer(schema.columns.field(name).type):
                bad.append(c.Comparison(Operator.GT, column, c.Literal(most)))
    return propositions.simplified(c.Or, [*bad, condition])


def plainly(proposition: c.Condition, schema: Schema, stream: str | None = None) -> c.Condition:
    """A proposition with leaves of few kinds; ``stream`` is the column with the names of streams, if they count."""
    return propositions.substituted(proposition, lambda leaf: _plain_leaf(leaf, schema, stream))


def by_types(condition: c.Condition, schema: Schema) -> c.Condition:
    """A proposition, weakened to what the type of an event and the nulls among its values decide."""
    known = {schema.type}
    return propositions.weakened(condition, lambda leaf: isinstance(leaf, c.IsNull) or attributes_in(leaf) <= known)


def types_named(condition: c.Condition, schema: Schema) -> tuple[str, ...] | None:
    """The types of which an event must have one to satisfy a proposition; None if there may be others."""
    names: dict[str, None] = {}

    def of_another(leaf: c.Condition) -> c.Condition:
        match leaf:
            case TypeTest(name):
                names[name] = None
                return FALSE
            case c.In(c.Attribute(None, schema.type), items, False):
                names.update(dict.fromkeys(str(item.value) for item in items))
                return FALSE
        return TRUE

    return tuple(names) if propositions.substituted(condition, of_another) == FALSE else None


def _types_together(proposition: c.Condition, schema: Schema, depth: int = 4) -> c.Condition:
    """Alternatives that only ask for a type as one, in the upper levels of a proposition."""
    if not isinstance(proposition, c.And | c.Or) or not depth:
        return proposition
    join = type(proposition)
    asked: list[str] = []
    others: list[c.Condition] = []
    for part in c.operands(proposition, join):
        match part:
            case TypeTest(name) if join is c.Or:
                asked.append(name)
            case c.Not(Satisfied(TypeTest(name))) if join is c.And:
                asked.append(name)
            case _:
                others.append(_types_together(part, schema, depth - 1))
    if asked:
        types: c.Condition = TypeTest(asked[0])
        if len(asked) > 1:
            types = c.In(c.Attribute(None, schema.type), tuple(map(c.Literal, asked)))
        others.insert(0, types if join is c.Or else c.Not(Satisfied(types)))
    return reduce(join, others)


def _plain_leaf(leaf: c.Condition, schema: Schema, stream: str | None) -> c.Condition:
    match leaf:
        case c.Not(Satisfied(condition)):
            asked = propositions.is_not_true
        case condition:
            asked = propositions.is_true
    if isinstance(condition, c.Between) or (isinstance(condition, c.In) and not _are_plain(condition, schema)):
        return plainly(asked(spelled_out(condition)), schema, stream)
    return asked(_plain(condition, schema, stream))


def _are_plain(condition: c.In, schema: Schema) -> bool:
    """Whether the items of IN are all text or all integers, and so is the value."""
    kind = _kind(condition.operand, schema)
    of_kind = str if kind is ValueKind.STRING else int if kind is ValueKind.INTEGER else None
    return of_kind is not None and all(type(item.value) is of_kind for item in condition.items)


def _plain(condition: c.Condition, schema: Schema, stream: str | None) -> c.Condition:
    """A condition that is true of the same events (but not unknown of the same), made of few kinds of others."""
    match condition:
        case TypeTest(name, origin):
            if origin is None or stream is None:
                return TypeTest(name)
            return c.And(TypeTest(name), c.Comparison(Operator.EQ, c.Attribute(None, stream), c.Literal(origin)))
        case StreamTest(origin):
            same = c.Comparison(Operator.EQ, c.Attribute(None, stream or ""), c.Literal(origin))
            return TRUE if stream is None else same
        case c.Comparison(operator, left, right):
            return _comparison(operator, left, right, schema)
    return condition


def _comparison(operator: Operator, left: c.Expression, right: c.Expression, schema: Schema) -> c.Condition:
    """A comparison with a literal on the right, and whole numbers compared with whole numbers where that is exact."""
    if isinstance(left, c.Literal) and not isinstance(right, c.Literal):
        operator, left, right = MIRRORED[operator], right, left
    if right == c.Literal(None):
        return c.Constant(False)
    if not isinstance(right, c.Literal) or _kind(left, schema) is not ValueKind.INTEGER:
        return c.Comparison(operator, left, right)
    value = right.value
    # Integers beyond this are rounded when they are compared with floats.
    if not isinstance(value, float) or not abs(value) < 2**53:
        return c.Comparison(operator, left, right)
    if value.is_integer():
        return c.Comparison(operator, left, c.Literal(int(value)))
    match operator:
        case Operator.LT | Operator.LE:
            return c.Comparison(Operator.LE, left, c.Literal(math.floor(value)))
        case Operator.GT | Operator.GE:
            return c.Comparison(Operator.GE, left, c.Literal(math.ceil(value)))
        case Operator.NE:
            return c.IsNull(left, negated=True)
    return c.Constant(False)


def _kind(expression: c.Expression, schema: Schema) -> ValueKind:
    if isinstance(expression, c.Attribute):
        return schema.kind(schema.column(expression.name))
    try:
        return kind_of_expression(expression, schema)
    except QueryError:
        return ValueKind.OTHER  # what occurs in automata only
