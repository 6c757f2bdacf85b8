"""The page of the studio: the editor and the automaton on the left, the results on the right."""

from __future__ import annotations

import asyncio
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import events as nicegui_events
from nicegui import ui

from cerflow.errors import CerflowError
from cerflow.studio.asking import AskingPanel
from cerflow.studio.comparing import ComparingPanel
from cerflow.studio.drawing_panel import automaton_svg, show_picture
from cerflow.studio.editor import QueryEditor
from cerflow.studio.export_panel import ExportPanel
from cerflow.studio.running import RunningPanel
from cerflow.studio.session import StudioSession
from cerflow.studio.stepping import SteppingPanel
from cerflow.studying.wording import sentence

_TABS = {
    "matches": ("Matches", "checklist"),
    "step": ("Step", "directions_walk"),
    "why": ("Why not?", "help"),
    "compare": ("Compare", "compare"),
    "export": ("Export", "ios_share"),
}


#: The query after the definitions, among their names; no name has a space.
_LAST = "the last query"


class StudioPage:
    """One page over a session; the session outlives it, so a page that is loaded again shows the same."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        ui.add_css(Path(__file__).with_name("studio.css"))
        ui.colors(primary="#4f46e5", positive="#15803d", negative="#dc2626", warning="#d97706")
        self._dark = ui.dark_mode(None)
        self._header()
        with ui.splitter(value=44).classes("w-full cs-halves") as splitter:
            with splitter.before, ui.column().classes("w-full h-full gap-0 no-wrap"):
                with ui.element("div").classes("w-full cs-editor"):
                    holder = ui.element("div").classes("w-full h-full")
                below = ui.column().classes("w-full gap-0")
                with ui.column().classes("w-full flex-1 gap-1 p-3 overflow-auto border-t border-gray-500/30"):
                    with ui.row().classes("w-full items-center gap-3"):
                        ui.label("Automaton").classes("text-xs uppercase tracking-wide opacity-60")
                        self._statement = (
                            ui.select([_LAST], value=_LAST, on_change=self._looked_at)
                            .props('dense options-dense aria-label="Statement" hide-bottom-space')
                            .mark("statement")
                            .tooltip("The statement that is drawn, stepped through, asked and compared")
                        )
                    self._picture = ui.column().classes("w-full")
                    self._picture_problem = ui.label().classes("text-sm opacity-70")
            with splitter.after, ui.column().classes("w-full h-full gap-0 no-wrap"):
                self._tabs()
        with holder:
            self._editor = QueryEditor(session, self._settled, self._run)
        # The line below the editor belongs to it, but not into its box.
        self._editor.line.move(below)
        ui.keyboard(self._key, ignore=[])
        ui.timer(0.1, self._see, once=True)

    def _header(self) -> None:
        with ui.header().classes("items-center gap-3 py-2 px-4 h-[52px] no-wrap"):
            ui.label("cerflow studio").classes("text-lg font-semibold whitespace-nowrap cs-title")
            self._file = ui.label().classes("text-sm opacity-90 ellipsis flex-1 min-w-0").mark("file")
            ui.button("Open file", icon="folder_open", on_click=self._open).props(
                "flat dense color=white no-caps no-wrap"
            ).classes("flex-none")
            ui.button("Run", icon="play_arrow", on_click=self._run).props(
                'unelevated dense color=white text-color=primary no-caps padding="2px 12px"'
            ).tooltip("Ctrl+Enter").mark("run")
            ui.button(icon="contrast", on_click=self._turn).props(
                'flat dense round color=white aria-label="Dark or light"'
            ).tooltip("Dark or light").mark("dark")

    def _tabs(self) -> None:
        with (
            ui.tabs()
            .classes("w-full border-b border-gray-500/30")
            .props("dense align=left inline-label") as self._tab_row
        ):
            for name, (label, icon) in _TABS.items():
                ui.tab(name, label=label, icon=icon)
        panels = ui.tab_panels(self._tab_row, value="matches", on_change=self._shown)
        with panels.classes("w-full flex-1 overflow-auto"):
            with ui.tab_panel("matches"):
                self._running = RunningPanel(self._session, self._step_to, self._ask_about)
            with ui.tab_panel("step"):
                self._stepping = SteppingPanel(self._session)
            with ui.tab_panel("why"):
                self._asking = AskingPanel(self._session)
            with ui.tab_panel("compare"):
                self._comparing = ComparingPanel(self._session)
            with ui.tab_panel("export"):
                self._export = ExportPanel(self._session)

    # -- what happens ------------------------------------------------------------------------------------------------

    def _settled(self) -> None:
        """Show what follows from the text, now that it rests."""
        events = self._session.events
        if events is None:
            self._file.text = "no events yet"
        else:
            time = f", time {events.time}" if events.time else ", no time column"
            kind = "no types" if events.type is None else f"type {events.type}"
            self._file.text = f"{events.title}: {events.table.num_rows:,} events, {kind}{time}"
        self._offer_statements()
        try:
            picture = automaton_svg(self._session.transducer())
            self._picture.clear()
            with self._picture:
                show_picture(picture)
            self._picture_problem.text = ""
        except CerflowError as error:
            self._picture.clear()
            wrong = any(problem.certain for problem in self._session.problems())
            self._picture_problem.text = "The query has an error." if wrong else sentence(error)
        self._export.refresh()
        for part in (self._running, self._stepping, self._asking, self._comparing):
            part.forget()

    def _offer_statements(self) -> None:
        names = self._session.definitions()
        if self._session.statement not in names:
            self._session.statement = None
        self._statement.set_options([*names, _LAST], value=self._session.statement or _LAST)
        self._statement.set_visibility(bool(names))

    def _looked_at(self) -> None:
        """Look at another statement of the text."""
        chosen = None if self._statement.value == _LAST else self._statement.value
        if chosen != self._session.statement:
            self._session.statement = chosen
            self._settled()

    async def _shown(self) -> None:
        if self._tab_row.value == "compare":
            await self._comparing.begin()

    def _run(self) -> None:
        self._tab_row.value = "matches"
        ui.timer(0, self._running.run, once=True)

    def _step_to(self, match: dict[str, Any]) -> None:
        self._tab_row.value = "step"
        self._stepping.go_to_match(match)

    def _ask_about(self, pairs: list[tuple[str, int]]) -> None:
        self._tab_row.value = "why"
        self._asking.choose(pairs)

    def _key(self, e: nicegui_events.KeyEventArguments) -> None:
        if not e.action.keydown:
            return
        if e.modifiers.alt and e.key.name in list("12345"):
            self._tab_row.value = list(_TABS)[int(e.key.name) - 1]
        elif e.modifiers.alt and self._tab_row.value == "step" and e.key.name in ("ArrowLeft", "ArrowRight"):
            self._stepping.move(1 if e.key.name == "ArrowRight" else -1)

    async def _is_dark(self) -> bool:
        """Ask the browser, which follows the system until the user decides."""
        return bool(await ui.run_javascript("document.body.classList.contains('body--dark')", timeout=10))

    async def _see(self) -> None:
        self._paint(await self._is_dark())

    async def _turn(self) -> None:
        self._dark.value = not await self._is_dark()
        self._paint(self._dark.value)

    def _paint(self, dark: bool) -> None:
        for part in (self._editor, self._comparing, self._running):
            part.paint(dark)

    # -- files -------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        events = self._session.events
        with ui.dialog() as dialog, ui.card().classes("w-[32rem]"):
            ui.label("Open events").classes("text-lg")
            ui.label("CSV, JSON lines, Parquet or ORC; .gz is unpacked. The file stays on this machine.").classes(
                "text-sm opacity-70"
            )
            name = ui.input("Name of its stream", placeholder="for FROM; files with names are read together").classes(
                "w-full"
            )
            path = ui.input("Path", value="" if events is None else str(events.path)).classes("w-full").mark("path")
            names = [] if events is None else list(events.columns)
            kind = ui.select(names, label="Type column", value=events.type if events else None, clearable=True)
            time = ui.select(names, label="Time column", value=events.time if events else None, clearable=True)
            unit = ui.select(
                ["s", "ms", "us", "ns"],
                label="Unit of times that are numbers",
                value=events.time_unit if events else None,
                clearable=True,
            )
            for box in (kind, time, unit):
                box.classes("w-full")
            ui.upload(
                label="or choose a file", auto_upload=True, on_upload=partial(self._uploaded, dialog, name)
            ).classes("w-full")

            async def take() -> None:
                same = events is not None and path.value == str(events.path)
                columns = {"type": kind.value or "", "time": time.value or "", "time_unit": unit.value} if same else {}
                # Unlike a path, this leaves the name of a user who is not there as it stands.
                await self._load(Path(os.path.expanduser(path.value)), dialog, {**columns, "name": name.value or None})

            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
                ui.button("Open", on_click=take).props("no-caps").mark("open")
            path.on("keydown.enter", take)
        dialog.open()

    async def _uploaded(self, dialog: ui.dialog, name: ui.input, e: nicegui_events.UploadEventArguments) -> None:
        folder = Path(tempfile.mkdtemp(prefix="cerflow-studio-"))
        path = folder / Path(e.file.name).name
        await e.file.save(path)
        await self._load(path, dialog, {"name": name.value or None})

    async def _load(self, path: Path, dialog: ui.dialog, columns: dict[str, Any]) -> None:
        try:
            events = await asyncio.to_thread(partial(self._session.load, path, **columns))
        except CerflowError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        dialog.close()
        for remark in events.remarks:
            ui.notify(remark, type="warning", multi_line=True)
        self._editor.refresh()
