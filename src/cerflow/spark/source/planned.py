"""Plans a read of the data source: reads its options, checks the query, cuts the stream, and describes the tasks."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack, get_args

import numpy as np
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
from cerflow.engine.evaluate.measures import typed_time
from cerflow.engine.pushdown.relevance import types_named
from cerflow.engine.pushdown.translation import arrow_filter
from cerflow.engine.results.report import CountForm
from cerflow.engine.slices import cutting
from cerflow.engine.slices.cutting import GREATEST, LEAST, Lookback, values_of
from cerflow.files.row_groups import groups_of, is_orderly, short_texts
from cerflow.language.condition import Condition
from cerflow.language.formula import AttributeWindow
from cerflow.language.predicates.registry import predicates_in
from cerflow.logic.conditions.connectives import TRUE
from cerflow.spark.frames.output import packed_batch, unpacked_batches
from cerflow.spark.frames.plan import JobPlan, PlanArguments, make_plan
from cerflow.spark.frames.schemas import declared, refuse_foreign
from cerflow.spark.source.files import DataFile, columns_of, each, filesystem_of, find_files, metadata_of
from cerflow.spark.source.row_groups import KeyShare, Task, Work
from cerflow.spark.source.task import matches_of, matches_of_tasks
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


def read_options(given: Mapping[str, str]) -> dict[str, Any]:
    """The options as Spark hands them over, by names as Python has them; a number is one, and a truth value, too.

    ``type``, ``time``, ``timeUnit``, ``sequence``, ``stream``, ``positions``, ``counts``, ``flat``, ``maxMatches`` and
    ``until`` (a number or a text of ISO 8601) mean what they mean to `cerflow.spark.match`. ``onBadRecord`` says
    whether events without a type or a time are left out instead of making the job fail. ``sliceRows`` is the number of
    events of a slice to aim at, ``cores`` the number of tasks that will run at a time (by default that of this
    machine), which matters where slices cost reading the same events again. Raises `InputError` for what is unknown or
    wrong.
    """
    known = {name.lower(): name for name in _OPTIONS}
    found: dict[str, Any] = {}
    for given_name, value in given.items():
        name = known.get(given_name.lower())
        if name is None:
            hint = did_you_mean(given_name, _OPTIONS, "options")
            raise InputError(f"the data source cerflow has no option '{given_name}'{hint}")
        choices = _OPTIONS[name]
        typed: str | int = value
        if choices is int:
            if not (value.isdecimal() and int(value)):
                raise InputError(f"the option '{name}' must be a number above 0, not '{value}'")
            typed = int(value)
        elif isinstance(choices, tuple):
            word = value.lower()
            if word not in choices:
                near = nearest(word, choices)
                hint = f"; did you mean '{near}'?" if near else ""
                raise InputError(f"the option '{name}' must be {' or '.join(choices)}, not '{value}'{hint}")
            typed = word == "true" if choices is _BOOLEANS else word
        found[re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)] = typed
    return found


def _taken_query(options: dict[str, Any]) -> Query | Program:
    """The query that options name, which are taken out."""
    text, path = options.pop("query", None), options.pop("query_file", None)
    if (text is None) == (path is None):
        raise InputError("the data source cerflow needs one of the options 'query' and 'queryFile'")
    language: Language = "ceql"
    if path is not None:
        language = "sremo" if path.lower().endswith(".sremo") else "ceql"
        try:
            text = Path(path.removeprefix("file://")).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise InputError(f"cannot read the query file '{path}': {error}") from error
    return read_query(text, options.pop("language", language))


def _taken_paths(options: dict[str, Any]) -> list[str]:
    """The paths that options name, which are taken out."""
    # Spark hands several paths over as a list in JSON.
    paths, further = [options.pop("path", None)], options.pop("paths", "[]")
    try:
        paths += json.loads(further)
    except (TypeError, ValueError):
        paths.append(0)
    paths = [path for path in paths if path is not None]
    if not all(isinstance(path, str) for path in paths):
        raise InputError("the option 'paths' must be a list of texts in JSON, as load([…]) makes it")
    if not paths:
        raise InputError("the data source cerflow needs the path of Parquet files: load(path)")
    return paths


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
        numbers = spark.range(0, len(self.tasks), 1, numPartitions=len(self.tasks))
        return numbers.mapInArrow(partial(matches_of_tasks, self.work, self.tasks), self.schema)

    def batches(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """The matches, computed and fetched as by `arrow_batches`, but without the seconds that Spark takes to plan."""
        run_own_python(spark)
        work = self.work
        found = spark.sparkContext.parallelize(self.tasks, len(self.tasks)).flatMap(
            lambda task: map(packed_batch, matches_of(work, task))
        )
        packed = found.persist(StorageLevel.DISK_ONLY)
        try:
            packed.count()
            yield from unpacked_batches(packed.toLocalIterator())
        finally:
            packed.unpersist()


def plan_read(given: Mapping[str, str]) -> Planned:
    """Plan a read with the options as Spark hands them over. Only the footers of the files are read.

    Raises `QuerySyntaxError` and `QueryError` for a query that is wrong or does not fit the columns, `InputError` for
    options, files and columns that are not as they should be, and for files in which too many events would have to be
    sorted, `UnsupportedQueryError` for what cannot be evaluated.
    """
    options = read_options(given)
    query, paths = _taken_query(options), _taken_paths(options)
    if isinstance(query, Program):
        raise UnsupportedQueryError("the data source does not evaluate definitions", hint=_INSTEAD)
    skip = options.pop("on_bad_record", "fail") == "skip"
    options = {"slice_rows": limits.SOURCE_SLICE_ROWS, "cores": os.cpu_count() or 1} | options
    return plan_query(query, paths, skip=skip, **options)


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
    everything = groups_of(
        each(metadata_of, files),
        schema.columns,
        leading=work.leading,
        type=None if schema.untyped else schema.typed_by or schema.type,
        time=schema.time,
        parts=[file.part for file in files],
    )
    rows = sum(group.rows for group in everything)
    groups = everything
    # Statistics of other columns are not those of the types, which are text, nor of fields.
    comparable = schema.typed_by is None and not any(file.constants for file in files)
    if alike and comparable and schema.columns.equals(stored):
        groups = _relevant_groups(everything, files, _noticed(plan), schema, skip=skip)
    irrelevant = len(everything) - len(groups)
    slices, reason = _slices(plan, work, _wanted(groups, files, schema.time, skip=skip), slice_rows, cores)
    shares: list[KeyShare | None] = [None]
    if len(slices.slices) == 1:
        # Events of different keys need not meet.
        tasks = min(cores, rows // slice_rows)
        if tasks > 1 and plan.by_key and not plan.positions:
            shares = [KeyShare(plan.keys, number, tasks) for number in range(tasks)]
    explanation = _explanation(slices, rows, reason, len(shares))
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
    if leading is not None and not is_orderly(schema.columns.field(leading).type):
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
    return Work(
        recognition=replace(recognition, schema=replace(recognition.schema, columns=pa.schema(sent))),
        columns=columns,
        leading=leading,
        sequence=sequence,
        most_waiting=limits.SOURCE_TOLERANCE * limits.SOURCE_WAITING_BYTES // (_VALUE_BYTES * (len(read) + 1)),
        skip=skip,
        types=types_named(_noticed(plan), schema),
        typed_by=None if schema.typed_by is None else schema.columns.field(schema.typed_by),
        result=result,
    )


def _relevant_groups(
    groups: Sequence[cutting.RowGroup],
    files: Sequence[DataFile],
    condition: Condition,
    schema: Schema,
    *,
    skip: bool,
) -> list[cutting.RowGroup]:
    """The row groups of some files that may have a relevant event, by their statistics.

    All files have the columns of ``schema``. A group that may have bad records is left out only if these are skipped.
    """
    wanted = arrow_filter(condition, schema)
    if wanted is None:
        return list(groups)

    def some(of_file: tuple[int, list[cutting.RowGroup]]) -> list[cutting.RowGroup]:
        number, own = of_file
        file = files[number]
        fragment = ds.ParquetFileFormat().make_fragment(file.path, filesystem_of(file.root))
        kept = {info.id for info in fragment.subset(wanted, schema=schema.columns).row_groups}
        return [group for group in own if group.index in kept or not (skip or group.valid == group.rows)]

    by_file = [(number, list(own)) for number, own in groupby(groups, key=lambda group: group.file)]
    return [group for own in each(some, by_file) for group in own]


def _wanted(
    groups: Sequence[cutting.RowGroup], files: Sequence[DataFile], time: str | None, *, skip: bool
) -> list[cutting.RowGroup]:
    """The row groups with events that can be used; where all must be valid, they count as such."""
    if skip:
        return [group for group in groups if group.valid != 0]
    for group in groups:
        if group.least is None and group.valid == 0:
            raise BadRecordError(f"{group.first} of '{files[group.file].path}'", f"no time in '{time}'")
    return [replace(group, valid=group.rows) for group in groups]


def _slices(
    plan: JobPlan, work: Work, groups: Sequence[cutting.RowGroup], slice_rows: int, cores: int
) -> tuple[cutting.Slices, str]:
    """The slices of row groups, and why they are cut so; raises `InputError` if too many events would have to wait."""
    division = plan.division
    reason = division.reason if division.window is None else None
    if any(group.least is None for group in groups):
        # The order is unknown, so events are taken as they arrive, and checked.
        groups = [replace(group, least=None, greatest=None) for group in groups]
        whole = cutting.GroupSlice(LEAST, LEAST, GREATEST, groups=tuple(groups))
        name = work.leading
        unknown = f"the files have no statistics of '{name}', so their events are read in the order of the files"
        return cutting.Slices((whole,), sum(group.rows for group in groups), 0), reason or unknown
    if reason is None and plan.positions and work.skip and any(group.valid is None for group in groups):
        reason = "how many events are skipped, and so their positions, is known only when all are read"
    if reason is None and isinstance(division.window, AttributeWindow):
        reason = "a window of an attribute is not cut"
    known = cutting.RowGroups(groups)
    lookback = Lookback(division, plan.schema, known, known.certain)
    if reason is not None:
        slices = cutting.cut_at(known, [], lookback)
    else:
        most = work.most_waiting // limits.SOURCE_TOLERANCE
        slices = cutting.slices_of_row_groups(known, lookback, slice_rows=slice_rows, cores=cores, most_waiting=most)
        reason = division.reason
        if len(slices.slices) == 1:
            reason = "they are too few, or are in too few row groups, for more than one slice"
    if slices.most_waiting * limits.SOURCE_TOLERANCE > work.most_waiting:
        raise InputError(
            f"about {slices.most_waiting:,} events overlap in '{work.leading}', too many to be sorted in a task; "
            "write the files in that order, or let cerflow.spark.match sort them"
        )
    return slices, reason


def _extent(groups: Sequence[cutting.RowGroup], schema: Schema) -> tuple[float | None, float | None]:
    """The least and the greatest time in row groups, nothing if that is not known, or times are not numbers."""
    if schema.time is None or not schema.kind(schema.time).numeric:
        return None, None
    keys = [key for group in groups for key in (group.least, group.greatest) if key is not None]
    if not 0 < len(keys) == 2 * len(groups):
        return None, None
    low, high = values_of(np.array([min(keys), max(keys)]), schema.columns.field(schema.time).type).to_pylist()
    return low, high


def _explanation(slices: cutting.Slices, rows: int, reason: str, shares: int) -> str:
    if shares > 1:
        return f"{shares} tasks share {rows:,} events by key, and each looks for its own in all files: {reason}"
    number = len(slices.slices)
    if number == 1:
        return f"one task reads all {rows:,} events in order: {reason}"
    return f"{number} tasks read slices of {rows:,} events, {slices.again:.0%} of them more than once: {reason}"
