"""The request for a run: its query, predicates, inputs, output and bad records, checked before any work begins."""

from __future__ import annotations

import importlib
import runpy
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypedDict, cast, get_args

import pyarrow as pa

from cerflow.api.programs.program import Program, read_query
from cerflow.api.query import Query, Reading, parse
from cerflow.api.stream_inputs import Input, Roles, common_roles
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError
from cerflow.base.units import TimeUnit
from cerflow.cli.options import (
    ColumnOptions,
    Given,
    InputOptions,
    OutputOptions,
    QueryOptions,
    RunOptions,
    bytes_of,
    parse_most,
    usage,
    values_of,
)
from cerflow.cli.output.clashes import refuse_clashes
from cerflow.cli.output.reporting import warn
from cerflow.cli.output.targets import check_writable
from cerflow.cli.output.writing import Directory, OutputFormat, output_format_of, write_table
from cerflow.engine.results.report import CountForm
from cerflow.files.column_types import type_named
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.reading import as_refused
from cerflow.files.sources import InputFormat, Source, parse_source, source_name
from cerflow.language.node import walk
from cerflow.language.parser import duration_in_microseconds
from cerflow.language.predicates.registry import registered_predicates
from cerflow.language.select import Select
from cerflow.logic.analysis.columns import usage_of


class MatchForm(TypedDict):
    """How matches are written; `Matches.to_batches` explains it."""

    flat: bool
    counts: CountForm


@dataclass(frozen=True)
class Inputs:
    """The inputs to read. ``named`` says that events of several streams must be distinguished."""

    inputs: tuple[Input[Source], ...]
    columns: ColumnRoles
    named: bool

    @classmethod
    def prepare(
        cls, query: Query | Program, inputs: Sequence[str], input_format: InputFormat | None, options: ColumnOptions
    ) -> Inputs:
        """Find the files, and check the options for them.

        Raises InputError, and typer's BadParameter for options that do not go together.
        """
        sources = tuple(parse_source(text, input_format, options.encoding) for text in inputs)
        found, roles = mapped(sources, options)
        reads_streams = any(isinstance(n, Select) and n.streams for n in walk(query.tree))
        named = len(sources) > 1 and (reads_streams or any(s.name for s in sources))
        usage = usage_of(query.tree if isinstance(query, Query) else query.reading_input)
        with values_of("--key-timeout"):
            duration_in_microseconds(options.key_timeout)
        return cls(found, ColumnRoles.of(roles, usage, options.key_timeout), named)


class Policy(StrEnum):
    """``fail`` stops at the first, ``skip`` counts them, ``dead-letter`` keeps them in a file, with the reason."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


def parse_policy(on_bad_record: str, dead_letter: str | None) -> tuple[Policy, str | None]:
    """The policy and the path of the dead letters; ``dead-letter=PATH`` gives both. Raises ValueError if they clash."""
    name, _, path = on_bad_record.partition("=")
    if name not in list(Policy):
        raise ValueError(f"'{on_bad_record}' is not one of fail, skip, dead-letter, dead-letter=PATH")
    policy = Policy(name)
    if policy is not Policy.DEAD_LETTER:
        if path or dead_letter:
            raise ValueError("a path for dead letters goes with --on-bad-record dead-letter")
        return policy, None
    if path and dead_letter and path != dead_letter:
        raise ValueError("the path of the dead letters is given twice")
    if not (path or dead_letter):
        raise ValueError("--on-bad-record dead-letter needs --dead-letter PATH")
    return policy, path or dead_letter


@dataclass
class BadRecords:
    """Counts refused records, and keeps them if they will be written."""

    policy: Policy
    path: str | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self._kept: list[pa.Table] = []
        if self.path is not None:
            output_format_of(self.path)
            check_writable(self.path)

    def refuse(self, rows: pa.Table) -> None:
        """Take a table with the columns ``row`` and ``reason``; raises BadRecordError under the policy ``fail``."""
        if len(rows) == 0:
            return
        if self.policy is Policy.FAIL:
            raise BadRecordError(rows.column("row")[0].as_py(), rows.column("reason")[0].as_py())
        self.count += len(rows)
        if self.policy is Policy.DEAD_LETTER:
            self._kept.append(as_refused(rows))

    def write(self) -> None:
        """Write the dead letters; if there are none, write an empty file."""
        if self.path is None:
            return
        table = as_refused(pa.table({"row": pa.array([], pa.int64()), "reason": pa.array([], pa.string())}))
        table = pa.concat_tables([table, *self._kept], promote_options="permissive")
        write_table(self.path, output_format_of(self.path), table)


@dataclass(frozen=True)
class Request:
    """A run, ready to begin.

    ``directory`` says how to write a directory of files; None stands for one file. ``max_matches`` is the greatest
    number of matches to write (None: all). ``until`` is the time, as typed, up to which the events are complete.
    ``memory`` bounds the bytes of partial matches and matches.
    """

    query: Query | Program
    inputs: Inputs
    output: OutputOptions
    options: RunOptions
    output_format: OutputFormat
    bad_records: BadRecords
    directory: Directory | None
    max_matches: int | None
    memory: int | None
    until: str | None

    @property
    def form(self) -> MatchForm:
        """The form of the matches."""
        return {"flat": self.output.flat, "counts": self.options.counts}

    @classmethod
    def prepare(
        cls,
        query: Query | Program,
        inputs: InputOptions,
        columns: ColumnOptions,
        output: OutputOptions,
        options: RunOptions,
        *,
        until: str | None = None,
        read_too: Sequence[str] = (),
    ) -> Request:
        """Check all that needs no reading of events; raises as `Inputs.prepare`, and OutputError.

        ``read_too`` are files that are read besides the inputs: the query, predicates.
        """
        with values_of("--max-matches"):
            most = parse_most(options.max_matches)
        memory = bytes_of(options.memory, "--memory")
        with values_of("--on-bad-record"):
            policy, letters = parse_policy(options.on_bad_record, options.dead_letter)
        directory = None
        if output.output_mode or output.partition_by:
            with values_of("--output-mode"):
                directory = Directory(output.output, output.output_mode or "error", tuple(output.partition_by or ()))
        bad_records = BadRecords(policy, letters)
        read = Inputs.prepare(query, inputs.inputs or [], inputs.input_format, columns)
        if directory is None:
            check_writable(output.output)
        refuse_clashes(
            [one.events for one in read.inputs],
            read_too,
            output=output.output,
            directory=directory is not None,
            dead_letters=letters,
        )
        form = output_format_of(output.output, output.output_format)
        return cls(query, read, output, options, form, bad_records, directory, most, memory, until)


def query_source(path: str | None, expression: str | None) -> str:
    """The text of the query in a file or, if there is none, of the expression; raises InputError."""
    if path is None:
        return expression or ""
    try:
        with Path(path).open(encoding="utf-8") as file:
            # One character more than a query may have, so a text that is too long is refused without reading it all.
            return file.read(limits.QUERY_CHARACTERS + 1)
    except FileNotFoundError as error:
        hint = "; a query on the command line goes after -e" if " " in path else ""
        raise InputError(f"there is no query file '{path}'{hint}") from error
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read the query file '{path}': {error}") from error


def load_query(options: QueryOptions, reading: Reading = "second-order") -> Query | Program:
    """Parse a query, or a program if there are definitions; raises the errors of `cerflow.parse`, and InputError.

    Unless a language is named, files ``*.sremo`` are in SREMO.
    """
    path = options.query
    language = options.language or ("sremo" if path is not None and path.lower().endswith(".sremo") else "ceql")
    text = query_source(path, options.expression)
    return read_query(text, language) if reading == "second-order" else parse(text, language=language, reading=reading)


def mapped(sources: Sequence[Source], options: ColumnOptions) -> tuple[tuple[Input[Source], ...], Roles]:
    """The inputs with their options, and the names that columns with a role have in all inputs together.

    Raises typer's BadParameter for options that name no input or contradict each other, and InputError if only some
    of the inputs have a role.
    """
    names = list(dict.fromkeys(map(source_name, sources)))
    types = _assigned("--type-column", options.type, names)
    times = _assigned("--time-column", options.time, names)
    units = cast(dict[str | None, TimeUnit], _assigned("--time-unit", options.time_unit, names))
    for given in units.values():
        if given not in get_args(TimeUnit):
            usage(f"'{given}' is not one of {', '.join(get_args(TimeUnit))}", "--time-unit")
    sequences = _assigned("--sequence-column", options.sequence, names)
    constants = _assigned("--constant-type", options.constant_type, names)
    renamed: dict[str, dict[str, str]] = {name: {} for name in names}
    for name, new, old in _pairs("--rename", "NEW=OLD", options.rename, names):
        if renamed[name].setdefault(old, new) != new:
            usage(f"the column '{old}' gets two names: '{renamed[name][old]}' and '{new}'", "--rename")
    typed: dict[str, dict[str, pa.DataType]] = {name: {} for name in names}
    for name, column, said in _pairs("--column-type", "COLUMN=TYPE", options.column_types, names):
        with values_of("--column-type"):
            kind = type_named(said)
        if typed[name].setdefault(column, kind) != kind:
            usage(f"the column '{column}' gets two types", "--column-type")
    for both in types.keys() & constants.keys():
        whose = "all inputs have" if both is None else f"the input '{both}' has"
        usage(f"{whose} a type column already", "--constant-type")
    inputs = tuple(
        Input(
            replace(source, column_types=typed[name]),
            type=types.get(name),
            time=times.get(name),
            time_unit=units.get(name, units.get(None)),
            sequence=sequences.get(name),
            constant_type=constants.get(name, None if name in types else constants.get(None)),
            rename=renamed[name],
        )
        for source, name in zip(sources, map(source_name, sources))
    )
    by_name = {source_name(one.events): one for one in inputs}
    common = common_roles(by_name, type=types.get(None), time=times.get(None), sequence=sequences.get(None))
    return inputs, common


def _assigned(option: str, values: Given, names: Sequence[str]) -> dict[str | None, str]:
    """The values for single inputs by their names, and the value for all others by None."""
    found: dict[str | None, str] = {}
    for text in values or ():
        name, value = text.split("=", 1) if "=" in text else (None, text)
        if not value:
            usage(f"'{text}' is not of the form [NAME=]VALUE", option)
        _known(option, [] if name is None else [name], names)
        if found.setdefault(name, value) != value:
            whose = "all inputs" if name is None else f"the input '{name}'"
            usage(f"given twice for {whose}: '{found[name]}' and '{value}'", option)
    return found


def _pairs(option: str, form: str, values: Given, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The values ``[NAME=]A=B`` of an option as (name, A, B), for each input that they are about."""
    for text in values or ():
        *of, first, second = text.split("=") if text.count("=") in (1, 2) else ("", "", "")
        if not first or not second:
            usage(f"'{text}' is not of the form [NAME=]{form}", option)
        _known(option, of, names)
        for name in of or names:
            yield name, first, second


def _known(option: str, of: Sequence[str], names: Sequence[str]) -> None:
    for name in of:
        if name not in names:
            usage(f"there is no input '{name}'; the inputs are {', '.join(names)}", option)


def load_predicates(sources: Iterable[str]) -> None:
    """Run files (``*.py``, or anything with a path) and import modules (``package.module``), in the given order.

    Raises InputError if one cannot be found or fails, and warns if one registers no predicates.
    """
    for source in sources:
        before = registered_predicates()
        is_file = source.endswith(".py") or Path(source).name != source
        try:
            if is_file:
                _run(Path(source))
            else:
                importlib.import_module(source)
        except InputError:
            raise
        except ModuleNotFoundError as error:
            if is_file or not f"{source}.".startswith(f"{error.name}."):
                raise InputError(_failed(source, error)) from error
            hint = f"; a file is given by its path, such as ./{source}.py"
            raise InputError(f"there is no module '{source}' with predicates{hint}") from error
        except (Exception, SystemExit) as error:
            raise InputError(_failed(source, error)) from error
        if registered_predicates() == before:
            warn(f"'{source}' registers no predicates")


def _run(path: Path) -> None:
    """Run a file as a module that cannot be imported.

    Its functions are then sent to the workers of Spark as a whole, not as the name of a module.
    """
    if not path.is_file():
        raise InputError(f"there is no file '{path}' with predicates")
    if path.suffix != ".py":
        raise InputError(f"'{path}' is not a file of Python: its name must end in .py")
    runpy.run_path(str(path.absolute()), run_name=f"{path.stem} (predicates)")


def _failed(source: str, error: BaseException) -> str:
    what = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == Path(source).absolute()]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    place = "" if line is None else f", line {line}"
    return f"the predicates in '{source}' cannot be loaded{place}: {what}"
