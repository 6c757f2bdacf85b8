"""A query taken out of the studio: as Python, PySpark, or a command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from cerflow.api.programs.program import read_query
from cerflow.api.query import Language, Query
from cerflow.studio.sampling import LoadedEvents

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
    """The lines that read the files."""
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
