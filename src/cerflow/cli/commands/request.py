"""The request for a run: its query, predicates, inputs, output and bad records, checked before any work begins."""

from __future__ import annotations

import importlib
import runpy
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypedDict, cast, get_args

import pyarrow as pa

from cerflow.api.programs.program import Program, read_query
from cerflow.api.query import Query, parse
from cerflow.api.stream_inputs import Input, Roles, common_roles
from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import BadRecordError, InputError
from cerflow.base.units import TimeUnit
from cerflow.cli import options as o
from cerflow.cli.output.reporting import PhaseTimer, warn
from cerflow.cli.output.targets import STANDARD_OUTPUT, check_writable, refuse_clashes
from cerflow.cli.output.writing import Sink, open_sink, output_format_of, write_table
from cerflow.engine.results.report import CountForm
from cerflow.files.column_types import type_named
from cerflow.files.input_plans import REFUSED, ColumnRoles
from cerflow.files.reading import ReadEvents, as_refused, read_inputs
from cerflow.files.row_groups import OrderedGroups
from cerflow.files.sources import Source, parse_source, source_name, text_form
from cerflow.language.node import walk
from cerflow.language.predicates.registry import registered_predicates
from cerflow.language.select import Select
from cerflow.logic.analysis.columns import ColumnUsage, columns_named, usage_of


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
    def prepare(cls, query: Query | Program | None, options: o.InputOptions) -> Inputs:
        """Find the files, and check the options for them; without a query all columns are alike.

        Raises InputError, and typer's BadParameter for options that do not go together.
        """
        form = text_form(options.encoding, options.delimiter, options.decimal_point, options.time_format)
        sources = tuple(parse_source(text, options.input_format, form) for text in options.inputs or ())
        found, roles = mapped(sources, options)
        used, reads_streams = ColumnUsage(), True
        if query is not None:
            used = usage_of(query.tree if isinstance(query, Query) else query.reading_input)
            reads_streams = any(isinstance(n, Select) and n.streams for n in walk(query.tree))
        named = len(sources) > 1 and (reads_streams or any(s.name for s in sources))
        time, unit, sequence = roles.get("time"), roles.get("time_unit"), roles.get("sequence")
        return cls(found, ColumnRoles(roles["type"], time, unit, sequence, used, options.key_timeout), named)

    def read(self) -> ReadEvents:
        """The events; raises InputError as `read_inputs`."""
        return read_inputs(self.inputs, self.columns, named=self.named)


class BadRecords:
    """Counts refused records; under the policy ``fail`` the first one is an error, ``dead-letter`` keeps all.

    They are kept for the file ``path``, which may also follow the policy: ``dead-letter=PATH``.
    """

    def __init__(self, policy: str, path: str | None = None) -> None:
        name, _, own = policy.partition("=")
        kept = name == "dead-letter"
        problems = {
            f"'{policy}' is not one of fail, skip, dead-letter, dead-letter=PATH": name not in ("fail", "skip")
            and not kept,
            "a path for dead letters goes with --on-bad-record dead-letter": not kept and (own or path),
            "the path of the dead letters is given twice": own and path and own != path,
            "--on-bad-record dead-letter needs --dead-letter PATH": kept and not (own or path),
        }
        for problem in filter(problems.get, problems):
            o.usage(problem, "--on-bad-record")
        self.fails = name == "fail"
        self.path = own or path
        self.count = 0
        self._kept: list[pa.Table] = []
        if self.path is not None:
            output_format_of(self.path)
            check_writable(self.path)

    def refuse(self, rows: pa.Table, numbers: Ints | None = None, first: int = 0) -> None:
        """Take a table with the columns ``row`` and ``reason``; raises BadRecordError under the policy ``fail``.

        If rows are numbered otherwise than in the input, from ``first`` on, ``numbers`` are those of all rows there.
        """
        if numbers is not None:
            index = rows.schema.get_field_index("row")
            rows = rows.set_column(index, "row", pa.array(numbers[rows.column("row").to_numpy() - first]))
        if len(rows) and self.fails:
            raise BadRecordError(rows.column("row")[0].as_py(), rows.column("reason")[0].as_py())
        self.count += len(rows)
        if self.path is not None:
            self._kept.append(as_refused(rows))

    def write(self) -> None:
        """Write the dead letters; if there are none, write an empty file."""
        if self.path is None:
            return
        table = pa.concat_tables([pa.schema(REFUSED).empty_table(), *self._kept], promote_options="permissive")
        write_table(self.path, output_format_of(self.path), table)


class Request:
    """A run, ready to begin: all is checked that needs no reading of events.

    ``until`` is the time, as typed, up to which the events are complete; ``read_too`` are files that are read besides
    the inputs: the query, predicates. Raises as `Inputs.prepare`, and OutputError.
    """

    def __init__(
        self,
        query: Query | Program,
        inputs: o.InputOptions,
        output: o.OutputOptions,
        options: o.RunOptions,
        *,
        until: str | None = None,
        read_too: Sequence[str] = (),
    ) -> None:
        if output.directory and output.output == STANDARD_OUTPUT:
            o.usage(
                "--output-mode and --partition-by are for directories; name one with --output PATH", "--output-mode"
            )
        if output.output_mode == "overwrite-partitions" and not output.partition_by:
            o.usage("--output-mode overwrite-partitions needs --partition-by COLUMN", "--output-mode")
        self.query, self.output, self.options, self.until = query, output, options, until
        self.bad_records = BadRecords(options.on_bad_record, options.dead_letter)
        self.inputs = Inputs.prepare(query, inputs)
        if not output.directory:
            check_writable(output.output)
        refuse_clashes(
            [one.events for one in self.inputs.inputs],
            read_too,
            output=output.output,
            directory=output.directory,
            dead_letters=self.bad_records.path,
        )
        self.output_format = output_format_of(output.output, output.output_format)
        #: The form of the matches.
        self.form: MatchForm = {"flat": output.flat, "counts": options.counts}

    @cached_property
    def groups(self) -> OrderedGroups | None:
        """The row groups of Parquet that can be read one after the other; None for input that is read as a whole.

        Raises InputError for files that cannot be read.
        """
        whole = self.inputs.named or len(self.inputs.inputs) > 1 or self.options.summary
        if whole or isinstance(self.query, Program) or not self.bad_records.fails:
            return None
        return OrderedGroups.of(self.inputs.inputs[0], self.inputs.columns)

    def evaluates(self, one: Input[Source], column: str) -> bool | None:
        """Whether the query evaluates a column of the files of an input; None if a run in this process skips it."""
        if self._evaluated is None or self.inputs.columns.name_of(one, column) in self._evaluated:
            return True
        return None if self.groups is not None else False

    @cached_property
    def _evaluated(self) -> Collection[str] | None:
        roles = self.inputs.columns
        tree = self.query.reading_input if isinstance(self.query, Program) else self.query.tree
        return columns_named(tree, roles.type, roles.time, roles.sequence)

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        watch: PhaseTimer,
        look: Callable[[Sink, pa.RecordBatch, int], None] = lambda *_: None,
        end: Callable[[], None] = lambda: None,
    ) -> int:
        """Write the matches and ``look`` at each batch; ``end`` does what must be done before they get their name."""
        written = 0
        with open_sink(self.output.output, self.output_format, schema) as sink:
            for batch in batches:
                watch.done("recognising")
                sink.write(batch)
                written += batch.num_rows
                look(sink, batch, written)
                watch.done("writing")
            watch.done("recognising")
            end()
        watch.done("writing")
        return written


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


def load_query(options: o.QueryOptions) -> Query | Program:
    """Parse a query, or a program if there are definitions; raises the errors of `cerflow.parse`, and InputError.

    Unless a language is named, files ``*.sremo`` are in SREMO.
    """
    path, reading = options.query, options.reading
    language = options.language or ("sremo" if path is not None and path.lower().endswith(".sremo") else "ceql")
    text = query_source(path, options.expression)
    return read_query(text, language) if reading == "second-order" else parse(text, language=language, reading=reading)


def mapped(sources: Sequence[Source], options: o.InputOptions) -> tuple[tuple[Input[Source], ...], Roles]:
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
            o.usage(f"'{given}' is not one of {', '.join(get_args(TimeUnit))}", "--time-unit")
    sequences = _assigned("--sequence-column", options.sequence, names)
    constants = _assigned("--constant-type", options.constant_type, names)
    for both in types.keys() & constants.keys():
        whose = "all inputs have" if both is None else f"the input '{both}' has"
        o.usage(f"{whose} a type column already", "--constant-type")
    renamed = _by_column("--rename", "NEW=OLD", options.rename, names)
    typed = _by_column("--column-type", "COLUMN=TYPE", options.column_types, names)
    try:
        kinds = {name: {column: type_named(said) for column, said in of.items()} for name, of in typed.items()}
    except ValueError as error:
        o.usage(str(error), "--column-type")
    inputs = tuple(
        Input(
            replace(source, column_types=kinds[name]),
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


def _assigned(option: str, values: o.Many, names: Sequence[str]) -> dict[str | None, str]:
    """The values for single inputs by their names, and the value for all others by None."""
    found: dict[str | None, str] = {}
    for name, (value,) in _given(option, "VALUE", values, names):
        if found.setdefault(name, value) != value:
            whose = "all inputs" if name is None else f"the input '{name}'"
            o.usage(f"given twice for {whose}: '{found[name]}' and '{value}'", option)
    return found


def _by_column(option: str, form: str, values: o.Many, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What the values ``NEW=OLD`` or ``COLUMN=TYPE`` say of columns, for each input."""
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for of, pair in _given(option, form, values, names):
        what, (value, column) = ("names", pair) if form == "NEW=OLD" else ("types", pair[::-1])
        for name in names if of is None else [of]:
            before = found[name].setdefault(column, value)
            if before != value:
                o.usage(f"the column '{column}' gets two {what}: '{before}' and '{value}'", option)
    return found


def _given(option: str, form: str, values: o.Many, names: Sequence[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The values ``[NAME=]VALUE`` of an option, or ``[NAME=]A=B``: the name of an input, or None, and the parts."""
    parts = form.count("=") + 1
    for text in values or ():
        found = text.split("=", 1 if parts == 1 else -1)
        name = found.pop(0) if len(found) > parts else None
        if len(found) != parts or not all(found):
            o.usage(f"'{text}' is not of the form [NAME=]{form}", option)
        if name is not None and name not in names:
            o.usage(f"there is no input '{name}'; the inputs are {', '.join(names)}", option)
        yield name, found


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
        except (Exception, SystemExit) as error:
            said = _failed(source, error)
            if isinstance(error, ModuleNotFoundError) and not is_file and f"{source}.".startswith(f"{error.name}."):
                hint = f"; a file is given by its path, such as ./{source}.py"
                said = f"there is no module '{source}' with predicates{hint}"
            raise InputError(said) from error
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
