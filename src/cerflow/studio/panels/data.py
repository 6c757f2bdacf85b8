"""The events that are loaded: where they come from, their columns, and which of these are the type and the time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import events as nicegui_events
from nicegui import ui

from cerflow.base.errors import CerflowError, counted
from cerflow.base.units import UNIT_NAMES
from cerflow.look.studying.wording import sentence
from cerflow.studio.panels.work import heading, show_table, text_button
from cerflow.studio.sampling import QUERIES, SAMPLE
from cerflow.studio.session import StudioSession


class DataPanel:
    """Loads events, and shows their columns; ``loaded`` is called when others have been loaded, or the text changed."""

    def __init__(self, session: StudioSession, loaded: Callable[[], None]) -> None:
        self._session = session
        self._loaded = loaded
        self._filling = False
        with ui.row().classes("w-full items-end gap-3"):
            with ui.element("label").classes("cs-drop flex-1 text-sm"):
                ui.label(
                    "Drop a file here, or choose one: CSV, JSON lines, Parquet or ORC, also compressed (.gz, .zst …)"
                )
                chooser = ui.element("input").props("type=file")
                chooser.on("change", self._sent, js_handler="event => studio.send(event, emit)")
            ui.button("Use the sample", icon="science", on_click=lambda: self.load(SAMPLE)).props("outline no-caps")
        with ui.row().classes("w-full items-center gap-3"):
            self._path = ui.input("Path", placeholder="a file, a folder, or a pattern such as logs/*.csv")
            self._path.classes("flex-1 min-w-[14rem]").props("dense")
            self._stream = ui.input("Name for FROM", placeholder="if there are several").classes("w-48")
            self._stream.props("dense")
            ui.button("Open", on_click=self._open).props("no-caps")
        self._path.on("keydown.enter", self._open)
        self._problem = ui.label().classes("text-sm text-negative whitespace-pre-wrap w-full").props("role=alert")
        self._remarks = ui.label().classes("text-sm whitespace-pre-wrap w-full").props("role=status")
        self._about = ui.column().classes("w-full gap-2")
        with self._about:
            self._title = heading()
            with ui.row().classes("w-full gap-4"):
                self._type = ui.select([], label="Event type", on_change=self._changed)
                self._time = ui.select([], label="Time", on_change=self._changed)
                self._unit = ui.select(dict(UNIT_NAMES), label="Unit of times", on_change=self._changed)
                self._key = ui.select([], label="Key", on_change=self._keyed)
                for box in (self._type, self._time, self._unit, self._key):
                    box.classes("w-44")
            names = ("column", "kind", "nulls", "different", "least", "greatest")
            self._columns = show_table("Columns", names, [], sortable=True, style="")
        self._queries = ui.column().classes("w-full gap-1")
        with self._queries:
            heading("Queries to begin with")
            for said, text in QUERIES.items():
                text_button(said, partial(self._write, text), "chevron_right")
        self.refresh()

    def refresh(self) -> None:
        """Show the events of the session."""
        events = self._session.events
        self._about.set_visibility(events is not None)
        self._queries.set_visibility(events is not None and events.source == SAMPLE)
        if events is None:
            return
        self._filling = True
        self._remarks.text = "\n".join(map(sentence, events.remarks))
        self._title.text = f"{events.title}: {counted(events.table.num_rows, 'event')}{events.extent}"
        single = not events.inputs
        names = {name: name for name in events.columns}
        self._type.set_options({"": "no types"} | names, value=events.type or "")
        self._time.set_options({"": "no times"} | names, value=events.time or "")
        self._unit.value = events.time_unit or "ms"
        for box in (self._type, self._time):
            box.set_enabled(single)
        self._unit.set_visibility(single and events.schema.counts_time)
        self._key.set_options({"": "no key"} | names, value=self._session.key if self._session.key in names else "")
        self._columns.rows = [{"id": k, **row} for k, row in enumerate(events.described)]
        self._filling = False

    async def load(self, path: Path, **columns: Any) -> bool:
        """Load a file; if that fails, a notice says why and what can be done."""
        self._problem.text = ""
        try:
            await asyncio.to_thread(partial(self._session.load, path, **columns))
        except CerflowError as error:
            # Where the server keeps what it was sent means nothing to the user.
            said = str(error).replace(str(path), str(columns.get("shown", path)))
            self._problem.text = f"{said}.\n{_next_step(said)}"
            return False
        self._loaded()
        return True

    async def _open(self) -> None:
        # Unlike a path, this leaves the name of a user who is not there as it stands.
        path = os.path.expanduser((self._path.value or "").strip())
        if not path:
            self._problem.text = "Write the path of a file, a folder or a pattern, or drop a file."
            return
        await self.load(Path(path), name=self._stream.value or None)

    async def _sent(self, e: nicegui_events.GenericEventArguments) -> None:
        path = Path(e.args)
        await self.load(path, shown=Path(path.name), name=self._stream.value or None)

    async def _changed(self) -> None:
        events = self._session.events
        if self._filling or events is None or events.inputs:
            return
        kind, time, unit = self._type.value or "", self._time.value or "", self._unit.value
        if (kind, time, unit) == (events.type or "", events.time or "", events.time_unit or "ms"):
            return
        if not await self.load(
            events.source, shown=events.path, type=kind, time=time, time_unit=unit if time else None
        ):
            self.refresh()

    def _keyed(self) -> None:
        if not self._filling and (self._key.value or None) != self._session.key:
            try:
                self._session.partition(self._key.value or None)
            except CerflowError:
                self._problem.text = "The key is written into the query once the query has no error."
            self._loaded()

    def _write(self, text: str) -> None:
        self._session.text = text
        self._loaded()


def _next_step(reason: str) -> str:
    if "there is no file" in reason or "no file or directory" in reason:
        return "Check the path, or drop the file on this page."
    if "no rows" in reason or "no events" in reason:
        return "A file of events has a line for each event, in CSV below a line with the names of the columns."
    if "time" in reason:
        return "Choose another column of times, or 'no times'."
    return "Choose another file, or repair this one."
