"""The command ``cerflow studio``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import typer

from cerflow.cli.options import LANGUAGE, PredicateOptions, option, usage
from cerflow.cli.output.reporting import errors_reported, note


@dataclass(frozen=True)
class FileOptions:
    """The file and the query to begin with."""

    inputs: list[str] | None = option(
        "File with events; several with names are streams for FROM.", *("--input", "-i"), metavar="[NAME=]FILE"
    )
    query: Path | None = option("File with a query.", metavar="FILE")
    language: Literal["ceql", "sremo"] | None = option(LANGUAGE)
    type: str | None = option("Column with event types (default: guessed; '': none).", "--type-column")
    time: str | None = option("Column with the time of each event (default: guessed; '': none).", "--time-column")
    time_unit: Literal["s", "ms", "us", "ns"] | None = option("Unit of times that are numbers (default: ms).")


@dataclass(frozen=True)
class PortOptions:
    """Where the page is."""

    port: int = option("Port of the page; 0: any free port.", default=0, min=0, max=65535)
    browser: bool = option("Open the page in the browser.", "--browser/--no-browser", default=True)


def studio(files: FileOptions, predicates: PredicateOptions, place: PortOptions) -> None:
    """Write a query in the browser, run it on a file, and see why events match or do not."""
    if find_spec("nicegui") is None:
        usage("the studio needs NiceGUI: pip install 'cerflow[studio]'", "studio")
    from cerflow.cli.commands.request import load_predicates, query_source
    from cerflow.cli.output.writing import OutputFormat, write_table
    from cerflow.files.sources import named_path
    from cerflow.studio.page import StudioPage
    from cerflow.studio.server import Tabs, serve
    from cerflow.studio.session import StudioSession

    with errors_reported(None):
        load_predicates(predicates.predicates or ())
        session = StudioSession()
        session.write = lambda target, form, table: write_table(target, OutputFormat(form), table)
        if files.query is not None:
            session.text = query_source(str(files.query), None)
            session.language = files.language or ("sremo" if files.query.suffix.lower() == ".sremo" else "ceql")
        named = [named_path(text) for text in files.inputs or []]
        if len(named) > 1 and any(name is None for name, _ in named):
            usage("several inputs need names: --input NAME=FILE", "studio")
        for name, path in named:
            session.load(Path(path), name=name, type=files.type, time=files.time, time_unit=files.time_unit)
        for remark in session.events.remarks if session.events is not None else ():
            note(remark)

        tabs, ended = Tabs(session), session.closing.set
        serve(
            lambda tab, asked: StudioPage(tabs.of(tab, asked)),
            lambda tab: tabs.of(tab).matches_page,
            port=place.port,
            show=place.browser,
            tell=_tell,
            ended=ended,
        )


def _tell(address: str) -> None:
    typer.echo(f"cerflow studio: {address}")
    note("Press Ctrl+C to end it.")
