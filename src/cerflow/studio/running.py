"""The matches of the sample, as a table."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from nicegui import ui

from cerflow.engine.kernels.base.library import find_library
from cerflow.errors import CerflowError
from cerflow.language.select import BOOKKEEPING
from cerflow.studio.session import Outcome, StoppableRun, StoppedError, StudioSession
from cerflow.studying.wording import sentence, shown_value

__all__ = ["RunningPanel", "WorkLine", "in_thread"]

_T = TypeVar("_T")


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


_CHOICE = """<q-td :props="props"><q-btn flat dense size="12px" padding="0 6px" color="primary" :label="props.value"
  :aria-label="`Match ${props.value}`"></q-btn></q-td>"""


class RunningPanel:
    """Runs the query on the sample, with a limit and a time, and shows its matches."""

    def __init__(
        self,
        session: StudioSession,
        step_to: Callable[[dict[str, Any]], None],
        ask_about: Callable[[list[tuple[str, int]]], None],
    ) -> None:
        self._session = session
        self._step_to = step_to
        self._ask_about = ask_about
        self._current: StoppableRun | None = None
        self._rows: list[dict[str, Any]] = []
        self._events = 0
        self._drawn = False
        # The text and the sample whose matches are shown.
        self._ran: tuple[object, ...] | None = None
        self._dark = False
        self._page = ""
        self._frame: ui.element | None = None
        with ui.row().classes("items-center gap-4 w-full"):
            self._most = ui.number("Matches listed", value=1000, min=1, max=100_000, format="%d").classes("w-32")
            self._seconds = ui.number("Seconds at most", value=30, min=1).classes("w-32")
            self._stop = ui.button("Stop", icon="stop", on_click=self._halt).props("outline no-caps").mark("stop")
            self._stop.disable()
            self._spinner = ui.spinner(size="sm")
            self._spinner.set_visibility(False)
        self._summary = ui.label("Run the query with Ctrl+Enter.").classes("text-sm py-2").props("role=status")
        self._summary.mark("summary")
        self._table = ui.table(rows=[], columns=[], row_key="#", pagination=15).classes("w-full").props("flat dense")
        self._table.on("rowClick", self._chosen)
        # A button in each row, so that the keyboard chooses a match, too: its click is one of the row.
        self._table.add_slot("body-cell-#", _CHOICE)
        self._table.set_visibility(False)
        self._detail = ui.column().classes("w-full")
        with ui.expansion("In the stream", icon="timeline", on_value_change=self._opened).classes(
            "w-full"
        ) as self._view:
            self._picture = ui.column().classes("w-full")
        self._view.set_visibility(False)

    def _halt(self) -> None:
        if self._current is not None:
            self._current.stop()

    async def run(self) -> None:
        """Run the query; a run that is under way is stopped first."""
        self._halt()
        try:
            query = self._session.query()
            self._current = StoppableRun(
                query, self._session.loaded(), most=int(self._most.value or 1), seconds=float(self._seconds.value or 1)
            )
        except (CerflowError, ValueError) as error:
            self._summary.text = sentence(error)
            return
        this = self._current
        self._stop.enable()
        self._spinner.set_visibility(True)
        try:
            first = " The first runs on a machine compile parts of the engine, which may take minutes."
            said = "Running …" + ("" if find_library() else first)
            self._summary.text = said
            outcome = await in_thread(self._summary, lambda: f"{said} {this.reached:,} events", this)
        except (CerflowError, ValueError) as error:
            self._summary.text = sentence(error)
            return
        finally:
            if self._current is this:
                self._stop.disable()
                self._spinner.set_visibility(False)
        self._show(outcome)

    def _show(self, outcome: Outcome) -> None:
        listed = "" if outcome.count == len(outcome.rows) else f"; the first {len(outcome.rows):,} are listed"
        ended = f" The run ended early, because {outcome.stopped}." if outcome.stopped else ""
        noun = "match" if outcome.count == 1 else "matches"
        self._ran = self._session.looked_at
        self._summary.text = (
            f"{outcome.count:,} {noun} in {outcome.events:,} events, {outcome.seconds:.2f} s{listed}.{ended}"
        )
        self._rows = outcome.rows
        self._events = outcome.events
        self._drawn = False
        self._picture.clear()
        self._frame = None
        self._view.value = False
        for part in (self._table, self._view):
            part.set_visibility(bool(outcome.rows))
        self._detail.clear()
        names = sorted(outcome.rows[0] if outcome.rows else (), key=BOOKKEEPING.__contains__)
        self._table.columns = [
            {"name": name, "label": name, "field": name, "sortable": True, "align": "left"} for name in ("#", *names)
        ]
        self._table.rows = [
            {"#": k, **{name: _events(row) if name == "events" else _cell(row[name]) for name in names}}
            for k, row in enumerate(outcome.rows, 1)
        ]

    def forget(self) -> None:
        """Say of matches that they are not those of the present text."""
        if self._ran is not None and self._ran != self._session.looked_at:
            self._ran = None
            self._summary.text += " The query has changed since."

    def paint(self, dark: bool) -> None:
        """Show the picture of the matches dark or light."""
        self._dark = dark
        if self._frame is not None:
            theme = "dark" if dark else "light"
            self._frame.props(f'src="{self._page}#{theme}"')

    async def _opened(self) -> None:
        """Draw the matches in their stream, once that is wanted."""
        if not self._view.value or self._drawn:
            return
        self._drawn = True
        self._picture.clear()
        try:
            await asyncio.to_thread(self._session.draw_matches, self._events, int(self._most.value or 1))
        except (CerflowError, ValueError) as error:
            with self._picture:
                ui.label(sentence(error)).classes("text-sm")
            return
        with self._picture:
            # A new address each time, so that the browser does not show a former one.
            self._page = f"/matches?{time.time_ns()}"
            self._frame = (
                ui.element("iframe")
                .props('title="Matches in the stream"')
                .classes("w-full border-0")
                .style("height: 70vh")
            )
            self.paint(self._dark)

    def _chosen(self, e: Any) -> None:
        row = self._rows[int(e.args[1]["#"]) - 1]
        self._detail.clear()
        with self._detail, ui.card().classes("w-full mt-3"):
            with ui.row().classes("w-full items-center"):
                ui.label(f"Match {e.args[1]['#']}, detected at event {row['detected_at']}").classes("font-medium")
                ui.space()
                if row["detected_at"] is not None:
                    ui.button("Step to it", on_click=lambda: self._step_to(row)).props("flat no-caps")
                if row.get("events"):
                    pairs = [(label, event["position"]) for event in row["events"] for label in event["labels"]]
                    ui.button("Ask about it", on_click=lambda: self._ask_about(pairs)).props("flat no-caps")
            found = row.get("events") or []
            untyped = self._session.events is not None and self._session.events.type is None
            names = [name for name in (found[0] if found else ()) if name != "type" or not untyped]
            ui.table(
                rows=[{name: _cell(event[name]) for name in names} for event in found],
                columns=[{"name": n, "label": n, "field": n, "align": "left"} for n in names],
                row_key="position",
            ).props("flat dense").classes("w-full")


def _cell(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else shown_value(value)


def _events(row: dict[str, Any]) -> str:
    return "  ".join(f"{'/'.join(event['labels'])}@{event['position']}" for event in row.get("events") or [])
