"""A query, formula or expression as nested boxes.

Time goes from left to right. A dotted connection lets other events pass between its ends, a solid one does not.
Alternatives stand in a stack, repetitions have an arrow back, windows are brackets, and filters stand at the foot of
the box that they check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

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
#: What stands above the operands of a strategy, and what may come between these.
_STRATEGIES = {
    r.AnyMatch: ("any", b.Connector("", "any events may come between", True)),
    r.NextMatch: ("next", b.Connector("", "events that do not fit may come between", True)),
    r.Unordered: ("unordered", b.Connector("", "in any order", False)),
}
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
        mark, in_row = marks.get(id(current)), isinstance(current, f.Sequence | f.StrictSequence)
        count = mark.lines[0].rpartition(" ")[0] if mark is not None and in_row else ""
        box = _drawn(current, [part for part in below if part is not None], count)
        if box is None:
            return None
        box = replace(box, title=show(current, kinds=isinstance(current, Select)))
        return box if mark is None or in_row or id(current) in inner else b.captioned(box, mark)

    box = fold(tree, made)
    assert box is not None
    said = [in_words(tree)]
    for node in walk(tree):
        if id(node) in marks and marks[id(node)].lines:
            said.append(f"{show(node, kinds=False)}: {', '.join(marks[id(node)].lines)}")
    sheet = Sheet(show(tree), theme, "; ".join(said), ((0, 0), (box.width, box.height)))
    b.draw(sheet, box)
    return str(sheet)


def _drawn(node: Node, below: Sequence[b.Box], count: str) -> b.Box | None:
    """The box of a node, given those of its operands; conditions and the like have none.

    The ``count`` tells how many matches reach the end of a sequence.
    """
    match node:
        case Select():
            return _select(node, below[0])
        case f.EventType() | f.AnyEvent():
            name = node.name if isinstance(node, f.EventType) else "EVENT"
            return _leaf(*([] if node.stream is None else [(f"{node.stream}>", "")]), (name, "cf-bold"))
        case f.NotEvent():
            filtered = () if node.condition is None else _condition(node.condition)
            line = (("NOT ", "cf-forbids"), (show(node.event, kinds=False), "cf-bold"))
            return b.framed(None, (line,), filtered, shape="cf-bad")
        case f.As():
            return b.with_lines(below[0], (((f"AS {quote_name(node.label)}", "cf-labels"),),), ())
        case f.Rename():
            return _headed(below[0], f"[{quote_name(node.old)} -> {quote_name(node.new)}]", "cf-labels")
        case f.Filter():
            return b.with_lines(below[0], (), _condition(node.condition))
        case f.Sequence() | f.StrictSequence():
            return b.beside(below[0], _NEXT if isinstance(node, f.StrictSequence) else _LATER, below[1], count)
        case f.Combination():
            return b.stacked(below[0], node.sign, below[1])
        case f.Repetition(least=0, most=1) | r.Optional():
            return _headed(below[0], "?  or nothing")
        case f.Repeating():
            return _again(below[0], node.sign, node.gapless)
        case f.NotFollowedBy():
            # It begins after the last event of what comes before.
            refused = b.forbidden(f"NOT FOLLOWED FOR {show(node.window)} BY", below[1])
            return b.framed(b.beside(below[0], _WAITING, refused), ())
        case f.Exclusion():
            return b.excluding(below[0], node.sign, below[1])
        case f.Project():
            return _headed(below[0], f"{node.sign} {', '.join(map(quote_name, node.labels))}")
        case f.Start():
            return _headed(below[0], node.sign)
        case f.Selection():
            return _headed(below[0], _strategy(node))
        case f.Within() | r.Windowed():
            return b.bracketed(below[0], f"WITHIN {show(node.window)}")
        case AutomatonFormula():
            return _leaf(("AUTOMATON", "cf-bold"), (f"{node.model}: {len(node.states)} states", ""))
        case r.Regular():
            return _headed(below[0], "SREMO")
        case r.Epsilon() | r.Empty():
            return _leaf((show(node), "cf-bold"), shape="cf-shape")
        case r.Terminal():
            return _terminal(node)
        case r.Concatenation():
            return b.beside(below[0], _READ, below[1])
        case r.Alternation() | r.Intersection():
            return b.stacked(below[0], "|" if isinstance(node, r.Alternation) else "&", below[1])
        case r.Star() | r.Plus():
            return _again(below[0], "*" if isinstance(node, r.Star) else "+", True)
        case r.Complement():
            return _headed(below[0], "!  what does not match")
        case r.Strategic():
            word, connector = _STRATEGIES[type(node)]
            return _headed(reduce(lambda row, box: b.beside(row, connector, box), below), word)
    return None


def _leaf(*lines: tuple[str, str], shape: str = "cf-shape cf-event") -> b.Box:
    return b.framed(None, tuple((line,) for line in lines), shape=shape)


def _headed(box: b.Box, words: str, kind: str = "cf-bold") -> b.Box:
    return b.framed(box, (((words, kind),),))


def _again(box: b.Box, sign: str, gapless: bool) -> b.Box:
    return b.looped(box, replace(_NEXT if gapless else _LATER, sign=sign))


def _terminal(node: r.Terminal) -> b.Box:
    lines = [((line, ""),) for line in shortened(show(node.condition), _LETTERS, _LINES)]
    if node.label is not None:
        label = "MARK" if node.label == r.MARK else f"AS {quote_name(node.label)}"
        lines.append(((label, "cf-labels"),))
    if node.registers:
        lines.append(((f"INTO {', '.join(node.registers)}", "cf-write"),))
    shape = "cf-shape" if node.label is None else "cf-shape cf-event"
    return b.framed(None, tuple(lines), shape=shape)


def _clause(word: str, text: str, most: int, indent: int) -> tuple[tuple[tuple[str, str], ...], ...]:
    first, *rest = shortened(text, _LETTERS, most)
    return ((f"{word} ", "cf-bold"), (first, "")), *(((" " * indent + line, ""),) for line in rest)


def _condition(condition: Node) -> tuple[tuple[tuple[str, str], ...], ...]:
    return _clause("FILTER", show(condition), _LINES, len("FILTER "))


def _strategy(node: f.Selection | Select) -> str:
    by = ", ".join(show(label) for label in node.by)
    return f"{node.strategy} BY {by}" if by else str(node.strategy)


def _select(node: Select, box: b.Box) -> b.Box:
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
