"""The stream event by event: what each one does to the automaton."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from nicegui import ui

from cerflow.base import limits
from cerflow.base.errors import counted
from cerflow.base.events import UNNAMED
from cerflow.engine.stopping import look
from cerflow.look.pictures.boxes import Mark
from cerflow.look.pictures.formula_svg import formula_svg
from cerflow.look.studying.parts import TracedParts
from cerflow.look.studying.steps import LivingConfiguration, PassedDeadline, TracedEvent
from cerflow.look.studying.tracing import Trace
from cerflow.look.studying.wording import sentence, shown_value
from cerflow.studio.panels.drawing import automaton_svg
from cerflow.studio.panels.work import WorkLine, icon_button, show_table, text_button
from cerflow.studio.runs import StoppedError
from cerflow.studio.session import StudioSession

#: The deadlines that an event shows to have passed, and last the event itself.
_Steps = Sequence[PassedDeadline | TracedEvent]


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
            icon_button("chevron_left", "Back (Alt+←)", lambda: self.move(-1))
            # What is typed counts once it rests, so that the field and the page always tell of the same event.
            self._number = ui.number("Event", value=0, min=0, format="%d", on_change=self._typed).classes("w-24")
            self._number.props("debounce=300")
            icon_button("chevron_right", "Forward (Alt+→)", lambda: self.move(1))
            text_button("Next match", self._next_match, "skip_next")
            self._again = ui.button("Begin again", on_click=self.begin).props("outline no-caps")
        self._slider = ui.slider(min=0, max=1, value=0).props('aria-label="Event of the section"').classes("px-3")
        self._slider.on("change", lambda e: self.go(int(e.args)))
        for part in (self._again, self._slider):
            part.set_visibility(False)
        self._match = ui.row().classes("w-full items-center gap-1 text-sm")
        self._work = WorkLine(session)
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
                self._work.say("The query has changed.")
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

    # -- where to go -------------------------------------------------------------------------------------------------

    def aim(self, match: dict[str, Any], position: int | None) -> None:
        """Keep the events of a match in sight, and begin with the step that detects it (None), or with one of them."""
        self._aim = match, position
        outcome = self._session.outcome
        assert outcome is not None
        self._match.clear()
        with self._match:
            for event in match.get("events") or ():
                name = "/".join(outcome.own_labels(event["labels"]))
                text_button(f"{name} {event['position']}", partial(self.go, event["position"]))
            text_button("Ask about the match", partial(self._ask_about, outcome.asked(match)))

    async def begin(self) -> bool:
        """Show the step of the match that is aimed at, or else the first one, unless a step is shown already."""
        if self._work.busy or self._session.events is None:
            return False
        if self._aim is not None:
            (match, position), self._aim = self._aim, None
            return await (self._reach_match(match) if position is None else self._to(position))
        return self._trace is None and await self._to(self._position)

    def _typed(self) -> None:
        position = self._number.value
        if position is not None and int(position) != self._position:
            self.go(int(position))

    def go(self, position: int, number: int | None = None) -> None:
        """Show what the event at a position does, or the deadline before it with a number."""
        ui.timer(0, lambda: self._to(position, number), once=True)

    def move(self, by: Literal[1, -1]) -> None:
        """Go one step on, or back: to an event, or to a deadline that passes before it."""
        position, number = self._position, self._shown_step + by
        if self._trace is None:
            self.go(position)
        elif not self._work.busy and 0 <= number <= len(self._trace[position - self._trace.sample.first].before):
            self.go(position, number)
        elif by == 1:
            self.go(position + 1, 0)
        else:
            self.go(position - 1)

    async def _next_match(self) -> None:
        # The first step may still be under way.
        while self._step is None and self._work.busy:
            await asyncio.sleep(0.05)
        if self._trace is None and not await self.begin():
            return
        assert self._trace is not None
        start, past = self._position - self._trace.sample.first, self._shown_step

        def detecting(k: int, steps: _Steps) -> int | None:
            return next((n for n, step in enumerate(steps) if step.detected and (k > start or n > past)), None)

        await self._seek(self._trace, start, detecting)

    async def _reach_match(self, match: dict[str, Any]) -> bool:
        """Show the step that detects a match, in a stretch that has all its events."""
        start, end = match["start"], match["detected_at"]
        first = max(0, (end if start is None else start) - limits.STUDIED_EVENTS // 4)
        trace = await self._make(first, max(limits.STUDIED_EVENTS, end + 1 - first))
        if trace is None:
            return False
        # An event of another key may show that a deadline has passed.
        shown = {position["position"] for position in match.get("events") or ()}

        def detecting(k: int, steps: _Steps) -> int | None:
            if k < end - first:
                return None
            found = [n for n, step in enumerate(steps) if step.detected] or [len(steps) - 1]
            own = (n for n in found if any(shown <= {p for _, p in pairs} for pairs in steps[n].matches))
            return next(own, found[0])

        return await self._seek(trace, 0, detecting)

    async def _to(self, position: int, number: int | None = None) -> bool:
        """Show a step of a position, the event unless a number is given. False if that fails."""
        if not self._work.busy and await self._reach(max(0, position), number):
            return True
        self._number.value = self._slider.value = self._position
        return False

    async def _reach(self, position: int, number: int | None) -> bool:
        trace = self._trace
        if trace is None or not trace.sample.first <= position < trace.sample.end:
            # So far back that windows of most queries have room.
            near = position < limits.STUDIED_EVENTS // 2
            trace = await self._make(0 if near else position - limits.STUDIED_EVENTS // 4)
        if trace is None:
            return False
        wanted, last = position - trace.sample.first, len(trace) - 1

        def reached(k: int, steps: _Steps) -> int | None:
            if k < min(wanted, last):
                return None
            return len(steps) - 1 if number is None or wanted > last else min(number, len(steps) - 1)

        return await self._seek(trace, 0, reached)

    async def _make(self, first: int, size: int = limits.STUDIED_EVENTS) -> Trace | None:
        """Trace another stretch. If that fails or is stopped, the former one stays."""
        session = self._session
        self._traced = session.looked_at

        def made() -> tuple[Trace, TracedParts]:
            trace = session.trace(first, size)
            return trace, TracedParts(trace.select, trace.sample)

        found = await self._work.run(session.progress, made)
        if found is None:
            return None
        self._trace, self._parts = found
        self._again.set_visibility(False)
        self._slider.props(f"min={first} max={first + len(self._trace) - 1} label")
        self._slider.set_visibility(True)
        return self._trace

    async def _seek(self, trace: Trace, start: int, find: Callable[[int, _Steps], int | None]) -> bool:
        """Show the first step that is found, by its number, from an event on; else the note says why there is none."""
        reached, first, parts = start, trace.sample.first, self._parts
        assert parts is not None

        def walk() -> tuple[int, dict[int, Mark]] | None:
            nonlocal reached
            try:
                for reached in range(start, len(trace)):
                    look()
                    number = find(reached, trace[reached].steps)
                    if number is not None:
                        return number, parts.marks(reached, number)
            except StoppedError:
                raise StoppedError(f"stopped at event {reached + first}.") from None
            return None

        found = await self._work.run(lambda: f"Working … event {reached + first}", walk)
        if found is None and not self._work.failed:
            self._work.say("No further event of this section detects a match.")
        if found is None or self._trace is not trace:
            return False
        self._shown_step, self._marks = found
        self._position = self._number.value = self._slider.value = reached + first
        beginning = (
            f"This section has the events {first} to {first + len(trace) - 1}; "
            "partial matches that begin before it are not seen."
        )
        self._work.say(beginning if first else f"This section has the first {len(trace):,} events.")
        self._show(trace, trace[reached].steps[self._shown_step])
        return True

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _show(self, trace: Trace, step: TracedEvent | PassedDeadline) -> None:
        self._step = step
        self._draw()
        self._shown.clear()
        own_labels = self._session.own_labels

        def living(configuration: LivingConfiguration) -> dict[str, Any]:
            some = "  ".join(own_labels(pairs) if pairs else "none yet" for pairs in configuration.some[:4])
            more = f"  … {configuration.count:,} in all" if configuration.count > 4 else ""
            remembered = "\n".join(f"{name} = {content}" for name, content in configuration.registers)
            return {"#": configuration.number, "state": f"q{configuration.state}", "remembered": remembered,
                    "partial matches": some + more}  # fmt: skip

        with self._shown:
            with ui.row().classes("w-full items-baseline gap-3"):
                self._head(step)
            if isinstance(step, TracedEvent) and step.unread is not None:
                ui.label(f"The query does not read this event: {step.unread}.").classes("text-sm")
                return
            if step.detected:
                card = ui.card().classes("w-full bg-positive text-white gap-0 p-3 no-wrap max-h-40 overflow-auto")
                with card.props('tabindex=0 role=group aria-label="Matches"'):
                    more = f", of which {len(step.matches)} are shown" if step.detected > len(step.matches) else ""
                    ui.label(f"{counted(step.detected, 'match', 'matches')} detected{more}").classes("font-medium")
                    for pairs in step.matches:
                        ui.label(own_labels(pairs)).classes("font-mono text-sm")
            transitions = trace.transducer.transitions
            refused = sorted(step.refused, key=lambda refusal: (refusal.source, refusal.transition))
            for title, rows in {
                "Partial matches that wait": [living(configuration) for configuration in step.living],
                "Arrows that were not taken": [
                    {"of": r.source, "from": f"q{transitions[r.transition].source}",
                     "to": f"q{transitions[r.transition].target}", "because": " and ".join(r.because)}
                    for r in refused
                ],
                "Partial matches that ended": [
                    {"#": d.configuration.number, "partial matches": f"{d.count:,}", "why": d.words} for d in step.died
                ],
            }.items():  # fmt: skip
                if rows:
                    show_table(title, list(rows[0]), rows).props("bordered")

    def _head(self, step: TracedEvent | PassedDeadline) -> None:
        event = step.event if isinstance(step, TracedEvent) else None
        if isinstance(step, PassedDeadline):
            ui.label(sentence(step.words)).classes("text-lg font-medium")
        else:
            ui.label(f"Event {step.event.position}").classes("text-lg font-medium")
        if event is not None and event.type != UNNAMED:
            ui.badge(event.type).props("color=primary")
        if step.key:
            ui.label(f"key {', '.join(map(shown_value, step.key))}").classes("text-sm")
        if isinstance(step, PassedDeadline) and step.shown_by is not None:
            ui.label(f"as event {step.shown_by.position} shows").classes("text-sm opacity-80")
        if event is not None:
            text_button("Ask about it", partial(self._ask_about, [str(event.position)]))
            own = {name: value for name, value in event.attributes.items() if name[:1] != "\0"}
            values = [f"{name} {value}" for name, value in self._session.shown(own).items()]
            ui.label(" · ".join(values)).classes("text-sm opacity-80 font-mono")
