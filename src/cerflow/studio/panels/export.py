"""The query taken out of the studio: as a file, Python, PySpark or a command, with its matches and its picture."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from cerflow.api.programs.program import read_query
from cerflow.api.query import Language, Query
from cerflow.base.errors import CerflowError
from cerflow.look.studying.wording import sentence
from cerflow.studio.panels.work import text_button
from cerflow.studio.sampling import LoadedEvents
from cerflow.studio.session import StudioSession

_OPTIONS = {"type": "--type-column", "time": "--time-column", "time_unit": "--time-unit"}


def exported(text: str, language: Language, events: LoadedEvents | None) -> dict[str, str]:
    """The texts of a query for other places, by their names, for the files that are loaded."""
    suffix = "sremo" if language == "sremo" else "ceql"
    reading = "parse" if _is_query(text, language) else "parse_program"
    named = ', language="sremo"' if language == "sremo" else ""
    parsed = f"query = cerflow.{reading}({_literal(text)}{named})"
    several = {} if events is None else events.inputs
    given = "joined.events, **joined.roles" if several else "events"
    if events is not None and not several:
        given += _arguments(events.roles)
    python = [
        "import cerflow",
        "",
        parsed,
        *_reading(events, "cerflow.", _read_locally),
        f"matches = query.match({given})",
        "print(matches.count())",
        "for found in matches[:5]:",
        "    print(found)",
    ]
    spark = [
        "import cerflow",
        f"from cerflow.spark import match{', streams' if several else ''}",
        "from pyspark.sql import SparkSession",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        parsed,
        *_reading(events, "", _read_by_spark),
        f"matches = match(query, {given})",
        "matches.show()",
    ]
    options: list[str] = []
    for name, one in several.items() or [("", events)]:
        prefix = f"{name}=" if name else ""
        options += ["--input", prefix + _path(one)]
        for role, value in () if one is None else one.roles.items():
            options += [] if value is None else [_OPTIONS[role], prefix + value]
    return {
        "Query file": text.rstrip() + "\n",
        "Python": "\n".join(python) + "\n",
        "PySpark": "\n".join(spark) + "\n",
        "Command": shlex.join(["cerflow", "run", f"query.{suffix}", *options]) + "\n",
    }


def _path(events: LoadedEvents | None) -> str:
    return "events.parquet" if events is None else str(events.path)


def _arguments(roles: Mapping[str, Any]) -> str:
    return "".join(f", {role}={value!r}" for role, value in roles.items())


def _reading(events: LoadedEvents | None, place: str, read: Callable[[LoadedEvents | None], str]) -> list[str]:
    if events is None or not events.inputs:
        return [f"events = {read(events)}"]
    lines = [f"    {name!r}: cerflow.Input({read(one)}{_arguments(one.roles)})," for name, one in events.inputs.items()]
    return [f"joined = {place}streams({{", *lines, "})"]


def _read_locally(events: LoadedEvents | None) -> str:
    roles = {} if events is None else {r: v for r, v in events.roles.items() if r in ("type", "time")}
    return f"cerflow.read_events({_path(events)!r}{_arguments(roles)})"


def _read_by_spark(events: LoadedEvents | None) -> str:
    path = _path(events)
    if ".csv" in path:
        return f"spark.read.csv({path!r}, header=True, inferSchema=True)"
    form = "json" if ".json" in path else "orc" if path.endswith(".orc") else "parquet"
    return f"spark.read.{form}({path!r})"


def _is_query(text: str, language: Language) -> bool:
    try:
        return isinstance(read_query(text, language), Query)
    except ValueError:
        return True


def _literal(text: str) -> str:
    """A text as a literal of Python, over several lines if it has them."""
    if "\n" in text and "\\" not in text and '"""' not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return repr(text)


_FILES = {"Query file": "query.ceql", "Python": "query.py", "PySpark": "query_spark.py", "Command": "query.sh"}
_MATCHES = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON lines"}


class ExportPanel:
    """Saves matches and the picture, and shows the query as a file, Python, PySpark and a command."""

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        pictures = {form: partial(ui.run_javascript, f"studio.savePicture('{form}')") for form in ("SVG", "PNG")}
        matches = {name: partial(self._save_matches, form) for form, name in _MATCHES.items()}
        link = {"Copy": self._copy_link}
        for said, icon, buttons in (
            ("Matches of the last run", "download", matches),
            ("Picture of the query", "download", pictures),
            ("Link with query and settings, without data", "link", link),
        ):
            with ui.row().classes("w-full items-center gap-2"):
                ui.label(said).classes("text-sm w-44")
                for name, on_click in buttons.items():
                    text_button(name, on_click, icon)
        self._problem = ui.label().classes("text-sm text-negative").props("role=alert")
        self._shown = ui.column().classes("w-full gap-4")

    async def _save_matches(self, form: str) -> None:
        self._problem.text = ""
        try:
            data = await asyncio.to_thread(self._session.written, form)
        except CerflowError as error:
            self._problem.text = f"{sentence(error)}."
            return
        ui.download.content(data, f"matches.{form}")

    def _copy_link(self) -> None:
        link = json.dumps(urlencode(self._session.settings))
        ui.run_javascript(f"navigator.clipboard.writeText(location.origin + '/?' + {link})")
        ui.notify("The link is copied. It opens where this studio runs.")

    def refresh(self) -> None:
        """Show the present query."""
        events = self._session.events
        texts = exported(self._session.text, self._session.language, events)
        self._shown.clear()
        with self._shown:
            if self._session.problems():
                ui.label("The query has an error, so these texts do not run yet.").classes("text-sm text-negative")
            for name, text in texts.items():
                with ui.column().classes("w-full gap-1"):
                    with ui.row().classes("w-full items-center"):
                        ui.label(name).classes("text-xs uppercase tracking-wide opacity-60")
                        ui.space()
                        saved = text_button("Save", partial(ui.download.content, text, _FILES[name]), "download")
                        saved.props(f'aria-label="Save: {name}"')
                    language = "python" if name.startswith("Py") else "bash" if name == "Command" else "text"
                    code = ui.code(text, language=language).classes("w-full")
                    code.copy_button.props(f'aria-label="Copy: {name}"')
