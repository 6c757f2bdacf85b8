"""What a run is asked to do: the query, the sources, the columns and the output, checked before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cerflow.cli.bad_records import BadRecords
from cerflow.cli.reading import Columns
from cerflow.cli.sources import InputFormat, Source, parse_source
from cerflow.cli.usage import usage_of
from cerflow.cli.writing import OutputFormat, check_writable, output_format_of
from cerflow.errors import InputError
from cerflow.query import Language, Query, parse

__all__ = ["Request", "load_query", "query_text", "several_streams"]


@dataclass(frozen=True)
class Request:
    """A run, ready to begin. ``named`` says that events of several streams must be told apart."""

    query: Query
    sources: tuple[Source, ...]
    columns: Columns
    output: str
    output_format: OutputFormat
    positions: bool
    bad_records: BadRecords
    named: bool

    @classmethod
    def prepare(
        cls,
        query: Query,
        inputs: Sequence[str],
        *,
        input_format: InputFormat | None,
        type: str,
        time: str | None,
        sequence: str | None,
        output: str,
        output_format: OutputFormat | None,
        positions: bool,
        bad_records: BadRecords,
    ) -> Request:
        """Check what can be checked without reading; raises InputError."""
        sources = tuple(parse_source(text, input_format) for text in inputs)
        check_writable(output)
        return cls(
            query=query,
            sources=sources,
            columns=Columns(type=type, time=time, sequence=sequence, usage=usage_of(query.tree)),
            output=output,
            output_format=output_format_of(output, output_format),
            positions=positions,
            bad_records=bad_records,
            named=several_streams(query, sources),
        )


def several_streams(query: Query, sources: Sequence[Source]) -> bool:
    """Whether it matters which source an event is from."""
    return len(sources) > 1 and (bool(query.tree.streams) or any(s.name for s in sources))


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
