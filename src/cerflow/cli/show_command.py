"""The command ``cerflow show``: the result of a run as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cerflow.base import limits
from cerflow.base.errors import counted
from cerflow.cli.options import ColumnOptions, InputOptions, option, usage
from cerflow.cli.output.reporting import errors_reported, note, warn
from cerflow.files.sources import InputFormat


@dataclass(frozen=True)
class PageOptions:
    """What the page shows, and where it goes."""

    result_format: InputFormat | None = option("Format of the result, if its name does not show it.")
    keys: list[str] | None = option(
        "Column of the events by whose values they can be laid out in lanes (unless given, the keys of the result, or "
        "columns of text with few values). May be repeated.",
        "--key",
        metavar="COLUMN",
    )
    limit: int | None = option("Show the first N matches (100,000 unless given).", min=1, metavar="N")
    title: str | None = option("Title of the page (the name of the result).", metavar="TEXT")
    output: str | None = option(
        "File for the page, '-' for standard output; without it, a temporary one that the browser opens.",
        *("--output", "-o"),
        metavar="FILE.html|-",
    )


def show(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="File of matches, written by cerflow run.")],
    inputs: InputOptions,
    options: Annotated[ColumnOptions, "key_timeout"],
    page: PageOptions,
) -> None:
    """Show the matches of a run in their events, as one HTML page that needs no network."""
    if not inputs.inputs:
        usage("give the events in which the result was found with --input PATH", "--input")
    output = page.output
    with errors_reported():
        from cerflow.cli.commands.request import Inputs
        from cerflow.cli.output.clashes import refuse_clashes
        from cerflow.cli.output.targets import check_writable, open_target
        from cerflow.engine.events.records import RecordChecker
        from cerflow.engine.events.time_order import valid_in_order
        from cerflow.files.reading import read_result
        from cerflow.files.sources import source_of
        from cerflow.look.viewing.opening import open_page
        from cerflow.look.viewing.page import BATCH, ViewedStream, first_matches, page_of

        found = Inputs.prepare(None, inputs, options)
        matches = source_of(result, page.result_format)
        if output is not None:
            check_writable(output)
            refuse_clashes(
                [*(one.events for one in found.inputs), matches], [], output=output, directory=False, dead_letters=None
            )
        read, columns = found.read(), found.columns
        schema = columns.schema(read.table.schema, read.stream)
        checker = RecordChecker(schema, "skip", in_order=False)
        events, _ = valid_in_order(read.table, checker, columns.sequence)
        left_out = checker.refused + (0 if read.refused is None else len(read.refused))
        if left_out:
            warn(f"{counted(left_out, 'row')} of the input cannot be used and counts no position")
        whole = read_result(matches)
        table, cut = first_matches(
            whole.to_batches(max_chunksize=BATCH), whole.schema, page.limit or limits.VIEWED_MATCHES
        )
        names = [name for name in whole.column_names if name in events.column_names]
        keys = [[name] for name in page.keys or [n for n in names if n not in ("type", schema.type, schema.time)]]
        html = page_of(
            table,
            ViewedStream(events, schema.type, schema.time, schema.time_unit, keys or None),
            title=page.title or Path(result).name,
            notices=[f"{cut.format(f'{len(whole):,}')}."] if cut else [],
        )
        if output is None:
            path = open_page(html)
            note(f"the page is {path}")
            return
        with open_target(output) as stream:
            stream.write(html.encode())
        note(f"{counted(len(table), 'match', 'matches')} in {counted(len(events), 'event')}: {len(html) / 1e6:.1f} MB")
