"""From tree to text: the shortest text that reads back as the same tree, keywords in upper case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from functools import cache
from itertools import cycle
from string import Formatter
from typing import Any, TypeAlias

from cerflow.base.nested import joined, parts_of
from cerflow.base.units import DURATION_UNITS
from cerflow.language import automaton as a
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language import sremo as r
from cerflow.language.automaton_json import automaton_to_json
from cerflow.language.event_kinds import kinds_in
from cerflow.language.lexicon import BUILT_IN, quote_attribute, quote_name, quote_register, quote_string
from cerflow.language.node import Node, transform

#: Text, or a node with the loosest binding that needs no parentheses where it stands.
_Piece: TypeAlias = str | tuple[Node, int]
#: How tightly a node binds, and the pieces of its text; the second argument is how tightly it is asked to bind.
_Writer: TypeAlias = Callable[[Any, int], tuple[int, list[_Piece]]]


class _Level(IntEnum):
    """How tightly a node binds, the loosest first; of formulas, of conditions and values, and of SREMO."""

    # In the place after WHERE, which asks for FILTER, a WITHIN needs parentheses.
    WITHIN, FILTER, EXCLUSION, DISJUNCTION, ALL, AND, STRICT, SEQUENCE, POSTFIX, STEP = range(10)
    OR, CONJUNCTION, NOT, ATOM, SUM, TERM, UNARY, PRIMARY, IN_PARENTHESES = range(9)
    WINDOWED, UNION, INTERSECTION, CONCATENATION, PREFIX, REPEATED, OPERAND = range(7)


def show(tree: Node, *, kinds: bool = True) -> str:
    """The text of a tree of any kind: formula, condition, expression, window, query and its parts, SREMO.

    ``kinds=False`` leaves out the definitions of event kinds, for parts of a query.
    Reading it back gives an equal tree, provided that the tree is one that a text can give: names not empty, numbers
    finite and within 64 bits, windows larger than zero, brackets ``x[…]`` not nested.
    """
    written: list[str] = []
    stack: list[_Piece] = [(tree, 0)]
    if kinds and isinstance(tree, f.Formula | s.Select):
        stack += reversed(_kinds(kinds_in(tree)))
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            written.append(piece)
            continue
        node, asked = piece
        writer = _WRITERS.get(type(node), _foreign)
        level, pieces = writer(node, asked)
        if level < asked:
            _, pieces = writer(node, 0)
            pieces = ["(", *pieces, ")"]
        stack.extend(reversed(pieces))
    return "".join(written)


# -- helpers


@cache
def _template(level: int, text: str) -> _Writer:
    """Writes a text with fields of a node in braces: another node, with the level that it is asked to bind at; a text
    or a number, perhaps quoted as in `_QUOTED`; or several of these. What stands in ‹ › is left out where its field is
    None or as it is by default.
    """
    parts = [
        (optional, before, field, _Level.__members__.get(spec or "", 0), _QUOTED.get(spec or "", str))
        for optional, part in zip(cycle((False, True)), re.split("[‹›]", text))
        for before, field, spec, _ in Formatter().parse(part)
    ]

    def write(node: Any, _: int) -> tuple[int, list[_Piece]]:
        pieces: list[_Piece] = []
        skipped = False
        for optional, before, field, asked, quoted in parts:
            if field is not None:
                value = getattr(node, field)
                skipped = optional and value in (None, node.__dataclass_fields__[field].default)
            pieces.append("" if optional and skipped else before)
            if field is not None and not skipped:
                if isinstance(value, tuple):
                    pieces += _separated((v, asked) if isinstance(v, Node) else quoted(v) for v in value)
                else:
                    pieces.append((value, asked) if isinstance(value, Node) else quoted(value))
        return level, pieces

    return write


def _duration(left: int) -> str:
    """A number of microseconds, which is not negative, in units."""
    parts = []
    for unit, size in DURATION_UNITS.items():
        if size == 1000:
            break
        if left >= size:
            parts.append(f"{left // size} {unit[:-1] if left // size == 1 else unit}")
            left %= size
    if left or not parts:
        whole, rest = divmod(left, 1000)
        amount = f"{whole}.{rest:03}".rstrip("0").rstrip(".")
        parts.append(f"{amount} {'MILLISECOND' if amount == '1' else 'MILLISECONDS'}")
    return " ".join(parts)


_QUOTED: dict[str, Callable[[Any], str]] = {
    "name": quote_name,
    "label": lambda label: "EVENT" if label is None else quote_name(label),
    "truth": lambda truth: "TRUE" if truth else "FALSE",
    "events": lambda count: f"{count} {'EVENT' if count == 1 else 'EVENTS'}",
    "duration": _duration,
    "attribute": quote_attribute,
    "string": quote_string,
    "not": lambda negated: " NOT" if negated else "",
    "key": lambda key: quote_attribute(key[0]) if len(key) == 1 else f"[{', '.join(map(quote_attribute, key))}]",
    "opened": lambda name: "count(distinct " if name == c.COUNT_DISTINCT else f"{name}(",
    "marked": lambda label: " MARK" if label == r.MARK else f" AS {quote_name(label)}",
    "register": quote_register,
}


def _foreign(node: Node, asked: int) -> tuple[int, list[_Piece]]:
    """A node of no language (a guard of an automaton) says itself how it is written."""
    if node.template:
        return _template(_Level.PRIMARY, node.template)(node, asked)
    return _Level.PRIMARY, [part if isinstance(part, str) else (part, 0) for part in node.notation()]


def _separated(pieces: Iterable[_Piece]) -> list[_Piece]:
    found: list[_Piece] = []
    for piece in pieces:
        found += [", ", piece] if found else [piece]
    return found


# -- conditions and values


def _literal(node: c.Literal, _: int) -> tuple[int, list[_Piece]]:
    value = node.value if node.duration is None else node.duration
    if value is None:
        return _Level.PRIMARY, ["NULL"]
    if isinstance(value, bool):
        return _Level.PRIMARY, [_QUOTED["truth"](value)]
    if isinstance(value, str):
        return _Level.PRIMARY, [quote_string(value)]
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return _Level.UNARY, ["-" * (microseconds < 0) + _duration(abs(microseconds))]
    # Under a minus a number stands in parentheses: a minus directly before it would become its sign.
    return _Level.UNARY, [repr(value)]


def _attribute(node: c.Attribute, _: int) -> tuple[int, list[_Piece]]:
    if node.label is None:
        first, *fields = parts_of(node.name)
        name = quote_name(first, always=node.quoted)
        return _Level.PRIMARY, [f"{name}.{quote_attribute(joined(fields))}" if fields else name]
    return _Level.PRIMARY, [f"{quote_name(node.label)}.{quote_attribute(node.name)}"]


def _arithmetic(node: c.Arithmetic, _: int) -> tuple[int, list[_Piece]]:
    level = _Level.SUM if node.operator in "+-" else _Level.TERM
    return level, [(node.left, level), f" {node.operator} ", (node.right, level + 1)]


def _function(node: c.Function, _: int) -> tuple[int, list[_Piece]]:
    if node.name == "||":
        left, right = node.arguments
        return _Level.SUM, [(left, _Level.SUM), " || ", (right, _Level.TERM)]
    return _Level.PRIMARY, [f"{node.name}(", *_separated((a, _Level.SUM) for a in node.arguments), ")"]


def _case(node: c.If, _: int) -> tuple[int, list[_Piece]]:
    pieces: list[_Piece] = ["CASE"]
    rest: c.Expression = node
    while isinstance(rest, c.If):
        pieces += [" WHEN ", (rest.condition, _Level.OR), " THEN ", (rest.then, _Level.SUM)]
        rest = rest.otherwise
    pieces += [] if rest == c.Literal(None) else [" ELSE ", (rest, _Level.SUM)]
    return _Level.PRIMARY, [*pieces, " END"]


def _truth(node: c.TruthValue, _: int) -> tuple[int, list[_Piece]]:
    called = isinstance(node.condition, c.PredicateCall | c.SetTest)
    return _Level.PRIMARY, [(node.condition, _Level.PRIMARY if called else _Level.IN_PARENTHESES)]


def _predicate(node: c.PredicateCall, _: int) -> tuple[int, list[_Piece]]:
    name = quote_name(node.name, always=node.name.lower() in BUILT_IN)
    # A name alone would be a label.
    alone = [isinstance(a, c.Attribute) and a.label is None for a in node.arguments]
    given = ((a, _Level.IN_PARENTHESES if own else _Level.SUM) for a, own in zip(node.arguments, alone))
    return _Level.PRIMARY, [f"{name}(", *_separated(given), ")"]


def _between(node: c.Between, asked: int) -> tuple[int, list[_Piece]]:
    closed = node.low is not None and node.high is not None
    text = " BETWEEN {low:SUM} AND {high:SUM}" if closed else " IN {{‹{low:SUM}›..‹{high:SUM}›}}"
    return _template(_Level.ATOM, "{operand:SUM}{negated:not}" + text)(node, asked)


# -- formulas and windows


def _filter(node: f.Filter, asked: int) -> tuple[int, list[_Piece]]:
    return _Level.FILTER, [(node.operand, min(asked, _Level.FILTER)), " FILTER ", (node.condition, _Level.OR)]


# -- queries


def _kinds(kinds: Mapping[str, c.Condition | None]) -> list[_Piece]:
    """The definitions of event kinds; one that is used nowhere gets FALSE."""

    def apart(current: Node) -> Node:
        # An attribute with the name of a kind.
        if isinstance(current, c.Attribute) and current.label is None and current.name in kinds:
            return replace(current, quoted=True)
        return current

    pieces: list[_Piece] = []
    for name, condition in kinds.items():
        pieces += [", " if pieces else "DEFINE ", f"{quote_name(name)} AS "]
        pieces.append("FALSE" if condition is None else (transform(condition, apart), _Level.OR))
    return [*pieces, "; "] if pieces else []


def _statements(node: s.Statements, _: int) -> tuple[int, list[_Piece]]:
    pieces: list[_Piece] = []
    above: set[str] = set()
    for statement in node.children:
        kinds = kinds_in(statement)
        pieces += _kinds({name: kinds[name] for name in kinds if name not in above})
        pieces.append((statement, 0))
        above.update(kinds)
    return 0, pieces


def _select(node: s.Select, asked: int) -> tuple[int, list[_Piece]]:
    text = "SELECT " if node.strategy is f.Strategy.ALL else "SELECT {strategy}‹ BY {by}› "
    if not node.by and node.strategy in (f.Strategy.MAX, f.Strategy.LAST) and show(node.projection).startswith("("):
        # Directly before "(" these two words are aggregates.
        text += "/* strategy */ "
    text += "{projection}‹ FROM {streams:name}› WHERE {formula:FILTER}‹ PARTITION BY {partition:key}›"
    return _template(0, text + "‹ WITHIN {window}›‹ CONSUME BY {consume}›‹ LIMIT {limit}›")(node, asked)


#: Everything associates to the left, so only an equally loose right side needs parentheses.
_TEMPLATES: dict[type[Node], tuple[int, str]] = {
    c.Negative: (_Level.UNARY, "-{operand:PRIMARY}"),
    c.LabelReference: (_Level.PRIMARY, "{label:label}"),
    c.Constant: (_Level.PRIMARY, "{value:truth}"),
    c.Comparison: (_Level.ATOM, "{left:SUM} {operator} {right:SUM}"),
    c.Like: (_Level.ATOM, "{operand:SUM}{negated:not} LIKE {pattern:string}"),
    c.Regexp: (_Level.ATOM, "{operand:SUM}{negated:not} REGEXP {pattern:string}"),
    c.In: (_Level.ATOM, "{operand:SUM}{negated:not} IN ({items:SUM})"),
    c.IsNull: (_Level.ATOM, "{operand:SUM} IS{negated:not} NULL"),
    c.Aggregate: (_Level.PRIMARY, "{name:opened}{argument:SUM})"),
    c.SetTest: (_Level.PRIMARY, "{name}({argument:SUM})"),
    c.Bracket: (_Level.ATOM, "{label:name}[{condition:OR}]"),
    c.Some: (_Level.NOT, "SOME {labels:name}: {condition:NOT}"),
    c.Or: (_Level.OR, "{left:OR} OR {right:CONJUNCTION}"),
    c.And: (_Level.CONJUNCTION, "{left:CONJUNCTION} AND {right:NOT}"),
    c.Not: (_Level.NOT, "NOT {operand:NOT}"),
    **dict.fromkeys((f.EventType, f.EventKind), (_Level.STEP, "‹{stream:name}>›{name:name}")),
    f.AnyEvent: (_Level.STEP, "‹{stream:name}>›EVENT"),
    f.NotEvent: (_Level.STEP, "NOT({event:STEP}‹ FILTER {condition:OR}›)"),
    f.As: (_Level.POSTFIX, "{operand:POSTFIX} AS {label:name}"),
    f.Rename: (_Level.POSTFIX, "{operand:POSTFIX} [{old:name} -> {new:name}]"),
    **dict.fromkeys((f.Iteration, f.StrictIteration, f.Repetition), (_Level.POSTFIX, "{operand:POSTFIX}{sign}")),
    **dict.fromkeys((f.Unless, f.Without), (_Level.EXCLUSION, "{left:EXCLUSION} {sign} {right:DISJUNCTION}")),
    f.Disjunction: (_Level.DISJUNCTION, "{left:DISJUNCTION} {sign} {right:ALL}"),
    f.All: (_Level.ALL, "{left:ALL} {sign} {right:AND}"),
    f.Conjunction: (_Level.AND, "{left:AND} {sign} {right:STRICT}"),
    f.StrictSequence: (_Level.STRICT, "{left:STRICT} {sign} {right:SEQUENCE}"),
    f.Sequence: (_Level.SEQUENCE, "{left:SEQUENCE} {sign} {right:POSTFIX}"),
    f.NotFollowedBy: (_Level.EXCLUSION, "{left:EXCLUSION} {sign} {right:DISJUNCTION} FOR {window}"),
    f.Project: (_Level.STEP, "PROJECT {labels:name} ({operand})"),
    f.Selection: (_Level.STEP, "{strategy}‹ BY {by} ›({operand:WITHIN})"),
    f.Start: (_Level.STEP, "{sign}({operand})"),
    f.Within: (_Level.WITHIN, "{operand:WITHIN} WITHIN {window}"),
    f.CountWindow: (0, "{events:events}"),
    f.DurationWindow: (0, "{microseconds:duration}"),
    f.AttributeWindow: (0, "{size} [{attribute:attribute}]"),
    s.LabelItem: (0, "{label:name}‹[{attributes:attribute}]›"),
    s.ExpressionItem: (0, "{expression:SUM} AS {name:name}"),
    s.CountItem: (0, "COUNT(*) AS {name:name}"),
    s.Definition: (0, "DEFINE {name:name} AS {select};\n"),
    r.Terminal: (_Level.OPERAND, "[{condition:OR}]‹{label:marked}›‹ INTO {registers:register}›"),
    r.Epsilon: (_Level.OPERAND, "EPSILON"),
    r.Empty: (_Level.OPERAND, "EMPTY"),
    r.Alternation: (_Level.UNION, "{left:UNION} | {right:INTERSECTION}"),
    r.Intersection: (_Level.INTERSECTION, "{left:INTERSECTION} & {right:CONCATENATION}"),
    r.Concatenation: (_Level.CONCATENATION, "{left:CONCATENATION} . {right:PREFIX}"),
    r.Star: (_Level.REPEATED, "{operand:REPEATED}*"),
    r.Plus: (_Level.REPEATED, "{operand:REPEATED}+"),
    r.Optional: (_Level.REPEATED, "{operand:REPEATED}?"),
    r.Complement: (_Level.PREFIX, "!{operand:PREFIX}"),
    r.AnyMatch: (_Level.OPERAND, "any({parts})"),
    r.NextMatch: (_Level.OPERAND, "next({parts})"),
    r.Unordered: (_Level.OPERAND, "unordered({parts})"),
    r.Windowed: (_Level.WINDOWED, "{operand:WINDOWED} WITHIN {window}"),
    r.Regular: (_Level.STEP, "SREMO({expression})"),
}
_WRITERS: dict[type[Node], _Writer] = {
    **{kind: _template(level, text) for kind, (level, text) in _TEMPLATES.items()},
    c.Literal: _literal,
    c.Attribute: _attribute,
    c.Arithmetic: _arithmetic,
    c.Function: _function,
    c.If: _case,
    c.TruthValue: _truth,
    c.Between: _between,
    c.PredicateCall: _predicate,
    f.Filter: _filter,
    s.Projection: lambda node, asked: _template(
        0, "{items}" if node.kind is s.ProjectionKind.ITEMS else "{kind}‹, {items}›"
    )(node, asked),
    s.Select: _select,
    s.Statements: _statements,
    a.AutomatonFormula: lambda node, _: (_Level.STEP, [f"AUTOMATON {quote_string(automaton_to_json(node, show))}"]),
}
