"""Work beside the page, and what many panels have: buttons, headings, and tables, also of any number of rows."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from nicegui import ui

from cerflow.base.errors import CerflowError
from cerflow.look.studying.wording import sentence
from cerflow.studio.runs import StoppedError, stopped_if
from cerflow.studio.session import StudioSession

_T = TypeVar("_T")


def icon_button(name: str, said: str, on_click: Callable[[], object]) -> ui.button:
    """A button with a picture alone, which says what it does to readers of screens, too."""
    return ui.button(icon=name, on_click=on_click).props(f'flat dense round aria-label="{said}" title="{said}"')


def text_button(text: str, on_click: Callable[[], object], icon: str | None = None) -> ui.button:
    """A button without a frame."""
    return ui.button(text, icon=icon, on_click=on_click).props("flat dense no-caps").classes("px-2")


def heading(text: str = "") -> ui.label:
    """The heading of a section."""
    return ui.label(text).classes("font-medium").props("role=heading aria-level=2")


def show_table(title: str, names: Sequence[str], rows: Sequence[dict[str, Any]], **more: Any) -> ui.table:
    """A table with a caption."""
    columns = [
        {"name": n, "label": n, "field": n, "align": "left", "style": "white-space: pre-wrap", **more} for n in names
    ]
    numbered = [{"id": k, **row} for k, row in enumerate(rows)]
    table = ui.table(rows=numbered, columns=columns, row_key="id", pagination=8 if len(rows) > 8 else None)
    return table.props(f'flat dense aria-label="{title}"').classes("w-full")


class WorkLine:
    """Two lines that show the progress of work, with a button that stops it, and what went wrong.

    One piece of work is done at a time; another one ends it.
    """

    def __init__(self, session: StudioSession, text: str = "") -> None:
        self._session = session
        with ui.row().classes("items-center gap-3 no-wrap"):
            self._label = ui.label(text).classes("text-sm opacity-80 whitespace-pre-wrap").props("role=status")
            self._button = ui.button("Stop", icon="stop", on_click=self.stop).props("outline dense no-caps")
            self._button.classes("px-2").set_visibility(False)
        self._problem = ui.label().classes("text-sm text-negative whitespace-pre-wrap font-mono empty:hidden")
        self._problem.props("role=alert")
        self._stopped = threading.Event()
        #: Whether something is under way.
        self.busy = False
        #: Whether the last work, or what was to lead to it, has failed.
        self.failed = False

    def stop(self) -> None:
        """Stop what is under way."""
        self._stopped.set()

    def say(self, text: str) -> None:
        """Show a text in place of an earlier one."""
        self.failed = False
        self._label.text, self._problem.text = text, ""

    def fail(self, error: Exception) -> None:
        """Say what went wrong."""
        self.say(sentence(error) if isinstance(error, StoppedError) else "")
        self.failed = True
        self._problem.text = "" if isinstance(error, StoppedError) else sentence(error)

    async def run(self, said: Callable[[], str], work: Callable[[], _T]) -> _T | None:
        """The result of work; None if it fails, which the line then says, or other work has begun since.

        The work may look whether it is to stop (`cerflow.engine.stopping`), which raises `StoppedError`.
        """
        self.stop()
        stopped = self._stopped = threading.Event()
        closing = self._session.closing

        def checked_work() -> _T:
            with stopped_if(lambda: stopped.is_set() or closing.is_set()):
                return work()

        self.busy = True
        self.say("")
        try:
            task = asyncio.create_task(asyncio.to_thread(checked_work))
            while not (await asyncio.wait([task], timeout=0.3))[0]:
                if stopped is self._stopped:
                    self._label.text = said()
                    self._button.set_visibility(True)
            found = await task
            return found if stopped is self._stopped else None
        except (CerflowError, ValueError, MemoryError) as error:
            if stopped is self._stopped:
                self.fail(error)
            return None
        finally:
            if stopped is self._stopped:
                self.busy = False
                self._button.set_visibility(False)
                self._label.text = self._label.text if self.failed else ""


#: Rows from a number to another, in the order of a column or as they come (None), backwards or not.
ReadRows = Callable[[int, int, str | None, bool], list[dict[str, Any]]]

#: The column with the numbers of rows.
NUMBER = "#"
_PAGE_ROWS = 100
_ALL: WeakValueDictionary[int, Grid] = WeakValueDictionary()
_NUMBERS = count()


class Grid:
    """A table that the browser reads by pages; ``chosen`` gets the number of a row that the user chooses.

    Rows are chosen by a click, Enter or the space bar. The chosen row is marked, unless ``stays`` is False: then it can
    be chosen again.
    """

    def __init__(self, name: str, chosen: Callable[[int], None], *, stays: bool = True) -> None:
        self._stays = stays
        self._name = name
        self._chosen = chosen
        self._read: ReadRows = lambda first, end, by, down: []
        self._number = next(_NUMBERS)
        self._version = 0
        _ALL[self._number] = self
        self.element = ui.aggrid({"columnDefs": []}, auto_size_columns=False).classes("w-full cs-grid")
        self.element.on("chosen", lambda e: self._chosen(int(e.args)))
        self.element.set_visibility(False)

    def show(self, columns: Sequence[str], sortable: Sequence[str], rows: int, read: ReadRows) -> None:
        """Show this many rows of these columns."""
        self._read = read
        self._version += 1
        self.element.options.clear()
        self.element.options.update(
            {
                "theme": "quartz",
                "columnDefs": [
                    {"field": name, ":valueGetter": f"e => e.data && e.data[{json.dumps(name)}]", "colId": name}
                    | {"headerName": name, "sortable": name in sortable}
                    | ({"width": 80} if name == NUMBER else {})
                    for name in columns
                ],
                "defaultColDef": {"resizable": True, "suppressMovable": True},
                "autoSizeStrategy": {"type": "fitCellContents"},
                "rowModelType": "infinite",
                "cacheBlockSize": _PAGE_ROWS,
                ":datasource": f"studio.rows({self._number}, {self._version}, {rows})",
                "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
                ":onRowSelected": f"e => studio.rowSelected(e, {self.element.id}, {json.dumps(self._stays)})",
                ":onCellKeyDown": "e => { if (e.event.key === 'Enter') e.node.setSelected(true); }",
                ":onGridReady": f"e => document.querySelectorAll('[role=grid]').forEach(g => g.ariaLabel ||= "
                f"{json.dumps(self._name)})",
                "ensureDomOrder": True,
                "rowHeight": 32,
                "headerHeight": 36,
            }
        )
        self.element.set_visibility(bool(rows))
        self.element.update()

    def mark(self, number: int) -> None:
        """Mark a row by its number, from 1, and bring it to sight."""
        self.element.client.run_javascript(f"studio.mark({self.element.id}, {number})")


def rows_of(grid: int, first: int, end: int, by: str | None = None, down: bool = False) -> list[dict[str, Any]]:
    """Some rows of a table, for the browser; none of a table that is gone."""
    found = _ALL.get(grid)
    return [] if found is None else found._read(first, min(end, first + 10 * _PAGE_ROWS), by, down)
