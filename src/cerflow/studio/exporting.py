"""A query taken out of the studio: as Python, PySpark, or a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from cerflow.programs.program import read_query
from cerflow.query import Language, Query

__all__ = ["exported"]

Roles = Mapping[str, str]


def exported(text: str, language: Language, path: str | None, roles: Roles) -> dict[str, str]:
    """The texts of a query for other places, by their names; ``roles`` are arguments of `Query.match`."""
    path = path or "events.parquet"
    suffix = "sremo" if language == "sremo" else "ceql"
    given = "".join(f", {name}={value!r}" for name, value in roles.items())
    columns = "".join(f", {name}={value!r}" for name, value in roles.items() if name != "time_unit")
    reading = "parse" if _is_query(text, language) else "parse_program"
    named = ', language="sremo"' if language == "sremo" else ""
    parsed = f"query = cerflow.{reading}({_literal(text)}{named})"
    column = {"type": "--type-column", "time": "--time-column", "time_unit": "--time-unit"}
    options = [part for name, value in roles.items() for part in (column[name], value)]
    command = shlex.join(["cerflow", "run", f"query.{suffix}", "--input", path, *options])
    python = "\n".join(
        [
            "import cerflow",
            "",
            parsed,
            f"events = cerflow.read_events({path!r}{columns})",
            f"matches = query.match(events{given})",
            "print(matches.count())",
            "print(matches.to_arrow())",
        ]
    )
    spark = "\n".join(
        [
            "import cerflow",
            "from cerflow.spark import match",
            "from pyspark.sql import SparkSession",
            "",
            "spark = SparkSession.builder.getOrCreate()",
            parsed,
            f"events = spark.read.{_reader(path)}",
            f"matches = match(query, events{given})",
            "matches.show()",
        ]
    )
    return {
        "Query file": text.rstrip() + "\n",
        "Python": python + "\n",
        "PySpark": spark + "\n",
        "Command": command + "\n",
    }


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
