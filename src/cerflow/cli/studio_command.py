"""The command ``cerflow studio``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from cerflow.cli.arguments import load, usage
from cerflow.cli.options import LanguageOption, Predicates
from cerflow.cli.output.reporting import errors_reported, note


def studio(
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[NAME=]FILE",
            help="File with events; several with names are streams for FROM.",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        Path | None, typer.Option("--query", metavar="FILE", help="File with a query.", show_default=False)
    ] = None,
    language: LanguageOption = None,
    type_column: Annotated[
        str | None,
        typer.Option(help="Column with event types (default: guessed; '': none).", show_default=False),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(help="Column with the time of each event (default: guessed; '': none).", show_default=False),
    ] = None,
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        typer.Option(help="Unit of times that are numbers (default: ms).", show_default=False),
    ] = None,
    predicates: Predicates = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any free port.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Write a query in the browser, run it on a file, and see why events match or do not."""
    if find_spec("nicegui") is None:
        usage("the studio needs NiceGUI: pip install 'cerflow[studio]'", "studio")
    from cerflow.cli.commands.request import query_source
    from cerflow.files.sources import named_path
    from cerflow.studio.page import StudioPage
    from cerflow.studio.server import serve
    from cerflow.studio.session import StudioSession

    with errors_reported(None):
        load(predicates)
        session = StudioSession()
        if query is not None:
            session.text = query_source(str(query), None)
            session.language = language or ("sremo" if query.suffix.lower() == ".sremo" else "ceql")
        named = [named_path(text) for text in input_ or []]
        if len(named) > 1 and any(name is None for name, _ in named):
            usage("several inputs need names: --input NAME=FILE", "studio")
        for name, path in named:
            session.load(Path(path), name=name, type=type_column, time=time_column, time_unit=time_unit)
        for remark in session.events.remarks if session.events is not None else ():
            note(remark)

        def page() -> None:
            StudioPage(session)

        serve(page, lambda: session.matches_page, port=port, show=browser, tell=_tell, ended=session.closing.set)


def _tell(address: str) -> None:
    typer.echo(f"cerflow studio: {address}")
    note("Press Ctrl+C to end it.")
