"""The command ``cerflow stream`` and its own options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cerflow.base.errors import InputError
from cerflow.cli import options as o
from cerflow.cli.output.reporting import PhaseTimer, errors_reported
from cerflow.files.sources import InputFormat


@dataclass(frozen=True)
class StreamOptions:
    """Where the events come from and what their columns mean; where the matches and the state go; how it continues."""

    input: str | None = o.option(
        "Directory that receives files of events, or a topic of Kafka with messages in JSON.",
        *("--input", "-i"),
        metavar="DIR|kafka://HOST:PORT/TOPIC",
    )
    input_format: InputFormat | None = o.option("Format of the input, if its name does not show it.")
    delimiter: str = o.option(o.DELIMITER, default=",", metavar="SIGN")
    columns: str | None = o.option(
        "Columns of the events, as in 'type string, time timestamp, v int' (files: inferred at the first start). "
        "Times with a zone, such as 2024-03-15T10:00:00Z, are timestamp_ltz.",
        metavar="DDL",
    )
    type: str = o.option("Column with the type of each event.", "--type-column", default="type")
    time: str = o.option("Column with the time of each event.", "--time-column", default="time")
    time_unit: Literal["s", "ms", "us", "ns"] | None = o.option("Unit of times that are numbers.")
    sequence: str | None = o.option(
        "Column that orders events of equal time (Kafka: partition and offset).", "--sequence-column"
    )
    forget: str | None = o.option(o.KEY_TIMEOUT, "--key-timeout", metavar="DURATION", parser=o.duration)
    predicates: o.Many = o.PREDICATES
    output: str = o.option(
        "Directory that gets a folder for each micro-batch, a topic, or '-' for JSON lines on standard output.",
        *("--output", "-o"),
        default="-",
        metavar="DIR|kafka://HOST:PORT/TOPIC|-",
    )
    output_format: Literal["parquet", "json", "csv", "orc"] = o.option(
        "Format of the files written.", default="parquet"
    )
    flat: bool = o.option(o.FLAT, "--flat", default=False)
    checkpoint: str | None = o.option(
        "Directory for the state of the stream; a later start with the same query continues from it.", metavar="DIR"
    )
    delay: str | None = o.option(
        "How late an event may come, as in '10 seconds'; '0 seconds' if events come in order.",
        metavar="DURATION",
        parser=lambda text: text if text.strip().startswith("0 ") else o.duration(text),
    )
    trigger: str | None = o.option("Time between micro-batches (default: none).", metavar="DURATION")
    available_now: bool = o.option("Read the events that exist, then end.", "--available-now", default=False)
    flush: bool = o.option(
        "At the end, also recognise the waiting events. Earlier events are late from then on.", "--flush", default=False
    )
    buckets: int = o.option("Number of parts into which keys are divided; fixed by the first start.", default=16, min=1)
    on_bad_record: str = o.option(o.BAD_RECORD, default="fail", metavar="fail|skip|dead-letter")
    late: Literal["drop", "fail", "dead-letter"] = o.option(
        "What to do with events that come after the delay.", default="drop"
    )
    dead_letter: str | None = o.option("Directory for late and refused events, with the reason.", metavar="DIR")
    idle_timeout: str | None = o.option(
        "After this time without events, recognise those that wait.", metavar="DURATION", parser=o.duration
    )
    state_limit: int | None = o.option("End with an error if a bucket holds more objects than this.", min=1)
    ahead: str | None = o.option(
        "How far the time of an event may be ahead of the clock; events beyond are bad records.",
        default="1 day",
        metavar="DURATION|any",
        parser=lambda text: None if text == "any" else o.duration(text),
    )


def stream(
    *,
    context: typer.Context,
    query: Annotated[o.QueryOptions, "reading"],
    options: StreamOptions,
    spark: o.SparkOptions,
    status: str | None = o.option("Only show how far a stream has come.", metavar="CHECKPOINT"),
    set_back: str | None = o.option(
        "Only reset a checkpoint to the micro-batch whose events moved the watermark ahead of the clock.",
        metavar="CHECKPOINT",
    ),
    to_batch: int | None = o.option("With --set-back: the micro-batch to repeat.", min=0),
) -> None:
    """Write the matches of a query in a stream of events as they arrive, on Spark."""
    watch = PhaseTimer(context.obj)
    from cerflow.cli.commands.request import load_query
    from cerflow.cli.spark.session import require_pyspark

    if status is not None:
        with errors_reported():
            typer.echo(shown_status(recorded_status(status)))
        return
    if set_back is not None:
        with errors_reported():
            require_pyspark()
            from cerflow.cli.spark import streaming

            ahead = 0 if options.ahead is None else o.seconds_of(options.ahead)
            typer.echo(streaming.set_checkpoint_back(set_back, to_batch, ahead, spark))
        return
    needed = {"--input": options.input, "--checkpoint": options.checkpoint, "--delay": options.delay}
    missing = next((name for name, value in needed.items() if value is None), None)
    if missing is not None:
        o.usage("a stream needs --input, --checkpoint and --delay", missing)
    with o.about(query, options.predicates):
        found = load_query(query)
        require_pyspark()
        from cerflow.cli.spark import streaming

        streaming.run_stream(found, options, watch, spark)


def shown_watermark(shown: str | None) -> str:
    """A watermark in words."""
    return "no watermark yet" if shown is None else f"watermark {shown}"


def shown_status(found: Mapping[str, Any]) -> str:
    """A status, as the fields of `cerflow.spark.StreamStatus`, in a few lines."""
    totals, remembered = found["totals"], found["remembered"]
    lacking = "".join(f", {count:,} without '{name}'" for name, count in found.get("lacking", {}).items())
    return (
        f"batch {found['batch']}, written {found['at']}; {shown_watermark(found['watermark'])}\n"
        f"since the checkpoint began: {totals['events']:,} events, {totals['late']:,} late, {totals['bad']:,} bad, "
        f"{totals['matches']:,} matches{lacking}\n"
        f"remembered: {remembered['waiting']:,} events that wait, {remembered['configurations']:,} configurations, "
        f"{remembered['nodes']:,} nodes, {remembered['keys']:,} keys, {remembered['state_bytes']:,} bytes of state"
    )


def recorded_status(checkpoint: str) -> dict[str, Any]:
    """The last status in a checkpoint on this machine; raises InputError."""
    path = Path(checkpoint) / "cerflow" / "status.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"there is no '{path}': no micro-batch has ended, or it is not a checkpoint") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read '{path}': {error}") from error
    return found
