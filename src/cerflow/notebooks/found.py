"""The result of a cell: the query, its matches, and how they are shown."""

from __future__ import annotations

from cerflow import limits
from cerflow.drawing.targets import shown_or_told
from cerflow.engine.matches.matches import Matches
from cerflow.errors import CerflowError, counted
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.viewing.opening import frame_of


class Found:
    """A query with its matches: ``matches`` are all of them, though the first ``limit`` are shown."""

    def __init__(self, query: Query | Program, matches: Matches, limit: int, *, pictures: bool = True) -> None:
        self.query = query
        # The events are recognised here and once, while progress is shown; what follows reads what was found.
        self.matches = matches.held()
        self._table = self.matches.first_as_html(limit)
        self._rows = self.matches.rows()
        self._page = self._drawn(limit) if pictures else None

    def _drawn(self, limit: int) -> str | None:
        """The page of the shown matches, unless they have no positions or events."""
        if not self.matches:
            return None
        try:
            return self.matches.to_html(limit=limit)
        except CerflowError:
            return None

    def __repr__(self) -> str:
        return f"<{counted(self._rows, 'match', 'matches')} of {self.query!r}>"

    def _repr_html_(self) -> str:
        if self._page is None:
            return self._table
        query = self.query
        drawn = shown_or_told(query.to_svg if isinstance(query, Program) else lambda: query.to_svg("boxes"))
        if len(self._page) > limits.NOTEBOOK_PICTURE:
            size = f"{len(self._page) / 1e6:.0f} MB"
            return f"{drawn}\n{self._table}\n<p>A picture of {size} is left out; show() of the matches shows it.</p>"
        return f"{drawn}\n{self._table}\n{frame_of(self._page, 480)}"
