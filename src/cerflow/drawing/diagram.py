"""A diagram of states and arrows, and its text for Graphviz and Mermaid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

#: Whether a piece of text belongs to the guard, the labels or a write of an arrow.
Role = Literal["guard", "labels", "write"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text on an arrow."""

    text: str
    role: Role = "guard"


Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Vertex:
    """A state, in a circle, or a thing in a box. ``role`` is a class of its element of SVG, for the page around it."""

    name: str
    begins: bool = False
    ends: bool = False
    box: bool = False
    role: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two vertices, by their numbers; ``role`` as for `Vertex`.

    ``marks`` says that events on it are part of a match.
    """

    source: int
    target: int
    lines: tuple[Line, ...] = ()
    marks: bool = False
    role: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph to draw: ``kind`` is its name in Graphviz's language, ``prefix`` the letter before numbers of vertices.

    ``caption`` are the lines below.
    """

    kind: str
    prefix: str
    vertices: Sequence[Vertex]
    arrows: Sequence[Arrow]
    caption: Sequence[str] = ()


def plain(line: Iterable[Piece]) -> str:
    """The text of a line."""
    return "".join(piece.text for piece in line)


def one_line(text: str) -> str:
    """Line breaks and other control characters, which strings of a query may contain, as escape sequences."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


# -- Graphviz


def to_dot(diagram: Diagram) -> str:
    """The diagram in the language of Graphviz: initial states have an arrow from nowhere, final ones two circles."""
    p = diagram.prefix
    lines = [f"digraph {diagram.kind} {{", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica"];']
    lines.append('  edge [fontname="Helvetica", fontsize=10];')
    if diagram.caption:
        text = "".join(f"{_dot_escape(line)}\\l" for line in diagram.caption)
        lines.append(f'  label="{text}"; labeljust=l; fontname="Helvetica"; fontsize=10;')
    for k, vertex in enumerate(diagram.vertices):
        shape = ", shape=box" if vertex.box else ""
        if vertex.ends:
            shape += ", peripheries=2" if vertex.box else ", shape=doublecircle"
        lines.append(f'  {p}{k} [label="{_dot_escape(vertex.name)}"{shape}];')
    for k, vertex in enumerate(diagram.vertices):
        if vertex.begins:
            lines += [f'  begin{k} [shape=point, label=""];', f"  begin{k} -> {p}{k};"]
    for arrow in diagram.arrows:
        text = "\\n".join(_dot_escape(plain(line)) for line in arrow.lines)
        label = f' [label="{text}"]' if text else ""
        lines.append(f"  {p}{arrow.source} -> {p}{arrow.target}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_escape(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


# -- Mermaid


def to_mermaid(diagram: Diagram) -> str:
    """The diagram as a Mermaid flow chart, which Markdown viewers draw; notation as in `to_dot`."""
    p = diagram.prefix
    lines = ["flowchart LR"]
    for k, vertex in enumerate(diagram.vertices):
        left, right = {
            (False, False): ("((", "))"),
            (False, True): ("(((", ")))"),
            (True, False): ("[", "]"),
            (True, True): ("[[", "]]"),
        }[vertex.box, vertex.ends]
        lines.append(f'  {p}{k}{left}"{_mermaid_escape(vertex.name)}"{right}')
    for k, vertex in enumerate(diagram.vertices):
        if vertex.begins:
            lines += [f'  begin{k}[" "] --> {p}{k}', f"  style begin{k} fill:none,stroke:none"]
    for arrow in diagram.arrows:
        text = "<br/>".join(_mermaid_escape(plain(line)) for line in arrow.lines)
        shaft = f'-- "{text}" -->' if text else "-->"
        lines.append(f"  {p}{arrow.source} {shaft} {p}{arrow.target}")
    for k, line in enumerate(diagram.caption):
        lines.append(f'  note{k}["{_mermaid_escape(line)}"]')
        lines.append(f"  style note{k} fill:none,stroke:none")
    return "\n".join(lines) + "\n"


#: Characters with a special meaning to Mermaid or Markdown inside a label.
_MERMAID = {ord(c): f"#{ord(c)};" for c in '"#&<>`\\;'}


def _mermaid_escape(text: str) -> str:
    return one_line(text).translate(_MERMAID)
