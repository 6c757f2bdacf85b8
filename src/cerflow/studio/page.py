"""The page of the studio: the editor and the automaton on the left, the results on the right."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import background_tasks, ui
from nicegui import events as nicegui_events

from cerflow.api.programs.program import Program
from cerflow.base.errors import CerflowError
from cerflow.look.pictures.formula_svg import formula_svg
from cerflow.look.studying.wording import sentence
from cerflow.studio.panels import asking, comparing, data, drawing, editor, export, running, stepping, work
from cerflow.studio.runs import Preview, preview, shown_number, stopped_if
from cerflow.studio.sampling import CONSTRUCTS, KEYS
from cerflow.studio.session import StudioSession

_TABS = {
    "data": ("Data", "table_view"),
    "matches": ("Matches", "checklist"),
    "step": ("Step", "directions_walk"),
    "why": ("Why not?", "help"),
    "compare": ("Compare", "compare"),
    "export": ("Export", "ios_share"),
}
#: The query after the definitions, among their names; no name has a space.
_LAST = "the last query"
#: What the signs of a step mean, in an automaton and in boxes.
_LEGENDS = (
    "Dashed ring: partial matches wait here. Thick arrow: taken now. Thick ring: a match.",
    "✓ has an event, … waits for one, ✗ refuses this one",
)


class StudioPage:
    """One page over a session; the session outlives it, so a page that is loaded again shows the same."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        ui.add_css(Path(__file__).with_name("studio.css"))
        ui.colors(primary="#4f46e5", positive="#15803d", negative="#dc2626", warning="#d97706")
        self._dark = ui.dark_mode(session.dark)
        self._preview: Preview | None = None
        self._previews, self._preview_said = 0, ""
        self._header()
        with ui.splitter(value=44).classes("w-full cs-halves") as splitter:
            with splitter.separator:
                grip = ui.element("div").classes("cs-grip").props("role=separator tabindex=0 aria-valuenow=44")
                grip.props('aria-orientation=vertical aria-label="Width of the panes"')

            def widen(by: int) -> None:
                splitter.value = min(max(splitter.value + by, 10), 90)
                grip.props(f"aria-valuenow={splitter.value:.0f}")

            grip.on("keydown.left", lambda: widen(-4)).on("keydown.right", lambda: widen(4))
            with splitter.before, ui.column().classes("w-full h-full gap-0 no-wrap"):
                with ui.element("div").classes("w-full cs-editor"):
                    holder = ui.element("div").classes("w-full h-full")
                below = ui.column().classes("w-full gap-0")
                with ui.column().classes("w-full flex-1 min-h-0 gap-1 p-3 no-wrap border-t border-gray-500/30"):
                    self._picture = drawing.Picture()
                    with ui.row().classes("w-full items-center gap-2"):
                        self._kind = ui.toggle(["Boxes", "Automaton"], value="Boxes", on_change=self._draw)
                        self._kind.props('dense no-caps unelevated aria-label="Picture of the query"')
                        self._statement = ui.select([_LAST], value=_LAST, on_change=self._looked_at).props(
                            'dense options-dense aria-label="Statement" hide-bottom-space'
                        )
                        ui.space()
                        self._picture.buttons()
                    self._preview_line = ui.label().classes("text-sm").props("role=status")
                    self._strip = ui.html("", sanitize=False).classes("w-full cs-strip")
                    self._picture.place()
                    self._picture_problem = ui.label().classes("text-sm opacity-70")
            with splitter.after, ui.column().classes("w-full h-full gap-0 no-wrap"):
                self._tabs()
        with holder:
            self._editor = editor.QueryEditor(session, self._settled, self._run)
        # The line below the editor belongs to it, but not into its box.
        self._editor.line.move(below)
        ui.keyboard(self._key, ignore=[])
        ui.timer(0.1, self._see, once=True)

    def _header(self) -> None:
        with ui.header().classes("items-center gap-3 py-2 px-4 h-[52px] no-wrap"):
            with ui.element("h1").classes("text-lg font-semibold whitespace-nowrap cs-title"):
                ui.label("cerflow studio")
            self._file = ui.label().classes("text-sm opacity-90 ellipsis flex-1 min-w-0")
            ui.button("Open file", icon="folder_open", on_click=lambda: self._tab_row.set_value("data")).props(
                "flat dense color=white no-caps no-wrap"
            ).classes("flex-none cs-open")
            ui.button("Run", icon="play_arrow", on_click=self._run).props(
                'unelevated dense color=white text-color=primary no-caps padding="2px 12px" title="Ctrl+Enter"'
            )
            with work.icon_button("history", "Earlier queries", self._list_history).props("color=white"):
                self._history = ui.menu().props('role=region aria-label="Earlier queries" transition-duration=1')
            work.icon_button("help_outline", "Help", self._help().open).props("color=white")
            work.icon_button("contrast", "Dark or light", self._turn).props("color=white")

    def _help(self) -> ui.dialog:
        with ui.dialog().props('aria-label="Help" transition-duration=1') as dialog, ui.card():
            with ui.row().classes("w-full justify-between"):
                ui.link("The manual of the language", "/manual", new_tab=True).classes("self-center")
                ui.button("Close", on_click=dialog.close, color=None).props("flat no-caps")
            for title, told in (("The language in short", CONSTRUCTS), ("Keys", KEYS)):
                work.heading(title)
                with ui.element("dl").classes("cs-constructs text-sm"):
                    for term, said in told.items():
                        with ui.element("dt").classes("font-mono"):
                            ui.label(term)
                        with ui.element("dd"):
                            ui.label(said)
        return dialog

    def _list_history(self) -> None:
        self._history.clear()
        with self._history, ui.list():
            for text in self._session.history:
                shown = " ".join(text.split())
                ui.menu_item(shown if len(shown) <= 80 else f"{shown[:79]}…", partial(self._write, text)).classes(
                    "font-mono"
                )
            if not self._session.history:
                ui.menu_item("Queries that you run are kept here.").props("disable")

    def _write(self, text: str) -> None:
        self._session.text = text
        self._editor.refresh()

    def _tabs(self) -> None:
        self._tab_row = ui.tabs().classes("w-full border-b border-gray-500/30").props("dense align=left inline-label")
        with self._tab_row:
            tabs = [ui.tab(name, label=label, icon=icon) for name, (label, icon) in _TABS.items()]
        first = "data" if self._session.events is None else "matches"
        panels = ui.tab_panels(self._tab_row, value=first, on_change=self._shown)
        for tab in tabs:
            tab.props(f"aria-controls=c{panels.id}")
        with panels.classes("w-full flex-1 overflow-auto"):
            with ui.tab_panel("data"):
                self._data = data.DataPanel(self._session, lambda: self._editor.refresh())
            with ui.tab_panel("matches"):
                self._running = running.RunningPanel(self._session, self._step_to, self._ask_about)
            with ui.tab_panel("step"):
                self._stepping = stepping.SteppingPanel(self._session, self._draw, self._ask_about)
            with ui.tab_panel("why"):
                self._asking = asking.AskingPanel(self._session)
            with ui.tab_panel("compare"):
                self._comparing = comparing.ComparingPanel(self._session)
            with ui.tab_panel("export"):
                self._export = export.ExportPanel(self._session)

    # -- what happens ------------------------------------------------------------------------------------------------

    def _settled(self) -> None:
        """Show what follows from the text, now that it rests."""
        events = self._session.events
        if events is None:
            self._file.text = "no events yet"
        else:
            self._file.text = f"{events.title}: {events.table.num_rows:,} events"
        self._offer_statements()
        self._preview, self._preview_said = None, ""
        self._draw()
        self._export.refresh()
        self._data.refresh()
        for part in (self._running, self._stepping, self._asking, self._comparing):
            part.forget()
        background_tasks.create(self._look(), name="preview")

    def _draw(self) -> None:
        """Draw the query: as boxes, with what reaches each of them, or as an automaton."""
        self._picture_problem.text = ""
        said = self._preview_said
        boxes = self._kind.value == "Boxes"
        try:
            step = self._stepping.picture(boxes) if self._tab_row.value == "step" else None
            if step is not None:
                picture, said = step, _LEGENDS[boxes]
            elif boxes:
                parts = {} if self._preview is None else self._preview.parts
                query = self._session.single_query() if self._preview is None else self._preview.query
                picture = formula_svg(query.tree, marks=parts)
            else:
                picture = drawing.automaton_svg(self._session.transducer())
        except CerflowError as error:
            self._picture_problem.text = "The query has an error." if self._session.problems() else sentence(error)
            picture = ""
        self._preview_line.text = said
        seen = self._preview if said == self._preview_said else None
        self._strip.set_content("" if seen is None else drawing.strip_svg(seen.outcome))
        self._picture.show(picture)

    async def _look(self) -> None:
        """Look beside the page what the query finds in a small sample; another text ends that."""
        self._previews += 1
        session, this, seen = self._session, self._previews, self._session.looked_at
        if session.events is None or session.problems():
            return
        try:
            query = session.query()
            if isinstance(query, Program):
                return
            # A thread begins with the checks of where it is made.
            with stopped_if(lambda: this != self._previews or session.closing.is_set()):
                found = await asyncio.to_thread(preview, query, session.events)
        except (CerflowError, ValueError, MemoryError):
            found = None
        if this != self._previews or seen != session.looked_at:
            return
        rows = session.events.table.num_rows
        if found is None:
            self._preview_said = "The query takes too long for a count while you write: run it."
            self._draw()
            return
        some = "all" if found.outcome.events == rows else f"the first {found.outcome.events:,} of"
        noun = "match" if found.outcome.count == 1 else "matches"
        self._preview_said = f"{shown_number(found.outcome.count)} {noun} in {some} {rows:,} events"
        if found.outcome.count > (listed := found.outcome.table.num_rows):
            self._preview_said += f"; those of the first {listed:,} are in colour"
        self._preview = found
        self._draw()

    def _offer_statements(self) -> None:
        names = self._session.definitions()
        if self._session.statement not in names:
            self._session.statement = None
        self._statement.set_options([*names, _LAST], value=self._session.statement or _LAST)
        self._statement.set_visibility(bool(names))

    def _looked_at(self) -> None:
        chosen = None if self._statement.value == _LAST else self._statement.value
        if chosen != self._session.statement:
            self._session.statement = chosen
            self._settled()

    async def _shown(self) -> None:
        self._draw()
        begin = {"compare": self._comparing.begin, "step": self._stepping.begin, "why": self._asking.begin}
        if self._tab_row.value in begin:
            await begin[self._tab_row.value]()

    def _run(self) -> None:
        self._tab_row.value = "matches"
        ui.timer(0, self._running.run, once=True)

    def _step_to(self, match: dict[str, Any], position: int | None) -> None:
        self._stepping.aim(match, position)
        self._tab_row.value = "step"

    def _ask_about(self, events: list[str]) -> None:
        self._asking.choose(events)
        self._tab_row.value = "why"

    def _key(self, e: nicegui_events.KeyEventArguments) -> None:
        if not e.action.keydown:
            return
        if e.modifiers.alt and e.key.name in list("123456"):
            self._tab_row.value = list(_TABS)[int(e.key.name) - 1]
        elif e.modifiers.alt and self._tab_row.value == "step" and e.key.name in ("ArrowLeft", "ArrowRight"):
            self._stepping.move(1 if e.key.name == "ArrowRight" else -1)

    async def _is_dark(self) -> bool:
        """Ask the browser, which follows the system until the user decides."""
        return bool(await ui.run_javascript("document.body.classList.contains('body--dark')", timeout=10))

    async def _see(self) -> None:
        ui.run_javascript("studio.reach()")
        self._paint(await self._is_dark())

    async def _turn(self) -> None:
        self._session.dark = self._dark.value = not await self._is_dark()
        self._paint(self._dark.value)

    def _paint(self, dark: bool) -> None:
        for part in (self._editor, self._comparing, self._running):
            part.paint(dark)
