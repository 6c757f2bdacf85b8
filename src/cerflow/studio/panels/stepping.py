"""The stream event by event: what each one does to the automaton."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

from nicegui import ui

from cerflow import limits
from cerflow.drawing.boxes import Mark
from cerflow.drawing.formula_svg import formula_svg
from cerflow.errors import CerflowError
from cerflow.studio.panels.drawing import automaton_svg, icon_button
from cerflow.studio.panels.running import WorkLine
from cerflow.studio.session import StoppedError, StudioSession
from cerflow.studying.parts import TracedParts
from cerflow.studying.steps import LivingConfiguration, PassedDeadline, TracedEvent
from cerflow.studying.tracing import Trace
from cerflow.studying.wording import sentence, shown_pairs, shown_value
from cerflow.values.complex_events import UNNAMED

_T = TypeVar("_T")


class SteppingPanel:
    """Steps through a stretch of the sample, from a chosen match if there is one; ``draw`` shows a step on the picture.

    Positions are those of the whole sample.
    """

    def __init__(
        self, session: StudioSession, draw: Callable[[], object], ask_about: Callable[[list[str]], object]
    ) -> None:
        self._session = session
        self._draw = draw
        self._ask_about = ask_about
        self._trace: Trace | None = None
        self._parts: TracedParts | None = None
        # Index of the step that is shown: a deadline that the present event passes, or the event itself.
        self._shown_step = 0
        self._position = 0
        self._step: TracedEvent | PassedDeadline | None = None
        self._marks: Mapping[int, Mark] = {}
        self._aim: tuple[dict[str, Any], int | None] | None = None
        # The text, the sample and the query that are traced.
        self._traced: tuple[object, ...] = ()
        with ui.row().classes("items-center gap-2 w-full"):
            icon_button("chevron_left", "Back (Alt+←)", lambda: self.move(-1)).mark("back")
            # What is typed counts once it rests, so that the field and the page always tell of the same event.
            self._number = (
                ui.number("Event", value=0, min=0, format="%d", on_change=self._typed).classes("w-24").mark("event")
            ).props("debounce=300")
            icon_button("chevron_right", "Forward (Alt+→)", lambda: self.move(1)).mark("on")
            ui.button("Next match", icon="skip_next", on_click=self._next_match).props("flat dense no-caps").mark(
                "next-match"
            )
            self._again = ui.button("Begin again", on_click=self.begin).props("outline no-caps").mark("begin")
        self._again.set_visibility(False)
        self._slider = ui.slider(min=0, max=1, value=0).props('aria-label="Event of the section"').classes("px-3")
        self._slider.on("change", lambda e: self.go(int(e.args)))
        self._slider.set_visibility(False)
        self._match = ui.row().classes("w-full items-center gap-1 text-sm")
        self._work = WorkLine(session)
        self._note = self._work.label.mark("step-note")
        self._shown = ui.column().classes("w-full gap-3")

    def forget(self) -> None:
        """Drop the steps, unless they are those of the present query and sample."""
        if self._traced != self._session.looked_at:
            self._work.stop()
            if self._trace is not None:
                self._trace = self._step = None
                self._shown.clear()
                self._match.clear()
                self._slider.set_visibility(False)
                self._note.text = "The query has changed."
                self._again.set_visibility(True)

    def picture(self, boxes: bool) -> str | None:
        """The step on the picture of the query, None if none is shown; raises `PictureError` if it is too large."""
        trace, step = self._trace, self._step
        if trace is None or self._parts is None or step is None:
            return None
        if boxes:
            return formula_svg(self._parts.tree, marks=self._marks)
        alive = {configuration.state for configuration in step.living}
        fired = {firing.transition for firing in step.fired}
        detected = {trace.transducer.transitions[n].target for n in fired} & trace.transducer.final
        return automaton_svg(trace.transducer, alive=alive, fired=fired, detected=detected)

    async def begin(self) -> bool:
        """Show the step of the match that is aimed at, or else the first one, unless a step is shown already."""
        if self._work.busy or self._session.events is None:
            return False
        if self._aim is not None:
            (match, position), self._aim = self._aim, None
            return await (self._reach_match(match) if position is None else self._to(position))
        if self._trace is not None:
            return False
        return await self._make(_section(self._position)) and await self._to(self._position)

    def _first(self) -> int:
        return 0 if self._trace is None else self._trace.sample.first

    def _typed(self) -> None:
        position = self._number.value
        if position is not None and int(position) != self._position:
            self.go(int(position))

    async def _make(self, first: int, size: int = limits.STUDIED_EVENTS) -> bool:
        """Trace another stretch. If that fails or is stopped, the former one stays."""
        self._traced = self._session.looked_at
        session = self._session
        try:
            trace = await self._work.run(
                lambda: session.progress or "Working …",
                lambda stopped: session.trace(first, size, stopped),
            )
            self._parts = TracedParts(trace.select, trace.sample)
        except StoppedError as stop:
            self._note.text = str(stop)
            return False
        except (CerflowError, ValueError) as error:
            self._note.text = sentence(error)
            return False
        self._trace = trace
        self._again.set_visibility(False)
        self._slider.props(f"min={first} max={first + len(trace) - 1} label")
        self._slider.set_visibility(True)
        return True

    def go(self, position: int) -> None:
        """Show what the event at a position does."""
        ui.timer(0, lambda: self._to(position), once=True)

    def aim(self, match: dict[str, Any], position: int | None) -> None:
        """Keep the events of a match in sight, and begin with the step that detects it (None), or with one of them."""
        self._aim = match, position
        self._focus(match)

    async def _reach_match(self, match: dict[str, Any]) -> bool:
        """Show the step that detects a match, in a stretch that has all its events."""
        start, end = match["start"], match["detected_at"]
        first = max(0, (end if start is None else start) - limits.STUDIED_EVENTS // 4)
        if not await self._make(first, max(limits.STUDIED_EVENTS, end + 1 - first)):
            return False
        trace = self._trace
        assert trace is not None
        # An event of another key may show that a deadline has passed.
        shown = {position["position"] for position in match.get("events") or ()}

        def detecting(k: int) -> int | None:
            if k != end - first:
                return None
            steps = (*trace[k].before, trace[k])
            found = [n for n, step in enumerate(steps) if step.detected] or [len(steps) - 1]
            own = (n for n in found if any(shown <= {p for _, p in pairs} for pairs in steps[n].matches))
            return next(own, found[0])

        number = await self._walked(trace, 0, detecting)
        return number is not None and await self._to(end, number)

    def _focus(self, match: dict[str, Any]) -> None:
        """Keep the events of a match in sight."""
        outcome = self._session.outcome
        assert outcome is not None
        self._match.clear()
        with self._match:
            for event in match.get("events") or ():
                position, labels = event["position"], "/".join(outcome.own_labels(event["labels"]))
                shown = ui.button(f"{labels} {position}", on_click=partial(self.go, position))
                shown.props("flat dense no-caps").classes("px-2").mark("of-match")

    def move(self, by: Literal[1, -1]) -> None:
        """Go one step on, or back: to an event, or to a deadline that passes before it."""
        position = self._position
        if self._work.busy:
            return
        if self._trace is None:
            self.go(position)
        elif 0 <= self._shown_step + by <= len(self._trace[position - self._first()].before):
            ui.timer(0, lambda: self._to(position, self._shown_step + by), once=True)
        else:
            ui.timer(0, lambda: self._to(position + by, 0 if by == 1 else None), once=True)

    async def _to(self, position: int, number: int | None = None) -> bool:
        """Show a step of a position: the event (None), or a deadline before it by number. False if that fails."""
        try:
            return await self._reach(position, number)
        finally:
            self._number.value = self._slider.value = self._position

    async def _reach(self, position: int, number: int | None) -> bool:
        if self._work.busy:
            return False
        position = max(0, position)
        sample = None if self._trace is None else self._trace.sample
        there = sample is not None and sample.first <= position < sample.first + len(sample.events)
        if not (there or await self._make(_section(position))):
            return False
        trace = self._trace
        assert trace is not None
        place = min(position - self._first(), len(trace) - 1)
        number = number if place == position - self._first() else None
        parts = self._parts
        assert parts is not None

        def reached(k: int) -> tuple[TracedEvent, int, dict[int, Mark]] | None:
            if k != place:
                return None
            last = len(trace[k].before)
            shown = last if number is None else min(number, last)
            return trace[k], shown, parts.marks(k, shown)

        found = await self._walked(trace, 0, reached)
        if found is None or self._trace is not trace:
            return False
        step, self._shown_step, self._marks = found
        self._position = step.event.position
        steps: tuple[TracedEvent | PassedDeadline, ...] = (*step.before, step)
        self._note.text = (
            f"This section has the events {self._first()} to {self._first() + len(trace) - 1}; "
            "partial matches that begin before it are not seen."
            if self._first()
            else f"This section has the first {len(trace):,} events."
        )
        self._show(trace, steps[self._shown_step])
        return True

    async def _next_match(self) -> None:
        # The first step may still be under way.
        while self._step is None and self._work.busy:
            await asyncio.sleep(0.05)
        if self._work.busy:
            return
        if self._trace is None and not await self.begin():
            return
        trace = self._trace
        assert trace is not None
        start = self._position - self._first()
        past = self._shown_step

        def found(k: int) -> tuple[int, int] | None:
            for number, step in enumerate((*trace[k].before, trace[k])):
                if step.detected and (k > start or number > past):
                    return k, number
            return None

        place = await self._walked(trace, start, found)
        if place is not None:
            await self._to(place[0] + self._first(), place[1])

    async def _walked(self, trace: Trace, start: int, seek: Callable[[int], _T | None]) -> _T | None:
        """The first thing that is found from an event of the stretch on; if there is none, the note says why."""
        reached = start

        def walk(stopped: Callable[[], bool]) -> _T | None:
            nonlocal reached
            for reached in range(start, len(trace)):
                if stopped():
                    raise StoppedError(f"Stopped at event {reached + trace.sample.first}.")
                _ = trace[reached]
                found = seek(reached)
                if found is not None:
                    return found
            return None

        try:
            found = await self._work.run(lambda: f"Working … event {reached + trace.sample.first}", walk)
        except (CerflowError, StoppedError) as error:
            self._note.text = sentence(error)
            return None
        if found is None:
            self._note.text = "No further event of this section detects a match."
        return found

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _show(self, trace: Trace, step: TracedEvent | PassedDeadline) -> None:
        self._step = step
        self._draw()
        self._shown.clear()
        with self._shown:
            if isinstance(step, PassedDeadline):
                self._deadline(step)
            else:
                self._event(step)
            if isinstance(step, TracedEvent) and step.unread is not None:
                ui.label(f"The query does not read this event: {step.unread}.").classes("text-sm")
                return
            if step.detected:
                with ui.card().classes("w-full bg-positive text-white gap-0 p-3 no-wrap max-h-40 overflow-auto"):
                    more = f", of which {len(step.matches)} are shown" if step.detected > len(step.matches) else ""
                    noun = "match" if step.detected == 1 else "matches"
                    ui.label(f"{step.detected:,} {noun} detected{more}").classes("font-medium").mark("detected")
                    for pairs in step.matches:
                        ui.label(shown_pairs(pairs)).classes("font-mono text-sm")
            self._table("Live configurations", ["number", "state", "registers", "partial matches"], [
                _living(configuration) for configuration in step.living
            ])  # fmt: skip
            transitions = trace.transducer.transitions
            self._table("Transitions that were refused", ["from", "to", "because"], [
                {"from": f"{r.source} (q{transitions[r.transition].source})",
                 "to": f"q{transitions[r.transition].target}", "because": " and ".join(r.because)}
                for r in sorted(step.refused, key=lambda refusal: (refusal.source, refusal.transition))
            ])  # fmt: skip
            self._table("Partial matches that ended", ["configuration", "partial matches", "why"], [
                {"configuration": d.configuration.number, "partial matches": f"{d.count:,}", "why": d.words}
                for d in step.died
            ])  # fmt: skip

    def _event(self, step: TracedEvent) -> None:
        event = step.event
        with ui.row().classes("w-full items-baseline gap-3"):
            ui.label(f"Event {event.position}").classes("text-lg font-medium").mark("at")
            if event.type != UNNAMED:
                ui.badge(event.type).props("color=primary")
            if step.key:
                ui.label(f"key {', '.join(map(shown_value, step.key))}").classes("text-sm")
            ask = ui.button("Ask about it", on_click=lambda: self._ask_about([str(event.position)]))
            ask.props("flat dense no-caps").classes("px-2")
            own = {name: value for name, value in event.attributes.items() if name[:1] != "\0"}
            values = [f"{name} {value}" for name, value in self._session.shown(own).items()]
            ui.label(" · ".join(values)).classes("text-sm opacity-80 font-mono")

    def _deadline(self, step: PassedDeadline) -> None:
        with ui.row().classes("w-full items-baseline gap-3"):
            ui.label(sentence(step.words)).classes("text-lg font-medium").mark("at")
            if step.key:
                ui.label(f"key {', '.join(map(shown_value, step.key))}").classes("text-sm")
            if step.shown_by is not None:
                ui.label(f"as event {step.shown_by.position} shows").classes("text-sm opacity-80")

    def _table(self, title: str, names: list[str], rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        columns = [
            {"name": n, "label": n, "field": n, "align": "left", "style": "white-space: pre-wrap"} for n in names
        ]
        numbered = [{"id": k, **row} for k, row in enumerate(rows)]
        ui.table(rows=numbered, columns=columns, row_key="id", pagination=8 if len(rows) > 8 else None).props(
            f'flat dense bordered aria-label="{title}"'
        ).classes("w-full")


def _section(position: int) -> int:
    """Where a section begins for an event: so far back that windows of most queries have room."""
    return max(0, position - limits.STUDIED_EVENTS // 4) if position >= limits.STUDIED_EVENTS // 2 else 0


def _living(configuration: LivingConfiguration) -> dict[str, Any]:
    some = "  ".join(shown_pairs(pairs) if pairs else "none yet" for pairs in configuration.some[:4])
    more = f"  … {configuration.count:,} in all" if configuration.count > 4 else ""
    return {
        "number": configuration.number,
        "state": f"q{configuration.state}",
        "registers": "\n".join(f"{name} = {content}" for name, content in configuration.registers),
        "partial matches": some + more,
    }
