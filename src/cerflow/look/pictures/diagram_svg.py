"""A diagram as SVG, which Graphviz draws as a library in this process: states from left to right, guards shortened.

Graphviz gets the sizes of texts alone, so that a picture depends neither on installed fonts nor on odd names. Its
shapes become those of a sheet, by their classes, and the texts are written where it has left room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from threading import Lock
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from cerflow.base import limits
from cerflow.base.errors import PictureError
from cerflow.look.pictures.diagram import Arrow, Diagram, arrows_in_words, plain, with_words
from cerflow.look.pictures.svg import LINE, Point, Sheet, Texts, Theme, shortened, text_width, wrapped

#: The diameter of a state with a short name.
_ROUND = 40
#: Letters of a line on an arrow, and the most lines of one guard; the rest is shown when the pointer rests on it.
_LETTERS, _MOST = 30, 4
#: Letters of a line of a caption.
_CAPTION = 72
_CLASSES = {"guard": "", "labels": "cf-labels", "write": "cf-write"}
#: Fills the room of a text, by which it is found.
_ROOM = "#fefefe"
_Lines = Sequence[Texts]
#: The numbers of two vertices, and whether arrows between them mark events.
_Way = tuple[int, int, bool]
#: Graphviz keeps its state in global variables.
_ONE_AT_A_TIME = Lock()


def to_svg(diagram: Diagram, *, title: str = "", theme: Theme = "auto") -> str:
    """The diagram as a text of SVG that stands alone: no fonts, scripts or references to other files.

    ``theme`` is ``"light"``, ``"dark"``, or ``"auto"``, which follows the page or the system. Raises `PictureError` if
    the diagram is too large or the layout engine is not installed, `ArgumentError` for another theme.
    """
    diagram = with_words(diagram) if diagram.kind == "transducer" else diagram
    of_vertices: list[_Lines] = [
        [[(line, "cf-bold")] for line in shortened(vertex.name, 28, 4)] for vertex in diagram.vertices
    ]
    # Arrows side by side share their way, and their texts stand in a stack.
    ways = [(arrow.source, arrow.target, arrow.marks) for arrow in diagram.arrows]
    of_ways: dict[_Way, _Lines] = {way: [] for way in ways}
    stacked = []
    for arrow, way in zip(diagram.arrows, ways):
        lines = _texts(arrow)
        stacked.append((len(of_ways[way]), lines))
        of_ways[way] = [*of_ways[way], *lines]
    root = _drawn(diagram, of_vertices, of_ways)
    drawn = {str(group.get("id")): group for group in root.iter("g")}
    caption = [(k == 0, line) for one in diagram.caption for k, line in enumerate(wrapped(one, _CAPTION))]
    # Graphviz counts from the lower left corner, with a margin of four pixels.
    width, height = (float(size) - 8 for size in root.attrib["viewBox"].split()[2:])
    right = max([width, *(text_width(line) for _, line in caption)])
    bottom = LINE * (len(caption) + 1) if caption else 0.0
    sheet = Sheet(title or diagram.kind, theme, arrows_in_words(diagram), ((0, -height), (right, bottom)))
    for k, vertex in enumerate(diagram.vertices):
        if vertex.begins:
            _take(sheet, drawn[f"b{k}"], sheet.group("cf-begin"), ())
    for arrow, way, (first, lines) in zip(diagram.arrows, ways, stacked):
        group = sheet.group(_kind(arrow, diagram), "\n".join(plain(line) for line in arrow.lines))
        _take(sheet, drawn[str(way)], group, lines, first, len(of_ways[way]))
    for k, vertex in enumerate(diagram.vertices):
        kind = "cf-vertex cf-end" if vertex.ends else "cf-vertex"
        _take(sheet, drawn[f"v{k}"], sheet.group(f"{kind} {vertex.role}".rstrip(), vertex.name), of_vertices[k])
    for k, (begins, line) in enumerate(caption):
        word, colon, meaning = line.partition(": ") if begins else ("", "", line)
        sheet.text(0, LINE * (k + 1.5), [(word + colon, "cf-bold"), (meaning, "")], sheet.root)
    return str(sheet)


def _kind(arrow: Arrow, diagram: Diagram) -> str:
    """The classes of an arrow: what it does with its event, and its role."""
    kind = "cf-arrow"
    if arrow.source != arrow.target and diagram.vertices[arrow.target].ends:
        kind += " cf-accepts"
    elif arrow.marks:
        kind += " cf-marks"
    elif arrow.source == arrow.target:
        kind += " cf-faint"
    return f"{kind} {arrow.role}".rstrip()


def _texts(arrow: Arrow) -> list[Texts]:
    """The lines of text on an arrow; guard and labels stand on one line if that is short."""
    found: list[Texts] = []
    for line in arrow.lines:
        if len(plain(line)) <= _LETTERS:
            found.append([(piece.text, _CLASSES[piece.role]) for piece in line])
            continue
        sign = ""
        for piece in line:
            if len(piece.text.strip()) == 1 and piece.role == "guard" and piece is not line[0]:
                sign = f"{piece.text.strip()} "  # stands before what follows
                continue
            texts = shortened(piece.text.strip(), _LETTERS, _MOST)
            found += [[(sign if n == 0 else "", ""), (text, _CLASSES[piece.role])] for n, text in enumerate(texts)]
            sign = ""
    return found


# -- to Graphviz and back


def _drawn(diagram: Diagram, of_vertices: Sequence[_Lines], of_ways: Mapping[_Way, _Lines]) -> Element:
    """What Graphviz draws, with room for texts: groups of vertices (v0), ways, and ways into states (b0)."""
    if len(diagram.vertices) + len(diagram.arrows) > limits.DRAWN_PARTS:
        raise PictureError(
            f"a picture of {len(diagram.vertices)} states and {len(diagram.arrows)} transitions is too large to read: "
            f"together at most {limits.DRAWN_PARTS} are drawn; the formats 'dot' and 'mermaid' have no limit"
        )
    try:
        from pygraphviz import AGraph
    except ImportError:
        raise PictureError(
            "pictures of automata need a layout engine that is not installed; run pip install 'cerflow[pictures]', "
            "or use the format 'dot' or 'mermaid'"
        ) from None
    # Graphviz does not look whether texts of loops lie beside those of other arrows.
    beyond = [_size(lines)[0] - _ROUND for (source, target, _), lines in of_ways.items() if source == target and lines]
    graph = [
        f"graph [rankdir=LR, nodesep=0.2, ranksep={max([25, *beyond]) / 72:.2f}];",
        "edge [arrowsize=0.7];",
        'node [fixedsize=true, style=rounded, label=""];',
    ]
    if len(diagram.vertices) + len(diagram.arrows) > limits.DRAWN_FINELY:
        # Otherwise some dense graphs of that size take minutes.
        graph.append("graph [nslimit=1, nslimit1=1, mclimit=0.3, splines=line];")
    # In this order, so that loops back are found from the initial states on.
    for k in sorted(range(len(diagram.vertices)), key=lambda k: not diagram.vertices[k].begins):
        vertex, (width, height) = diagram.vertices[k], _size(of_vertices[k])
        shape, width, height = "box", width + 14, max(_ROUND, height + 12)
        if len(of_vertices[k]) == 1 and len(vertex.name) <= 4 and not vertex.box:
            shape, width, height = "circle", _ROUND, _ROUND
        size = f"width={width / 72:.4f}, height={height / 72:.4f}, peripheries={1 + vertex.ends}"
        graph.append(f"v{k} [id=v{k}, shape={shape}, {size}, label={_room(of_vertices[k])}];")
        if vertex.begins:
            graph.append(f"b{k} [style=invis, width=0.1, height=0.1]; b{k} -> v{k} [id=b{k}, weight=10];")
    for way, lines in of_ways.items():
        # Loops that mark events are below the others.
        below = ", headport=s, tailport=s" if way[0] == way[1] and way[2] else ""
        graph.append(f'v{way[0]} -> v{way[1]} [id="{way}", label={_room(lines)}{below}];')
    with _ONE_AT_A_TIME:
        whole = AGraph(string="\n".join(["digraph {", *graph, "}"]))
        text = whole.draw(format="svg", prog="dot").decode()
        whole.close()
    return ElementTree.fromstring(text.replace(' xmlns="http://www.w3.org/2000/svg"', ""))


def _size(lines: _Lines) -> tuple[int, int]:
    """The size of lines of text in pixels."""
    return ceil(max(sum(text_width(text) for text, _ in line) for line in lines)) + 10, ceil(LINE) * len(lines) + 4


def _room(lines: _Lines) -> str:
    """A label of the size of a text, without a text."""
    if not lines:
        return '""'
    width, height = _size(lines)
    size = f'FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}" BGCOLOR="{_ROOM}"'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0" {size}><TR><TD></TD></TR></TABLE>>'


def _take(sheet: Sheet, drawn: Element, into: Element, lines: _Lines, first: int = 0, whole: int | None = None) -> None:
    """Take the shapes of a group that Graphviz has drawn, and write lines of text into their room.

    There is room for a ``whole`` of lines, of which these begin with the ``first``.
    """
    room: list[Point] = []
    framed = drawn.get("class") == "node"
    # The inner of two frames stands first.
    for part in reversed(drawn):
        if part.get("fill") == _ROOM:
            numbers = map(float, re.findall(r"-?\d+(?:\.\d+)?", part.attrib["points"]))
            room = list(zip(numbers, numbers))
        elif part.tag == "ellipse":
            x, y, radius = (float(part.attrib[name]) for name in ("cx", "cy", "rx"))
            sheet.circle(x, y, radius, "cf-shape", into)
        elif part.tag in ("path", "polygon"):
            kind = "cf-shape" if framed else "cf-shaft" if part.tag == "path" else "cf-head"
            course = "d" if part.tag == "path" else "points"
            ElementTree.SubElement(into, part.tag, {course: part.attrib[course], "class": kind})
    for k, line in enumerate(lines, first):
        (left, bottom), (right, top) = room[0], room[2]
        y = (bottom + top) / 2 + LINE * (k - ((whole or len(lines)) - 1) / 2)
        sheet.text((left + right) / 2, y, line, into, "middle")
