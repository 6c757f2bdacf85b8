"""From tree to text: the shortest text that reads back as the same tree, keywords in upper case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from functools import cache
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
    or a number, perhaps quoted as in `_QUOTED`; or several of these.
    """
    parts = [
        (before, field, _Level.__members__.get(spec or "", 0), _QUOTED.get(spec or "", str))
        for before, field, spec, _ in Formatter().parse(text)
    ]

    def write(node: Any, _: int) -> tuple[int, list[_Piece]]:
        pieces: list[_Piece] = []
        for before, field, asked, quoted in parts:
            pieces.append(before)
            if field is not None:
                value = getattr(node, field)
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
    "stream": lambda stream: "" if stream is None else f"{quote_name(stream)}>",
}


def _foreign(node: Node, asked: int) -> tuple[int, list[_Piece]]:
    """A node of no language (a guard of an automaton) says itself how it is written."""
    if node.template:
        return _template(_Level.PRIMARY, node.template)(node, asked)
    return _Level.PRIMARY, [part if isinstance(part, str) else (part, 0) for part in node.notation()]


def _repetition(node: f.Repetition, _: int) -> tuple[int, list[_Piece]]:
    if (node.least, node.most, node.strict) == (0, 1, False):
        return _Level.POSTFIX, [(node.operand, _Level.POSTFIX), "?"]
    most = "" if node.most is None else node.most
    times = f"{node.least}" if node.least == most else f"{node.least},{most}"
    return _Level.POSTFIX, [(node.operand, _Level.POSTFIX), f"{':' if node.strict else ''}{{{times}}}"]


def _separated(pieces: Iterable[_Piece]) -> list[_Piece]:
    found: list[_Piece] = []
    for piece in pieces:
        found += [", ", piece] if found else [piece]
    return found


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(quote_name, names))


def _attributes(names: Iterable[str]) -> str:
    return ", ".join(map(quote_attribute, names))


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


def _on_set(node: c.Aggregate | c.SetTest, _: int) -> tuple[int, list[_Piece]]:
    name = "count(distinct " if node.name == c.COUNT_DISTINCT else f"{node.name}("
    return _Level.PRIMARY, [name, (node.argument, _Level.SUM), ")"]


def _predicate(node: c.PredicateCall, _: int) -> tuple[int, list[_Piece]]:
    name = quote_name(node.name, always=node.name.lower() in BUILT_IN)
    return _Level.PRIMARY, [f"{name}(", *_separated(map(_argument, node.arguments)), ")"]


def _argument(argument: c.Expression) -> _Piece:
    # A name alone would be a label.
    alone = isinstance(argument, c.Attribute) and argument.label is None
    return (argument, _Level.IN_PARENTHESES if alone else _Level.SUM)


def _between(node: c.Between, _: int) -> tuple[int, list[_Piece]]:
    negated = " NOT" if node.negated else ""
    low: list[_Piece] = [] if node.low is None else [(node.low, _Level.SUM)]
    high: list[_Piece] = [] if node.high is None else [(node.high, _Level.SUM)]
    between = [f"{negated} BETWEEN ", *low, " AND ", *high]
    return _Level.ATOM, [
        (node.operand, _Level.SUM),
        *(between if low and high else [f"{negated} IN {{", *low, "..", *high, "}"]),
    ]


# -- formulas and windows


def _not_event(node: f.NotEvent, _: int) -> tuple[int, list[_Piece]]:
    if node.condition is None:
        return _Level.STEP, ["NOT(", (node.event, _Level.STEP), ")"]
    return _Level.STEP, ["NOT(", (node.event, _Level.STEP), " FILTER ", (node.condition, _Level.OR), ")"]


def _filter(node: f.Filter, asked: int) -> tuple[int, list[_Piece]]:
    return _Level.FILTER, [(node.operand, min(asked, _Level.FILTER)), " FILTER ", (node.condition, _Level.OR)]


def _by(node: f.Selection | s.Select) -> str:
    return f" BY {_names(str(reference.label) for reference in node.by)} " if node.by else ""


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


def _label_item(node: s.LabelItem, _: int) -> tuple[int, list[_Piece]]:
    chosen = "" if node.attributes is None else f"[{_attributes(node.attributes)}]"
    return 0, [quote_name(node.label) + chosen]


def _projection(node: s.Projection, _: int) -> tuple[int, list[_Piece]]:
    items = _separated((item, 0) for item in node.items)
    if node.kind is s.ProjectionKind.ITEMS:
        return 0, items
    return 0, [str(node.kind), *([", ", *items] if items else [])]


def _select(node: s.Select, _: int) -> tuple[int, list[_Piece]]:
    projection = show(node.projection)
    pieces: list[_Piece] = ["SELECT "]
    if node.strategy is not f.Strategy.ALL:
        pieces.append(f"{node.strategy}{_by(node) or ' '}")
        if not node.by and node.strategy in (f.Strategy.MAX, f.Strategy.LAST) and projection.startswith("("):
            # Directly before "(" these two words are aggregates.
            pieces.append("/* strategy */ ")
    pieces.append(projection)
    if node.streams:
        pieces.append(f" FROM {_names(node.streams)}")
    pieces += [" WHERE ", (node.formula, _Level.FILTER)]
    if node.partition:
        keys = (quote_attribute(key[0]) if len(key) == 1 else f"[{_attributes(key)}]" for key in node.partition)
        pieces.append(f" PARTITION BY {', '.join(keys)}")
    if node.window is not None:
        pieces += [" WITHIN ", (node.window, 0)]
    if node.consume is not s.Consumption.NONE:
        pieces.append(f" CONSUME BY {node.consume}")
    if node.limit is not None:
        pieces.append(f" LIMIT {node.limit}")
    return 0, pieces


# -- SREMO


def _terminal(node: r.Terminal, _: int) -> tuple[int, list[_Piece]]:
    label = "" if node.label is None else " MARK" if node.label == r.MARK else f" AS {quote_name(node.label)}"
    registers = f" INTO {', '.join(map(quote_register, node.registers))}" if node.registers else ""
    return _Level.OPERAND, ["[", (node.condition, _Level.OR), f"]{label}{registers}"]


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
    c.Bracket: (_Level.ATOM, "{label:name}[{condition:OR}]"),
    c.Some: (_Level.NOT, "SOME {labels:name}: {condition:NOT}"),
    c.Or: (_Level.OR, "{left:OR} OR {right:CONJUNCTION}"),
    c.And: (_Level.CONJUNCTION, "{left:CONJUNCTION} AND {right:NOT}"),
    c.Not: (_Level.NOT, "NOT {operand:NOT}"),
    **dict.fromkeys((f.EventType, f.EventKind), (_Level.STEP, "{stream:stream}{name:name}")),
    f.AnyEvent: (_Level.STEP, "{stream:stream}EVENT"),
    f.As: (_Level.POSTFIX, "{operand:POSTFIX} AS {label:name}"),
    f.Rename: (_Level.POSTFIX, "{operand:POSTFIX} [{old:name} -> {new:name}]"),
    **dict.fromkeys((f.Iteration, f.StrictIteration), (_Level.POSTFIX, "{operand:POSTFIX}{sign}")),
    **dict.fromkeys((f.Unless, f.Without), (_Level.EXCLUSION, "{left:EXCLUSION} {sign} {right:DISJUNCTION}")),
    f.Disjunction: (_Level.DISJUNCTION, "{left:DISJUNCTION} {sign} {right:ALL}"),
    f.All: (_Level.ALL, "{left:ALL} {sign} {right:AND}"),
    f.Conjunction: (_Level.AND, "{left:AND} {sign} {right:STRICT}"),
    f.StrictSequence: (_Level.STRICT, "{left:STRICT} {sign} {right:SEQUENCE}"),
    f.Sequence: (_Level.SEQUENCE, "{left:SEQUENCE} {sign} {right:POSTFIX}"),
    f.NotFollowedBy: (_Level.EXCLUSION, "{left:EXCLUSION} {sign} {right:DISJUNCTION} FOR {window}"),
    f.Project: (_Level.STEP, "PROJECT {labels:name} ({operand})"),
    f.Start: (_Level.STEP, "{sign}({operand})"),
    f.Within: (_Level.WITHIN, "{operand:WITHIN} WITHIN {window}"),
    f.CountWindow: (0, "{events:events}"),
    f.DurationWindow: (0, "{microseconds:duration}"),
    f.AttributeWindow: (0, "{size} [{attribute:attribute}]"),
    s.ExpressionItem: (0, "{expression:SUM} AS {name:name}"),
    s.CountItem: (0, "COUNT(*) AS {name:name}"),
    s.Definition: (0, "DEFINE {name:name} AS {select};\n"),
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
    c.Aggregate: _on_set,
    c.If: _case,
    c.TruthValue: _truth,
    c.Between: _between,
    c.PredicateCall: _predicate,
    c.SetTest: _on_set,
    f.NotEvent: _not_event,
    f.Filter: _filter,
    f.Repetition: _repetition,
    f.Selection: lambda node, _: (_Level.STEP, [f"{node.strategy}{_by(node)}(", (node.operand, _Level.WITHIN), ")"]),
    s.LabelItem: _label_item,
    s.Projection: _projection,
    s.Select: _select,
    s.Statements: _statements,
    r.Terminal: _terminal,
    a.AutomatonFormula: lambda node, _: (_Level.STEP, [f"AUTOMATON {quote_string(automaton_to_json(node, show))}"]),
}
