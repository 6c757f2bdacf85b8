"""A diagram in the requested format, and pictures on pages of HTML."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from cerflow.base.errors import PictureError, UnsupportedQueryError, one_of

if TYPE_CHECKING:
    from cerflow.look.pictures.diagram import Diagram
    from cerflow.look.pictures.svg import Theme

PICTURE_FORMATS = ("dot", "mermaid", "svg")


def picture(diagram: Diagram, format: str, *, title: str = "", theme: Theme = "auto") -> str:
    """The diagram in one of `PICTURE_FORMATS`; raises as `to_svg` does for ``"svg"``."""
    # Much can be drawn, and little is.
    from cerflow.look.pictures.diagram import to_dot, to_mermaid
    from cerflow.look.pictures.diagram_svg import to_svg

    one_of(format, "format", *PICTURE_FORMATS)
    if format == "svg":
        return to_svg(diagram, title=title, theme=theme)
    return (to_dot if format == "dot" else to_mermaid)(diagram).rstrip()


# A page that does not trust a notebook takes styles and SVG out; then the image is shown, and the texts of the SVG are
# hidden. Elsewhere the SVG is shown: unlike an image it is dark or light as the page is, and it has tooltips.
_EITHER = """\
<style>.cf-drawn:has(svg){{display:block!important}}.cf-drawn:has(svg)+img{{display:none}}</style>
<div style="overflow-x:auto">
<div class="cf-drawn" style="display:none;min-width:{least}">{svg}</div>
<img alt="a picture by cerflow" style="min-width:{least};max-width:100%" src="data:image/svg+xml;base64,{encoded}">
</div>"""
#: The least size of a picture on a page; a larger one scrolls.
_LEAST = 0.75


def shown_or_told(draw: Callable[[], str]) -> str:
    """A picture as HTML, also for pages that take SVG out, or a paragraph that says why it cannot be drawn."""
    try:
        svg = draw()
    except (PictureError, UnsupportedQueryError) as error:
        return f"<p>no picture: {escape(str(error).splitlines()[0])}</p>"
    width = re.search(r'<svg[^>]* width="([0-9.]+)', svg)
    least = f"{_LEAST * float(width[1]):.0f}px" if width else "0"
    return _EITHER.format(svg=svg, encoded=b64encode(svg.encode()).decode(), least=least)
