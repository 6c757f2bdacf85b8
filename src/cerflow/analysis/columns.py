"""Which columns of its input a query reads, and which it reads as numbers or as text.

Files without types (CSV, JSON lines) are read accordingly: a column of digits that is compared with a string stays
text, and a stray word in a column that is compared with a number spoils its row, not the whole run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from cerflow.language import condition as c
from cerflow.language.formula import As, AttributeWindow, EventKind, EventType, Rename
from cerflow.language.node import Node, walk
from cerflow.language.select import LabelItem, Select
from cerflow.language.sremo import Regular, possible_fields
from cerflow.values.nested import is_nested, root_of
from cerflow.values.operators import Operator

_NUMBER_FUNCTIONS = ("abs", "floor", "ceil", "round")
#: Functions whose value is text, and functions of text.
_TEXTS = ("lower", "upper", "substr", "||")
_TEXT_FUNCTIONS = (*_TEXTS, "length")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:[\d:.+Z-]+)?")


@dataclass(frozen=True)
class ColumnUsage:
    """Names of columns by use; a column is in one of the sets at most, and in ``names``, all that the query reads.

    ``numbers`` are computed with or compared with numbers, ``text`` with strings, ``booleans`` with truth values; of
    ``ordered`` only the order of their values is known to count.
    """

    numbers: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    ordered: frozenset[str] = frozenset()
    booleans: frozenset[str] = frozenset()
    names: frozenset[str] = field(default=frozenset(), compare=False)


def attributes_in(tree: Node) -> set[str]:
    """The attributes that a tree reads: in conditions, expressions and windows, as keys, and nested ones as results."""
    found = set()
    for node in walk(tree):
        if isinstance(node, c.Attribute):
            found.add(node.name)
        elif isinstance(node, Regular):
            # Events show whether they are fields.
            found.update(possible.as_field.name for possible in possible_fields(node))
        elif isinstance(node, Select):
            found.update(name for key in node.partition for name in key)
        elif isinstance(node, AttributeWindow):
            found.add(node.attribute)
        elif isinstance(node, LabelItem):
            found.update(filter(is_nested, node.attributes or ()))
    return found


def columns_named(tree: Node, *roles: object) -> set[str] | None:
    """The columns that a query reads, or reports by their names, and those with a role; None for all of them.

    Roles that are not names are left to whoever checks the arguments, and may be fields of the columns named here.
    """
    found = attributes_in(tree)
    for role in roles:
        if isinstance(role, str):
            found |= {role, role.partition(".")[0]}
    for node in walk(tree):
        if isinstance(node, c.LabelReference):
            return None  # a predicate gets whole events
        if isinstance(node, LabelItem):
            found.update(node.attributes or ())
    return set(map(root_of, found))


def columns_by_type(tree: Node) -> dict[str, frozenset[str] | None]:
    """The columns that a query expects to have values, and of events of which types; None stands for all types.

    Columns that the query tests for null, or has another value for, are not among them.
    """
    nodes = list(walk(tree))
    named = {n.name for n in nodes if isinstance(n, EventType)}
    # Events of a kind may be of any type.
    kinds = {n.name for n in nodes if isinstance(n, EventKind)}
    labels = {name: {name} for name in named}
    for n in nodes:
        if isinstance(n, As):
            found = {inner.name for inner in walk(n.operand) if isinstance(inner, EventType)}
            # Other formulas read events of any type.
            labels.setdefault(n.label, set()).update(found or named)
        elif isinstance(n, Rename):
            labels[n.new] = set(named)
    read: list[tuple[str, str | None]] = [
        (name, None) for n in nodes if isinstance(n, Select) for key in n.partition for name in key
    ]
    read += [(n.attribute, None) for n in nodes if isinstance(n, AttributeWindow)]
    items = [n for n in nodes if isinstance(n, LabelItem)]
    read += [(name, n.label) for n in items for name in n.attributes or ()]
    read += [(n.name, n.label) for n in nodes if isinstance(n, c.Attribute)]
    by_column: dict[str, frozenset[str] | None] = {}
    for column, label in read:
        types = labels.get(label, named) if label is not None else named
        before = by_column.get(column, frozenset())
        by_column[column] = before | types if types and not kinds & types and before is not None else None
    optional = set[str]()
    for n in nodes:
        if isinstance(n, c.IsNull) or (isinstance(n, c.Function) and n.name == "coalesce"):
            optional |= attributes_in(n)
    return {column: types for column, types in by_column.items() if column not in optional}


def usage_of(tree: Node) -> ColumnUsage:
    """The uses of the columns that a query reads; columns with contradicting uses are in ``names`` alone."""
    numbers: set[str] = set()
    text: set[str] = set()
    ordered: set[str] = set()
    booleans: set[str] = set()
    names = attributes_in(tree)
    pairs: list[tuple[str, str]] = []
    inner = {id(node.otherwise) for node in walk(tree) if isinstance(node, c.If)}
    for node in walk(tree):
        if isinstance(node, LabelItem):
            names.update(node.attributes or ())
        numbers.update(_as_numbers(node))
        if _may_be_time(node):
            ordered.update(*map(_column, _terms(node)))
        text.update(_as_text(node))
        if isinstance(node, c.SetTest) or (isinstance(node, c.Aggregate) and node.name in ("min", "max")):
            ordered.update(_column(node.argument))
        for alternatives in _alternatives(node, inner):
            columns = [name for value in alternatives for name in _column(value)]
            if any(map(_is_number, alternatives)):
                numbers.update(columns)
            elif any(map(_is_text, alternatives)):
                text.update(columns)
            pairs.extend(pairwise(columns))
        for comparison in c.comparisons(node):
            left, right = comparison.left, comparison.right
            by_size = comparison.operator not in (Operator.EQ, Operator.NE)
            for one, other in ((left, right), (right, left)):
                if _is_number(other):
                    numbers.update(_column(one), *map(_column, _terms(one)))
                elif _is_text(other):
                    text.update(_column(one))
                elif isinstance(other, c.Literal) and isinstance(other.value, bool):
                    booleans.update(_column(one))
                elif by_size:
                    ordered.update(_column(one))
            pairs.extend((a, b) for a in _column(left) for b in _column(right) if a != b)
    _spread(pairs, numbers)
    _spread(pairs, text)
    return ColumnUsage(
        numbers=frozenset(numbers - text),
        text=frozenset(text - numbers),
        ordered=frozenset(ordered - numbers - text),
        booleans=frozenset(booleans - numbers - text - ordered),
        names=frozenset(names),
    )


def _alternatives(node: Node, inner: Set[int]) -> Iterator[Sequence[c.Expression]]:
    """The values that CASE or ``coalesce`` chooses from; ``inner`` are the parts of a CASE after its first WHEN."""
    if isinstance(node, c.Function) and node.name == "coalesce":
        yield node.arguments
    elif isinstance(node, c.If) and id(node) not in inner:
        values: list[c.Expression] = []
        rest: c.Expression = node
        while isinstance(rest, c.If):
            values.append(rest.then)
            rest = rest.otherwise
        yield [*values, rest]


def _spread(pairs: list[tuple[str, str]], known: set[str]) -> None:
    """Columns compared with each other are used alike."""
    grown = True
    while grown:
        grown = False
        for a, b in pairs:
            if (a in known) != (b in known):
                known.update((a, b))
                grown = True


def _column(expression: c.Expression) -> tuple[str, ...]:
    if isinstance(expression, c.Aggregate) and expression.name in ("min", "max", "first", "last"):
        expression = expression.argument
    return (expression.name,) if isinstance(expression, c.Attribute) else ()


def _is_number(expression: c.Expression) -> bool:
    if isinstance(expression, c.Literal):
        return isinstance(expression.value, int | float) and not isinstance(expression.value, bool)
    if isinstance(expression, c.Function):
        return expression.name not in (*_TEXTS, "time", "prev", "coalesce")
    if isinstance(expression, c.Aggregate):
        return expression.name in ("count", c.COUNT_DISTINCT, "sum", "avg", "stddev")
    return isinstance(expression, c.Arithmetic | c.Negative) and not _may_be_time(expression)


def _may_be_time(node: Node) -> bool:
    """Whether a sum or difference may be a timestamp or a duration: no number stands in it."""
    return bool(terms := _terms(node)) and not any(map(_is_number, terms))


def _terms(node: Node) -> list[c.Expression]:
    """The operands of nested ``+`` and ``-``; none for another node."""
    found: list[c.Expression] = []
    stack: list[Node] = [node] if isinstance(node, c.Arithmetic) and node.operator in ("+", "-") else []
    while stack:
        current = stack.pop()
        if isinstance(current, c.Arithmetic) and current.operator in ("+", "-"):
            stack += [current.right, current.left]
        elif isinstance(current, c.Expression):
            found.append(current)
    return found


def _is_text(expression: c.Expression) -> bool:
    if isinstance(expression, c.Literal):
        # A string that looks like a date may be meant for a column of timestamps.
        return isinstance(expression.value, str) and not _DATE.fullmatch(expression.value)
    return isinstance(expression, c.Function) and expression.name in _TEXTS


def _as_numbers(node: Node) -> Iterator[str]:
    if isinstance(node, c.Arithmetic) and not _may_be_time(node):
        yield from _column(node.left)
        yield from _column(node.right)
    elif isinstance(node, c.Negative):
        yield from _column(node.operand)
    elif isinstance(node, c.Function) and node.name in _NUMBER_FUNCTIONS:
        yield from _column(node.arguments[0])
    elif isinstance(node, c.Aggregate) and node.name in ("sum", "avg", "stddev"):
        yield from _column(node.argument)
    elif isinstance(node, AttributeWindow):
        yield node.attribute


def _as_text(node: Node) -> Iterator[str]:
    if isinstance(node, c.Like | c.Regexp):
        yield from _column(node.operand)
    elif isinstance(node, c.Function) and node.name in _TEXT_FUNCTIONS:
        for argument in node.arguments if node.name == "||" else node.arguments[:1]:
            yield from _column(argument)
