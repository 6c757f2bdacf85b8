"""A query, formula or expression as nested boxes.

Time goes from left to right. A dotted connection lets other events pass between its ends, a solid one does not.
Alternatives stand in a stack, repetitions have an arrow back, windows are brackets, and filters stand at the foot of
the box that they check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cerflow.base import limits
from cerflow.base.errors import PictureError
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.lexicon import quote_name
from cerflow.language.node import Node, fold, walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.look.pictures import boxes as b
from cerflow.look.pictures.svg import Sheet, Theme, shortened

_LATER = b.Connector(";", "other events may come between", True)
_NEXT = b.Connector(":", "no event comes between", False)
_WAITING = b.Connector("", "from here on it is waited for what must not come", True)
_READ = b.Connector(".", "no event comes between", False)
#: Letters of a line of a condition, and lines of one.
_LETTERS, _LINES = 44, 6


def formula_svg(tree: Node, *, theme: Theme = "auto", marks: Mapping[int, b.Mark] = MappingProxyType({})) -> str:
    """A query or a part of it as a text of SVG; for ``theme`` see `cerflow.Query.to_svg`.

    ``marks`` say something of parts, by their identity, such as the number of their matches.

    Raises `PictureError` if the tree is too large for a picture that can be read.
    """
    parts = sum(isinstance(current, f.Formula | r.Sremo) for current in walk(tree))
    if parts > limits.DRAWN_PARTS:
        raise PictureError(
            f"a picture of {parts} parts of a formula is too large to read: at most {limits.DRAWN_PARTS} are drawn"
        )
    # Labels and filters stand in the box of what they are of, and so does its count.
    inner = {id(node.operand) for node in walk(tree) if isinstance(node, f.As | f.Filter)}

    def made(current: Node, below: Sequence[b.Box | None]) -> b.Box | None:
        mark = marks.get(id(current))
        boxes = [part for part in below if part is not None]
        # Operators that look alike are drawn by their base.
        maker = next((_MAKERS[kind] for kind in type(current).__mro__ if kind in _MAKERS), None)
        if maker is None:
            return None
        in_row = _IN_ROWS.get(type(current))
        if in_row is not None and mark is not None:
            box = b.beside(boxes[0], in_row, boxes[1], mark.lines[0].rpartition(" ")[0])
        else:
            box = maker(current, boxes)
        box = b.titled(box, show(current) if isinstance(current, Select) else show(current, kinds=False))
        return box if mark is None or in_row is not None or id(current) in inner else b.captioned(box, mark)

    box = fold(tree, made)
    assert box is not None
    said = [in_words(tree)]
    for node in walk(tree):
        if id(node) in marks and marks[id(node)].lines:
            said.append(f"{show(node, kinds=False)}: {', '.join(marks[id(node)].lines)}")
    sheet = Sheet(show(tree), theme, "; ".join(said))
    b.draw(sheet, box)
    return str(sheet)


# -- leaves


def _leaf(*lines: tuple[str, str], shape: str = "cf-shape cf-event") -> b.Box:
    return b.framed(None, tuple((line,) for line in lines), shape=shape)


def _event(node: f.EventType | f.AnyEvent, _: Sequence[b.Box]) -> b.Box:
    name = node.name if isinstance(node, f.EventType) else "EVENT"
    return _leaf(*([] if node.stream is None else [(f"{node.stream}>", "")]), (name, "cf-bold"))


def _not_event(node: f.NotEvent, _: Sequence[b.Box]) -> b.Box:
    filtered = () if node.condition is None else _condition(node.condition)
    name = show(node.event, kinds=False)
    return b.framed(None, ((("NOT ", "cf-forbids"), (name, "cf-bold")),), filtered, shape="cf-bad")


def _terminal(node: r.Terminal, _: Sequence[b.Box]) -> b.Box:
    lines = [((line, ""),) for line in shortened(show(node.condition), _LETTERS, _LINES)]
    if node.label is not None:
        label = "MARK" if node.label == r.MARK else f"AS {quote_name(node.label)}"
        lines.append(((label, "cf-labels"),))
    if node.registers:
        lines.append(((f"INTO {', '.join(node.registers)}", "cf-write"),))
    shape = "cf-shape" if node.label is None else "cf-shape cf-event"
    return b.framed(None, tuple(lines), shape=shape)


def _sign(text: str) -> Callable[[Any, Sequence[b.Box]], b.Box]:
    return lambda node, _: _leaf((text, "cf-bold"), shape="cf-shape")


# -- lines at boxes


def _clause(word: str, text: str, most: int, indent: int) -> tuple[tuple[tuple[str, str], ...], ...]:
    first, *rest = shortened(text, _LETTERS, most)
    return ((f"{word} ", "cf-bold"), (first, "")), *(((" " * indent + line, ""),) for line in rest)


def _condition(condition: Node) -> tuple[tuple[tuple[str, str], ...], ...]:
    return _clause("FILTER", show(condition), _LINES, len("FILTER "))


def _headed(words: Callable[[Any], str], kind: str = "cf-bold") -> Callable[[Any, Sequence[b.Box]], b.Box]:
    return lambda node, below: b.framed(below[0], (((words(node), kind),),))


def _strategy(node: f.Selection | Select) -> str:
    by = ", ".join(show(label) for label in node.by)
    return f"{node.strategy} BY {by}" if by else str(node.strategy)


# -- connections


def _in_row(connector: b.Connector) -> Callable[[Any, Sequence[b.Box]], b.Box]:
    return lambda node, below: b.beside(below[0], connector, below[1])


def _all_in_row(connector: b.Connector, word: str) -> Callable[[Any, Sequence[b.Box]], b.Box]:
    def made(node: Any, below: Sequence[b.Box]) -> b.Box:
        row = below[0]
        for box in below[1:]:
            row = b.beside(row, connector, box)
        return b.framed(row, (((word, "cf-bold"),),))

    return made


def _in_stack(word: str = "") -> Callable[[Any, Sequence[b.Box]], b.Box]:
    return lambda node, below: b.stacked(below[0], word or node.sign, below[1])


def _again(sign: str, skips: bool) -> Callable[[Any, Sequence[b.Box]], b.Box]:
    connector = replace(_LATER if skips else _NEXT, sign=sign)
    return lambda node, below: b.looped(below[0], connector)


def _repetition(node: f.Repetition, below: Sequence[b.Box]) -> b.Box:
    if (node.least, node.most) == (0, 1):
        return b.framed(below[0], ((("?  or nothing", "cf-bold"),),))
    most = "" if node.most is None else node.most
    times = f"{{{node.least}}}" if node.least == most else f"{{{node.least},{most}}}"
    connector = _NEXT if node.strict else _LATER
    return b.looped(below[0], replace(connector, sign=f":{times}" if node.strict else times))


def _not_followed(node: f.NotFollowedBy, below: Sequence[b.Box]) -> b.Box:
    # It begins after the last event of what comes before.
    refused = b.forbidden(f"NOT FOLLOWED FOR {show(node.window)} BY", below[1])
    return b.framed(b.beside(below[0], _WAITING, refused), ())


def _window(node: f.Within | r.Windowed, below: Sequence[b.Box]) -> b.Box:
    return b.bracketed(below[0], f"WITHIN {show(node.window)}")


# -- the whole query


def _select(node: Select, below: Sequence[b.Box]) -> b.Box:
    (box,) = below
    if node.window is not None:
        box = b.bracketed(box, f"WITHIN {show(node.window)}")
    strategy = "" if node.strategy is f.Strategy.ALL else f"{_strategy(node)} "
    clauses = {
        "SELECT": strategy + show(node.projection),
        "FROM": ", ".join(map(quote_name, node.streams)),
        "PARTITION BY": ", ".join("/".join(key) for key in node.partition),
        "CONSUME BY": "" if node.consume is Consumption.NONE else str(node.consume),
        "LIMIT": "" if node.limit is None else str(node.limit),
    }
    shown = {word: _clause(word, text, 3, 2) for word, text in clauses.items() if text}
    head = [line for word in ("SELECT", "FROM") for line in shown.get(word, ())]
    foot = [line for word in ("PARTITION BY", "CONSUME BY", "LIMIT") for line in shown.get(word, ())]
    return b.framed(box, tuple(head), tuple(foot))


_IN_ROWS: dict[type[Node], b.Connector] = {f.Sequence: _LATER, f.StrictSequence: _NEXT}
_MAKERS: dict[type[Node], Callable[[Any, Sequence[b.Box]], b.Box]] = {
    Select: _select,
    f.EventType: _event,
    f.AnyEvent: _event,
    f.NotEvent: _not_event,
    f.As: lambda node, below: b.with_lines(below[0], (((f"AS {quote_name(node.label)}", "cf-labels"),),), ()),
    f.Rename: _headed(lambda node: f"[{quote_name(node.old)} -> {quote_name(node.new)}]", "cf-labels"),
    f.Filter: lambda node, below: b.with_lines(below[0], (), _condition(node.condition)),
    f.Combination: _in_stack(),
    **{kind: _in_row(connector) for kind, connector in _IN_ROWS.items()},
    **{kind: _again(kind.sign, not kind.gapless) for kind in (f.Iteration, f.StrictIteration)},
    f.Repetition: _repetition,
    f.Exclusion: lambda node, below: b.excluding(below[0], node.sign, below[1]),
    f.NotFollowedBy: _not_followed,
    f.Project: _headed(lambda node: f"PROJECT {', '.join(map(quote_name, node.labels))}"),
    f.Start: _headed(lambda node: "START"),
    f.Selection: _headed(_strategy),
    f.Within: _window,
    AutomatonFormula: lambda node, _: _leaf(("AUTOMATON", "cf-bold"), (f"{node.model}: {len(node.states)} states", "")),
    r.Regular: _headed(lambda _: "SREMO"),
    r.Epsilon: _sign("EPSILON"),
    r.Empty: _sign("EMPTY"),
    r.Terminal: _terminal,
    r.Concatenation: _in_row(_READ),
    r.Alternation: _in_stack("|"),
    r.Intersection: _in_stack("&"),
    r.Star: _again("*", False),
    r.Plus: _again("+", False),
    r.Optional: _headed(lambda node: "?  or nothing"),
    r.Complement: _headed(lambda node: "!  what does not match"),
    r.AnyMatch: _all_in_row(b.Connector("", "any events may come between", True), "any"),
    r.NextMatch: _all_in_row(b.Connector("", "events that do not fit may come between", True), "next"),
    r.Unordered: _all_in_row(b.Connector("", "in any order", False), "unordered"),
    r.Windowed: _window,
}


# -- in words

_SAID: dict[type[Node], str] = {
    f.Sequence: "{0}, later {1}",
    f.StrictSequence: "{0}, and the very next event is {1}",
    f.Disjunction: "either {0} or {1}",
    f.Conjunction: "{0} and {1} in any order",
    f.Iteration: "one or more of: {0}",
    f.StrictIteration: "one or more, without a gap, of: {0}",
    f.Unless: "{0}, with nothing of this since the stream began: {1}",
    f.Without: "{0}, with nothing of this in between: {1}",
    f.NotFollowedBy: "{0}, not followed for {window} by {1}",
    f.As: "{0} as {label}",
    f.Filter: "{0}, where {condition}",
    f.Within: "{0}, all within {window}",
    f.AnyEvent: "any event",
    f.EventType: "{name}",
    f.EventKind: "{name}",
}


def in_words(tree: Node) -> str:
    """A query or a part of it in words; parts without words stand as they are written."""

    def said(current: Node, below: Sequence[str]) -> str:
        if isinstance(current, Select):
            keys = ", ".join("/".join(key) for key in current.partition)
            window = "" if current.window is None else f", all within {show(current.window)}"
            return below[0] + window + (f", for each {keys}" if keys else "")
        if type(current) not in _SAID:
            return show(current, kinds=False)
        parts = {name: getattr(current, name, "") for name in ("name", "label", "window", "condition")}
        told = {name: show(part) if isinstance(part, Node) else part for name, part in parts.items()}
        return _SAID[type(current)].format(*below, **told)

    return fold(tree, said)
