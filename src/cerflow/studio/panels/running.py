"""The matches of the sample, as a table."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from nicegui import background_tasks, ui

from cerflow.engine.kernels.base.library import find_library
from cerflow.errors import CerflowError
from cerflow.studio.panels.grid import NUMBER, Grid
from cerflow.studio.results import Outcome
from cerflow.studio.session import StoppedError, StudioSession
from cerflow.studio.stoppable_run import StoppableRun
from cerflow.studying.wording import sentence

__all__ = ["RunningPanel", "WorkLine", "in_thread"]

_T = TypeVar("_T")

#: Steps to an event of a match.
_STEP_BUTTON = """
<q-td :props="props">
  <q-btn flat dense no-caps color="primary" :label="props.value" :aria-label="`Step to event ${props.value}`"
    @click="() => $parent.$emit('step', props.value)" />
</q-td>"""
#: The timeline tells which match is chosen in it, and is told which one is chosen in the table.
_LISTEN = """
const frame = getHtmlElement(%d);
frame.onload = () => frame.contentWindow.addEventListener(
  'chosen', e => frame.dispatchEvent(new CustomEvent('chosen', {detail: e.detail})));
"""
_CHOOSE = "getHtmlElement(%d).contentWindow?.cerflow?.choose(%d)"


async def in_thread(note: ui.label, said: Callable[[], str], work: Callable[..., _T], *arguments: object) -> _T:
    """The result of a function that runs beside the page; meanwhile the note shows its progress."""
    task = asyncio.create_task(asyncio.to_thread(work, *arguments))
    while not (await asyncio.wait([task], timeout=0.3))[0]:
        note.text = said()
    return await task


class WorkLine:
    """A line that shows the progress of work, with a button that stops it. One piece of work at a time."""

    def __init__(self, session: StudioSession, text: str = "") -> None:
        self._session = session
        with ui.row().classes("items-center gap-3 no-wrap"):
            self.label = ui.label(text).classes("text-sm opacity-80").props("role=status")
            self._button = ui.button("Stop", icon="stop", on_click=self.stop).props("outline dense no-caps")
            self._button.classes("px-2").set_visibility(False)
        self._stopped = threading.Event()
        #: Whether something is under way.
        self.busy = False

    def stop(self) -> None:
        """Stop what is under way."""
        self._stopped.set()

    def _is_stopped(self) -> bool:
        return self._stopped.is_set() or self._session.closing.is_set()

    async def run(self, said: Callable[[], str], work: Callable[[Callable[[], bool]], _T]) -> _T:
        """The result of work, which gets a function that says whether it is to stop.

        Raises what the work raises, and `StoppedError` also if work that is stopped comes to its end.
        """
        self.busy = True
        self._stopped.clear()

        def told() -> str:
            self._button.set_visibility(True)
            return said()

        try:
            result = await in_thread(self.label, told, work, self._is_stopped)
        finally:
            self.busy = False
            self._button.set_visibility(False)
        if self._is_stopped():
            raise StoppedError("Stopped.")
        return result


class RunningPanel:
    """Runs the query on the sample, with a limit and a time, and shows its matches."""

    def __init__(
        self,
        session: StudioSession,
        step_to: Callable[[dict[str, Any], int | None], None],
        ask_about: Callable[[list[str]], None],
    ) -> None:
        self._session = session
        self._current: StoppableRun | None = None
        self._failed = False
        self._match: dict[str, Any] = {}
        self._chosen = 0
        self._dark = False
        self._page = ""
        with ui.row().classes("items-center gap-4 w-full"):
            self._most = ui.number("Matches listed", min=1, max=1_000_000, format="%d").classes("w-32")
            self._seconds = ui.number("Seconds at most", min=1).classes("w-32")
            for box, name in ((self._most, "most"), (self._seconds, "seconds")):
                box.bind_value(session, name)
            self._stop = ui.button("Stop", icon="stop", on_click=self._halt).props("outline no-caps").mark("stop")
            self._spinner = ui.spinner(size="sm")
            self._bookkeeping = ui.switch("All columns", on_change=self._list)
        self._stop.disable()
        self._spinner.set_visibility(False)
        with ui.column().classes("w-full gap-0 py-2").props("role=status"):
            self._summary = ui.label("Run the query with Ctrl+Enter.").classes("text-sm whitespace-pre-wrap")
            self._problem = ui.label().classes("text-sm text-negative whitespace-pre-wrap font-mono")
            self._stale = ui.label().classes("text-sm font-medium")
            self._none = ui.button("Why are there none?", on_click=lambda: ask_about([])).props("flat no-caps")
        self._summary.mark("summary")
        self._results = ui.row().classes("w-full gap-3 items-stretch")
        with self._results:
            self._frame = ui.element("iframe").props('title="Matches in the stream"').classes("w-full border-0 cs-line")
            self._frame.on("chosen", lambda e: self._choose(int(e.args["detail"]) + 1), ["detail"])
            self._grid = Grid("Matches", self._choose)
            self._grid.element.classes("cs-beside")
            self._detail = ui.card().classes("cs-beside")
            with self._detail, ui.row().classes("w-full items-center"):
                self._title = ui.label().classes("font-medium").props("role=heading aria-level=2")
                ui.space()
                self._stepped = ui.button("Step to it", on_click=lambda: step_to(self._match, None))
                self._asked = ui.button("Ask about it", on_click=lambda: ask_about(_pairs(self._match)))
                for button in (self._stepped, self._asked):
                    button.props("flat no-caps dense").classes("px-2")
            with self._detail:
                self._events = ui.table(rows=[], columns=[], row_key="position").classes("w-full")
                self._events.props('flat dense aria-label="Events of the match"')
                self._events.add_slot("body-cell-position", _STEP_BUTTON)
                self._events.on("step", lambda e: step_to(self._match, int(e.args)))
        self._show()

    def _halt(self) -> None:
        if self._current is not None:
            self._current.stop()

    async def run(self) -> None:
        """Run the query; a run that is under way is stopped first."""
        self._halt()
        session = self._session
        try:
            query, events = session.query(), session.loaded()
        except (CerflowError, ValueError) as error:
            self._fail(error)
            return
        session.remember()
        most, seconds = int(session.most or 1), float(session.seconds or 1)
        this = self._current = StoppableRun(query, events, most=most, seconds=seconds)
        ran = (session.text, events)
        self._stop.enable()
        self._spinner.set_visibility(True)
        self._problem.text = ""
        try:
            first = " The first runs on a machine compile parts of the engine, which may take minutes."
            said = "Running …" + ("" if find_library() else first)
            self._summary.text = said
            outcome = await in_thread(self._summary, lambda: f"{said} {this.reached:,} events", this)
        except (CerflowError, ValueError) as error:
            self._fail(error)
            return
        finally:
            if self._current is this:
                self._stop.disable()
                self._spinner.set_visibility(False)
        if self._current is this:
            self._failed = False
            session.outcome, session.ran = outcome, ran
            self._show()

    def _fail(self, error: Exception) -> None:
        self._failed = True
        self._summary.text = ""
        self._problem.text = sentence(error)
        self.forget()

    def _show(self) -> None:
        """Show the last run of the session, if there is one."""
        outcome = self._session.outcome
        self._chosen = 0
        self._detail.set_visibility(False)
        self._frame.set_visibility(False)
        self._bookkeeping.set_visibility(outcome is not None and bool(outcome.table.num_rows))
        self._none.set_visibility(outcome is not None and not outcome.count)
        if outcome is not None:
            self._summary.text = _summary(outcome)
        self._list()
        self.forget()
        if outcome is not None and outcome.positions:
            background_tasks.create(self._draw(outcome), name="timeline")

    def _list(self) -> None:
        outcome = self._session.outcome
        if outcome is not None:
            columns, sortable = outcome.columns(bookkeeping=self._bookkeeping.value)
            self._grid.show([NUMBER, *columns], [NUMBER, *sortable], outcome.table.num_rows, outcome.page)

    def forget(self) -> None:
        """Say of matches that they are not those of the present text and file."""
        said = ""
        if self._session.outcome is not None:
            text, events = self._session.ran
            changed = [
                name
                for name, same in (("query", text == self._session.text), ("file", events is self._session.events))
                if not same
            ]
            if changed:
                has = "has" if len(changed) == 1 else "have"
                said = f"The {' and the '.join(changed)} {has} changed since this run."
            elif self._failed:
                said = "These are the matches of an earlier run."
        self._stale.text = said
        self._results.classes(add="cs-stale" if said else None, remove=None if said else "cs-stale")

    def paint(self, dark: bool) -> None:
        """Show the picture of the matches dark or light."""
        self._dark = dark
        if self._page:
            self._frame.props(f'src="{self._page}#{"dark" if dark else "light"},picture"')

    async def _draw(self, outcome: Outcome) -> None:
        """Draw the matches in their stream, beside the page."""
        try:
            await asyncio.to_thread(self._session.draw_matches)
        except (CerflowError, ValueError):
            return  # matches without positions have no place in the stream
        if self._session.outcome is outcome and not self._frame.is_deleted:
            # A new address each time, so that the browser does not show a former one.
            self._page = f"/matches?tab={self._frame.client.tab_id}&at={time.time_ns()}"
            self.paint(self._dark)
            self._frame.set_visibility(True)
            self._frame.client.run_javascript(_LISTEN % self._frame.id)

    def _choose(self, number: int) -> None:
        """Show the events of a match."""
        outcome = self._session.outcome
        assert outcome is not None
        if not number or number == self._chosen:
            return
        self._chosen = number
        self._grid.mark(number)
        self._frame.client.run_javascript(_CHOOSE % (self._frame.id, number - 1))
        row = self._match = outcome.match(number - 1)
        shown = "" if row["detected_at"] is None else f", detected at event {row['detected_at']}"
        self._title.text = f"Match {number}{shown}"
        self._stepped.set_visibility(row["detected_at"] is not None)
        self._asked.set_visibility(bool(row.get("events")))
        found = row.get("events") or []
        events = self._session.events
        left_out = set() if events is not None and events.type is not None else {"type"}
        first = ["position", "labels", "" if events is None else events.time]
        own = dict.fromkeys(found[0] if found else ())
        names = [*(name for name in first if name in own), *(n for n in own if n not in (*first, *left_out))]
        self._events.columns = [{"name": n, "label": n, "field": n, "align": "left"} for n in names]
        rows = [event | {"labels": outcome.own_labels(event["labels"])} for event in found]
        self._events.rows = [self._session.shown({name: row[name] for name in names}) for row in rows]
        self._detail.set_visibility(True)
        ui.run_javascript(f"getHtmlElement({self._detail.id}).scrollIntoView({{block: 'nearest'}})")


def _summary(outcome: Outcome) -> str:
    rows = outcome.table.num_rows
    listed = "" if outcome.count == rows else f"; the first {rows:,} are listed"
    ended = f" The run ended early, because {outcome.stopped}." if outcome.stopped else ""
    noun = "match" if outcome.count == 1 else "matches"
    return f"{outcome.count:,} {noun} in {outcome.events:,} events, {outcome.seconds:.2f} s{listed}.{ended}"


def _pairs(match: dict[str, Any]) -> list[str]:
    return [f"{label}@{event['position']}" for event in match["events"] for label in event["labels"]]
