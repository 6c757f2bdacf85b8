"""The editor of the studio: colours, marks of errors, completion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui

from cerflow.base.errors import QueryWarning
from cerflow.look.studying.wording import sentence
from cerflow.studio.colouring import coloured
from cerflow.studio.session import Problem, StudioSession


class QueryBox:
    """A text of the query language that colours words and marks problems as one types; ``typed`` gets each new text."""

    def __init__(
        self, session: StudioSession, name: str, typed: Callable[[str], object], run: Callable[[], object] | None = None
    ) -> None:
        self._session = session
        self._name = name
        keys: dict[str, Any] = {} if run is None else {"Mod-Enter": lambda: run()}
        self.box = ui.codemirror(
            session.text, on_change=lambda _: typed(self.text), line_wrapping=True, keymap=keys
        ).classes("w-full")

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self.box.value or ""

    async def hook(self) -> None:
        """Hook completion into the editor, as soon as the page has it."""
        await ui.run_javascript(f"studio.complete({self.box.id}, {json.dumps(self._name)})", timeout=10)

    def paint(self, dark: bool) -> None:
        """Show the text on a dark or a light page."""
        self.box.theme = "basicDark" if dark else "basicLight"

    def mark(self, problems: Sequence[Problem]) -> None:
        """Colour the words, and mark the stretches that problems are about."""
        events, text = self._session.events, self.text
        marks = [
            {"kind": "mark", "from": word.start, "to": word.end, "class": f"ce-{word.kind}"}
            for word in coloured(text, () if events is None else events.types)
        ]
        for problem in problems:
            if text and problem.span is not None:
                # A mark needs a character; at the end of the text that is the last one.
                start = min(problem.span.start, len(text) - 1)
                end = min(max(problem.span.end, start + 1), len(text))
                kind = "ce-warning" if isinstance(problem, QueryWarning) else "ce-error"
                marks.append({"kind": "mark", "from": start, "to": end, "class": kind})
        # Not by the property: that would also send the text, which may be older than what has been typed meanwhile.
        self.box.run_method("setDecorations", marks)


class QueryEditor:
    """An editor over the text of a session; ``settled`` is called when the text has rested for a moment."""

    def __init__(self, session: StudioSession, settled: Callable[[], None], run: Callable[[], object]) -> None:
        self._session = session
        self._settled = settled
        self._resting: asyncio.Task[None] | None = None
        self._box = QueryBox(session, "Query", self._typed, run)
        self._box.box.classes("h-full")
        #: The line that says whether the query is valid.
        self.line = ui.row().classes("w-full items-start gap-2 px-3 py-2 min-h-12 no-wrap").props("role=status")
        with self.line:
            self._sign = ui.icon("check_circle", size="sm")
            self._said = ui.label().classes("text-sm whitespace-pre-wrap flex-1")
        self.paint = self._box.paint
        ui.timer(0.2, self._hook, once=True)

    async def _hook(self) -> None:
        await self._box.hook()
        self.refresh()

    def _typed(self, text: str) -> None:
        self._session.text = text
        self._mark(self._session.problems())
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.create_task(self._rest())

    async def _rest(self) -> None:
        await asyncio.sleep(0.4)
        self.refresh()

    def refresh(self) -> None:
        """Look at the text again, as after other events have been loaded or another text has been put there."""
        if self._box.text != self._session.text:
            self._box.box.value = self._session.text
        self._mark(self._session.problems() or self._session.doubts())
        words = json.dumps(self._session.completions())
        self.line.client.run_javascript(f"window.cerflowWords = {words}")
        self._settled()

    def _mark(self, problems: Sequence[Problem]) -> None:
        self._box.mark(problems)
        if not problems:
            self._sign.props("name=check_circle color=positive")
            self._said.text = "The query is valid" + ("." if self._session.events else "; open a file to run it.")
            return
        first = problems[0]
        doubt = isinstance(first, QueryWarning)
        self._sign.props("name=warning color=warning" if doubt else "name=error color=negative")
        place = "" if first.line is None else f"line {first.line}, column {first.column}: {first.reason}"
        hint = f"\n{sentence(first.hint)}" if first.hint else ""
        self._said.text = (place or sentence(first.reason)) + hint
