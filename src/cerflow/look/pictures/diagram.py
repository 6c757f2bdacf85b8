"""A diagram of states and arrows, and its text for Graphviz and Mermaid."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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


def reading_diagram(kind: str, reads: Mapping[str, Sequence[str]], inner: Collection[str] = ()) -> Diagram:
    """A graph of queries, by name, and of the streams that each reads.

    The matches of those that are ``inner`` are streams themselves; the others have a double frame.
    """
    inputs = sorted({stream for streams in reads.values() for stream in streams}.difference(inner))
    names = [*inputs, *reads]
    vertices = [*map(Vertex, inputs), *(Vertex(name, ends=name not in inner, box=True) for name in reads)]
    pairs = [(stream, k) for k, streams in enumerate(reads.values(), len(inputs)) for stream in streams]
    return Diagram(kind, "n", vertices, [Arrow(names.index(stream), k) for stream, k in pairs])


def plain(line: Iterable[Piece]) -> str:
    """The text of a line."""
    return "".join(piece.text for piece in line)


def one_line(text: str) -> str:
    """Line breaks and other control characters, which strings of a query may contain, as escape sequences."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


# -- in words

#: Signs of automata that only the papers explain, in words; and parts of guards that say nothing to people.
_ALWAYS = ("NOT a deadline has passed", "NOT no event")
_WORDS = {"TRUE": "any event", "∅": "left out", "type()": "its type", "hidden()": "not reported", "•": "in the match"}
#: What a register keeps of the values written.
KEPT = {
    "value": "one value",
    "min": "the least so far",
    "max": "the greatest so far",
    "same": "one value while all are equal",
    "set": "all distinct values",
}
#: Arrows that are told of.
_TOLD = 60


def with_words(diagram: Diagram) -> Diagram:
    """The diagram of an automaton as it is drawn for people, with words in place of signs."""
    arrows = [
        replace(arrow, lines=tuple(tuple(_spelled(piece) for piece in line) for line in arrow.lines))
        for arrow in diagram.arrows
    ]
    caption = []
    for line in diagram.caption:
        text, _, keeps = line.removesuffix(")").rpartition(" (")
        words = "" if keeps == "value" else f", {KEPT.get(keeps)}"
        caption.append(text + words if keeps in KEPT else line)
    return replace(diagram, arrows=arrows, caption=caption)


def _spelled(piece: Piece) -> Piece:
    text = piece.text
    if piece.role == "labels":
        names = [_WORDS.get(name, name) for name in text.removeprefix("{").removesuffix("}").split(", ")]
        text = "{" + ", ".join(names) + "}" if len(names) > 1 or f"{{{names[0]}}}" == text else names[0]
    elif piece.role == "write":
        text = re.sub(r"^(↓ r\d+ :=) measure of (.*)$", r"\1 where \2 begin", text)
    elif (parts := text.split(" ∧ ")) and not {*_ALWAYS}.isdisjoint(parts):
        text = " ∧ ".join(part for part in parts if part not in _ALWAYS) or "whatever comes next"
    else:
        text = _WORDS.get(text, text)
    return replace(piece, text=text)


def arrows_in_words(diagram: Diagram) -> str:
    """What a diagram shows, for who does not see it: where it begins, each arrow, and where it ends."""
    names = [one_line(vertex.name) for vertex in diagram.vertices]
    said = [
        f"from {names[arrow.source]} to {names[arrow.target]}" + "".join(f": {plain(line)}" for line in arrow.lines)
        for arrow in diagram.arrows[:_TOLD]
    ]
    if len(diagram.arrows) > _TOLD:
        said.append(f"and {len(diagram.arrows) - _TOLD} more arrows")
    for word, chosen in (("begins at", "begins"), ("ends at", "ends")):
        found = [name for name, vertex in zip(names, diagram.vertices) if getattr(vertex, chosen)]
        if found:
            said.insert(0 if chosen == "begins" else len(said), f"{word} {', '.join(found)}")
    return "; ".join([*(said or [", ".join(names)]), *diagram.caption])


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
        times = 2 - vertex.box + vertex.ends
        left, right = (side * times for side in ("[]" if vertex.box else "()"))
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
