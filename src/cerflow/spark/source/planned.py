"""Plans a read of the data source: reads its options, checks the query, cuts the stream, and describes the tasks."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack, get_args

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cerflow.api.programs.program import Program, read_query
from cerflow.api.query import Language, Query
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError, UnsupportedQueryError, did_you_mean, nearest
from cerflow.base.events import UNNAMED
from cerflow.base.nested import is_nested
from cerflow.base.schema import HIDDEN_TYPES, UNTYPED, Schema, ValueKind
from cerflow.base.units import TimeUnit
from cerflow.engine.evaluate.measures import duration_in_units, first_inside, typed_time
from cerflow.engine.pushdown.relevance import types_named
from cerflow.engine.pushdown.translation import arrow_filter
from cerflow.engine.results.report import CountForm
from cerflow.engine.slices import by_row_groups
from cerflow.engine.slices.by_keys import Lookback, first_in_count
from cerflow.files.row_groups import groups_of, short_texts
from cerflow.language.condition import Condition
from cerflow.language.formula import CountWindow, DurationWindow
from cerflow.language.predicates.registry import predicates_in
from cerflow.logic.conditions.connectives import TRUE
from cerflow.spark.frames.output import packed_batch, unpacked_batches
from cerflow.spark.frames.plan import JobPlan, PlanArguments, make_plan
from cerflow.spark.frames.schemas import declared, refuse_foreign
from cerflow.spark.source.files import DataFile, columns_of, each, filesystem_of, find_files, metadata_of
from cerflow.spark.source.row_groups import KeyShare, Scan
from cerflow.spark.source.task import Task, Work, matches_of, matches_of_tasks
from cerflow.spark.worker import run_own_python

_INSTEAD = "cerflow.spark.match does: match(query, spark.read.parquet(path), …)."
#: Bytes that a value is taken to need, at most.
_VALUE_BYTES = 8
_BOOLEANS = ("true", "false")
#: The options, with the values that they may have: some words (in any case), a number above 0, or any text.
_OPTIONS: dict[str, tuple[str, ...] | type[int] | None] = {
    **dict.fromkeys(("query", "queryFile", "type", "time", "sequence", "stream", "until", "path", "paths")),
    **dict.fromkeys(("sliceRows", "maxMatches", "cores"), int),
    "language": get_args(Language),
    "timeUnit": get_args(TimeUnit),
    "positions": _BOOLEANS,
    "onBadRecord": ("fail", "skip"),
    "counts": get_args(CountForm),
    "flat": _BOOLEANS,
}
#: The arguments of `plan_query` that options give.
_ARGUMENTS = {
    name: name for name in ("type", "time", "sequence", "stream", "positions", "counts", "flat", "until", "cores")
} | {"timeUnit": "time_unit", "maxMatches": "max_matches", "sliceRows": "slice_rows"}


def read_options(given: Mapping[str, str]) -> tuple[str, Language, tuple[str, ...], dict[str, Any]]:
    """The query, its language, the paths of the files, and how they are read, from options as Spark hands them over.

    ``type``, ``time``, ``timeUnit``, ``sequence``, ``stream``, ``positions``, ``counts``, ``flat``, ``maxMatches`` and
    ``until`` (a number or a text of ISO 8601) mean what they mean to `cerflow.spark.match`. ``skip`` says that events
    without a type or a time are left out instead of making the job fail. ``slice_rows`` is the number of events of a
    slice to aim at, ``cores`` the number of tasks that will run at a time (by default that of this machine), which
    matters where slices cost reading the same events again. Raises `InputError` for what is unknown, missing or wrong.
    """
    known = {name.lower(): name for name in _OPTIONS}
    found: dict[str, Any] = {}
    for given_name, value in given.items():
        name = known.get(given_name.lower())
        if name is None:
            hint = did_you_mean(given_name, _OPTIONS, "options")
            raise InputError(f"the data source cerflow has no option '{given_name}'{hint}")
        choices = _OPTIONS[name]
        if choices is int and not (value.isdecimal() and int(value)):
            raise InputError(f"the option '{name}' must be a number above 0, not '{value}'")
        if isinstance(choices, tuple) and value.lower() not in choices:
            near = nearest(value.lower(), choices)
            hint = f"; did you mean '{near}'?" if near else ""
            raise InputError(f"the option '{name}' must be {' or '.join(choices)}, not '{value}'{hint}")
        found[name] = value if choices is None else int(value) if choices is int else value.lower()
    sremo = found.get("queryFile", "").lower().endswith(".sremo")
    arguments: dict[str, Any] = {"slice_rows": limits.SOURCE_SLICE_ROWS, "cores": os.cpu_count() or 1}
    for option, argument in _ARGUMENTS.items():
        if option in found:
            arguments[argument] = found[option] == "true" if _OPTIONS[option] is _BOOLEANS else found[option]
    arguments["skip"] = found.get("onBadRecord") == "skip"
    return _query(found), found.get("language", "sremo" if sremo else "ceql"), _paths(found), arguments


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


@dataclass(frozen=True)
class Planned:
    """All that is decided before a read.

    ``schema`` is that of the matches, ``events`` that of the events. ``alike`` says that all files have the same
    columns, which are ``stored``. ``rows`` is the number of events, ``certain`` says that all of them have a type and a
    time; these lie between ``times``, if they are numbers and the footers know it. ``again`` is the share of the events
    that are read more than once.
    """

    schema: StructType
    events: Schema
    stored: pa.Schema
    alike: bool
    work: Work
    tasks: tuple[Task, ...]
    rows: int
    certain: bool
    times: tuple[float | None, float | None]
    again: float
    explanation: str

    def frame(self, spark: SparkSession) -> DataFrame:
        """The matches as a DataFrame."""
        work, tasks = self.packed()
        numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
        return numbers.mapInArrow(partial(matches_of_tasks, work, tasks), self.schema)

    def batches(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """The matches, computed and fetched as by `arrow_batches`, but without the seconds that Spark takes to plan."""
        run_own_python(spark)
        work, tasks = self.packed()
        found = spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(
            lambda task: map(packed_batch, matches_of(work, task))
        )
        packed = found.persist(StorageLevel.DISK_ONLY)
        try:
            packed.count()
            yield from unpacked_batches(packed.toLocalIterator())
        finally:
            packed.unpersist()

    def packed(self) -> tuple[bytes, list[bytes]]:
        """The work, and each task of it, as they travel."""
        return pickle.dumps(self.work), [pickle.dumps(task) for task in self.tasks]


def plan_read(given: Mapping[str, str]) -> Planned:
    """Plan a read with the options as Spark hands them over. Only the footers of the files are read.

    Raises `QuerySyntaxError` and `QueryError` for a query that is wrong or does not fit the columns, `InputError` for
    options, files and columns that are not as they should be, and for files in which too many events would have to be
    sorted, `UnsupportedQueryError` for what cannot be evaluated.
    """
    text, language, paths, arguments = read_options(given)
    query = read_query(text, language)
    if isinstance(query, Program):
        raise UnsupportedQueryError("the data source does not evaluate definitions", hint=_INSTEAD)
    return plan_query(query, paths, **arguments)


def plan_query(
    query: Query, paths: Sequence[str], *, skip: bool, slice_rows: int, cores: int, **arguments: Unpack[PlanArguments]
) -> Planned:
    """Plan a read of the files of some paths; see `read_options` for the arguments, and `plan_read` for the errors."""
    if predicates_in(query.tree):
        raise UnsupportedQueryError("the data source does not support your own predicates", hint=_INSTEAD)
    files = find_files(paths)
    columns, _ = columns_of(files)
    arguments["until"] = typed_time(arguments.get("until"), columns, arguments.get("time"))
    plan = make_plan(query, columns, **arguments)
    refuse_foreign(plan.schema.columns, plan.needed)
    return plan_files(plan, files, skip=skip, slice_rows=slice_rows, cores=cores)


def plan_files(plan: JobPlan, files: Sequence[DataFile], *, skip: bool, slice_rows: int, cores: int) -> Planned:
    """Plan a read of some files; see `plan_query`."""
    schema = plan.schema
    stored, alike = columns_of(files)
    if schema.untyped:
        # A column that every file lacks, as the values of directories are.
        files = [replace(file, constants=(*file.constants, (UNTYPED, UNNAMED))) for file in files]
    struct, result = declared(plan.result)
    work = _work(plan, files, result, skip=skip)
    typed = None if schema.untyped else schema.typed_by or schema.type
    everything = groups_of(
        each(metadata_of, files),
        schema.columns,
        leading=work.scan.leading,
        type=typed,
        time=schema.time,
        parts=[file.part for file in files],
    )
    groups = everything
    # Statistics of other columns are not those of the types, which are text, nor of fields.
    comparable = schema.typed_by is None and not any(file.constants for file in files)
    if alike and comparable and schema.columns.equals(stored):
        groups = _relevant_groups(everything, files, _noticed(plan), schema, skip=skip)
    irrelevant = len(everything) - len(groups)
    groups = _wanted(groups, files, schema.time, skip=skip)
    known = None if any(group.least is None for group in groups) else by_row_groups.RowGroups(groups)
    lookback, reason = _lookback(plan, known, work)
    if known is None:
        # Without statistics the order is unknown, so events are taken as they arrive, and checked.
        groups = [replace(group, least=None, greatest=None) for group in groups]
        whole = by_row_groups.GroupSlice(-math.inf, -math.inf, math.inf, groups=tuple(groups))
        slices = by_row_groups.Slices((whole,), sum(g.rows for g in groups), 0)
    else:
        slices = by_row_groups.slices_of_row_groups(
            known,
            lookback,
            slice_rows=slice_rows,
            cores=cores,
            most_waiting=work.most_waiting // limits.SOURCE_TOLERANCE,
        )
    if slices.most_waiting * limits.SOURCE_TOLERANCE > work.most_waiting:
        raise InputError(
            f"about {slices.most_waiting:,} events overlap in '{work.scan.leading}', too many to be sorted in a task; "
            "write the files in that order, or let cerflow.spark.match sort them"
        )
    rows = sum(group.rows for group in everything)
    if lookback is not None and len(slices.slices) == 1:
        reason = "they are too few, or are in too few row groups, for more than one slice"
    shares = _shares(plan, min(cores, rows // slice_rows)) if len(slices.slices) == 1 else [None]
    explanation = _explanation(slices, rows, reason, shares)
    if irrelevant:
        explanation += f"; {irrelevant} of {len(everything)} row groups have no relevant events"
    logging.getLogger("cerflow").info(explanation)
    return Planned(
        schema=struct,
        events=schema,
        stored=stored,
        alike=alike,
        work=work,
        tasks=tuple(
            Task(some, {g.file: files[g.file] for g in some.groups}, share)
            for some in slices.slices
            for share in shares
        ),
        rows=rows,
        certain=all(group.valid == group.rows for group in everything),
        times=_extent(everything, schema),
        again=slices.again,
        explanation=explanation,
    )


def _noticed(plan: JobPlan) -> Condition:
    """The condition for relevant events; every event counts for positions."""
    return TRUE if plan.positions else plan.relevance.condition


def _work(plan: JobPlan, files: Sequence[DataFile], result: pa.Schema, *, skip: bool) -> Work:
    schema, needed = plan.schema, plan.needed
    leading = schema.time or plan.sequence
    if leading is not None and not by_row_groups.is_orderly(schema.columns.field(leading).type):
        found = schema.columns.field(leading).type
        raise InputError(
            f"the data source cannot order events by '{leading}', which has type {found}; cerflow.spark.match can"
        )
    sequence = plan.sequence if schema.time is not None else None
    read = [*needed, *(name for name in {leading, sequence} - {None, *needed} if name is not None)]
    texts = [name for name in read if schema.kind(name) is ValueKind.STRING and name not in (sequence, *HIDDEN_TYPES)]
    short = short_texts(each(metadata_of, files), [name for name in texts if not is_nested(name)]) | {schema.type}
    encoded = pa.dictionary(pa.int32(), pa.string())
    columns = pa.schema([(f.name, encoded if f.name in short else f.type) for f in schema.columns if f.name in read])
    recognition = plan.recognition(numbered=plan.positions)
    sent = [columns.field(f.name) if f.name in needed else f for f in recognition.schema.columns]
    types = types_named(_noticed(plan), schema)
    typed_by = None if schema.typed_by is None else schema.columns.field(schema.typed_by)
    return Work(
        recognition=replace(recognition, schema=replace(recognition.schema, columns=pa.schema(sent))),
        scan=Scan(columns, schema.type, schema.time, leading, sequence, skip, types, typed_by),
        result=result,
        most_waiting=limits.SOURCE_TOLERANCE * limits.SOURCE_WAITING_BYTES // (_VALUE_BYTES * (len(read) + 1)),
    )


def _relevant_groups(
    groups: Sequence[by_row_groups.RowGroup],
    files: Sequence[DataFile],
    condition: Condition,
    schema: Schema,
    *,
    skip: bool,
) -> list[by_row_groups.RowGroup]:
    """The row groups of some files that may have a relevant event, by their statistics.

    All files have the columns of ``schema``. A group that may have bad records is left out only if these are skipped.
    """
    wanted = arrow_filter(condition, schema)
    if wanted is None:
        return list(groups)

    def some(of_file: tuple[int, list[by_row_groups.RowGroup]]) -> list[by_row_groups.RowGroup]:
        number, own = of_file
        file = files[number]
        fragment = ds.ParquetFileFormat().make_fragment(file.path, filesystem_of(file.root))
        kept = {info.id for info in fragment.subset(wanted, schema=schema.columns).row_groups}
        return [group for group in own if group.index in kept or not (skip or group.valid == group.rows)]

    by_file = [(number, list(own)) for number, own in groupby(groups, key=lambda group: group.file)]
    return [group for own in each(some, by_file) for group in own]


def _wanted(
    groups: Sequence[by_row_groups.RowGroup], files: Sequence[DataFile], time: str | None, *, skip: bool
) -> list[by_row_groups.RowGroup]:
    """The row groups with events that can be used; where all must be valid, they count as such."""
    if skip:
        return [group for group in groups if group.valid != 0]
    for group in groups:
        if group.least is None and group.valid == 0:
            raise BadRecordError(f"{group.first} of '{files[group.file].path}'", f"no time in '{time}'")
    return [replace(group, valid=group.rows) for group in groups]


def _lookback(plan: JobPlan, known: by_row_groups.RowGroups | None, work: Work) -> tuple[Lookback | None, str]:
    """How far back matches go, None if the stream is not to be cut; and why."""
    schema, division = plan.schema, plan.division
    window = division.window
    if window is None:
        return None, division.reason
    if known is None:
        name = work.scan.leading
        return None, f"the files have no statistics of '{name}', so their events are read in the order of the files"
    if plan.positions and work.scan.skip and any(group.valid is None for group in known.groups):
        return None, "how many events are skipped, and so their positions, is known only when all are read"
    if isinstance(window, CountWindow):
        return Lookback(partial(first_in_count, window.events, known)), division.reason
    if not isinstance(window, DurationWindow):
        return None, "a window of an attribute is not cut"
    assert schema.time is not None
    data_type = schema.columns.field(schema.time).type
    # Keys of dates are milliseconds; of numbers the schema says what they count.
    unit = data_type.unit if pa.types.is_timestamp(data_type) else "ms"
    inside = partial(first_inside, size=duration_in_units(window, schema, unit))
    return Lookback(inside, known.certain if division.late else None), division.reason


def _extent(groups: Sequence[by_row_groups.RowGroup], schema: Schema) -> tuple[float | None, float | None]:
    """The least and the greatest time in row groups, nothing if that is not known, or times are not numbers."""
    if schema.time is None or not schema.kind(schema.time).numeric:
        return None, None
    ends = [key for group in groups for key in (group.least, group.greatest) if key is not None]
    return (min(ends), max(ends)) if 0 < len(ends) == 2 * len(groups) else (None, None)


def _shares(plan: JobPlan, tasks: int) -> Sequence[KeyShare | None]:
    """The keys of each task, if events of different keys need not meet; else one task has them all."""
    if tasks < 2 or plan.positions or not plan.by_key:
        return [None]
    return [KeyShare(plan.keys, number, tasks) for number in range(tasks)]


def _explanation(slices: by_row_groups.Slices, rows: int, reason: str, shares: Sequence[KeyShare | None]) -> str:
    if len(shares) > 1:
        return f"{len(shares)} tasks share {rows:,} events by key, and each looks for its own in all files: {reason}"
    number = len(slices.slices)
    if number == 1:
        return f"one task reads all {rows:,} events in order: {reason}"
    return f"{number} tasks read slices of {rows:,} events, {slices.again:.0%} of them more than once: {reason}"
