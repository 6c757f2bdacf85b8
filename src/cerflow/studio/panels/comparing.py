"""The query compared with another: what is proven of the formulas, the other clauses, and the matches in the sample."""

from __future__ import annotations

from nicegui import ui

from cerflow.api.equivalence import Verdict
from cerflow.api.programs.program import Program
from cerflow.base.errors import CerflowError, counted
from cerflow.look.studying.wording import shown_pairs
from cerflow.studio.panels.editor import QueryBox
from cerflow.studio.panels.work import WorkLine, heading
from cerflow.studio.runs import SampleDifference, difference_in, other_clauses
from cerflow.studio.session import StudioSession


class ComparingPanel:
    """Compares the query with another one."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._compared: tuple[object, ...] = ()
        ui.label("Write another query, to compare it with the one in the editor.").classes("text-sm")
        self._other = QueryBox(session, "Other query", self._typed)
        self._other.box.classes("h-32 border border-gray-500/30")
        self.paint = self._other.paint
        ui.button("Compare", on_click=self._compare).props("no-caps")
        self._work = WorkLine(session)
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
        session, text = self._session, self._other.text
        self._compared = (session.looked_at, text)
        try:
            first, second = session.single_query(), session.other_query(text)
        except (CerflowError, ValueError) as error:
            self._work.fail(error)
            return
        others = other_clauses(first.tree, second.tree)
        with self._answer:
            heading("The clauses besides the formula")
            ui.label("They are the same." if not others else "They differ, in what follows:")
            for pair in others:
                ui.label(f"{pair[0]}; in the other query {pair[1]}").classes("font-mono text-sm")
        # The file first, as a proof may take long.
        if session.events is not None and not isinstance(session.query(), Program):
            loaded = session.events
            counts = await self._work.run(
                lambda: "Both queries run on the file …", lambda: difference_in(first, second, loaded)
            )
            if counts is None:
                return
            with self._answer:
                _count(counts, loaded.title)
        found = await self._work.run(
            lambda: "The formulas are compared for all streams …", lambda: session.compared(text)
        )
        if found is None:
            return
        with self._answer:
            heading("The formulas, in every stream")
            ui.label(_said(*found)).classes("font-medium")
            if found[0].verdict is False:
                _difference(found[0], "type" if session.schema is None else session.schema.type)


def _count(counts: SampleDifference, title: str) -> None:
    heading(f"The matches in {title}")
    for number, whose in (
        (counts.both, "of both queries"),
        (counts.first, "only of the query in the editor"),
        (counts.second, "only of the other query"),
    ):
        ui.label(f"{counted(number, 'match', 'matches')} {whose}")
    if counts.stopped:
        ui.label(f"Of the first {counts.events:,} events only, because {counts.stopped}.").classes("text-sm")


def _said(same: Verdict, first: Verdict, second: Verdict) -> str:
    if same.verdict is None:
        return f"It is not known whether they are equivalent: {same.reason}."
    if same.verdict:
        return "They are equivalent: they have the same matches."
    if first.verdict:
        return "Each match of the formula in the editor is a match of the other formula, which has more."
    if second.verdict:
        return "Each match of the other formula is a match of the formula in the editor, which has more."
    return "They are different: each has matches that the other has not."


def _difference(verdict: Verdict, kind: str) -> None:
    assert verdict.stream is not None
    assert verdict.complex_event is not None
    by = "the formula in the editor" if verdict.detected_by == "first" else "the other formula"
    pairs = shown_pairs(verdict.complex_event)
    ui.label(f"In this stream only {by} has the match {pairs}, detected at event {verdict.detected_at}:").classes(
        "text-sm"
    )
    with ui.row().classes("gap-2 items-stretch"):
        for position, event in enumerate(verdict.stream):
            labels = sorted(label for label, p in verdict.complex_event if p == position)
            with ui.card().classes("gap-1 p-2" + (" bg-primary text-white" if labels else "")):
                ui.label(f"{position}: {event[kind]}").classes("font-medium")
                for name, value in event.items():
                    if name != kind and value is not None:
                        ui.label(f"{name} = {value}").classes("text-xs font-mono")
                ui.label(", ".join(labels)).classes("text-xs")
