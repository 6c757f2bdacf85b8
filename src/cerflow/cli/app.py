"""The commands and their options. Each command checks its arguments, calls the code that does the work, and reports."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from cerflow.base import limits
from cerflow.base.errors import counted, visible
from cerflow.cli import options as o
from cerflow.cli.options import about, in_groups, time_limit, usage
from cerflow.cli.output.reporting import PhaseTimer, Progress, compile_kernels, errors_reported, note, warn
from cerflow.cli.output.writing import OutputFormat
from cerflow.cli.stream_command import stream
from cerflow.files.sources import InputFormat

app = typer.Typer(
    name="cerflow",
    help="Recognise complex events in streams of events.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _cerflow(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        typer.echo(f"cerflow {version('cerflow')}")
        raise typer.Exit


@app.command()
@in_groups
def run(
    *,
    context: typer.Context,
    query: o.QueryOptions,
    inputs: o.InputOptions,
    until: str | None = o.option(
        "The events are complete up to this time, so deadlines up to it have passed: a value of the time column, or "
        "for timestamps a text such as 2024-03-15T10:00.",
        metavar="TIME",
    ),
    predicates: o.Many = o.PREDICATES,
    output: o.OutputOptions,
    runner: o.Runner = o.option("Evaluate on Spark or in this process; auto: here if the input fits.", default="auto"),
    spark: o.SparkOptions,
    options: o.RunOptions,
) -> None:
    """Write the matches of a query in the events of the inputs."""
    watch = PhaseTimer(context.obj)
    from cerflow.cli.commands.request import Request, load_query
    from cerflow.cli.spark.session import choose_runner, require_pyspark

    if not inputs.inputs:
        usage("name the events to read with --input PATH", "--input")
    only_spark = {"--master": spark.master, "--conf": spark.conf}
    directory = {"--output-mode": output.output_mode, "--partition-by": output.partition_by}
    if runner == "local" and any(only_spark.values()):
        usage("--master and --conf are settings of Spark; they do not work with --runner local", "--runner")
    if runner == "local" and any(directory.values()):
        usage("directories (--output-mode, --partition-by) are written by Spark, not by --runner local", "--runner")
    only_local = {"--memory": options.memory, "--timeout": options.timeout}
    limit = next((name for name, value in only_local.items() if value), None)
    if limit is not None and (runner == "spark" or any((only_spark | directory).values())):
        usage("this is a limit of a run in this process (--runner local); Spark has none", limit)
    if until is not None and not inputs.time:
        usage("--until is a time: name the column of times with --time-column", "--until")
    with about(query, predicates):
        request = Request(
            load_query(query),
            inputs,
            output,
            options,
            until=until,
            read_too=[path for path in (query.query, *(predicates or ())) if path is not None],
        )
        on_spark, reason = runner == "spark", ""
        if runner == "auto":
            given = [name for name, value in (only_spark | directory).items() if value]
            here = [] if limit is None else [limit]
            on_spark, reason = choose_runner(request.inputs.inputs, given, here, request.evaluates)
        with Progress() as shown:
            if on_spark:
                require_pyspark()
                from cerflow.cli.spark.runner import run_on_spark

                outcome = run_on_spark(request, shown, watch, spark)
            else:
                from cerflow.cli.commands.local_runner import run_local

                with time_limit(options.timeout):
                    outcome = run_local(request, shown, watch)
        if options.summary and on_spark:
            warn("--summary draws what runs in this process find (--runner local)")
        note(str(replace(outcome, where=reason)))
        for line in outcome.drawn.splitlines():
            note(line)


app.command()(in_groups(stream))


@app.command()
@in_groups
def show(
    *,
    result: Annotated[str, typer.Argument(metavar="RESULT", help="File of matches, written by cerflow run.")],
    inputs: Annotated[o.InputOptions, "key_timeout"],
    result_format: InputFormat | None = o.option("Format of the result, if its name does not show it."),
    keys: list[str] | None = o.option(
        "Column of the events by whose values they can be laid out in lanes (unless given, the keys of the result, or "
        "columns of text with few values). May be repeated.",
        "--key",
        metavar="COLUMN",
    ),
    limit: int | None = o.option("Show the first N matches (100,000 unless given).", min=1, metavar="N"),
    title: str | None = o.option("Title of the page (the name of the result).", metavar="TEXT"),
    output: str | None = o.option(
        "File for the page, '-' for standard output; without it, a temporary one that the browser opens.",
        *("--output", "-o"),
        metavar="FILE.html|-",
    ),
) -> None:
    """Show the matches of a run in their events, as one HTML page that needs no network."""
    if not inputs.inputs:
        usage("give the events in which the result was found with --input PATH", "--input")
    with errors_reported():
        from cerflow.cli.commands.request import Inputs
        from cerflow.cli.output.targets import check_writable, open_target, refuse_clashes
        from cerflow.engine.events.records import RecordChecker
        from cerflow.engine.events.time_order import valid_in_order
        from cerflow.files.reading import read_result
        from cerflow.files.sources import source_of
        from cerflow.look.viewing.page import BATCH, ViewedStream, first_matches, open_page, page_of

        found = Inputs.prepare(None, inputs)
        matches = source_of(result, result_format)
        if output is not None:
            check_writable(output)
            refuse_clashes(
                [*(one.events for one in found.inputs), matches], [], output=output, directory=False, dead_letters=None
            )
        read = found.read()
        schema = read.schema
        checker = RecordChecker(schema, "skip", in_order=False)
        events = valid_in_order(read.table, checker, found.columns.sequence).whole
        left_out = checker.refused + (0 if read.refused is None else len(read.refused))
        if left_out:
            warn(f"{counted(left_out, 'row')} of the input cannot be used and counts no position")
        whole = read_result(matches)
        table, cut = first_matches(whole.to_batches(max_chunksize=BATCH), whole.schema, limit or limits.VIEWED_MATCHES)
        names = [name for name in whole.column_names if name in events.column_names]
        lanes = [[name] for name in keys or [n for n in names if n not in ("type", schema.type, schema.time)]]
        html = page_of(
            table,
            ViewedStream(events, schema.type, schema.time, schema.time_unit, lanes or None),
            title=title or Path(result).name,
            notices=[f"{cut.format(f'{len(whole):,}')}."] if cut else [],
        )
        if output is None:
            path = open_page(html)
            note(f"the page is {path}")
            return
        with open_target(output) as stream:
            stream.write(html.encode())
        note(f"{counted(len(table), 'match', 'matches')} in {counted(len(events), 'event')}: {len(html) / 1e6:.1f} MB")


@app.command()
@in_groups
def studio(
    *,
    inputs: list[str] | None = o.option(
        "File with events; several with names are streams for FROM.", *("--input", "-i"), metavar="[NAME=]FILE"
    ),
    query: Path | None = o.option("File with a query.", metavar="FILE"),
    language: Literal["ceql", "sremo"] | None = o.option(o.LANGUAGE),
    type: str | None = o.option("Column with event types (default: guessed; '': none).", "--type-column"),
    time: str | None = o.option("Column with the time of each event (default: guessed; '': none).", "--time-column"),
    time_unit: Literal["s", "ms", "us", "ns"] | None = o.option("Unit of times that are numbers (default: ms)."),
    predicates: o.Many = o.PREDICATES,
    port: int = o.option("Port of the page; 0: any free port.", default=0, min=0, max=65535),
    browser: bool = o.option("Open the page in the browser.", "--browser/--no-browser", default=True),
) -> None:
    """Write a query in the browser, run it on a file, and see why events match or do not."""
    if find_spec("nicegui") is None:
        usage("the studio needs NiceGUI: pip install 'cerflow[studio]'", "studio")
    from cerflow.cli.commands.request import load_predicates, query_source
    from cerflow.cli.output.writing import write_table
    from cerflow.files.sources import named_path
    from cerflow.studio.server import serve
    from cerflow.studio.session import StudioSession

    with errors_reported():
        load_predicates(predicates or ())
        session = StudioSession()
        session.write = lambda target, form, table: write_table(target, OutputFormat(form), table)
        if query is not None:
            session.text = query_source(str(query), None)
            session.language = language or ("sremo" if query.suffix.lower() == ".sremo" else "ceql")
        named = [named_path(text) for text in inputs or []]
        if len(named) > 1 and any(name is None for name, _ in named):
            usage("several inputs need names: --input NAME=FILE", "studio")
        for name, path in named:
            session.load(Path(path), name=name, type=type, time=time, time_unit=time_unit)
        for remark in session.events.remarks if session.events is not None else ():
            note(remark)

        def tell(address: str) -> None:
            typer.echo(f"cerflow studio: {address}")
            note("Press Ctrl+C to end it.")

        serve(session, port=port, show=browser, tell=tell)


@app.command()
@in_groups
def check(
    query: o.QueryOptions,
    inputs: Annotated[o.InputOptions, "sequence"],
    predicates: o.Many = o.PREDICATES,
) -> None:
    """Check whether a query is valid, by itself or for the given inputs."""
    from cerflow.cli.commands.checking import summarise_query

    with about(query, predicates):
        typer.echo(visible(summarise_query(query, inputs)))


@app.command()
@in_groups
def explain(
    query: o.QueryOptions,
    inputs: Annotated[o.InputOptions, "sequence"],
    predicates: o.Many = o.PREDICATES,
    output_format: o.ExplainFormat = o.option("Format of the explanation.", "--format", default="text"),
) -> None:
    """Show how a query is compiled and evaluated."""
    from cerflow.cli.commands.checking import explanation_of

    with about(query, predicates):
        typer.echo(visible(explanation_of(query, inputs, output_format)))


@app.command()
@in_groups
def generate(
    example: Annotated[o.ExampleStream, typer.Argument(help="Which stream.", show_default=False)],
    events: int = o.option("How many events.", *("--events", "-n"), default=200_000, min=0),
    seed: int = o.option("The same seed gives the same stream.", default=7, min=0),
    output: str = o.option(
        "File to write, '-' for standard output.", *("--output", "-o"), default="-", metavar="PATH|-"
    ),
    output_format: OutputFormat | None = o.option("Format of the output, if its name does not show it.", "--format"),
) -> None:
    """Write an example stream: trades of a day, a farm's sensors, the power of homes, or taxi trips."""
    from cerflow.cli import examples
    from cerflow.cli.output.targets import check_writable
    from cerflow.cli.output.writing import output_format_of, write_table

    with errors_reported():
        chosen = output_format_of(output, output_format)
        check_writable(output)
        write_table(output, chosen, getattr(examples, example.replace("-", "_"))(events, seed))


@app.command()
def warmup() -> None:
    """Compile the kernels of the engine for this machine before the first run needs them."""
    with errors_reported():
        if not compile_kernels(PhaseTimer()):
            note("the kernels are compiled already")
