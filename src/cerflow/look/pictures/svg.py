"""Sheets of SVG: elements with positions, texts measured without fonts, colours for light and dark pages.

A picture refers to nothing outside itself. Its identifiers follow from its words, so pictures can share a page.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from math import ceil, cos, floor, hypot, sin, tau
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from xml.etree import ElementTree
from zlib import crc32

from cerflow.base.errors import one_of
from cerflow.look.pictures.diagram import one_line

Theme = Literal["auto", "light", "dark"]
Anchor = Literal["start", "middle"]
Point = tuple[float, float]
#: Texts with their classes, which may be empty.
Texts = Sequence[tuple[str, str]]
_Into: TypeAlias = ElementTree.Element

#: Height of a line of text in pixels.
LINE = 16.0
#: Width of a letter of the monospaced fonts at 12 pixels, rounded up.
_LETTER = 7.3
#: Free space around a picture.
_MARGIN = 16
#: A space at which no line ends.
_UNBROKEN = "\u00a0"

#: The colours of light and of dark pages, when each is shown, and what is drawn in them.
_STYLE = Path(__file__).with_name("picture.css").read_text("utf-8").strip()


def text_width(text: str) -> float:
    """The width of a text in pixels; letters of East Asia count twice, accents that join a letter not at all."""
    cells = sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in one_line(text)
    )
    return cells * _LETTER


def wrapped(text: str, letters: int) -> list[str]:
    """The text in lines of at most this many letters, broken before ∧, AND, OR and the words of CASE where possible."""
    parts = re.split(r" (?=(?:∧|AND|OR|WHEN|THEN|ELSE) )", one_line(text))
    # No line ends at a space that is not broken at.
    kept = " ".join(part.replace(" ", _UNBROKEN) if len(part) <= letters else part for part in parts)
    lines = textwrap.wrap(kept, letters, break_on_hyphens=False) or [""]
    return [line.replace(_UNBROKEN, " ") for line in lines]


def shortened(text: str, letters: int, most: int) -> list[str]:
    """The text in at most this many lines, with an ellipsis where more is left out."""
    lines = wrapped(text, letters)
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: letters - 1] + "…"]
    return lines


class Sheet:
    """An SVG picture under construction: elements have places in pixels.

    ``title`` is its name, ``said`` tells readers of screens what it shows, and all lies between the corners ``extent``,
    its upper left one and its lower right one. Raises `ArgumentError` for a theme that does not exist.
    """

    def __init__(self, title: str, theme: Theme, said: str, extent: tuple[Point, Point]) -> None:
        one_of(theme, "theme", *get_args(Theme))
        told = {"title": one_line(title), "desc": one_line(said or title)}
        kind = "cf-picture" if theme == "auto" else f"cf-picture cf-{theme}"
        name = f"cf-{crc32(repr(told).encode()):x}"
        names = {"aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc"}
        self.root = ElementTree.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", "class": kind, "role": "img", **names}
        )
        for tag, text in told.items():
            ElementTree.SubElement(self.root, tag, {"id": f"{name}-{tag}"}).text = text
        ElementTree.SubElement(self.root, "style").text = _STYLE
        (x, y), (right, bottom) = extent
        left, top = floor(x) - _MARGIN, floor(y) - _MARGIN
        size = {"width": str(ceil(right) - left + _MARGIN), "height": str(ceil(bottom) - top + _MARGIN)}
        self.root.attrib |= {"viewBox": f"{left} {top} {size['width']} {size['height']}", **size}
        paper = {"class": "cf-paper", "rx": "8", "x": str(left), "y": str(top), **size}
        ElementTree.SubElement(self.root, "rect", paper)

    def group(self, kind: str, title: str = "") -> ElementTree.Element:
        """A group of elements; ``title`` is shown when the pointer rests on it."""
        group = ElementTree.SubElement(self.root, "g", {"class": kind})
        if title:
            ElementTree.SubElement(group, "title").text = "\n".join(map(one_line, title.split("\n")))
        return group

    def rect(self, x: float, y: float, width: float, height: float, kind: str, into: _Into, radius: float = 6) -> None:
        """A rectangle with round corners."""
        place = {"x": _n(x), "y": _n(y), "width": _n(width), "height": _n(height), "rx": _n(radius)}
        ElementTree.SubElement(into, "rect", {**place, "class": kind})

    def circle(self, x: float, y: float, radius: float, kind: str, into: _Into) -> None:
        """A circle around a point."""
        ElementTree.SubElement(into, "circle", {"cx": _n(x), "cy": _n(y), "r": _n(radius), "class": kind})

    def clock(self, x: float, y: float, radius: float, share: float, into: _Into) -> None:
        """A clock around a point, filled as far as a share of the time has passed."""
        self.circle(x, y, radius, "cf-clock", into)
        angle = min(share, 0.999) * tau
        end, far = (x + radius * sin(angle), y - radius * cos(angle)), int(share > 0.5)
        edge = f"A{_n(radius)} {_n(radius)} 0 {far} 1 {_points([end])}"
        path = f"M{_points([(x, y)])} L{_points([(x, y - radius)])} {edge}Z"
        ElementTree.SubElement(into, "path", {"d": path, "class": "cf-passed"})

    def line(self, points: Sequence[Point], kind: str, into: _Into) -> None:
        """Straight lines from point to point."""
        ElementTree.SubElement(into, "path", {"d": f"M{_points(points)}", "class": kind})

    def head(self, tip: Point, behind: Point, into: _Into) -> None:
        """The head of an arrow that comes from the point ``behind``."""
        dx, dy = tip[0] - behind[0], tip[1] - behind[1]
        length = hypot(dx, dy) or 1.0
        dx, dy = dx / length, dy / length
        (x, y), long, wide = tip, 8.0, 3.6
        left = (x - long * dx + wide * dy, y - long * dy - wide * dx)
        right = (x - long * dx - wide * dy, y - long * dy + wide * dx)
        ElementTree.SubElement(into, "polygon", {"points": _points((tip, left, right)), "class": "cf-head"})

    def text(self, x: float, y: float, pieces: Texts, into: _Into, anchor: Anchor = "start") -> None:
        """A line of texts, each with a class of its own or none; its middle is at the height y."""
        place = {"x": _n(x), "y": _n(y + 4)}
        if anchor != "start":
            place["text-anchor"] = anchor
        element = ElementTree.SubElement(into, "text", place)
        for text, kind in pieces:
            if text:
                ElementTree.SubElement(element, "tspan", {"class": kind} if kind else {}).text = one_line(text)

    def __str__(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode")


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
