"""The options of the data source: strings under names whose upper and lower case do not matter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from cerflow.api.query import Language
from cerflow.base import limits
from cerflow.base.errors import InputError, did_you_mean, nearest
from cerflow.base.units import TimeUnit
from cerflow.engine.results.report import CountForm
from cerflow.spark.frames.plan import PlanArguments

_NAMES = (
    *("query", "queryFile", "language", "type", "time", "timeUnit", "sequence", "stream", "positions"),
    *("onBadRecord", "sliceRows", "counts", "flat", "maxMatches", "until", "cores", "path", "paths"),
)
_BOOLEANS = {"true": True, "false": False}


class ReadArguments(PlanArguments):
    """How files are read: see `read_options`."""

    skip: bool
    slice_rows: int
    cores: int


def read_options(given: Mapping[str, str]) -> tuple[str, Language, tuple[str, ...], ReadArguments]:
    """The query, its language, the paths of the files, and how they are read, from options as Spark hands them over.

    ``type``, ``time``, ``timeUnit``, ``sequence``, ``stream``, ``positions``, ``counts``, ``flat``, ``maxMatches`` and
    ``until`` (a number or a text of ISO 8601) mean what they mean to `cerflow.spark.match`. ``skip`` says that events
    without a type or a time are left out instead of making the job fail. ``slice_rows`` is the number of events of a
    slice to aim at, ``cores`` the number of tasks that will run at a time (by default that of this machine), which
    matters where slices cost reading the same events again. Raises `InputError` for what is unknown, missing or wrong.
    """
    known = {name.lower(): name for name in _NAMES}
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            hint = did_you_mean(name, _NAMES, "options")
            raise InputError(f"the data source cerflow has no option '{name}'{hint}")
        found[known[name.lower()]] = value
    sremo = found.get("queryFile", "").lower().endswith(".sremo")
    text, language = _query(found), _choice(found, "language", get_args(Language), "sremo" if sremo else "ceql")
    paths = _paths(found)
    arguments: ReadArguments = {
        "type": found.get("type", "type"),
        "time": found.get("time"),
        "time_unit": _choice(found, "timeUnit", get_args(TimeUnit), "ms") if "timeUnit" in found else None,
        "sequence": found.get("sequence"),
        "stream": found.get("stream"),
        "positions": _boolean(found, "positions"),
        "counts": _choice(found, "counts", get_args(CountForm), "decimal"),
        "flat": _boolean(found, "flat"),
        "max_matches": _number(found, "maxMatches", 1) if "maxMatches" in found else None,
        "until": found.get("until"),
        "skip": _choice(found, "onBadRecord", ("fail", "skip"), "fail") == "skip",
        "slice_rows": _number(found, "sliceRows", limits.SOURCE_SLICE_ROWS),
        "cores": _number(found, "cores", os.cpu_count() or 1),
    }
    return text, language, paths, arguments


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


def _choice(found: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> Any:
    """One of some choices, in any case."""
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
