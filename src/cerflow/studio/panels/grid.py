"""A table of any number of rows: the browser reads a page of them when it comes to sight."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from nicegui import ui

#: Rows from a number to another, in the order of a column or as they come (None), backwards or not.
ReadRows = Callable[[int, int, str | None, bool], list[dict[str, Any]]]

#: The column with the numbers of rows.
NUMBER = "#"
_PAGE_ROWS = 100
_ALL: WeakValueDictionary[int, Grid] = WeakValueDictionary()
_NUMBERS = count()
#: Marks a row by its number; if the browser has not read it yet, in the order of the file, once it has.
_MARK = """
const api = getElement(%d).api, rows = [], number = %d;
const mark = () => {
  api.forEachNode(node => { if (node.data && node.data['#'] === number) rows.push(node); });
  if (!rows.length) return false;
  api.ensureIndexVisible(rows[0].rowIndex);
  rows[0].setSelected(true);
  return true;
};
if (!mark() && !api.getColumnState().some(column => column.sort)) {
  const later = () => { if (mark()) api.removeEventListener('modelUpdated', later); };
  api.addEventListener('modelUpdated', later);
  api.ensureIndexVisible(number - 1);
}"""
_SOURCE = """({getRows: page => {
  const [sort] = page.sortModel;
  const order = sort ? `&by=${encodeURIComponent(sort.colId)}&down=${sort.sort === 'desc'}` : '';
  fetch(`/rows?grid=%d&version=%d&first=${page.startRow}&end=${page.endRow}${order}`)
    .then(answer => answer.json()).then(rows => page.successCallback(rows, %d)).catch(() => page.failCallback());
}})"""


class Grid:
    """A table that the browser reads by pages; ``chosen`` gets the number of a row that the user chooses.

    Rows are chosen by a click, Enter or the space bar. The chosen row is marked, unless ``stays`` is False: then it can
    be chosen again.
    """

    def __init__(self, name: str, chosen: Callable[[int], None], *, stays: bool = True) -> None:
        self._after = "" if stays else "e.node.setSelected(false);"
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
        """Show so many rows of these columns."""
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
                ":datasource": _SOURCE % (self._number, self._version, rows),
                "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
                ":onRowSelected": "e => { if (e.node.isSelected() && e.data) "
                f"{{ getElement({self.element.id}).$emit('chosen', e.data[{json.dumps(NUMBER)}]); {self._after} }} }}",
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
        self.element.client.run_javascript(_MARK % (self.element.id, number))


def rows_of(grid: int, first: int, end: int, by: str | None = None, down: bool = False) -> list[dict[str, Any]]:
    """Some rows of a table, for the browser; none of a table that is gone."""
    found = _ALL.get(grid)
    return [] if found is None else found._read(first, min(end, first + 10 * _PAGE_ROWS), by, down)
