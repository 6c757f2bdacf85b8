"""The commands and their options. Each reads its arguments, hands over, and reports."""

from __future__ import annotations

import signal
import sys
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated, Literal, NoReturn

import typer

from cerflow.cli.directory import Directory, OutputMode
from cerflow.cli.mappings import ColumnOptions
from cerflow.cli.reporting import errors_reported, note, progress
from cerflow.cli.sources import InputFormat
from cerflow.cli.writing import OutputFormat

__all__ = ["app", "main"]

app = typer.Typer(
    name="cerflow",
    help="Recognise complex events in streams of events.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Runner(StrEnum):
    """Where a query is evaluated; both give the same matches."""

    SPARK = "spark"
    LOCAL = "local"


class ExplainFormat(StrEnum):
    """Forms of an explanation; ``dot`` is Graphviz's."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"


class Example(StrEnum):
    """The streams that can be generated."""

    STOCKS = "stocks"
    SENSORS = "sensors"


QueryPath = Annotated[
    str | None, typer.Argument(metavar="QUERY", help="File with a query (*.sremo: in SREMO).", show_default=False)
]
Expression = Annotated[
    str | None, typer.Option("--expression", "-e", metavar="TEXT", help="The query itself, instead of a file.")
]
LanguageOption = Annotated[
    Literal["ceql", "sremo"] | None,
    typer.Option(
        "--language", help="Language of the query; unless given, files *.sremo are in SREMO.", show_default=False
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="[NAME=]PATH",
        help="File or directory of events, '-' for standard input; NAME names the stream. May be repeated.",
        show_default=False,
    ),
]
InputFormatOption = Annotated[
    InputFormat | None, typer.Option(help="Format of the input, if its name does not tell.", show_default=False)
]
TypeColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]COLUMN",
        help="Column with the type of each event (default: type), of all inputs or of the one called NAME.",
        show_default=False,
    ),
]
TimeColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]COLUMN",
        help="Column with the time of each event; without it, order is that of the rows.",
        show_default=False,
    ),
]
SequenceColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]COLUMN",
        help="Column that orders events of equal time (default: the rows' order).",
        show_default=False,
    ),
]
ConstantType = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]TYPE", help="Type of all events of an input, instead of a column with it.", show_default=False
    ),
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]NEW=OLD", help="Another name for a column of an input. May be repeated.", show_default=False
    ),
]
Predicates = Annotated[
    list[str] | None,
    typer.Option(
        "--predicates",
        metavar="FILE.py|MODULE",
        help="Python that registers predicates for the query. May be repeated.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def _cerflow(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if show_version:
        typer.echo(f"cerflow {version('cerflow')}")
        raise typer.Exit


@app.command()
def run(
    query: QueryPath = None,
    expression: Expression = None,
    language: LanguageOption = None,
    inputs: Inputs = None,
    input_format: InputFormatOption = None,
    type_column: TypeColumn = None,
    time_column: TimeColumn = None,
    sequence_column: SequenceColumn = None,
    constant_type: ConstantType = None,
    rename: Rename = None,
    predicates: Predicates = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH|-", help="File for the matches, '-' for standard output.")
    ] = "-",
    output_format: Annotated[
        OutputFormat | None, typer.Option(help="Format of the output, if its name does not tell.", show_default=False)
    ] = None,
    output_mode: Annotated[
        OutputMode | None,
        typer.Option(
            help="Have Spark write a directory of files; what to do if it is there (error, with --partition-by).",
            show_default=False,
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Have Spark write a directory for each value of this column of the result. May be repeated.",
            show_default=False,
        ),
    ] = None,
    runner: Annotated[Runner, typer.Option(help="Evaluate on Spark, or in this process.")] = Runner.SPARK,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Master of Spark (default: local[*]).", show_default=False)
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Setting of Spark. May be repeated.", show_default=False),
    ] = None,
    on_bad_record: Annotated[
        str, typer.Option(metavar="fail|skip|dead-letter", help="What to do with a record that cannot be used.")
    ] = "fail",
    dead_letter: Annotated[
        str | None, typer.Option(metavar="PATH", help="File for refused records, with the reason.", show_default=False)
    ] = None,
    positions: Annotated[
        bool, typer.Option("--positions/--no-positions", help="Whether to number the events of the whole input.")
    ] = True,
) -> None:
    """Write the matches of a query in the events of the inputs."""
    from cerflow.cli import bad_records as bad
    from cerflow.cli.request import Request, load_query

    _one_query(query, expression)
    if not inputs:
        _usage("say what to read with --input PATH", "--input")
    if runner is Runner.LOCAL and (master or conf):
        _usage("--master and --conf are settings of Spark; they do not go with --runner local", "--runner")
    if runner is Runner.LOCAL and (output_mode or partition_by):
        _usage("directories (--output-mode, --partition-by) are written by Spark, not by --runner local", "--runner")
    settings = []
    for setting in conf or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            _usage(f"'{setting}' is not of the form KEY=VALUE", "--conf")
        settings.append((key, value))
    try:
        policy, path = bad.parse_policy(on_bad_record, dead_letter)
    except ValueError as error:
        _usage(str(error), "--on-bad-record")
    directory = None
    if output_mode or partition_by:
        try:
            directory = Directory(output, output_mode or "error", tuple(partition_by or ()))
        except ValueError as error:
            _usage(str(error), "--output-mode")
    options = ColumnOptions(
        type_column or (), time_column or (), sequence_column or (), constant_type or (), rename or ()
    )
    with errors_reported(query):
        _load(predicates)
        request = Request.prepare(
            load_query(query, expression, language),
            inputs,
            input_format=input_format,
            options=options,
            output=output,
            output_format=output_format,
            positions=positions,
            bad_records=bad.BadRecords(policy, path),
            directory=directory,
        )
        with progress() as show:
            if runner is Runner.LOCAL:
                from cerflow.cli.local_runner import run_local

                outcome = run_local(request, show)
            else:
                from cerflow.cli.spark_runner import run_on_spark

                outcome = run_on_spark(request, show, master=master, settings=settings)
        note(str(outcome))


@app.command()
def check(
    query: QueryPath = None,
    expression: Expression = None,
    language: LanguageOption = None,
    inputs: Inputs = None,
    input_format: InputFormatOption = None,
    type_column: TypeColumn = None,
    time_column: TimeColumn = None,
    constant_type: ConstantType = None,
    rename: Rename = None,
    predicates: Predicates = None,
) -> None:
    """Say whether a query is sound, by itself or for the given inputs."""
    from cerflow.cli.checking import check_query

    _one_query(query, expression)
    options = ColumnOptions(type_column or (), time_column or (), (), constant_type or (), rename or ())
    with errors_reported(query):
        _load(predicates)
        typer.echo(check_query(query, expression, inputs or [], input_format, options, language=language))


@app.command()
def explain(
    query: QueryPath = None,
    expression: Expression = None,
    language: LanguageOption = None,
    inputs: Inputs = None,
    input_format: InputFormatOption = None,
    type_column: TypeColumn = None,
    time_column: TimeColumn = None,
    constant_type: ConstantType = None,
    rename: Rename = None,
    predicates: Predicates = None,
    output_format: Annotated[
        ExplainFormat, typer.Option("--format", help="Form of the explanation.")
    ] = ExplainFormat.TEXT,
) -> None:
    """Show what a query is compiled to."""
    from cerflow.cli.checking import explain_query

    _one_query(query, expression)
    options = ColumnOptions(type_column or (), time_column or (), (), constant_type or (), rename or ())
    with errors_reported(query):
        _load(predicates)
        typer.echo(
            explain_query(
                query, expression, inputs or [], input_format, options, output_format.value, language=language
            )
        )


@app.command()
def generate(
    example: Annotated[Example, typer.Argument(help="Which stream.", show_default=False)],
    events: Annotated[int, typer.Option("--events", "-n", min=0, help="How many events.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same stream.")] = 7,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH|-", help="File to write, '-' for standard output.")
    ] = "-",
    output_format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Format of the output, if its name does not tell.", show_default=False),
    ] = None,
) -> None:
    """Write an example stream: stock ticks of a trading day, or readings of a farm's sensors."""
    from cerflow.cli.writing import check_writable, open_sink, output_format_of
    from cerflow.examples import sensors, stocks

    with errors_reported():
        chosen = output_format_of(output, output_format)
        check_writable(output)
        table = stocks(events, seed) if example is Example.STOCKS else sensors(events, seed)
        with open_sink(output, chosen, table.schema) as sink:
            for batch in table.to_batches(max_chunksize=10_000):
                sink.write(batch)


def main() -> None:
    """Entry point of the command ``cerflow``."""
    # Being ended from outside is an exception like any other, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    app()


def _load(predicates: list[str] | None) -> None:
    if predicates:
        from cerflow.cli.predicate_files import load_predicates

        load_predicates(predicates)


def _one_query(query: str | None, expression: str | None) -> None:
    if (query is None) == (expression is None):
        _usage("give either a query file or a query behind -e", "QUERY")


def _usage(message: str, parameter: str) -> NoReturn:
    raise typer.BadParameter(message, param_hint=f"'{parameter}'")
