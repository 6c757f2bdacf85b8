"""What a run is asked to do: the query, the sources, the columns and the output, checked before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cerflow.cli.bad_records import BadRecords
from cerflow.cli.directory import Directory
from cerflow.cli.mappings import ColumnOptions, mapped
from cerflow.cli.reading import Columns
from cerflow.cli.sources import InputFormat, Source, parse_source
from cerflow.cli.usage import usage_of
from cerflow.cli.writing import OutputFormat, check_writable, output_format_of
from cerflow.errors import InputError
from cerflow.query import Language, Query, parse
from cerflow.stream_inputs import Input

__all__ = ["Inputs", "Request", "load_query", "query_text"]


@dataclass(frozen=True)
class Inputs:
    """What is to be read. ``named`` says that events of several streams must be told apart."""

    inputs: tuple[Input[Source], ...]
    columns: Columns
    named: bool

    @classmethod
    def prepare(
        cls, query: Query, inputs: Sequence[str], input_format: InputFormat | None, options: ColumnOptions
    ) -> Inputs:
        """Find the files, and check what the options say of them.

        Raises InputError, and typer's BadParameter for options that do not go together.
        """
        sources = tuple(parse_source(text, input_format) for text in inputs)
        found, roles = mapped(sources, options)
        named = len(sources) > 1 and (bool(query.tree.streams) or any(s.name for s in sources))
        return cls(found, Columns.of(roles, usage_of(query.tree)), named)


@dataclass(frozen=True)
class Request:
    """A run, ready to begin. ``directory`` says how to write a directory of files, None that one file is written."""

    query: Query
    inputs: Inputs
    output: str
    output_format: OutputFormat
    positions: bool
    bad_records: BadRecords
    directory: Directory | None = None

    @classmethod
    def prepare(
        cls,
        query: Query,
        inputs: Sequence[str],
        *,
        input_format: InputFormat | None = None,
        options: ColumnOptions,
        output: str,
        output_format: OutputFormat | None = None,
        positions: bool = True,
        bad_records: BadRecords,
        directory: Directory | None = None,
    ) -> Request:
        """Check what can be checked without reading; raises as `Inputs.prepare`."""
        read = Inputs.prepare(query, inputs, input_format, options)
        if directory is None:
            check_writable(output)
        elif bad_records.path is not None and Path(bad_records.path).absolute().is_relative_to(Path(output).absolute()):
            raise InputError("the dead letters cannot lie in the directory of the matches, which may be replaced")
        return cls(
            query=query,
            inputs=read,
            output=output,
            output_format=output_format_of(output, output_format),
            positions=positions,
            bad_records=bad_records,
            directory=directory,
        )


def query_text(path: str | None, expression: str | None) -> str:
    """The text of the query in a file or, if there is none, of the expression; raises InputError."""
    if path is None:
        return expression or ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = "; a query on the command line goes behind -e" if " " in path else ""
        raise InputError(f"there is no query file '{path}'{hint}") from error
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read the query file '{path}': {error}") from error


def load_query(path: str | None, expression: str | None, language: Language | None = None) -> Query:
    """Parse a query; raises the errors of `cerflow.parse`, and InputError.

    Unless a language is named, files ``*.sremo`` are in SREMO.
    """
    if language is None:
        language = "sremo" if path is not None and path.lower().endswith(".sremo") else "ceql"
    return parse(query_text(path, expression), language=language)
