"""The picture of a query on the page, as boxes or as an automaton, with the effects of a step on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace

from nicegui import ui

from cerflow.automata.model.diagrams import transducer_diagram
from cerflow.automata.model.transducer import Transducer
from cerflow.drawing.diagram_svg import to_svg

_ZOOM = 1.25
#: Brings what a step has changed to the middle of the picture, without moving the page around it.
_SCROLL = """
const place = getHtmlElement(%d), kinds = ['.cs-taken', '.cs-fired.cf-accepts', '.cs-fired.cf-marks', '.cs-refused'];
const part = kinds.map(kind => place.querySelector(kind)).find(found => found);
if (part) {
  const [inner, outer] = [part.getBoundingClientRect(), place.getBoundingClientRect()];
  const beyond = (start, size) => inner[start] + inner[size] / 2 - outer[start] - outer[size] / 2;
  place.scrollBy(beyond('x', 'width'), beyond('y', 'height'));
}"""


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


def icon_button(name: str, said: str, on_click: Callable[[], object]) -> ui.button:
    """A button with a picture alone, which says what it does to readers of screens, too."""
    return ui.button(icon=name, on_click=on_click).props(f'flat dense round aria-label="{said}" title="{said}"')


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
        self._place.client.run_javascript(_SCROLL % self._place.id)

    def _scale(self, factor: float) -> None:
        if factor != 1:
            self._zoom = factor and (self._zoom or 1.0) * factor
        least = self._width * (0.75 if self._zoom is None else self._zoom)
        most = f"{least}px" if self._zoom else "100%"
        self._place.style(f"--cs-least: {least}px; --cs-most: {most}")
