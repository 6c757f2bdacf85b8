"""The commands and their options. Each command checks its arguments, calls the code that does the work, and reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from cerflow.base.errors import visible
from cerflow.cli import options as o
from cerflow.cli.options import about, in_groups, time_limit, usage
from cerflow.cli.output.progress import PhaseTimer, compile_kernels, progress
from cerflow.cli.output.reporting import errors_reported, note, warn
from cerflow.cli.output.writing import OutputFormat
from cerflow.cli.show_command import show
from cerflow.cli.stream_command import stream
from cerflow.cli.studio_command import studio

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
    query: o.ReadingOptions,
    inputs: o.InputOptions,
    columns: o.ColumnOptions,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The events are complete up to this time, so deadlines up to it have passed: a value of the time "
            "column, or for timestamps a text such as 2024-03-15T10:00.",
        ),
    ] = None,
    predicates: o.PredicateOptions,
    output: o.OutputOptions,
    runner: Annotated[
        o.Runner, typer.Option(help="Evaluate on Spark or in this process; auto: here if the input fits.")
    ] = "auto",
    spark: o.SparkOptions,
    options: o.RunOptions,
) -> None:
    """Write the matches of a query in the events of the inputs."""
    watch = PhaseTimer(context.obj)
    from cerflow.cli.choosing import Choice, choose_runner
    from cerflow.cli.commands.request import Request, load_query

    if not inputs.inputs:
        usage("name the events to read with --input PATH", "--input")
    only_spark = {"--master": spark.master, "--conf": spark.conf}
    directory = {"--output-mode": output.output_mode, "--partition-by": output.partition_by}
    if runner == "local" and any(only_spark.values()):
        usage("--master and --conf are settings of Spark; they do not work with --runner local", "--runner")
    if runner == "local" and any(directory.values()):
        usage("directories (--output-mode, --partition-by) are written by Spark, not by --runner local", "--runner")
    if until is not None and not columns.time:
        usage("--until is a time: name the column of times with --time-column", "--until")
    with about(query, predicates):
        request = Request.prepare(
            load_query(query, query.reading),
            inputs,
            columns,
            output,
            options,
            until=until,
            read_too=[path for path in (query.query, *(predicates.predicates or ())) if path is not None],
        )
        choice = Choice(runner == "spark")
        if runner == "auto":
            given = [option for option, value in (only_spark | directory).items() if value]
            choice = choose_runner([one.events for one in request.inputs.inputs], given)
        if choice.spark and (options.memory is not None or options.timeout is not None):
            usage("--memory and --timeout are limits of a run in this process (--runner local)", "--runner")
        if choice.warning is not None:
            warn(choice.warning)
        if choice.note is not None:
            note(choice.note)
        with progress() as shown:
            if choice.spark:
                from cerflow.cli.spark.runner import run_on_spark

                outcome = run_on_spark(request, shown, watch, spark)
            else:
                from cerflow.cli.commands.local_runner import run_local

                with time_limit(options.timeout):
                    outcome = run_local(request, shown, watch)
        if options.summary and choice.spark:
            warn("--summary draws what runs in this process find (--runner local)")
        note(str(replace(outcome, where=choice.reason)))
        for line in outcome.drawn.splitlines():
            note(line)


app.command()(in_groups(stream))
app.command()(in_groups(show))
app.command()(in_groups(studio))


@app.command()
@in_groups
def check(
    query: o.ReadingOptions,
    inputs: o.InputOptions,
    columns: Annotated[o.ColumnOptions, "sequence"],
    predicates: o.PredicateOptions,
) -> None:
    """Check whether a query is valid, by itself or for the given inputs."""
    from cerflow.cli.commands.checking import summarise_query

    with about(query, predicates):
        typer.echo(visible(summarise_query(query, inputs, columns)))


@app.command()
@in_groups
def explain(
    query: o.ReadingOptions,
    inputs: o.InputOptions,
    columns: Annotated[o.ColumnOptions, "sequence"],
    predicates: o.PredicateOptions,
    output_format: Annotated[o.ExplainFormat, typer.Option("--format", help="Format of the explanation.")] = "text",
) -> None:
    """Show how a query is compiled and evaluated."""
    from cerflow.cli.commands.checking import explanation_of

    with about(query, predicates):
        typer.echo(visible(explanation_of(query, inputs, columns, output_format)))


@app.command()
def generate(
    example: Annotated[o.ExampleStream, typer.Argument(help="Which stream.", show_default=False)],
    events: Annotated[int, typer.Option("--events", "-n", min=0, help="How many events.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same stream.")] = 7,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH|-", help="File to write, '-' for standard output.")
    ] = "-",
    output_format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Format of the output, if its name does not show it.", show_default=False),
    ] = None,
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
