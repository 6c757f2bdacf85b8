"""Automata that draw themselves, and write themselves as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cerflow.drawing.svg import Theme
from cerflow.drawing.targets import shown_or_told

if TYPE_CHECKING:
    from cerflow.papers.model.srt import Automaton

__all__ = ["Drawable"]


class Drawable:
    """The part of all automata that shows and writes them."""

    def to_json(self) -> str:
        """The automaton as JSON, which `from_json` reads; see there."""
        from cerflow.papers.translations.formulas import to_json  # it knows every kind of automaton

        return to_json(cast("Automaton", self))

    def to_svg(self, *, theme: Theme = "auto") -> str:
        """The automaton as SVG; ``theme`` and errors are those of `cerflow.Query.to_svg`."""
        from cerflow.papers.model.pictures import to_svg  # it knows every kind of automaton

        return to_svg(cast("Automaton", self), theme=theme)

    def _repr_html_(self) -> str:
        return shown_or_told(self.to_svg)
