"""The query as text for use outside the studio."""

from __future__ import annotations

from nicegui import ui

from cerflow.studio.exporting import exported
from cerflow.studio.session import StudioSession

_FILES = {"Query file": "query.ceql", "Python": "query.py", "PySpark": "query_spark.py", "Command": "query.sh"}


class ExportPanel:
    """Shows the query as a file, Python, PySpark and a command, to be copied or saved."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._shown = ui.column().classes("w-full gap-4")

    def refresh(self) -> None:
        """Show the present query."""
        events = self._session.events
        texts = exported(self._session.text, self._session.language, events)
        self._shown.clear()
        wrong = any(problem.certain for problem in self._session.problems())
        with self._shown:
            if wrong:
                ui.label("The query has an error, so these texts do not run yet.").classes("text-sm text-negative")
            for name, text in texts.items():
                with ui.column().classes("w-full gap-1"):
                    with ui.row().classes("w-full items-center"):
                        ui.label(name).classes("text-xs uppercase tracking-wide opacity-60")
                        ui.space()
                        ui.button("Save", icon="download", on_click=lambda n=name, t=text: _save(n, t)).props(
                            "flat dense no-caps"
                        ).mark(f"save {name}")
                    language = "python" if name.startswith("Py") else "bash" if name == "Command" else "text"
                    ui.code(text, language=language).classes("w-full").mark(f"export {name}")


def _save(name: str, text: str) -> None:
    ui.download.content(text, _FILES[name])
