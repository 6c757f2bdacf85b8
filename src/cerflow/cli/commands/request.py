"""The request for a run: the query, the sources, the columns and the output, checked before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cerflow import limits
from cerflow.analysis.columns import usage_of
from cerflow.cli.commands.mappings import ColumnOptions, checked_timeout, mapped
from cerflow.cli.output.bad_records import BadRecords
from cerflow.cli.output.clashes import refuse_clashes
from cerflow.cli.output.directory import Directory
from cerflow.cli.output.targets import check_writable
from cerflow.cli.output.writing import OutputFormat, output_format_of
from cerflow.engine.results.report import CountForm
from cerflow.errors import InputError
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.sources import InputFormat, Source, parse_source
from cerflow.language.node import walk
from cerflow.language.select import Select
from cerflow.programs.program import Program, read_query
from cerflow.query import Language, Query, Reading, parse
from cerflow.stream_inputs import Input


@dataclass(frozen=True)
class Inputs:
    """The inputs to read. ``named`` says that events of several streams must be told apart."""

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
    number of matches to write (None: all). ``counts`` is the form of ``COUNT(*)``. ``until`` is the time, as typed, up
    to which the events are complete. ``memory`` bounds the bytes of partial matches and matches. ``summary`` asks for a
    line that shows the matches over time.
    """

    query: Query | Program
    inputs: Inputs
    output: str
    output_format: OutputFormat
    positions: bool
    bad_records: BadRecords
    directory: Directory | None = None
    max_matches: int | None = None
    counts: CountForm = "decimal"
    flat: bool = False
    until: str | None = None
    summary: bool = False
    memory: int | None = None

    @classmethod
    def prepare(
        cls,
        query: Query | Program,
        inputs: Sequence[str],
        *,
        input_format: InputFormat | None = None,
        options: ColumnOptions,
        output: str,
        output_format: OutputFormat | None = None,
        positions: bool = True,
        bad_records: BadRecords,
        directory: Directory | None = None,
        max_matches: int | None = None,
        counts: CountForm = "decimal",
        flat: bool = False,
        until: str | None = None,
        summary: bool = False,
        memory: int | None = None,
        read_too: Sequence[str] = (),
    ) -> Request:
        """Check all that needs no reading of events; raises as `Inputs.prepare`, and OutputError.

        ``read_too`` are files that are read besides the inputs: the query, predicates.
        """
        read = Inputs.prepare(query, inputs, input_format, options)
        if directory is None:
            check_writable(output)
        refuse_clashes(
            [one.events for one in read.inputs],
            read_too,
            output=output,
            directory=directory is not None,
            dead_letters=bad_records.path,
        )
        return cls(
            query=query,
            inputs=read,
            output=output,
            output_format=output_format_of(output, output_format),
            positions=positions,
            bad_records=bad_records,
            directory=directory,
            max_matches=max_matches,
            counts=counts,
            flat=flat,
            until=until,
            summary=summary,
            memory=memory,
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


def load_query(
    path: str | None, expression: str | None, language: Language | None = None, reading: Reading = "second-order"
) -> Query | Program:
    """Parse a query, or a program if there are definitions; raises the errors of `cerflow.parse`, and InputError.

    Unless a language is named, files ``*.sremo`` are in SREMO.
    """
    if language is None:
        language = "sremo" if path is not None and path.lower().endswith(".sremo") else "ceql"
    text = query_source(path, expression)
    return read_query(text, language) if reading == "second-order" else parse(text, language=language, reading=reading)
