"""A diagram in the format that is asked for, and pictures on pages of HTML."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from cerflow.drawing.diagram import Diagram, to_dot, to_mermaid
from cerflow.drawing.diagram_svg import to_svg
from cerflow.drawing.svg import Theme
from cerflow.errors import PictureError, UnsupportedQueryError

__all__ = ["PICTURE_FORMATS", "picture", "shown_or_told"]

PICTURE_FORMATS = ("dot", "mermaid", "svg")


def picture(diagram: Diagram, format: str, *, title: str = "", theme: Theme = "auto") -> str:
    """The diagram in one of `PICTURE_FORMATS`; raises as `to_svg` does for ``"svg"``."""
    match format:
        case "dot":
            return to_dot(diagram).rstrip()
        case "mermaid":
            return to_mermaid(diagram).rstrip()
        case "svg":
            return to_svg(diagram, title=title, theme=theme)
    raise ValueError(f"format must be 'dot', 'mermaid' or 'svg', not {format!r}")


def shown_or_told(draw: Callable[[], str]) -> str:
    """A picture as HTML, or a paragraph that says why it cannot be drawn."""
    try:
        return draw()
    except (PictureError, UnsupportedQueryError) as error:
        return f"<p>no picture: {escape(str(error).splitlines()[0])}</p>"
