"""The options of the commands: their names, help texts and values. Commands that share an option share it here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from cerflow.cli.output.directory import OutputMode
from cerflow.cli.output.writing import OutputFormat
from cerflow.files.sources import InputFormat


class Runner(StrEnum):
    """Where a query is evaluated, with the same matches; ``auto`` decides by the size of the input."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


class ExplainFormat(StrEnum):
    """Forms of an explanation; ``svg``, ``mermaid`` and ``dot`` draw the automaton, ``boxes`` the formula."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"
    SVG = "svg"
    BOXES = "boxes"


class ExampleStream(StrEnum):
    """The streams that can be generated."""

    STOCKS = "stocks"
    SENSORS = "sensors"
    SMART_HOMES = "smart-homes"
    TAXIS = "taxis"


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
ReadingOption = Annotated[
    Literal["second-order", "first-order"],
    typer.Option("--reading", help="First-order: a label is a variable for one event, matches are sets of positions."),
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
    InputFormat | None, typer.Option(help="Format of the input, if its name does not show it.", show_default=False)
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
        help="Column with the time of each event; without it, the order is that of the rows.",
        show_default=False,
    ),
]
KeyTimeout = Annotated[
    str | None,
    typer.Option(
        "--key-timeout",
        metavar="DURATION",
        help="A key starts again after a pause between its events that is longer than this, as in '30 minutes'.",
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The events are complete up to this time, so deadlines up to it have passed: a value of the time column, "
        "or for timestamps a text such as 2024-03-15T10:00.",
        show_default=False,
    ),
]
TimeUnitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--time-unit",
        metavar="[NAME=]UNIT",
        help="Unit of a time column of numbers: s, ms, us or ns (default: ms).",
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
Counts = Annotated[
    Literal["decimal", "text"],
    typer.Option(help="How COUNT(*) is written: numbers of up to 38 digits, or text of any length."),
]
ConstantType = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]TYPE", help="Type of all events of an input, instead of a column with it.", show_default=False
    ),
]
ColumnTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--column-type",
        metavar="[NAME=]COLUMN=TYPE",
        help="Type of a column, instead of the one that its values suggest: text, integer, float, timestamp or "
        "boolean. May be repeated.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Encoding of CSV and JSON: utf-8, utf-16, latin-1, cp1252, …")
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]NEW=OLD", help="A new name for a column of an input. May be repeated.", show_default=False
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
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="PATH|-", help="File for the matches, '-' for standard output.")
]
OutputFormatOption = Annotated[
    OutputFormat | None, typer.Option(help="Format of the output, if its name does not show it.", show_default=False)
]
OutputModeOption = Annotated[
    OutputMode | None,
    typer.Option(
        help="Let Spark write a directory of files, and say what to do if it exists (with --partition-by: error).",
        show_default=False,
    ),
]
PartitionBy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Let Spark write a directory for each value of this column of the result. May be repeated.",
        show_default=False,
    ),
]
RunnerOption = Annotated[
    Runner, typer.Option(help="Evaluate on Spark or in this process; auto: here if the input fits.")
]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Master of Spark (default: local[*]).", show_default=False)
]
MaxMatches = Annotated[
    str,
    typer.Option(metavar="N|none", help="Stop with an error if there are more matches than this; 'none': write all."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="End with an error if partial matches and matches need more memory than this, such as '2 GB', in this "
        "process.",
        show_default=False,
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="End with an error if the run takes longer than this, such as '30 seconds', in this process.",
        show_default=False,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Setting of Spark. May be repeated.", show_default=False),
]
OnBadRecord = Annotated[
    str, typer.Option(metavar="fail|skip|dead-letter", help="What to do with a record that cannot be used.")
]
DeadLetter = Annotated[
    str | None, typer.Option(metavar="PATH", help="File for refused records, with the reason.", show_default=False)
]
Flat = Annotated[
    bool, typer.Option("--flat", help="Write a column for each label and attribute, in place of the list of events.")
]
Positions = Annotated[
    bool, typer.Option("--positions/--no-positions", help="Whether to number the events of the whole input.")
]
Summary = Annotated[
    bool, typer.Option("--summary", help="Also draw the number of matches over time, on standard error.")
]
ExplainFormatOption = Annotated[ExplainFormat, typer.Option("--format", help="Format of the explanation.")]
