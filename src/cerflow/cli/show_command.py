"""The command ``cerflow show``: the result of a run as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cerflow import limits
from cerflow.cli import options as o
from cerflow.cli.arguments import usage
from cerflow.cli.commands.mappings import ColumnOptions, mapped
from cerflow.cli.output.reporting import errors_reported, note, warn
from cerflow.errors import counted
from cerflow.files.sources import InputFormat

Result = Annotated[
    str, typer.Argument(metavar="RESULT", help="File of matches, written by cerflow run.", show_default=False)
]
PagePath = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE.html|-",
        help="File for the page, '-' for standard output; without it, a temporary one that the browser opens.",
        show_default=False,
    ),
]
ResultFormat = Annotated[
    InputFormat | None, typer.Option(help="Format of the result, if its name does not show it.", show_default=False)
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="Column of the events by whose values they can be laid out in lanes (unless given, the keys of the "
        "result, or columns of text with few values). May be repeated.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Show the first N matches (100,000 unless given).", show_default=False),
]
Title = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Title of the page (the name of the result).", show_default=False)
]


def show(
    result: Result,
    inputs: o.Inputs = None,
    input_format: o.InputFormatOption = None,
    type_column: o.TypeColumn = None,
    time_column: o.TimeColumn = None,
    time_unit: o.TimeUnitOption = None,
    sequence_column: o.SequenceColumn = None,
    constant_type: o.ConstantType = None,
    rename: o.Rename = None,
    column_type: o.ColumnTypes = None,
    encoding: o.Encoding = "utf-8",
    result_format: ResultFormat = None,
    key: Keys = None,
    limit: Limit = None,
    title: Title = None,
    output: PagePath = None,
) -> None:
    """Show the matches of a run in their events, as one HTML page that needs no network."""
    if not inputs:
        usage("give the events in which the result was found with --input PATH", "--input")
    options = ColumnOptions(
        type_column, time_column, time_unit, sequence_column, constant_type, rename, column_type, encoding
    )
    with errors_reported():
        from cerflow.analysis.columns import ColumnUsage
        from cerflow.cli.output.clashes import refuse_clashes
        from cerflow.cli.output.targets import check_writable, open_target
        from cerflow.engine.events.records import RecordChecker
        from cerflow.engine.events.time_order import usable_in_order
        from cerflow.files.input_plans import ColumnRoles
        from cerflow.files.reading import read_inputs
        from cerflow.files.results import read_result
        from cerflow.files.sources import parse_source, source_of
        from cerflow.viewing.opening import open_page
        from cerflow.viewing.page import BATCH, ViewedStream, first_matches, page_of

        sources = tuple(parse_source(text, input_format, options.encoding) for text in inputs)
        matches = source_of(result, result_format)
        if output is not None:
            check_writable(output)
            refuse_clashes([*sources, matches], [], output=output, directory=False, dead_letters=None)
        found, roles = mapped(sources, options)
        columns = ColumnRoles.of(roles, ColumnUsage())
        read = read_inputs(found, columns, named=len(sources) > 1)
        schema = columns.schema(read.table.schema, read.stream)
        checker = RecordChecker(schema, "skip", in_order=False)
        events, _ = usable_in_order(read.table, checker, columns.sequence)
        left_out = checker.refused + (0 if read.refused is None else len(read.refused))
        if left_out:
            warn(f"{counted(left_out, 'row')} of the input cannot be used and counts no position")
        whole = read_result(matches)
        table, cut = first_matches(whole.to_batches(max_chunksize=BATCH), whole.schema, limit or limits.VIEWED_MATCHES)
        names = [name for name in whole.column_names if name in events.column_names]
        keys = [[name] for name in key or [n for n in names if n not in ("type", schema.type, schema.time)]]
        page = page_of(
            table,
            ViewedStream(events, schema.type, schema.time, schema.time_unit, keys or None),
            title=title or Path(result).name,
            notices=[f"{cut.format(f'{len(whole):,}')}."] if cut else [],
        )
        if output is None:
            path = open_page(page)
            note(f"the page is {path}")
            return
        with open_target(output) as stream:
            stream.write(page.encode())
        note(f"{counted(len(table), 'match', 'matches')} in {counted(len(events), 'event')}: {len(page) / 1e6:.1f} MB")
