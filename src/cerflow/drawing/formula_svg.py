"""A query, formula or expression as nested boxes.

Time goes from left to right. A dotted connection lets other events pass between its ends, a solid one does not.
Alternatives stand in a stack, repetitions have an arrow back, windows are brackets, and filters stand at the foot of
the box that they check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cerflow import limits
from cerflow.drawing.boxes import (
    Box,
    Connector,
    Mark,
    beside,
    bracketed,
    captioned,
    draw,
    excluding,
    forbidden,
    framed,
    looped,
    stacked,
    with_lines,
)
from cerflow.drawing.svg import Sheet, Theme, shortened
from cerflow.drawing.words import in_words
from cerflow.errors import PictureError
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.lexicon import quote_name
from cerflow.language.node import Node, fold, walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select

_LATER = Connector(";", "other events may come between", True)
_NEXT = Connector(":", "no event comes between", False)
_WAITING = Connector("", "from here on it is waited for what must not come", True)
_READ = Connector(".", "no event comes between", False)
#: Letters of a line of a condition, and lines of one.
_LETTERS, _LINES = 44, 6


def formula_svg(tree: Node, *, theme: Theme = "auto", marks: Mapping[int, Mark] = MappingProxyType({})) -> str:
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
    of_rows = (f.Sequence, f.StrictSequence)

    def made(current: Node, below: Sequence[Box | None]) -> Box | None:
        mark = marks.get(id(current))
        box = _box(current, below)
        if box is None or mark is None or (id(current) in inner and not isinstance(current, of_rows)):
            return box
        if isinstance(current, of_rows):
            left, right = (part for part in below if part is not None)
            number = mark.lines[0].rpartition(" ")[0]
            return beside(left, _MAKERS_OF_ROWS[type(current)], right, show(current, kinds=False), number)
        return captioned(box, mark)

    box = fold(tree, made)
    assert box is not None
    said = [in_words(tree)]
    for node in walk(tree):
        if id(node) in marks and marks[id(node)].lines:
            said.append(f"{show(node, kinds=False)}: {', '.join(marks[id(node)].lines)}")
    sheet = Sheet(show(tree), theme, "; ".join(said))
    draw(sheet, box)
    return str(sheet)


def _box(current: Node, below: Sequence[Box | None]) -> Box | None:
    # Operators that look alike are drawn by their base.
    maker = next((_MAKERS[kind] for kind in type(current).__mro__ if kind in _MAKERS), None)
    return None if maker is None else maker(current, [box for box in below if box is not None])


# -- leaves


def _leaf(title: str, *lines: tuple[str, str], shape: str = "cf-shape cf-event") -> Box:
    return framed(None, tuple((line,) for line in lines), shape=shape, title=title)


def _of_stream(stream: str | None) -> list[tuple[str, str]]:
    return [] if stream is None else [(f"{stream}>", "")]


def _event_type(node: f.EventType, _: Sequence[Box]) -> Box:
    return _leaf(show(node, kinds=False), *_of_stream(node.stream), (node.name, "cf-bold"))


def _any_event(node: f.AnyEvent, _: Sequence[Box]) -> Box:
    return _leaf(show(node, kinds=False), *_of_stream(node.stream), ("EVENT", "cf-bold"))


def _not_event(node: f.NotEvent, _: Sequence[Box]) -> Box:
    filtered = () if node.condition is None else _condition("FILTER", node.condition)
    name = show(node.event, kinds=False)
    return framed(
        None, ((("NOT ", "cf-forbids"), (name, "cf-bold")),), filtered, shape="cf-bad", title=show(node, kinds=False)
    )


def _terminal(node: r.Terminal, _: Sequence[Box]) -> Box:
    lines = [((line, ""),) for line in shortened(show(node.condition), _LETTERS, _LINES)]
    if node.label is not None:
        label = "MARK" if node.label == r.MARK else f"AS {quote_name(node.label)}"
        lines.append(((label, "cf-labels"),))
    if node.registers:
        lines.append(((f"INTO {', '.join(node.registers)}", "cf-write"),))
    shape = "cf-shape" if node.label is None else "cf-shape cf-event"
    return framed(None, tuple(lines), shape=shape, title=show(node, kinds=False))


def _automaton(node: AutomatonFormula, _: Sequence[Box]) -> Box:
    return _leaf(show(node, kinds=False), ("AUTOMATON", "cf-bold"), (f"{node.model}: {len(node.states)} states", ""))


def _sign(text: str) -> Callable[[Any, Sequence[Box]], Box]:
    return lambda node, _: _leaf(show(node, kinds=False), (text, "cf-bold"), shape="cf-shape")


# -- lines at boxes


def _condition(word: str, condition: Node) -> tuple[tuple[tuple[str, str], ...], ...]:
    first, *rest = shortened(show(condition), _LETTERS, _LINES)
    return ((f"{word} ", "cf-bold"), (first, "")), *(((" " * (len(word) + 1) + line, ""),) for line in rest)


def _filter(node: f.Filter, below: Sequence[Box]) -> Box:
    return with_lines(below[0], (), _condition("FILTER", node.condition), show(node, kinds=False))


def _as(node: f.As, below: Sequence[Box]) -> Box:
    return with_lines(below[0], (((f"AS {quote_name(node.label)}", "cf-labels"),),), (), show(node, kinds=False))


def _rename(node: f.Rename, below: Sequence[Box]) -> Box:
    text = f"[{quote_name(node.old)} -> {quote_name(node.new)}]"
    return framed(below[0], (((text, "cf-labels"),),), title=show(node, kinds=False))


def _headed(words: Callable[[Any], str]) -> Callable[[Any, Sequence[Box]], Box]:
    return lambda node, below: framed(below[0], (((words(node), "cf-bold"),),), title=show(node, kinds=False))


def _strategy(node: f.Selection | Select) -> str:
    by = ", ".join(show(label) for label in node.by)
    return f"{node.strategy} BY {by}" if by else str(node.strategy)


# -- connections


def _in_row(connector: Connector) -> Callable[[Any, Sequence[Box]], Box]:
    return lambda node, below: beside(below[0], connector, below[1], show(node, kinds=False))


def _all_in_row(connector: Connector, word: str) -> Callable[[Any, Sequence[Box]], Box]:
    def made(node: Any, below: Sequence[Box]) -> Box:
        row = below[0]
        for box in below[1:]:
            row = beside(row, connector, box, show(node, kinds=False))
        return framed(row, (((word, "cf-bold"),),), title=show(node, kinds=False))

    return made


def _in_stack(word: str = "") -> Callable[[Any, Sequence[Box]], Box]:
    return lambda node, below: stacked(below[0], word or node.sign, below[1], show(node, kinds=False))


def _again(sign: str, skips: bool) -> Callable[[Any, Sequence[Box]], Box]:
    meaning = _LATER.meaning if skips else _NEXT.meaning
    return lambda node, below: looped(below[0], Connector(sign, meaning, skips), show(node, kinds=False))


def _repetition(node: f.Repetition, below: Sequence[Box]) -> Box:
    if (node.least, node.most) == (0, 1):
        return framed(below[0], ((("?  or nothing", "cf-bold"),),), title=show(node, kinds=False))
    most = "" if node.most is None else node.most
    times = f"{{{node.least}}}" if node.least == most else f"{{{node.least},{most}}}"
    sign = f":{times}" if node.strict else times
    return looped(
        below[0], Connector(sign, (_NEXT if node.strict else _LATER).meaning, not node.strict), show(node, kinds=False)
    )


def _exclusion(node: f.Exclusion, below: Sequence[Box]) -> Box:
    return excluding(below[0], node.sign, below[1], show(node, kinds=False))


def _not_followed(node: f.NotFollowedBy, below: Sequence[Box]) -> Box:
    # It begins after the last event of what comes before.
    title = show(node, kinds=False)
    refused = forbidden(f"NOT FOLLOWED FOR {show(node.window)} BY", below[1], title)
    return framed(beside(below[0], _WAITING, refused, title), (), title=title)


def _window(node: f.Within | r.Windowed, below: Sequence[Box]) -> Box:
    return bracketed(below[0], f"WITHIN {show(node.window)}", show(node, kinds=False))


# -- the whole query


def _select(node: Select, below: Sequence[Box]) -> Box:
    (box,) = below
    if node.window is not None:
        box = bracketed(box, f"WITHIN {show(node.window)}", show(node, kinds=False))
    strategy = "" if node.strategy is f.Strategy.ALL else f"{_strategy(node)} "
    clauses = {
        "SELECT": strategy + show(node.projection),
        "FROM": ", ".join(map(quote_name, node.streams)),
        "PARTITION BY": ", ".join("/".join(key) for key in node.partition),
        "CONSUME BY": "" if node.consume is Consumption.NONE else str(node.consume),
        "LIMIT": "" if node.limit is None else str(node.limit),
    }
    lines = {word: shortened(text, _LETTERS, 3) for word, text in clauses.items() if text}
    shown = {
        word: (((f"{word} ", "cf-bold"), (first, "")), *(((f"  {line}", ""),) for line in rest))
        for word, (first, *rest) in lines.items()
    }
    head = [line for word in ("SELECT", "FROM") for line in shown.get(word, ())]
    foot = [line for word in ("PARTITION BY", "CONSUME BY", "LIMIT") for line in shown.get(word, ())]
    return framed(box, tuple(head), tuple(foot), title=show(node))


_MAKERS_OF_ROWS: dict[type[Node], Connector] = {f.Sequence: _LATER, f.StrictSequence: _NEXT}
_MAKERS: dict[type[Node], Callable[[Any, Sequence[Box]], Box]] = {
    Select: _select,
    f.EventType: _event_type,
    f.AnyEvent: _any_event,
    f.NotEvent: _not_event,
    f.As: _as,
    f.Rename: _rename,
    f.Filter: _filter,
    f.Combination: _in_stack(),
    f.Sequence: _in_row(_LATER),
    f.StrictSequence: _in_row(_NEXT),
    **{kind: _again(kind.sign, not kind.gapless) for kind in (f.Iteration, f.StrictIteration)},
    f.Repetition: _repetition,
    f.Exclusion: _exclusion,
    f.NotFollowedBy: _not_followed,
    f.Project: _headed(lambda node: f"PROJECT {', '.join(map(quote_name, node.labels))}"),
    f.Start: _headed(lambda node: "START"),
    f.Selection: _headed(_strategy),
    f.Within: _window,
    AutomatonFormula: _automaton,
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
    r.AnyMatch: _all_in_row(Connector("", "any events may come between", True), "any"),
    r.NextMatch: _all_in_row(Connector("", "events that do not fit may come between", True), "next"),
    r.Unordered: _all_in_row(Connector("", "in any order", False), "unordered"),
    r.Windowed: _window,
}
