"""The command ``cerflow stream`` and its own options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cerflow.cli import options
from cerflow.cli.arguments import load, one_query, spark_settings, usage
from cerflow.cli.output.progress import PhaseTimer
from cerflow.cli.output.reporting import errors_reported

StreamInput = Annotated[
    str | None,
    typer.Option(
        "--input",
        "-i",
        metavar="DIR|kafka://HOST:PORT/TOPIC",
        help="Directory that receives files of events, or a topic of Kafka with messages in JSON.",
        show_default=False,
    ),
]
StreamColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="DDL",
        help="Columns of the events, as in 'type string, time timestamp, v int' (files: inferred at the first start).",
        show_default=False,
    ),
]
StreamOutputPath = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR|kafka://HOST:PORT/TOPIC|-",
        help="Directory that gets a folder for each micro-batch, a topic, or '-' for JSON lines on standard output.",
    ),
]
StreamOutputFormat = Annotated[
    Literal["parquet", "json", "csv", "orc"], typer.Option("--output-format", help="Format of the files written.")
]
CheckpointPath = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Directory for the state of the stream; a later start with the same query continues from it.",
        show_default=False,
    ),
]
StatusOf = Annotated[
    str | None,
    typer.Option("--status", metavar="CHECKPOINT", help="Only show how far a stream has come.", show_default=False),
]
Delay = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How late an event may come, as in '10 seconds'; '0 seconds' if events come in order.",
        show_default=False,
    ),
]
Trigger = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Time between micro-batches (default: none).", show_default=False),
]
AvailableNow = Annotated[bool, typer.Option("--available-now", help="Read the events that exist, then end.")]
Flush = Annotated[
    bool,
    typer.Option(
        "--flush",
        help="At the end, also recognise the waiting events. Earlier events are late from then on.",
    ),
]
Buckets = Annotated[
    int, typer.Option(min=1, help="Number of parts into which keys are divided; fixed by the first start.")
]
Late = Annotated[
    Literal["drop", "fail", "dead-letter"], typer.Option(help="What to do with events that come after the delay.")
]
LettersFolder = Annotated[
    str | None,
    typer.Option(
        "--dead-letter",
        metavar="DIR",
        help="Directory for late and refused events, with the reason.",
        show_default=False,
    ),
]
IdleTimeout = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="After this time without events, recognise those that wait.", show_default=False
    ),
]
Ahead = Annotated[
    str,
    typer.Option(
        metavar="DURATION|any",
        help="How far the time of an event may be ahead of the clock; events beyond are bad records.",
    ),
]
SetBack = Annotated[
    str | None,
    typer.Option(
        "--set-back",
        metavar="CHECKPOINT",
        help="Only reset a checkpoint to the micro-batch whose events moved the watermark ahead of the clock.",
        show_default=False,
    ),
]
ToBatch = Annotated[
    int | None,
    typer.Option("--to-batch", min=0, help="With --set-back: the micro-batch to repeat.", show_default=False),
]
StateLimit = Annotated[
    int | None,
    typer.Option(min=1, help="End with an error if a bucket holds more objects than this.", show_default=False),
]


def stream(
    context: typer.Context,
    query: options.QueryPath = None,
    expression: options.Expression = None,
    language: options.LanguageOption = None,
    input_: StreamInput = None,
    input_format: options.InputFormatOption = None,
    columns: StreamColumns = None,
    type_column: Annotated[str, typer.Option(help="Column with the type of each event.")] = "type",
    time_column: Annotated[str, typer.Option(help="Column with the time of each event.")] = "time",
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None, typer.Option(help="Unit of times that are numbers.")
    ] = None,
    sequence_column: Annotated[
        str | None, typer.Option(help="Column that orders events of equal time (Kafka: partition and offset).")
    ] = None,
    key_timeout: options.KeyTimeout = None,
    predicates: options.Predicates = None,
    output: StreamOutputPath = "-",
    output_format: StreamOutputFormat = "parquet",
    flat: options.Flat = False,
    checkpoint: CheckpointPath = None,
    delay: Delay = None,
    trigger: Trigger = None,
    available_now: AvailableNow = False,
    flush: Flush = False,
    buckets: Buckets = 16,
    on_bad_record: options.OnBadRecord = "fail",
    late: Late = "drop",
    dead_letter: LettersFolder = None,
    idle_timeout: IdleTimeout = None,
    state_limit: StateLimit = None,
    ahead: Ahead = "1 day",
    master: options.Master = None,
    conf: options.Conf = None,
    status: StatusOf = None,
    set_back: SetBack = None,
    to_batch: ToBatch = None,
) -> None:
    """Write the matches of a query in a stream of events as they come, on Spark."""
    watch = PhaseTimer(context.obj)
    from cerflow.cli.commands.request import load_query
    from cerflow.cli.spark.streaming import (
        StreamRequest,
        recorded_status,
        run_stream,
        set_checkpoint_back,
        shown_status,
    )
    from cerflow.language.parser import duration_in_microseconds

    def duration_of(option: str, text: str | None) -> int | None:
        try:
            return duration_in_microseconds(text)
        except ValueError as error:
            usage(str(error), option)

    if status is not None:
        with errors_reported():
            typer.echo(shown_status(recorded_status(status)))
        return
    allowed = None if ahead == "any" else ahead
    settings = spark_settings(conf)
    if set_back is not None:
        with errors_reported():
            typer.echo(set_checkpoint_back(set_back, to_batch, duration_of("--ahead", allowed), master, settings))
        return
    one_query(query, expression)
    if input_ is None or checkpoint is None or delay is None:
        missing = "--input" if input_ is None else "--checkpoint" if checkpoint is None else "--delay"
        usage("a stream needs --input, --checkpoint and --delay", missing)
    in_order = delay.strip().startswith("0 ")
    durations = {"--delay": None if in_order else delay, "--idle-timeout": idle_timeout, "--key-timeout": key_timeout}
    durations["--ahead"] = allowed
    for option, text in durations.items():
        duration_of(option, text)
    arguments = {
        "type": type_column,
        "time": time_column,
        "time_unit": time_unit,
        "sequence": sequence_column,
        "forget": key_timeout,
        "flat": flat,
        "delay": delay,
        "trigger": trigger,
        "buckets": buckets,
        "on_bad_record": on_bad_record,
        "late": late,
        "dead_letter": dead_letter,
        "idle_timeout": idle_timeout,
        "state_limit": state_limit,
        "ahead": allowed,
    }
    with errors_reported(query):
        load(predicates)
        request = StreamRequest(
            query=load_query(query, expression, language),
            input=input_,
            input_format=None if input_format is None else input_format.value,
            columns=columns,
            output=output,
            output_format=output_format,
            checkpoint=checkpoint,
            available_now=available_now,
            flush=flush,
            arguments=arguments,
        )
        run_stream(request, watch, master=master, settings=settings)
