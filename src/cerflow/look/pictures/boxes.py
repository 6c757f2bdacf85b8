"""Boxes with texts, side by side, in stacks and in one another; each knows its size before it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from cerflow.look.pictures.svg import LINE, Sheet, Texts, shortened, text_width

_PAD = 10.0
#: Room of the connection between two boxes, and of a loop above a box.
_GAP, _LOOP = 52.0, 26.0
#: Room of a clock before a line, and letters of a line below a box.
_CLOCK, _LETTERS = 20.0, 34

_Lines = tuple[Texts, ...]
#: Draws what is a box's own, with its upper left corner at a place.
_Own = Callable[[Sheet, float, float, Element], None]


@dataclass(frozen=True, slots=True)
class Connector:
    """A connection: its sign, its meaning, and whether events may be skipped on it."""

    sign: str
    meaning: str
    skips: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """What is said of a part below its box: lines, a class for the box, and the share of a time that has passed."""

    lines: tuple[str, ...] = ()
    kind: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a size in pixels, with boxes in it at their places; connections meet it at the height ``middle``.

    ``kind`` is its class and ``title`` what it says when the pointer rests on it, also about its ``meaning``. A frame
    has lines of text at its ``head``, in its middle if it holds no box, and at its ``foot``. In a row all have one
    ``connector`` between them.
    """

    width: float
    height: float
    middle: float
    parts: tuple[tuple[float, float, Box], ...] = ()
    own: _Own | None = None
    kind: str = "cf-part"
    title: str = ""
    meaning: str = ""
    connector: Connector | None = None
    counts: tuple[str, ...] = ()
    inner: Box | None = None
    head: _Lines = ()
    foot: _Lines = ()


def draw(sheet: Sheet, box: Box, x: float = 0.0, y: float = 0.0, around: str = "") -> None:
    """Draw a box at a place, and all in it, parents first; what has no title says that of the box around it."""
    title = box.title or around
    if box.own is not None:
        box.own(sheet, x, y, sheet.group(box.kind, f"{title}\n{box.meaning}".rstrip()))
    for dx, dy, part in box.parts:
        draw(sheet, part, x + dx, y + dy, title)


def _width(lines: Sequence[Texts]) -> float:
    return max((sum(text_width(text) for text, _ in line) for line in lines), default=0.0)


def framed(inner: Box | None, head: _Lines, foot: _Lines = (), *, shape: str = "cf-frame") -> Box:
    """A frame around a box, or around nothing but its lines, which then stand in its middle."""
    size = (inner.width, inner.height + _PAD) if inner is not None else (0.0, 0.0)
    width = max(size[0], _width(head), _width(foot)) + 2 * _PAD
    top = LINE * len(head) + _PAD * (0.6 if inner is None else 1.0)
    bottom = LINE * len(foot) + (_PAD if foot else 0.0)
    height = top + size[1] + bottom + (0.0 if inner is not None or foot else _PAD * 0.6)
    rule = top + size[1] + (_PAD * 0.4 if inner is None else 0.0)

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        sheet.rect(x, y, width, height, shape, group)
        for k, line in enumerate(head):
            middle = y + _PAD * 0.6 + LINE * (k + 0.5)
            if inner is None:
                sheet.text(x + width / 2, middle, line, group, "middle")
            else:
                sheet.text(x + _PAD, middle, line, group)
        if foot:
            sheet.line(((x, y + rule), (x + width, y + rule)), "cf-rule", group)
        for k, line in enumerate(foot):
            sheet.text(x + _PAD, y + rule + _PAD * 0.4 + LINE * (k + 0.5), line, group)

    parts = () if inner is None else (((width - inner.width) / 2, top, inner),)
    kind = "cf-part" if inner is not None else "cf-part cf-leaf"
    middle = height / 2 if inner is None else top + inner.middle
    return Box(width, height, middle, parts, own, kind, inner=inner, head=head, foot=foot)


def _column(*boxes: Box, gap: float = 0.0) -> Box:
    """Boxes one below the other, in the middle; connections meet the first."""
    width = max(box.width for box in boxes)
    parts, y = [], 0.0
    for box in boxes:
        parts.append(((width - box.width) / 2, y, box))
        y += box.height + gap
    return Box(width, y - gap, boxes[0].middle, tuple(parts))


def captioned(box: Box, mark: Mark) -> Box:
    """A box over lines of text, with a clock before the first if a share of a time has passed."""
    lines = [
        (piece, "cf-count cf-forbids" if line.startswith("✗") else "cf-count")
        for line in mark.lines
        for piece in shortened(line, _LETTERS, 3)
    ]
    clock = 0.0 if mark.share is None else _CLOCK
    width = max((text_width(line) + 2 * clock for line, _ in lines), default=0.0)

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        for k, (line, kind) in enumerate(lines):
            middle = y + LINE * (k + 0.5) + 2
            sheet.text(x + width / 2, middle, ((line, kind),), group, "middle")
            if k == 0 and mark.share is not None:
                sheet.clock(x + width / 2 - text_width(line) / 2 - clock / 2, middle, clock / 2 - 3, mark.share, group)

    said = "\n".join(mark.lines)
    caption = Box(width, LINE * len(lines) + 2, 0.0, (), own, f"cf-part {mark.kind}".rstrip())
    return replace(_column(replace(box, kind=f"{box.kind} {mark.kind}".rstrip()), caption), title=said)


def beside(left: Box, connector: Connector, right: Box, count: str = "") -> Box:
    """Two boxes with a connection; rows with connections of the same kind become one row.

    The ``count`` says below the connection how many matches reach its end.
    """
    boxes: list[Box] = []
    counts: list[str] = []
    for box in (left, right):
        same = box.connector == connector
        boxes += [part for _, _, part in box.parts] if same else [box]
        counts += [*(box.counts if same else ()), count]
    counts.pop()
    gap_width = max(_GAP, *(text_width(text) + 12 for text in counts))
    middle = max(box.middle for box in boxes)
    height = middle + max(box.height - box.middle for box in boxes)
    parts, x, gaps = [], 0.0, []
    for box in boxes:
        parts.append((x, middle - box.middle, box))
        x += box.width
        gaps.append(x)
        x += gap_width

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        for gap, text in zip(gaps, counts):
            start, end = (x + gap + 4, y + middle), (x + gap + gap_width - 4, y + middle)
            sheet.line((start, (end[0] - 6, end[1])), "cf-shaft cf-skips" if connector.skips else "cf-shaft", group)
            sheet.head(end, start, group)
            sheet.text(x + gap + gap_width / 2 - 3, y + middle - 11, ((connector.sign, "cf-bold"),), group, "middle")
            if text:
                sheet.text(x + gap + gap_width / 2 - 3, y + middle + 12, ((text, "cf-count"),), group, "middle")

    row = Box(x - gap_width, height, middle, tuple(parts), own, "cf-way", meaning=connector.meaning)
    return replace(row, connector=connector, counts=tuple(counts))


def stacked(upper: Box, word: str, lower: Box) -> Box:
    """Two boxes in a frame, one above the other, with a word between them."""
    width = max(upper.width, lower.width, text_width(word) + 40)

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        half, middle = text_width(word) / 2 + 6, y + LINE / 2 + 4
        for start, end in ((-_PAD, width / 2 - half), (width / 2 + half, width + _PAD)):
            sheet.line(((x + start, middle), (x + end, middle)), "cf-rule", group)
        sheet.text(x + width / 2, middle, ((word, "cf-bold"),), group, "middle")

    frame = framed(_column(upper, Box(width, LINE + 8, 0.0, (), own), lower), ())
    return replace(frame, middle=frame.height / 2)


def forbidden(word: str, refused: Box) -> Box:
    """A box that must not be there, in a frame of warning."""
    return framed(refused, (((word, "cf-forbids"),),), shape="cf-bad")


def excluding(wanted: Box, word: str, refused: Box) -> Box:
    """A box, and below it in a frame of warning a box that must not be there."""
    return framed(_column(wanted, forbidden(word, refused), gap=_PAD), ())


def looped(box: Box, connector: Connector) -> Box:
    """A box with an arrow from its end back to its beginning, with a sign above."""
    side = 14.0
    width, height = max(box.width, text_width(connector.sign) + 24) + 2 * side, box.height + _LOOP
    middle = _LOOP + box.middle
    left = (width - box.width) / 2

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        start, end = (x + left + box.width, y + middle), (x + left, y + middle)
        top = y + LINE
        way_back = (start, (x + width - 3, start[1]), (x + width - 3, top), (x + 3, top), (x + 3, end[1]))
        sheet.line((*way_back, (end[0] - 7, end[1])), "cf-shaft cf-skips" if connector.skips else "cf-shaft", group)
        sheet.head(end, (x + 3, end[1]), group)
        sheet.text(x + width / 2, y + LINE / 2 - 2, ((connector.sign, "cf-bold"),), group, "middle")

    return Box(width, height, middle, ((left, _LOOP, box),), own, "cf-way", meaning=connector.meaning)


def bracketed(box: Box, text: str) -> Box:
    """A box over a bracket with a text."""
    width = max(box.width, text_width(text) + 12)

    def own(sheet: Sheet, x: float, y: float, group: Element) -> None:
        corners = ((x, y + 4), (x, y + 11), (x + width, y + 11), (x + width, y + 4))
        sheet.line(corners, "cf-bracket", group)
        sheet.text(x + width / 2, y + 14 + LINE / 2, ((text, "cf-write"),), group, "middle")

    return _column(box, Box(width, 14 + LINE, 0.0, (), own))


def with_lines(box: Box, head: _Lines, foot: _Lines) -> Box:
    """A box with more lines at head and foot: its own frame grows, or it gets one."""
    if not (box.head or box.foot):
        return framed(box, head, foot)
    shape = "cf-shape cf-event" if box.inner is None else "cf-frame"
    grown = framed(box.inner, (*box.head, *head), (*box.foot, *foot), shape=shape)
    return replace(grown, kind=box.kind)
