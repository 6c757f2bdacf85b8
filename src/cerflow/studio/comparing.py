"""The query compared with another: equivalent, contained, or a stream that distinguishes them."""

from __future__ import annotations

import asyncio

from nicegui import ui

from cerflow.equivalence import Verdict
from cerflow.errors import CerflowError
from cerflow.studio.editor import QueryBox
from cerflow.studio.session import StudioSession
from cerflow.studying.wording import sentence, shown_pairs


class ComparingPanel:
    """Compares the formula of the query with that of another one."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._compared: tuple[object, ...] = ()
        ui.label(
            "Compare the formula of the query with that of another query (keys and windows do not count)."
        ).classes("text-sm")
        self._other = QueryBox(session, "Other query", self._typed)
        self._other.box.classes("h-32 border border-gray-500/30").mark("other")
        self.paint = self._other.paint
        ui.button("Compare", on_click=self._compare).props("no-caps").mark("compare")
        self._answer = ui.column().classes("w-full gap-2 py-3").props("role=status")

    async def begin(self) -> None:
        """Prepare the editor, which is made again whenever the panel comes to sight."""
        await self._other.hook()
        self._typed(self._other.text)

    def _typed(self, text: str) -> None:
        self._other.mark(self._session.problems(text))
        self.forget()

    def forget(self) -> None:
        """Drop an answer that is not of the present queries."""
        if self._compared != (self._session.looked_at, self._other.text):
            self._answer.clear()

    async def _compare(self) -> None:
        self._answer.clear()
        self._compared = (self._session.looked_at, self._other.text)
        try:
            same, first, second = await asyncio.to_thread(self._session.compared, self._other.text)
        except (CerflowError, ValueError) as error:
            with self._answer:
                ui.label(sentence(error)).classes("text-negative whitespace-pre-wrap font-mono text-sm").mark("verdict")
            return
        with self._answer:
            ui.label(_said(same, first, second)).classes("font-medium").mark("verdict")
            if same.verdict is False:
                schema = self._session.schema
                _difference(same, "type" if schema is None else schema.type)


def _said(same: Verdict, first: Verdict, second: Verdict) -> str:
    if same.verdict is None:
        return f"It is not known whether they are equivalent: {same.reason}."
    if same.verdict:
        return "They are equivalent: both have the same matches in every stream."
    if first.verdict:
        return "Every match of the query is one of the other, but not the other way round."
    if second.verdict:
        return "Every match of the other is one of the query, but not the other way round."
    return "They are different."


def _difference(verdict: Verdict, kind: str) -> None:
    assert verdict.stream is not None
    assert verdict.complex_event is not None
    by = "the query" if verdict.detected_by == "first" else "the other"
    pairs = shown_pairs(verdict.complex_event)
    ui.label(f"In this stream only {by} has the match {pairs}, detected at event {verdict.detected_at}:").classes(
        "text-sm"
    )
    labels: dict[int, list[str]] = {}
    for label, position in sorted(verdict.complex_event):
        labels.setdefault(position, []).append(label)
    with ui.row().classes("gap-2 items-stretch"):
        for position, event in enumerate(verdict.stream):
            with ui.card().classes("gap-1 p-2" + (" bg-primary text-white" if position in labels else "")):
                ui.label(f"{position}: {event[kind]}").classes("font-medium")
                for name, value in event.items():
                    if name != kind and value is not None:
                        ui.label(f"{name} = {value}").classes("text-xs font-mono")
                ui.label(", ".join(labels.get(position, []))).classes("text-xs")
