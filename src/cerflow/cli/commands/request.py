"""The request for a run: the query, the sources, the columns and the output, checked before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cerflow import limits
from cerflow.analysis.columns import usage_of
from cerflow.cli.arguments import bytes_of, values_of
from cerflow.cli.commands.mappings import checked_timeout, mapped
from cerflow.cli.options import ColumnOptions, InputOptions, OutputOptions, QueryOptions, RunOptions
from cerflow.cli.output.bad_records import BadRecords, parse_policy
from cerflow.cli.output.clashes import refuse_clashes
from cerflow.cli.output.directory import Directory
from cerflow.cli.output.targets import check_writable
from cerflow.cli.output.volume import parse_most
from cerflow.cli.output.writing import OutputFormat, output_format_of
from cerflow.engine.results.report import CountForm
from cerflow.errors import InputError
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.sources import InputFormat, Source, parse_source
from cerflow.language.node import walk
from cerflow.language.select import Select
from cerflow.programs.program import Program, read_query
from cerflow.query import Query, Reading, parse
from cerflow.stream_inputs import Input


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
        return cls(found, ColumnRoles.of(roles, usage, checked_timeout(options)), named)


@dataclass(frozen=True)
class Request:
    """A run, ready to begin.

    ``directory`` says how to write a directory of files; None stands for one file. ``max_matches`` is the greatest
    number of matches to write (None: all). ``until`` is the time, as typed, up to which the events are complete.
    ``memory`` bounds the bytes of partial matches and matches. ``summary`` asks for a line that shows the matches over
    time.
    """

    query: Query | Program
    inputs: Inputs
    output: str
    output_format: OutputFormat
    flat: bool
    positions: bool
    bad_records: BadRecords
    directory: Directory | None
    max_matches: int | None
    counts: CountForm
    until: str | None
    summary: bool
    memory: int | None

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
        return cls(
            query,
            read,
            output.output,
            output_format_of(output.output, output.output_format),
            output.flat,
            options.positions,
            bad_records,
            directory,
            most,
            options.counts,
            until,
            options.summary,
            memory,
        )


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
