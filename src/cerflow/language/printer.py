"""From tree to text: the shortest text that reads back as the same tree, keywords in upper case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

from cerflow.language import automaton as a
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language import sremo as r
from cerflow.language.automaton_json import automaton_to_json
from cerflow.language.event_kinds import kinds_in
from cerflow.language.lexicon import BUILT_IN, quote_attribute, quote_name, quote_register, quote_string
from cerflow.language.node import Node, transform
from cerflow.values.nested import joined, parts_of
from cerflow.values.units import DURATION_UNITS

#: Text, or a node with the loosest binding that needs no parentheses where it stands.
_Piece: TypeAlias = str | tuple[Node, int]
#: How tightly a node binds, and the pieces of its text; the second argument is how tightly it is asked to bind.
_Writer: TypeAlias = Callable[[Any, int], tuple[int, list[_Piece]]]
#: A part of a text, or what gives it for a node.
_Words: TypeAlias = str | Callable[[Any], str]

# Formulas, loosest first. In the place after WHERE, which asks for _FILTER, a WITHIN needs parentheses.
_WITHIN, _FILTER, _EXCLUSION, _DISJUNCTION, _ALL, _AND, _STRICT, _SEQUENCE, _POSTFIX, _STEP = range(10)
# Conditions and values.
_OR, _CONJUNCTION, _NOT, _ATOM, _SUM, _TERM, _UNARY, _PRIMARY, _IN_PARENTHESES = range(9)
# SREMO.
_WINDOWED, _UNION, _INTERSECTION, _CONCATENATION, _PREFIX, _REPEATED, _OPERAND = range(7)


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


def _foreign(node: Node, _: int) -> tuple[int, list[_Piece]]:
    """A node of no language (a guard of an automaton) says itself how it is written."""
    return _PRIMARY, [part if isinstance(part, str) else (part, 0) for part in node.notation()]


def _binary(sign: str, level: int) -> _Writer:
    # Everything associates to the left, so only an equally loose right side needs parentheses.
    return lambda node, _: (level, [(node.left, level), sign, (node.right, level + 1)])


def _text(words: _Words, node: Node) -> str:
    return words if isinstance(words, str) else words(node)


def _behind(sign: _Words, level: int) -> _Writer:
    return lambda node, _: (level, [(node.operand, level), _text(sign, node)])


def _inside(words: _Words) -> _Writer:
    """Words before a formula in parentheses."""
    return lambda node, _: (_STEP, [f"{_text(words, node)}(", (node.operand, _WITHIN), ")"])


def _in_window(level: int) -> _Writer:
    return lambda node, _: (level, [(node.operand, level), " WITHIN ", (node.window, 0)])


def _whole(words: _Words, level: int = 0) -> _Writer:
    return lambda node, _: (level, [_text(words, node)])


def _matched(word: str) -> _Writer:
    return lambda node, _: (_ATOM, [(node.operand, _SUM), f"{_not(node)} {word} {quote_string(node.pattern)}"])


def _repetition(node: f.Repetition, _: int) -> tuple[int, list[_Piece]]:
    if (node.least, node.most, node.strict) == (0, 1, False):
        return _POSTFIX, [(node.operand, _POSTFIX), "?"]
    most = "" if node.most is None else node.most
    times = f"{node.least}" if node.least == most else f"{node.least},{most}"
    return _POSTFIX, [(node.operand, _POSTFIX), f"{':' if node.strict else ''}{{{times}}}"]


def _call(name: str, level: int) -> _Writer:
    return lambda node, _: (level, [f"{name}(", *_separated((part, 0) for part in node.parts), ")"])


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
        return _PRIMARY, ["NULL"]
    if isinstance(value, bool):
        return _PRIMARY, ["TRUE" if value else "FALSE"]
    if isinstance(value, str):
        return _PRIMARY, [quote_string(value)]
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return _UNARY, ["-" * (microseconds < 0) + _duration(abs(microseconds))]
    # Under a minus a number stands in parentheses: a minus directly before it would become its sign.
    return _UNARY, [repr(value)]


def _attribute(node: c.Attribute, _: int) -> tuple[int, list[_Piece]]:
    if node.label is None:
        first, *fields = parts_of(node.name)
        name = quote_name(first, always=node.quoted)
        return _PRIMARY, [f"{name}.{quote_attribute(joined(fields))}" if fields else name]
    return _PRIMARY, [f"{quote_name(node.label)}.{quote_attribute(node.name)}"]


def _label_reference(node: c.LabelReference, _: int) -> tuple[int, list[_Piece]]:
    return _PRIMARY, ["EVENT" if node.label is None else quote_name(node.label)]


def _arithmetic(node: c.Arithmetic, _: int) -> tuple[int, list[_Piece]]:
    level = _SUM if node.operator in "+-" else _TERM
    return level, [(node.left, level), f" {node.operator} ", (node.right, level + 1)]


def _function(node: c.Function, _: int) -> tuple[int, list[_Piece]]:
    if node.name == "||":
        left, right = node.arguments
        return _SUM, [(left, _SUM), " || ", (right, _TERM)]
    return _PRIMARY, [f"{node.name}(", *_separated((a, _SUM) for a in node.arguments), ")"]


def _case(node: c.If, _: int) -> tuple[int, list[_Piece]]:
    pieces: list[_Piece] = ["CASE"]
    rest: c.Expression = node
    while isinstance(rest, c.If):
        pieces += [" WHEN ", (rest.condition, _OR), " THEN ", (rest.then, _SUM)]
        rest = rest.otherwise
    pieces += [] if rest == c.Literal(None) else [" ELSE ", (rest, _SUM)]
    return _PRIMARY, [*pieces, " END"]


def _truth(node: c.TruthValue, _: int) -> tuple[int, list[_Piece]]:
    called = isinstance(node.condition, c.PredicateCall | c.SetTest)
    return _PRIMARY, [(node.condition, _PRIMARY if called else _IN_PARENTHESES)]


def _on_set(node: c.Aggregate | c.SetTest, _: int) -> tuple[int, list[_Piece]]:
    name = "count(distinct " if node.name == c.COUNT_DISTINCT else f"{node.name}("
    return _PRIMARY, [name, (node.argument, _SUM), ")"]


def _predicate(node: c.PredicateCall, _: int) -> tuple[int, list[_Piece]]:
    name = quote_name(node.name, always=node.name.lower() in BUILT_IN)
    return _PRIMARY, [f"{name}(", *_separated(map(_argument, node.arguments)), ")"]


def _argument(argument: c.Expression) -> _Piece:
    # A name alone would be a label.
    alone = isinstance(argument, c.Attribute) and argument.label is None
    return (argument, _IN_PARENTHESES if alone else _SUM)


def _comparison(node: c.Comparison, _: int) -> tuple[int, list[_Piece]]:
    return _ATOM, [(node.left, _SUM), f" {node.operator} ", (node.right, _SUM)]


def _not(node: Any) -> str:
    return " NOT" if node.negated else ""


def _in(node: c.In, _: int) -> tuple[int, list[_Piece]]:
    return _ATOM, [(node.operand, _SUM), f"{_not(node)} IN (", *_separated((i, _SUM) for i in node.items), ")"]


def _between(node: c.Between, _: int) -> tuple[int, list[_Piece]]:
    if node.low is not None and node.high is not None:
        return _ATOM, [(node.operand, _SUM), f"{_not(node)} BETWEEN ", (node.low, _SUM), " AND ", (node.high, _SUM)]
    pieces: list[_Piece] = [(node.operand, _SUM), f"{_not(node)} IN {{"]
    pieces += [(node.low, _SUM)] if node.low is not None else []
    pieces += [".."]
    pieces += [(node.high, _SUM)] if node.high is not None else []
    return _ATOM, [*pieces, "}"]


def _bracket(node: c.Bracket, _: int) -> tuple[int, list[_Piece]]:
    return _ATOM, [f"{quote_name(node.label)}[", (node.condition, _OR), "]"]


def _some(node: c.Some, _: int) -> tuple[int, list[_Piece]]:
    return _NOT, [f"SOME {', '.join(map(quote_name, node.labels))}: ", (node.condition, _NOT)]


# -- formulas and windows


def _event_type(node: f.EventType, _: int) -> tuple[int, list[_Piece]]:
    stream = "" if node.stream is None else f"{quote_name(node.stream)}>"
    return _STEP, [stream + quote_name(node.name)]


def _not_event(node: f.NotEvent, _: int) -> tuple[int, list[_Piece]]:
    if node.condition is None:
        return _STEP, ["NOT(", (node.event, _STEP), ")"]
    return _STEP, ["NOT(", (node.event, _STEP), " FILTER ", (node.condition, _OR), ")"]


def _rename(node: f.Rename, _: int) -> tuple[int, list[_Piece]]:
    return _POSTFIX, [(node.operand, _POSTFIX), f" [{quote_name(node.old)} -> {quote_name(node.new)}]"]


def _filter(node: f.Filter, asked: int) -> tuple[int, list[_Piece]]:
    return _FILTER, [(node.operand, min(asked, _FILTER)), " FILTER ", (node.condition, _OR)]


def _not_followed_by(node: f.NotFollowedBy, _: int) -> tuple[int, list[_Piece]]:
    right: _Piece = (node.right, _EXCLUSION + 1)
    return _EXCLUSION, [(node.left, _EXCLUSION), f" {node.sign} ", right, " FOR ", (node.window, 0)]


def _by(node: f.Selection | s.Select) -> str:
    return f" BY {_names(str(reference.label) for reference in node.by)} " if node.by else ""


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
        pieces.append("FALSE" if condition is None else (transform(condition, apart), _OR))
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
    pieces += [" WHERE ", (node.formula, _FILTER)]
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
    return _OPERAND, ["[", (node.condition, _OR), f"]{label}{registers}"]


_BINARY: dict[type[f.Formula], int] = {
    **dict.fromkeys((f.Unless, f.Without), _EXCLUSION),
    f.Disjunction: _DISJUNCTION,
    f.All: _ALL,
    f.Conjunction: _AND,
    f.StrictSequence: _STRICT,
    f.Sequence: _SEQUENCE,
}
_WRITERS: dict[type[Node], _Writer] = {
    c.Literal: _literal,
    c.Attribute: _attribute,
    c.LabelReference: _label_reference,
    c.Arithmetic: _arithmetic,
    c.Negative: lambda node, _: (_UNARY, ["-", (node.operand, _PRIMARY)]),
    c.Function: _function,
    c.Aggregate: _on_set,
    c.If: _case,
    c.TruthValue: _truth,
    c.Constant: _whole(lambda node: "TRUE" if node.value else "FALSE", _PRIMARY),
    c.Comparison: _comparison,
    c.Like: _matched("LIKE"),
    c.Regexp: _matched("REGEXP"),
    c.In: _in,
    c.Between: _between,
    c.IsNull: lambda node, _: (_ATOM, [(node.operand, _SUM), f" IS{_not(node)} NULL"]),
    c.PredicateCall: _predicate,
    c.SetTest: _on_set,
    c.Bracket: _bracket,
    c.Some: _some,
    c.Not: lambda node, _: (_NOT, ["NOT ", (node.operand, _NOT)]),
    c.And: _binary(" AND ", _CONJUNCTION),
    c.Or: _binary(" OR ", _OR),
    f.EventType: _event_type,
    f.EventKind: _event_type,
    f.AnyEvent: _whole(lambda node: f"{quote_name(node.stream)}>EVENT" if node.stream else "EVENT", _STEP),
    f.NotEvent: _not_event,
    f.As: _behind(lambda node: f" AS {quote_name(node.label)}", _POSTFIX),
    f.Rename: _rename,
    f.Filter: _filter,
    **{kind: _binary(f" {kind.sign} ", level) for kind, level in _BINARY.items()},
    **{kind: _behind(kind.sign, _POSTFIX) for kind in (f.Iteration, f.StrictIteration)},
    f.Repetition: _repetition,
    f.NotFollowedBy: _not_followed_by,
    f.Project: _inside(lambda node: f"PROJECT {_names(node.labels)} "),
    f.Start: _inside(f.Start.sign),
    f.Selection: _inside(lambda node: f"{node.strategy}{_by(node)}"),
    f.Within: _in_window(_WITHIN),
    f.CountWindow: _whole(lambda node: f"{node.events} {'EVENT' if node.events == 1 else 'EVENTS'}"),
    f.DurationWindow: _whole(lambda node: _duration(node.microseconds)),
    f.AttributeWindow: _whole(lambda node: f"{node.size!r} [{quote_attribute(node.attribute)}]"),
    s.LabelItem: _label_item,
    s.ExpressionItem: lambda node, _: (0, [(node.expression, _SUM), f" AS {quote_name(node.name)}"]),
    s.CountItem: _whole(lambda node: f"COUNT(*) AS {quote_name(node.name)}"),
    s.Projection: _projection,
    s.Select: _select,
    s.Definition: lambda node, _: (0, [f"DEFINE {quote_name(node.name)} AS ", (node.select, 0), ";\n"]),
    s.Statements: _statements,
    r.Epsilon: _whole("EPSILON", _OPERAND),
    r.Empty: _whole("EMPTY", _OPERAND),
    r.Terminal: _terminal,
    r.Concatenation: _binary(" . ", _CONCATENATION),
    r.Alternation: _binary(" | ", _UNION),
    r.Intersection: _binary(" & ", _INTERSECTION),
    r.Star: _behind("*", _REPEATED),
    r.Plus: _behind("+", _REPEATED),
    r.Optional: _behind("?", _REPEATED),
    r.Complement: lambda node, _: (_PREFIX, ["!", (node.operand, _PREFIX)]),
    r.AnyMatch: _call("any", _OPERAND),
    r.NextMatch: _call("next", _OPERAND),
    r.Unordered: _call("unordered", _OPERAND),
    r.Windowed: _in_window(_WINDOWED),
    r.Regular: lambda node, _: (_STEP, ["SREMO(", (node.expression, _WINDOWED), ")"]),
    a.AutomatonFormula: lambda node, _: (_STEP, [f"AUTOMATON {quote_string(automaton_to_json(node, show))}"]),
}
