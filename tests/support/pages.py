"""Reads pages of matches as the script in them does, and opens them in a browser where there is one."""

import base64
import json
import shutil
import zlib
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

DTYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "f8": np.float64}


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of those with an id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str | None] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.found.append((tag, attributes))
        self._open.append(attributes.get("id") or tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            name = self._open[-1] or ""
            self.texts[name] = self.texts.get(name, "") + data


class Page:
    """The content of a page of matches."""

    def __init__(self, page: str) -> None:
        self.elements = Elements(page)
        self.head = json.loads(self.elements.texts["head"])
        self._bytes = zlib.decompress(base64.b64decode(self.elements.texts["data"]))

    def array(self, about: dict[str, Any]) -> np.ndarray:
        found = np.frombuffer(self._bytes, DTYPES[about["as"]], about["size"], about["at"])
        return about["from"] + np.cumsum(found) if "from" in about else found

    def column(self, about: dict[str, Any]) -> list[Any]:
        """The values of a column, times as numbers in their unit."""
        values = self.array(about["values"]).tolist()
        if about["kind"] == "text":
            return [about["texts"][value] for value in values]
        nulls = self.array(about["nulls"]) if about.get("nulls") else np.zeros(len(values))
        base = int(about.get("base", 0))
        return [None if null or (base and value != value) else value + base for value, null in zip(values, nulls)]

    def lanes(self) -> dict[str, list[str]]:
        return {
            about["name"]: [about["texts"][code] for code in self.array(about["values"])]
            for about in self.head["lanes"]
        }

    def matches(self) -> list[list[tuple[int, list[str]]]]:
        """Of each match the positions and labels of its events."""
        head, positions = self.head, self.array(self.head["positions"])
        offsets, members = self.array(head["matches"]["offsets"]), self.array(head["matches"]["marks"])
        events, labels = self.array(head["marks"]["events"]), self.array(head["marks"]["labels"])
        return [
            [(int(positions[events[k]]), head["marks"]["sets"][labels[k]]) for k in members[begin:end].astype(int)]
            for begin, end in zip(offsets[:-1].astype(int), offsets[1:].astype(int))
        ]

    def column_of(self, part: str, name: str) -> list[Any]:
        return self.column(next(about for about in self.head[part]["columns"] if about["name"] == name))


@contextmanager
def browser():
    """A headless browser; the test is skipped where none is installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser is installed ({', '.join(names)})")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()
