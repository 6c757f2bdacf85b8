"""A diagram as SVG: states from left to right, guards shortened, the arrows that complete a match set off."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from cerflow.look.pictures.diagram import Arrow, Diagram, Vertex, arrows_in_words, plain, with_words
from cerflow.look.pictures.layout import Curve, Extent, Size, laid_out
from cerflow.look.pictures.svg import LINE, Sheet, Theme, shortened, text_width, wrapped

_RADIUS = 20.0
#: Height of a loop beyond its state.
_LOOP = 24.0
#: Letters of a line on an arrow, and lines of one guard; the rest is shown when the pointer rests on it.
_LETTERS, _LINES = 30, 4
#: Letters of a line of a caption.
_CAPTION = 72

_CLASSES = {"guard": "", "labels": "cf-labels", "write": "cf-write"}

#: Lines of texts with their classes.
_Shown = list[list[tuple[str, str]]]


def to_svg(diagram: Diagram, *, title: str = "", theme: Theme = "auto") -> str:
    """The diagram as a text of SVG that stands alone: no fonts, scripts or references to other files.

    ``theme`` is ``"light"``, ``"dark"``, or ``"auto"``, which follows the page or the system. Raises `PictureError` if
    the diagram is too large or the layout engine is not installed, `ArgumentError` for another theme.
    """
    return str(_Drawing(with_words(diagram) if diagram.kind == "transducer" else diagram, title, theme).sheet)


class _Drawing:
    """A picture under construction."""

    def __init__(self, diagram: Diagram, title: str, theme: Theme) -> None:
        self.diagram = diagram
        self.texts = [_texts(arrow) for arrow in diagram.arrows]
        # Arrows side by side are bundled, those that mark events apart. Of loops, these are below their vertex.
        self.loops: dict[tuple[int, bool], list[int]] = {}
        bundled: dict[tuple[int, int, bool], list[int]] = {}
        for k, arrow in enumerate(diagram.arrows):
            if arrow.source == arrow.target:
                self.loops.setdefault((arrow.source, arrow.marks), []).append(k)
            else:
                bundled.setdefault((arrow.source, arrow.target, arrow.marks), []).append(k)
        bundles = [(source, target, self._room(arrows)) for (source, target, _), arrows in bundled.items()]
        self.places = [self._place(k) for k in range(len(diagram.vertices))]
        centres, curves, begins = laid_out(diagram, self.places, bundles)
        self.sheet = Sheet(title or diagram.kind, theme, arrows_in_words(diagram))
        for curve in begins:
            self._shaft(curve, self.sheet.group("cf-begin"))
        for arrows, curve in zip(bundled.values(), curves):
            self._bundle(arrows, curve)
        for k, centre in enumerate(centres):
            self._vertex(k, *centre)
        self._caption()

    def _caption(self) -> None:
        left, y = self.sheet.left, self.sheet.bottom + LINE
        for one in self.diagram.caption:
            for k, line in enumerate(wrapped(one, _CAPTION)):
                name, colon, meaning = line.partition(": ") if k == 0 else ("", "", line)
                pieces = [(name + colon, "cf-bold"), (meaning, "")]
                self.sheet.text(left, y + LINE / 2, pieces, self.sheet.root)
                y += LINE

    # -- vertices

    def _place(self, k: int) -> Extent:
        vertex = self.diagram.vertices[k]
        lines = _names(vertex)
        round = len(lines) == 1 and len(lines[0]) <= 4 and not vertex.box
        width = height = 2 * _RADIUS
        if not round:
            width, height = max(map(text_width, lines)) + 24, max(height, LINE * len(lines) + 16)
        above, below = (self._loop_room(k, marks) for marks in (False, True))
        return Extent(width, height, round, above[1], below[1], max(above[0], below[0]))

    def _loop_room(self, vertex: int, marks: bool) -> Size:
        loops = self.loops.get((vertex, marks), [])
        width, height = self._room(loops)
        return (max(2 * _RADIUS, width), _LOOP + height) if loops else (0.0, 0.0)

    def _room(self, arrows: list[int]) -> Size:
        """The size of the texts of arrows in a stack."""
        rooms = [_room(self.texts[k]) for k in arrows]
        return max((width for width, _ in rooms), default=0.0), sum(height for _, height in rooms)

    def _vertex(self, k: int, x: float, y: float) -> None:
        vertex, place, sheet = self.diagram.vertices[k], self.places[k], self.sheet
        for marks in (False, True):
            self._draw_loops(k, marks, x, y)
        kind = "cf-vertex cf-end" if vertex.ends else "cf-vertex"
        group = sheet.group(f"{kind} {vertex.role}".rstrip(), vertex.name)
        for inset in (0, 4) if vertex.ends else (0,):
            if place.round:
                sheet.circle(x, y, _RADIUS - inset, "cf-shape", group)
                continue
            left, top = x - place.width / 2 + inset, y - place.height / 2 + inset
            size = place.width - 2 * inset, place.height - 2 * inset
            sheet.rect(left, top, *size, "cf-shape", group, (6 if vertex.box else _RADIUS) - inset)
        _stacked(sheet, x, y, [[(line, "cf-bold")] for line in _names(vertex)], group)

    # -- arrows

    def _group(self, k: int) -> Element:
        arrow = self.diagram.arrows[k]
        kind = "cf-arrow"
        if arrow.source != arrow.target and self.diagram.vertices[arrow.target].ends:
            kind += " cf-accepts"
        elif arrow.marks:
            kind += " cf-marks"
        elif arrow.source == arrow.target:
            kind += " cf-faint"
        return self.sheet.group(f"{kind} {arrow.role}".rstrip(), "\n".join(plain(line) for line in arrow.lines))

    def _bundle(self, arrows: list[int], curve: Curve) -> None:
        drawn = [self._group(k) for k in arrows]
        for group in drawn:
            self._shaft(curve, group)
        if curve.text is not None:
            x, y = curve.text
            self._stack(arrows, drawn, x, y - self._room(arrows)[1] / 2, 1)

    def _stack(self, arrows: list[int], groups: list[Element], x: float, y: float, direction: int) -> None:
        """The texts of arrows one after another, from a height on downwards (1) or upwards (-1)."""
        for k, group in zip(arrows, groups):
            height = _room(self.texts[k])[1]
            _stacked(self.sheet, x, y + direction * height / 2, self.texts[k], group)
            y += direction * height

    def _shaft(self, curve: Curve, group: Element) -> None:
        self.sheet.curve(curve.points, "cf-shaft", group)
        self.sheet.head(curve.points[-1], curve.points[-2], group)

    def _draw_loops(self, vertex: int, marks: bool, x: float, y: float) -> None:
        """Loops of one side share their curve, and their texts stand in a stack."""
        place, down = self.places[vertex], 1 if marks else -1
        half = min(11.0, place.width / 2 - 4)
        edge = (place.width / 2) * 0.83 if place.round else place.height / 2
        near, far = y + down * edge, y + down * (place.height / 2 + _LOOP - 2)
        loops = self.loops.get((vertex, marks), [])
        drawn = [self._group(k) for k in loops]
        for group in drawn:
            left, right = x - half, x + half
            bend = (left - 6, far), (right + 6, far)
            self.sheet.curve(((left, near), *bend, (right + 1.5, near + down * 7)), "cf-shaft", group)
            self.sheet.head((right, near), (right + 2, near + down * 10), group)
        self._stack(loops, drawn, x, y + down * (place.height / 2 + _LOOP), down)


def _names(vertex: Vertex) -> list[str]:
    return shortened(vertex.name, 28, 4)


def _texts(arrow: Arrow) -> _Shown:
    """The lines of text on an arrow; guard and labels stand on one line if that is short."""
    found: _Shown = []
    for line in arrow.lines:
        if len(plain(line)) <= _LETTERS:
            found.append([(piece.text, _CLASSES[piece.role]) for piece in line])
            continue
        sign = ""
        for piece in line:
            if len(piece.text.strip()) == 1 and piece.role == "guard" and piece is not line[0]:
                sign = f"{piece.text.strip()} "  # stands before what follows
                continue
            texts = shortened(piece.text.strip(), _LETTERS, _LINES)
            found += [[(sign if n == 0 else "", ""), (text, _CLASSES[piece.role])] for n, text in enumerate(texts)]
            sign = ""
    return found


def _room(lines: _Shown) -> Size:
    if not lines:
        return 0.0, 0.0
    return max(sum(text_width(text) for text, _ in line) for line in lines) + 10, LINE * len(lines) + 4


def _stacked(sheet: Sheet, x: float, y: float, lines: _Shown, group: Element) -> None:
    """Lines of text around a point."""
    for k, line in enumerate(lines):
        sheet.text(x, y + LINE * (k - (len(lines) - 1) / 2), line, group, "middle")
