"""The pictures of the page: the query as boxes or as an automaton with the effects of a step, and the stream."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from nicegui import ui

from cerflow.automata.model.diagrams import transducer_diagram
from cerflow.automata.model.transducer import Transducer
from cerflow.look.pictures.diagram_svg import to_svg
from cerflow.look.pictures.svg import LINE, Sheet, text_width
from cerflow.studio.panels.work import icon_button
from cerflow.studio.runs import Outcome

_ZOOM = 1.25
#: Width of the stream, its lanes that are drawn, and colours, which the style of the page has.
_WIDTH, _LANES, _COLOURS = 300, 8, 6


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


def strip_svg(outcome: Outcome) -> str:
    """The positions of the events of matches in the stream, a lane for each label; empty if there are none."""
    shown, size = [*outcome.positions.items()][:_LANES], outcome.events
    if not shown:
        return ""
    listed = outcome.table.num_rows
    some = "" if outcome.count == listed else f" of the first {listed:,} matches"
    names = [f"{label}  {len(places):,}" for label, places in shown]
    left = max(map(text_width, names)) + 12
    said = "; ".join(f"{label}: {len(p):,} events, from {min(p):,} to {max(p):,}" for label, p in shown)
    corners = (0, -LINE / 2), (left + _WIDTH, LINE * (len(shown) - 0.5))
    sheet = Sheet(f"Events{some} by label, in the order of the stream", "auto", said, corners)
    for k, (name, (_, places)) in enumerate(zip(names, shown)):
        middle = k * LINE
        group = sheet.group(f"cs-lane{k % _COLOURS}", name)
        sheet.text(0, middle, ((name, ""),), group)
        sheet.line(((left, middle), (left + _WIDTH, middle)), "cf-rule", group)
        for column in sorted({place * (_WIDTH - 2) // size for place in places}):
            sheet.rect(left + column, middle - 6, 2, 12, "cs-event", group, 0)
    return str(sheet)


class Picture:
    """A picture that can be zoomed and scrolled; at first it is shown at three quarters of its size or larger."""

    def __init__(self) -> None:
        self._width = 0
        self._zoom: float | None = None

    def buttons(self) -> None:
        """Make the buttons, at this place."""
        icon_button("zoom_out", "Zoom out", lambda: self._scale(1 / _ZOOM))
        icon_button("zoom_in", "Zoom in", lambda: self._scale(_ZOOM))
        icon_button("fit_screen", "Fit the picture in", lambda: self._scale(0))

    def place(self) -> None:
        """Make the place of the picture, which the keyboard scrolls, too."""
        self._place = ui.html("", sanitize=False).classes("w-full cs-picture")
        self._place.props('tabindex=0 role=group aria-label="Picture of the query"')

    def show(self, svg: str) -> None:
        """Show a picture, with its changes in sight; an empty text shows none."""
        width = re.search(r' width="(\d+)', svg)
        self._width = int(width[1]) if width else 0
        self._place.set_content(svg)
        self._scale(1)
        self._place.client.run_javascript(f"studio.centre({self._place.id})")

    def _scale(self, factor: float) -> None:
        if factor != 1:
            self._zoom = factor and (self._zoom or 1.0) * factor
        least = self._width * (0.75 if self._zoom is None else self._zoom)
        most = f"{least}px" if self._zoom else "100%"
        self._place.style(f"--cs-least: {least}px; --cs-most: {most}")
