"""The automaton of a query, with the effects of an event in colour."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from nicegui import ui

from cerflow.automata.model.diagrams import transducer_diagram
from cerflow.automata.model.transducer import Transducer
from cerflow.drawing.diagram_svg import to_svg


def automaton_svg(
    transducer: Transducer, *, alive: Collection[int] = (), fired: Collection[int] = (), detected: Collection[int] = ()
) -> str:
    """The automaton as SVG; states that are ``alive`` or ``detected`` and transitions that ``fired`` stand out.

    Raises `PictureError` for an automaton that is too large, and if the layout engine is not installed.
    """
    diagram = transducer_diagram(transducer)
    roles = dict.fromkeys(alive, "cs-alive") | dict.fromkeys(detected, "cs-detected")
    vertices = [replace(vertex, role=roles.get(k, "")) for k, vertex in enumerate(diagram.vertices)]
    arrows = [replace(arrow, role="cs-fired" if k in fired else "") for k, arrow in enumerate(diagram.arrows)]
    return to_svg(replace(diagram, vertices=vertices, arrows=arrows), title="The automaton of the query")


def show_picture(svg: str) -> None:
    """Show a picture at three quarters of its size or larger; if it is wider than its place, that can be scrolled."""
    width = re.search(r' width="(\d+)', svg)
    assert width is not None
    least = int(width[1]) * 3 // 4
    # The keyboard scrolls it, too.
    place = ui.html(svg, sanitize=False).classes("w-full cs-picture").style(f"--cs-least: {least}px")
    place.props('tabindex=0 role=group aria-label="Picture"')
