"""A query taken out of the studio: as Python, PySpark, or a command."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from cerflow.programs.program import read_query
from cerflow.query import Language, Query
from cerflow.studio.sampling import LoadedEvents

_NO_FILE = "events.parquet"


def exported(text: str, language: Language, events: LoadedEvents | None) -> dict[str, str]:
    """The texts of a query for other places, by their names, for the files that are loaded."""
    suffix = "sremo" if language == "sremo" else "ceql"
    reading = "parse" if _is_query(text, language) else "parse_program"
    named = ', language="sremo"' if language == "sremo" else ""
    parsed = f"query = cerflow.{reading}({_literal(text)}{named})"
    options = ["--input", _NO_FILE] if events is None else _options(events)
    python = [
        "import cerflow",
        "",
        parsed,
        *_reading(events, "cerflow", _read_locally),
        f"matches = query.match({_given(events)})",
        "print(matches.count())",
        "for found in matches[:5]:",
        "    print(found)",
    ]
    spark = [
        "import cerflow",
        f"from cerflow.spark import match{', streams' if events is not None and events.inputs else ''}",
        "from pyspark.sql import SparkSession",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        parsed,
        *_reading(events, "spark", _read_by_spark),
        f"matches = match(query, {_given(events)})",
        "matches.show()",
    ]
    return {
        "Query file": text.rstrip() + "\n",
        "Python": "\n".join(python) + "\n",
        "PySpark": "\n".join(spark) + "\n",
        "Command": shlex.join(["cerflow", "run", f"query.{suffix}", *options]) + "\n",
    }


def _options(events: LoadedEvents) -> list[str]:
    """The options of ``cerflow run`` that name the files, and the columns with a role."""
    option = {"type": "--type-column", "time": "--time-column", "time_unit": "--time-unit"}
    named = events.inputs or {"": events}
    found = [
        part for name, one in named.items() for part in ("--input", f"{name}={one.path}" if name else str(one.path))
    ]
    for name, one in named.items():
        for role, value in one.roles.items():
            found += [option[role], f"{name}={value}" if name else value]
    return found


def _reading(events: LoadedEvents | None, place: str, read: Callable[[LoadedEvents | None], str]) -> list[str]:
    """The lines that read the files."""
    if events is None or not events.inputs:
        return [f"events = {read(events)}"]
    lines = [
        f"    {name!r}: cerflow.Input({read(one)}{''.join(f', {r}={v!r}' for r, v in one.roles.items())}),"
        for name, one in events.inputs.items()
    ]
    return [f"joined = {'' if place == 'spark' else 'cerflow.'}streams({{", *lines, "})"]


def _given(events: LoadedEvents | None) -> str:
    """The arguments that say what is read, and what its columns mean."""
    if events is not None and events.inputs:
        return "joined.events, **joined.roles"
    return "events" + ("" if events is None else "".join(f", {r}={v!r}" for r, v in events.roles.items()))


def _read_locally(events: LoadedEvents | None) -> str:
    roles = {} if events is None else {r: v for r, v in events.roles.items() if r in ("type", "time")}
    path = _NO_FILE if events is None else str(events.path)
    return f"cerflow.read_events({path!r}{''.join(f', {r}={v!r}' for r, v in roles.items())})"


def _read_by_spark(events: LoadedEvents | None) -> str:
    return f"spark.read.{_reader(_NO_FILE if events is None else str(events.path))}"


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


def _reader(path: str) -> str:
    if ".csv" in path:
        return f"csv({path!r}, header=True, inferSchema=True)"
    if ".json" in path:
        return f"json({path!r})"
    return f"orc({path!r})" if path.endswith(".orc") else f"parquet({path!r})"
