"""The options of the data source: strings under names whose upper and lower case do not matter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cerflow.api.query import Language
from cerflow.base import limits
from cerflow.base.errors import InputError, nearest
from cerflow.base.units import TimeUnit
from cerflow.engine.results.report import CountForm

_NAMES = (
    *("query", "queryFile", "language", "type", "time", "timeUnit", "sequence", "stream", "positions"),
    *("onBadRecord", "sliceRows", "counts", "flat", "maxMatches", "until", "cores", "path", "paths"),
)
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Options:
    """The query and the files of a read, and how they are read.

    ``type``, ``time``, ``time_unit``, ``sequence``, ``stream``, ``positions``, ``counts``, ``flat``, ``max_matches``
    and ``until`` (a number or a text of ISO 8601) mean what they mean to `cerflow.spark.match`; ``skip`` says that
    events without a type or a time are left out instead of making the job fail. ``slice_rows`` is the number of events
    of a slice to aim at, ``cores`` the number of tasks that will run at a time (by default that of this machine), which
    matters where slices cost reading the same events again.
    """

    query: str
    language: Language
    paths: tuple[str, ...]
    type: str = "type"
    time: str | None = None
    time_unit: TimeUnit | None = None
    sequence: str | None = None
    stream: str | None = None
    positions: bool = False
    skip: bool = False
    slice_rows: int = limits.SOURCE_SLICE_ROWS
    cores: int = 1
    counts: CountForm = "decimal"
    flat: bool = False
    max_matches: int | None = None
    until: str | None = None

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Options:
        """The options as Spark hands them over; raises `InputError` for what is unknown, missing or wrong."""
        known = {name.lower(): name for name in _NAMES}
        found: dict[str, str] = {}
        for name, value in given.items():
            if name.lower() not in known:
                near = nearest(name, _NAMES)
                hint = f"; did you mean '{near}'?" if near else f"; the options are {', '.join(_NAMES)}"
                raise InputError(f"the data source cerflow has no option '{name}'{hint}")
            found[known[name.lower()]] = value
        return cls(
            query=_query(found),
            language=_language(found),
            paths=_paths(found),
            type=found.get("type", "type"),
            time=found.get("time"),
            time_unit=_time_unit(found),
            sequence=found.get("sequence"),
            stream=found.get("stream"),
            positions=_boolean(found, "positions"),
            skip=_choice(found, "onBadRecord", ("fail", "skip"), "fail") == "skip",
            slice_rows=_number(found, "sliceRows", limits.SOURCE_SLICE_ROWS),
            cores=_number(found, "cores", os.cpu_count() or 1),
            flat=_boolean(found, "flat"),
            counts="text" if _choice(found, "counts", get_args(CountForm), "decimal") == "text" else "decimal",
            max_matches=_number(found, "maxMatches", 1) if "maxMatches" in found else None,
            until=found.get("until"),
        )


def _query(found: Mapping[str, str]) -> str:
    if ("query" in found) == ("queryFile" in found):
        raise InputError("the data source cerflow needs one of the options 'query' and 'queryFile'")
    if "query" in found:
        return found["query"]
    path = found["queryFile"]
    try:
        return Path(path.removeprefix("file://")).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read the query file '{path}': {error}") from error


def _language(found: Mapping[str, str]) -> Language:
    sremo = found.get("queryFile", "").lower().endswith(".sremo")
    chosen = _choice(found, "language", get_args(Language), "sremo" if sremo else "ceql")
    language: Literal["ceql", "sremo"] = "sremo" if chosen == "sremo" else "ceql"
    return language


def _time_unit(found: Mapping[str, str]) -> TimeUnit | None:
    units: dict[str, TimeUnit] = {name: name for name in get_args(TimeUnit)}
    return units[_choice(found, "timeUnit", tuple(units), "ms")] if "timeUnit" in found else None


def _paths(found: Mapping[str, str]) -> tuple[str, ...]:
    # Spark hands several paths over as a list in JSON.
    paths = [found["path"]] if "path" in found else []
    if "paths" in found:
        try:
            further = json.loads(found["paths"])
        except ValueError:
            further = None
        if not isinstance(further, list) or not all(isinstance(path, str) for path in further):
            raise InputError("the option 'paths' must be a list of texts in JSON, as load([…]) makes it")
        paths += further
    if not paths:
        raise InputError("the data source cerflow needs the path of Parquet files: load(path)")
    return tuple(paths)


def _choice(found: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = found.get(name, default).lower()
    if value not in choices:
        near = nearest(value, choices)
        hint = f"; did you mean '{near}'?" if near else ""
        raise InputError(f"the option '{name}' must be {' or '.join(choices)}, not '{found[name]}'{hint}")
    return value


def _boolean(found: Mapping[str, str], name: str) -> bool:
    return _BOOLEANS[_choice(found, name, tuple(_BOOLEANS), "false")]


def _number(found: Mapping[str, str], name: str, default: int) -> int:
    text = found.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"the option '{name}' must be a number above 0, not '{text}'")
    return int(text)
