"""Positions of the vertices, arrows and texts of a diagram, computed by Graphviz as a library in this process.

Graphviz gets sizes alone, never a text, so that a layout depends neither on installed fonts nor on odd names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, hypot
from threading import Lock
from typing import Any

from cerflow.base import limits
from cerflow.base.errors import PictureError
from cerflow.look.pictures.diagram import Diagram
from cerflow.look.pictures.svg import Point

#: Width and height in pixels.
Size = tuple[float, float]

#: Graphviz keeps its state in global variables.
_ONE_AT_A_TIME = Lock()
#: The side of the invisible vertex from which the arrow into an initial state comes.
_NOWHERE = 12.0


@dataclass(frozen=True, slots=True)
class Extent:
    """The room that a vertex needs: its size, whether it is round, and above and below it the loops with their texts.

    ``spread`` is the width of loops and texts.
    """

    width: float
    height: float
    round: bool = False
    above: float = 0.0
    below: float = 0.0
    spread: float = 0.0


#: Arrows from one vertex to another along the same curve: the two, and the size of the texts.
Bundle = tuple[int, int, Size]


@dataclass(frozen=True, slots=True)
class Curve:
    """The course of arrows: the control points of cubic curves, and the centre of their texts."""

    points: tuple[Point, ...]
    text: Point | None


#: Centres of vertices, curves of bundles, and curves into initial states: in pixels, y grows downwards.
Layout = tuple[list[Point], list[Curve], list[Curve]]


def laid_out(diagram: Diagram, places: Sequence[Extent], bundles: Sequence[Bundle]) -> Layout:
    """The layout of a diagram, from left to right, with room for each vertex and each bundle of arrows.

    Raises `PictureError` if the diagram is too large, or the layout engine is not installed.
    """
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
    with _ONE_AT_A_TIME:
        graph = AGraph(string=_sizes_only(diagram, places, bundles))
        placed = json.loads(graph.draw(format="json0", prog="dot"))
        graph.close()
    return _read(diagram, places, bundles, placed)


# -- to Graphviz


def _sizes_only(diagram: Diagram, places: Sequence[Extent], bundles: Sequence[Bundle]) -> str:
    many = len(places) + len(bundles) > limits.DRAWN_FINELY
    lines = [
        "digraph {",
        "graph [rankdir=LR, nodesep=0.2, ranksep=0.35];",
        # Otherwise some dense graphs of that size take minutes.
        "graph [nslimit=1, nslimit1=1, mclimit=0.3, splines=line];" if many else "",
        'node [label="", shape=box, fixedsize=true];',
        "edge [dir=none, headclip=false, tailclip=false];",
    ]
    # In this order, so that loops back are found from the initial states on.
    for k in sorted(range(len(places)), key=lambda k: not diagram.vertices[k].begins):
        place = places[k]
        # Graphviz knows no loops; their room is kept on both sides, as arrows point to the middle.
        width, height = max(place.width, place.spread), place.height + 2 * max(place.above, place.below)
        lines.append(f"v{k} [{_inches(width, height)}];")
        if diagram.vertices[k].begins:
            lines.append(f"b{k} [{_inches(_NOWHERE, _NOWHERE)}];")
            lines.append(f"b{k} -> v{k} [id=b{k}, weight=10];")
    for k, (source, target, size) in enumerate(bundles):
        text = f", label=<{_blank(*size)}>" if size[0] else ""
        lines.append(f"v{source} -> v{target} [id=a{k}{text}];")
    return "\n".join([*lines, "}"])


def _inches(width: float, height: float) -> str:
    return f"width={width / 72:.4f}, height={height / 72:.4f}"


def _blank(width: float, height: float) -> str:
    """A label of this size without a text."""
    size = f'FIXEDSIZE="TRUE" WIDTH="{ceil(width)}" HEIGHT="{ceil(height)}"'
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0" {size}><TR><TD></TD></TR></TABLE>'


# -- from Graphviz


def _read(diagram: Diagram, places: Sequence[Extent], bundles: Sequence[Bundle], placed: dict[str, Any]) -> Layout:
    def point(text: str) -> Point:
        x, y = text.split(",")
        return float(x), -float(y)

    centres = {one["name"]: point(one["pos"]) for one in placed["objects"]}
    curves: dict[str, Curve] = {}
    for edge in placed.get("edges", ()):
        text = point(edge["lp"]) if "lp" in edge else None
        curves[edge["id"]] = Curve(tuple(map(point, edge["pos"].split())), text)

    def within(k: int) -> Callable[[Point], bool]:
        (x, y), place = centres[f"v{k}"], places[k]
        if place.round:
            return lambda p: hypot(p[0] - x, p[1] - y) < place.width / 2
        return lambda p: abs(p[0] - x) < place.width / 2 and abs(p[1] - y) < place.height / 2

    def clipped(curve: Curve, source: int | None, target: int) -> Curve:
        points = curve.points if source is None else _left_out(curve.points, within(source))
        return Curve(_left_out(points[::-1], within(target))[::-1], curve.text)

    return (
        [centres[f"v{k}"] for k in range(len(places))],
        [clipped(curves[f"a{k}"], source, target) for k, (source, target, _) in enumerate(bundles)],
        [clipped(curves[f"b{k}"], None, k) for k, vertex in enumerate(diagram.vertices) if vertex.begins],
    )


def _left_out(points: tuple[Point, ...], within: Callable[[Point], bool]) -> tuple[Point, ...]:
    """Cubic curves without the part at their beginning that lies within a vertex."""
    while len(points) > 4 and within(points[3]):
        points = points[3:]
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if within(_rest(points[:4], middle)[0]) else (low, middle)
    return *_rest(points[:4], high), *points[4:]


def _rest(curve: tuple[Point, ...], t: float) -> tuple[Point, ...]:
    """The part of a cubic curve after a share of it (de Casteljau)."""
    found = [curve[-1]]
    while len(curve) > 1:
        curve = tuple((a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])) for a, b in pairwise(curve))
        found.append(curve[-1])
    return tuple(found[::-1])
