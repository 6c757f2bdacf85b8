"""Why some events are not a match."""

from __future__ import annotations

import re

from nicegui import ui

from cerflow.base import limits
from cerflow.base.errors import ArgumentError
from cerflow.look.studying.wording import sentence
from cerflow.studio.panels.work import NUMBER, Grid, WorkLine
from cerflow.studio.session import StudioSession

_CHOICE = re.compile(r'(?:("(?:[^"]|"")+"|[^\W\d]\w*)\s*@\s*)?(\d+)(?:\s*[-–]\s*(\d+))?')
_ANY = "no filter"


def chosen_events(text: str) -> list[int | tuple[str, int]]:
    """The events of a text such as ``3, 7``, ``3-7`` or ``x@3, y@7-9``. Raises `ValueError` for another one."""
    found: list[int | tuple[str, int]] = []
    for piece in filter(None, re.split(r"[,;\s]+(?![^@]*@\s)", re.sub(r"\s*[-–]\s*", "-", text.strip()))):
        match = _CHOICE.fullmatch(piece)
        if match is None:
            raise ArgumentError(
                f"'{piece}' is not an event: write positions such as 3, 7, or labels with them: x@3, y@7"
            )
        label, first, last = match.groups()
        positions = range(int(first), int(last or first) + 1)
        if not 0 < len(positions) <= limits.LISTED_EVENTS:
            raise ArgumentError(f"'{piece}' is not a range of 1 to {limits.LISTED_EVENTS} events")
        found += positions if label is None else [(label.strip('"'), position) for position in positions]
    if not found:
        raise ArgumentError("choose events in the list, or write their positions")
    return found


class AskingPanel:
    """Asks which parts of the query refuse the events that the user chooses."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._asked: tuple[object, ...] = ()
        self._listed: tuple[object, ...] = ()
        with ui.column().classes("w-full gap-0 cs-stays"):
            ui.label("Which events should be a match? Choose them in the list, or write them.").classes("text-sm")
            with ui.row().classes("items-center w-full gap-3"):
                self._events = ui.input("Events", placeholder="3, 7   or   3-7   or   x@3, y@7").classes("flex-1")
                self._events.props("dense").on("keydown.enter", self._ask)
                ui.button("Why not?", on_click=self._ask).props("no-caps")
        self._work = WorkLine(session)
        self._answer = ui.column().classes("w-full gap-2 py-3").props("role=status")
        with ui.row().classes("items-center gap-3"):
            self._from = ui.number("From event", value=0, min=0, format="%d", on_change=self.begin).classes("w-28")
            self._column = ui.select([_ANY], value=_ANY, label="Filter by", on_change=self.begin).classes("w-36")
            self._value = ui.input("is", on_change=self.begin).classes("w-32")
            for field in (self._from, self._value):
                field.props("debounce=300")
            self._value.bind_visibility_from(self._column, "value", lambda value: value != _ANY)
        self._listing = WorkLine(session)
        self._grid = Grid("Events of the file: choose with a click or Enter", self._toggle, stays=False)

    def choose(self, events: list[str]) -> None:
        """Ask about events such as ``x@3`` or ``3``."""
        self._events.value = ", ".join(events)
        positions = [one if isinstance(one, int) else one[1] for one in chosen_events(", ".join(events) or "0")]
        self._from.value = max(0, min(positions) - 5)

    def _toggle(self, event: int) -> None:
        """Add an event to those that are asked about, or take it away."""
        pieces = [piece.strip() for piece in (self._events.value or "").split(",") if piece.strip()]
        kept = [piece for piece in pieces if piece != str(event)]
        self._events.value = ", ".join(kept if len(kept) < len(pieces) else [*pieces, str(event)])

    async def begin(self) -> None:
        """List events, unless they are listed already."""
        session, column, value = self._session, self._column.value, self._value.value or ""
        first, where = int(self._from.value or 0), None if column == _ANY or not value else (column, value)
        listed = (*session.looked_at, first, where)
        if session.events is None or self._listing.busy or listed == self._listed:
            return
        self._listed = listed
        found = await self._listing.run(
            session.progress, lambda: session.read_events(first, limits.LISTED_EVENTS, where)
        )
        if found is not None:
            positions, table = found
            self._listing.say("" if len(positions) else "There is no such event.")
            self._column.set_options([_ANY, *table.column_names])
            rows = [{NUMBER: position, **session.shown(row)} for position, row in zip(positions, table.to_pylist())]
            self._grid.show([NUMBER, *table.column_names], [], len(rows), lambda first, end, by, down: rows[first:end])

    def forget(self) -> None:
        """Drop an answer that is not of the present query and sample."""
        if self._asked != self._session.looked_at:
            self._answer.clear()
            self._work.say("")

    async def _ask(self) -> None:
        self._answer.clear()
        self._asked = self._session.looked_at
        answer = await self._work.run(
            self._session.progress, lambda: self._session.why_not(chosen_events(self._events.value or ""))
        )
        if answer is None:
            return
        with self._answer:
            if not answer:
                ui.label(f"{sentence(str(answer))}.").classes("text-positive font-medium")
            elif answer.shape is not None:
                ui.label(f"{sentence(answer.shape)}.")
            for number, parts in enumerate(answer.reasons):
                lead = "They would be a match without" if number == 0 else "or without"
                ui.label(lead + (" these parts:" if len(parts) > 1 else " this part:")).classes("text-sm opacity-80")
                for part in parts:
                    with ui.card().classes("w-full gap-1 cs-refuses"):
                        ui.label(part.text).classes("font-mono font-medium")
                        ui.label(part.words).classes("text-sm")
