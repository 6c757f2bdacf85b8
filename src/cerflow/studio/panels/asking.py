"""Why some events are not a match."""

from __future__ import annotations

import re

from nicegui import ui

from cerflow import limits
from cerflow.errors import ArgumentError, CerflowError
from cerflow.studio.panels.grid import NUMBER, Grid
from cerflow.studio.panels.running import WorkLine
from cerflow.studio.results import cell
from cerflow.studio.session import StoppedError, StudioSession
from cerflow.studying.wording import sentence

_CHOICE = re.compile(r'(?:("(?:[^"]|"")+"|[^\W\d]\w*)\s*@\s*)?(\d+)')


def chosen_events(text: str) -> list[int | tuple[str, int]]:
    """The events of a text such as ``3, 7`` or ``x@3, y@7``. Raises `ValueError` for another one."""
    found: list[int | tuple[str, int]] = []
    for piece in filter(None, re.split(r"[,;\s]+(?![^@]*@\s)", text.strip())):
        match = _CHOICE.fullmatch(piece)
        if match is None:
            raise ArgumentError(
                f"'{piece}' is not an event: write positions such as 3, 7, or labels with them: x@3, y@7"
            )
        label, position = match.groups()
        found.append(int(position) if label is None else (label.strip('"'), int(position)))
    return found


class AskingPanel:
    """Asks which parts of the query refuse the events that the user chooses."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._asked: tuple[object, ...] = ()
        ui.label("Which events should be a match?").classes("text-sm")
        with ui.row().classes("items-center w-full gap-3"):
            self._events = (
                ui.input("Events", placeholder="3, 7   or   x@3, y@7").classes("flex-1").mark("chosen").props("dense")
            )
            self._events.on("keydown.enter", self._ask)
            ui.button("Why not?", on_click=self._ask).props("no-caps").mark("ask")
        self._answer = ui.column().classes("w-full gap-2 py-3").props("role=status")
        ui.label("Events of the file: choose with a click or Enter").classes("text-sm")
        with ui.row().classes("items-center gap-3"):
            self._from = ui.number("From event", value=0, min=0, format="%d").classes("w-28")
            ui.button("Show", on_click=self._list).props("outline no-caps")
            self._listing = WorkLine(session)
        self._grid = Grid("Events of the file", self._toggle, stays=False)

    def choose(self, pairs: list[tuple[str, int]]) -> None:
        """Ask about these labels and positions."""
        self._events.value = ", ".join(f"{label}@{position}" for label, position in pairs)
        self._from.value = max(0, min((p for _, p in pairs), default=0) - 5)
        ui.timer(0, self._list, once=True)

    def _toggle(self, event: int) -> None:
        """Add an event to those that are asked about, or take it away."""
        pieces = [piece.strip() for piece in (self._events.value or "").split(",") if piece.strip()]
        kept = [piece for piece in pieces if piece != str(event)]
        self._events.value = ", ".join(kept if len(kept) < len(pieces) else [*pieces, str(event)])

    async def _list(self) -> None:
        first = int(self._from.value or 0)
        try:
            table = await self._listing.run(
                lambda: self._session.progress or "Working …",
                lambda stopped: self._session.read_events(first, limits.LISTED_EVENTS, stopped),
            )
        except (CerflowError, ValueError, StoppedError) as error:
            self._listing.label.text = sentence(error)
            return
        self._listing.label.text = ""
        rows = [
            {NUMBER: first + k, **{name: cell(value) for name, value in row.items()}}
            for k, row in enumerate(table.to_pylist())
        ]
        self._grid.show([NUMBER, *table.column_names], [], len(rows), lambda first, end, by, down: rows[first:end])

    def forget(self) -> None:
        """Drop an answer that is not of the present query and sample."""
        if self._asked != self._session.looked_at:
            self._answer.clear()

    async def _ask(self) -> None:
        self._answer.clear()
        self._asked = self._session.looked_at
        try:
            chosen = chosen_events(self._events.value or "")
            with self._answer:
                work = WorkLine(self._session)
            answer = await work.run(
                lambda: self._session.progress or "Working …",
                lambda stopped: self._session.why_not(chosen, stopped),
            )
        except (CerflowError, ValueError, StoppedError) as error:
            self._answer.clear()
            with self._answer:
                ui.label(sentence(error)).classes("text-negative whitespace-pre-wrap").mark("answer")
            return
        self._answer.clear()
        with self._answer:
            if not answer:
                ui.label(f"{sentence(str(answer))}.").classes("text-positive font-medium").mark("answer")
            elif answer.shape is not None:
                ui.label(f"{sentence(answer.shape)}.").mark("answer")
            for number, parts in enumerate(answer.reasons):
                lead = "They would be a match without" if number == 0 else "or without"
                ui.label(lead + (" these parts:" if len(parts) > 1 else " this part:")).classes("text-sm opacity-80")
                for part in parts:
                    with ui.card().classes("w-full gap-1 cs-refuses"):
                        ui.label(part.text).classes("font-mono font-medium").mark("answer")
                        ui.label(part.words).classes("text-sm")
