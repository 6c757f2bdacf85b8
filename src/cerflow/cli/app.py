"""The commands and their options. Each command checks its arguments, calls the code that does the work, and reports."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Annotated

import typer

from cerflow import limits
from cerflow.cli import options as o
from cerflow.cli.arguments import bytes_of, load, one_query, seconds_of, spark_settings, time_limit, usage
from cerflow.cli.commands.mappings import ColumnOptions
from cerflow.cli.output.directory import Directory
from cerflow.cli.output.progress import PhaseTimer, compile_kernels, progress
from cerflow.cli.output.reporting import errors_reported, note, warn
from cerflow.cli.output.writing import OutputFormat
from cerflow.cli.show_command import show
from cerflow.cli.stream_command import stream
from cerflow.cli.studio_command import studio
from cerflow.errors import visible

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
        typer.echo(f"cerflow {version('cerflow')}")
        raise typer.Exit


@app.command()
def run(
    context: typer.Context,
    query: o.QueryPath = None,
    expression: o.Expression = None,
    language: o.LanguageOption = None,
    reading: o.ReadingOption = "second-order",
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
    key_timeout: o.KeyTimeout = None,
    until: o.Until = None,
    predicates: o.Predicates = None,
    output: o.Output = "-",
    output_format: o.OutputFormatOption = None,
    flat: o.Flat = False,
    output_mode: o.OutputModeOption = None,
    partition_by: o.PartitionBy = None,
    runner: o.RunnerOption = o.Runner.AUTO,
    master: o.Master = None,
    conf: o.Conf = None,
    on_bad_record: o.OnBadRecord = "fail",
    dead_letter: o.DeadLetter = None,
    positions: o.Positions = True,
    max_matches: o.MaxMatches = "100000000",
    memory: o.Memory = None,
    timeout: o.Timeout = None,
    counts: o.Counts = "decimal",
    summary: o.Summary = False,
) -> None:
    """Write the matches of a query in the events of the inputs."""
    watch = PhaseTimer(context.obj)
    from cerflow.cli.choosing import Choice, choose_runner
    from cerflow.cli.commands.request import Request, load_query
    from cerflow.cli.output import bad_records as bad
    from cerflow.cli.output.volume import parse_most

    one_query(query, expression)
    if not inputs:
        usage("name the events to read with --input PATH", "--input")
    if runner is o.Runner.LOCAL and (master or conf):
        usage("--master and --conf are settings of Spark; they do not work with --runner local", "--runner")
    if runner is o.Runner.LOCAL and (output_mode or partition_by):
        usage("directories (--output-mode, --partition-by) are written by Spark, not by --runner local", "--runner")
    if until is not None and not time_column:
        usage("--until is a time: name the column of times with --time-column", "--until")
    try:
        most = parse_most(max_matches)
    except ValueError as error:
        usage(str(error), "--max-matches")
    room, seconds = bytes_of(memory, "--memory"), seconds_of(timeout, "--timeout")
    settings = spark_settings(conf)
    try:
        policy, path = bad.parse_policy(on_bad_record, dead_letter)
    except ValueError as error:
        usage(str(error), "--on-bad-record")
    directory = None
    if output_mode or partition_by:
        try:
            directory = Directory(output, output_mode or "error", tuple(partition_by or ()))
        except ValueError as error:
            usage(str(error), "--output-mode")
    options = ColumnOptions(
        type_column, time_column, time_unit, sequence_column, constant_type, rename, column_type, encoding, key_timeout
    )
    with errors_reported(query):
        load(predicates)
        request = Request.prepare(
            load_query(query, expression, language, reading),
            inputs,
            input_format=input_format,
            options=options,
            output=output,
            output_format=output_format,
            flat=flat,
            positions=positions,
            bad_records=bad.BadRecords(policy, path),
            directory=directory,
            max_matches=most,
            counts=counts,
            until=until,
            summary=summary,
            memory=room,
            read_too=[path for path in (query, *(predicates or ())) if path is not None],
        )
        choice = Choice(runner is o.Runner.SPARK)
        if runner is o.Runner.AUTO:
            given = {"--master": master, "--conf": conf, "--output-mode": output_mode, "--partition-by": partition_by}
            sources = [one.events for one in request.inputs.inputs]
            only_spark = [option for option, value in given.items() if value]
            choice = choose_runner(sources, only_spark)
        if choice.spark and (room is not None or seconds is not None):
            usage("--memory and --timeout are limits of a run in this process (--runner local)", "--runner")
        if choice.warning is not None:
            warn(choice.warning)
        if choice.note is not None:
            note(choice.note)
        with progress() as shown:
            if choice.spark:
                from cerflow.cli.spark.runner import run_on_spark

                outcome = run_on_spark(request, shown, watch, master=master, settings=settings)
            else:
                from cerflow.cli.commands.arriving_runner import come_by_a_pipe, run_as_events_come
                from cerflow.cli.commands.local_runner import run_local

                with time_limit(seconds):
                    run_here = run_as_events_come if come_by_a_pipe(request) else run_local
                    outcome = run_here(request, shown, watch)
        if summary and choice.spark:
            warn("--summary draws what runs in this process find (--runner local)")
        note(str(replace(outcome, where=choice.reason)))
        for line in outcome.drawn.splitlines():
            note(line)


app.command()(stream)
app.command()(show)
app.command()(studio)


@app.command()
def check(
    query: o.QueryPath = None,
    expression: o.Expression = None,
    language: o.LanguageOption = None,
    reading: o.ReadingOption = "second-order",
    inputs: o.Inputs = None,
    input_format: o.InputFormatOption = None,
    type_column: o.TypeColumn = None,
    time_column: o.TimeColumn = None,
    time_unit: o.TimeUnitOption = None,
    constant_type: o.ConstantType = None,
    rename: o.Rename = None,
    column_type: o.ColumnTypes = None,
    encoding: o.Encoding = "utf-8",
    key_timeout: o.KeyTimeout = None,
    predicates: o.Predicates = None,
) -> None:
    """Check whether a query is valid, by itself or for the given inputs."""
    from cerflow.cli.commands.checking import summarise_query

    one_query(query, expression)
    options = ColumnOptions(
        type_column, time_column, time_unit, None, constant_type, rename, column_type, encoding, key_timeout
    )
    with errors_reported(query):
        load(predicates)
        summary = summarise_query(
            query, expression, inputs or [], input_format, options, language=language, reading=reading
        )
        typer.echo(visible(summary))


@app.command()
def explain(
    query: o.QueryPath = None,
    expression: o.Expression = None,
    language: o.LanguageOption = None,
    reading: o.ReadingOption = "second-order",
    inputs: o.Inputs = None,
    input_format: o.InputFormatOption = None,
    type_column: o.TypeColumn = None,
    time_column: o.TimeColumn = None,
    time_unit: o.TimeUnitOption = None,
    constant_type: o.ConstantType = None,
    rename: o.Rename = None,
    column_type: o.ColumnTypes = None,
    encoding: o.Encoding = "utf-8",
    key_timeout: o.KeyTimeout = None,
    predicates: o.Predicates = None,
    output_format: o.ExplainFormatOption = o.ExplainFormat.TEXT,
) -> None:
    """Show how a query is compiled and evaluated."""
    from cerflow.cli.commands.checking import explanation_of

    one_query(query, expression)
    options = ColumnOptions(
        type_column, time_column, time_unit, None, constant_type, rename, column_type, encoding, key_timeout
    )
    with errors_reported(query):
        load(predicates)
        explained = explanation_of(
            query,
            expression,
            inputs or [],
            input_format,
            options,
            output_format.value,
            language=language,
            reading=reading,
        )
        typer.echo(visible(explained))


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
    from cerflow import examples
    from cerflow.cli.output.targets import check_writable
    from cerflow.cli.output.writing import open_sink, output_format_of

    with errors_reported():
        chosen = output_format_of(output, output_format)
        check_writable(output)
        table = getattr(examples, example.name.lower())(events, seed)
        with open_sink(output, chosen, table.schema) as sink:
            for batch in table.to_batches(max_chunksize=limits.OUTPUT_BATCH_ROWS):
                sink.write(batch)


@app.command()
def warmup() -> None:
    """Compile the kernels of the engine for this machine before the first run needs them."""
    with errors_reported():
        if not compile_kernels(PhaseTimer()):
            note("the kernels are compiled already")
