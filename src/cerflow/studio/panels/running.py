"""The matches of the sample, as a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from nicegui import background_tasks, ui

from cerflow.base.errors import CerflowError, counted
from cerflow.engine.kernels.base.library import find_library
from cerflow.studio.panels.work import NUMBER, Grid, WorkLine, heading, text_button
from cerflow.studio.runs import Outcome, run_query
from cerflow.studio.session import StudioSession

#: Steps to an event of a match.
_STEP_BUTTON = """
<q-td :props="props">
  <q-btn flat dense no-caps color="primary" :label="props.value" :aria-label="`Step to event ${props.value}`"
    @click="() => $parent.$emit('step', props.value)" />
</q-td>"""


class RunningPanel:
    """Runs the query on the sample, with a limit and a time, and shows its matches."""

    def __init__(
        self,
        session: StudioSession,
        step_to: Callable[[dict[str, Any], int | None], None],
        ask_about: Callable[[list[str]], None],
    ) -> None:
        self._session = session
        self._match: dict[str, Any] = {}
        self._events_asked: list[str] = []
        self._chosen = 0
        self._dark = False
        self._page = ""
        with ui.row().classes("items-center gap-4 w-full"):
            most = ui.number("Matches listed", min=1, max=1_000_000, format="%d").bind_value(session, "most")
            seconds = ui.number("Seconds at most", min=1).bind_value(session, "seconds")
            for box in (most, seconds):
                box.classes("w-32")
            self._bookkeeping = ui.switch("All columns", on_change=self._list)
        with ui.column().classes("w-full gap-0 py-2"):
            self._work = WorkLine(session, "Run the query with Ctrl+Enter.")
            self._stale = ui.label().classes("text-sm font-medium").props("role=status")
            self._none = text_button("Why are there none?", lambda: ask_about([]))
        self._results = ui.row().classes("w-full gap-3 items-stretch")
        with self._results:
            self._frame = ui.element("iframe").props('title="Matches in the stream"').classes("w-full border-0 cs-line")
            self._frame.on("chosen", lambda e: self._choose(int(e.args["detail"]) + 1), ["detail"])
            self._grid = Grid("Matches", self._choose)
            self._grid.element.classes("cs-beside")
            self._detail = ui.card().classes("cs-beside")
            with self._detail:
                self._title = heading()
                with ui.row().classes("w-full"):
                    self._stepped = text_button("Step to it", lambda: step_to(self._match, None))
                    self._asked = text_button("Ask about it", lambda: ask_about(self._events_asked))
                self._events = ui.table(rows=[], columns=[], row_key="position").classes("w-full")
                self._events.props('flat dense aria-label="Events of the match"')
                self._events.add_slot("body-cell-position", _STEP_BUTTON)
                self._events.on("step", lambda e: step_to(self._match, int(e.args)))
        self._show()

    async def run(self) -> None:
        """Run the query; a run that is under way is stopped first."""
        session = self._session
        reached = 0

        def told(events: int) -> None:
            nonlocal reached
            reached = events

        try:
            query, events = session.query(), session.loaded()
        except (CerflowError, ValueError) as error:
            self._work.fail(error)
        else:
            session.remember()
            most, seconds = int(session.most or 1), float(session.seconds or 1)
            ran = (session.text, events)
            first = " The first runs on a machine compile parts of the engine, which may take minutes."
            outcome = await self._work.run(
                lambda: f"Running …{'' if find_library() else first} {reached:,} events",
                lambda: run_query(query, events, most=most, seconds=seconds, told=told),
            )
            if outcome is not None:
                session.outcome, session.ran = outcome, ran
                self._show()
        self.forget()

    def _show(self) -> None:
        outcome = self._session.outcome
        self._chosen = 0
        for part, seen in (
            (self._detail, False),
            (self._frame, False),
            (self._bookkeeping, outcome is not None and bool(outcome.table.num_rows)),
            (self._none, outcome is not None and not outcome.count),
        ):
            part.set_visibility(seen)
        if outcome is not None:
            self._work.say(_summary(outcome))
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
        session, said = self._session, ""
        if session.outcome is not None:
            text, events = session.ran
            changed = {"query": text != session.text, "file": events is not session.events}
            names = [name for name, other in changed.items() if other]
            if names:
                said = f"The {' and the '.join(names)} {'has' if len(names) == 1 else 'have'} changed since this run."
            elif self._work.failed:
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
            self._frame.client.run_javascript(f"studio.listen({self._frame.id})")

    def _choose(self, number: int) -> None:
        session, outcome = self._session, self._session.outcome
        assert outcome is not None
        if not number or number == self._chosen:
            return
        self._chosen = number
        self._grid.mark(number)
        self._frame.client.run_javascript(f"studio.choose({self._frame.id}, {number - 1})")
        row = self._match = outcome.match(number - 1)
        self._events_asked = outcome.asked(row)
        found = row.get("events") or []
        at = row["detected_at"]
        self._title.text = f"Match {number}" + ("" if at is None else f", detected at event {at}")
        self._stepped.set_visibility(at is not None)
        self._asked.set_visibility(bool(found))
        events = session.events
        left_out = set() if events is not None and events.type is not None else {"type"}
        first = ["position", "labels", "" if events is None else events.time]
        own = dict.fromkeys(found[0] if found else ())
        names = [*(name for name in first if name in own), *(n for n in own if n not in (*first, *left_out))]
        self._events.columns = [{"name": n, "label": n, "field": n, "align": "left"} for n in names]
        rows = [event | {"labels": outcome.own_labels(event["labels"])} for event in found]
        self._events.rows = [session.shown({name: row[name] for name in names}) for row in rows]
        self._detail.set_visibility(True)
        ui.run_javascript(f"getHtmlElement({self._detail.id}).scrollIntoView({{block: 'nearest'}})")


def _summary(outcome: Outcome) -> str:
    rows = outcome.table.num_rows
    listed = "" if outcome.count == rows else f"; the first {rows:,} are listed"
    ended = f" The run ended early, because {outcome.stopped}." if outcome.stopped else ""
    found = counted(outcome.count, "match", "matches")
    return f"{found} in {outcome.events:,} events, {outcome.seconds:.2f} s{listed}.{ended}"
