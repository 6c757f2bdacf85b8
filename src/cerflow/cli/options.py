"""The options of the commands, most in groups: each field of a group is an option of the commands that take it.

Also checks of arguments that commands share.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, get_args, get_type_hints

import typer

from cerflow.base.errors import TimeLimitError, visible
from cerflow.cli.output.reporting import errors_reported
from cerflow.cli.output.writing import OutputFormat, OutputMode
from cerflow.files.sources import InputFormat

#: Where a query is evaluated, with the same matches; ``auto`` decides by the size of the input.
Runner = Literal["auto", "spark", "local"]
#: Forms of an explanation; its own module is slow to import.
ExplainFormat = Literal["text", "json", "dot", "mermaid", "svg", "boxes"]
#: The streams that can be generated.
ExampleStream = Literal["stocks", "sensors", "smart-homes", "taxis"]
#: The values of an option that may be repeated.
Many = list[str] | None


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """A field, or the default of a parameter, that is an option; without ``names`` it is called as that.

    A ``parser`` makes its value of text.
    """
    return field(default=default, metadata={"of": typer.Option(*names, help=help, **more)})


def in_groups(function: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of a function and of the groups that it takes; names next to a group are left out."""
    annotated: Any = Annotated
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    found: dict[str, Parameter] = {}

    def add(name: str, kind: Any, one: Field[Any]) -> None:
        kind = annotated[kind, one.metadata["of"]]
        found[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kind)

    hints = get_type_hints(function, include_extras=True)
    for own in signature(function).parameters.values():
        group, *left_out = get_args(hints[own.name]) or (hints[own.name],)
        if is_dataclass(group):
            kinds = get_type_hints(group)
            of_group = [one for one in fields(group) if one.name not in left_out]
            for one in of_group:
                add(one.name, kinds[one.name], one)
            groups[own.name] = (group, [one.name for one in of_group])  # type: ignore[assignment]
        elif isinstance(own.default, Field):
            add(own.name, hints[own.name], own.default)
        else:
            found[own.name] = own.replace(annotation=hints[own.name], kind=Parameter.KEYWORD_ONLY)

    @wraps(function)
    def command(**given: Any) -> None:
        made = {name: group(**{one: given.pop(one) for one in names}) for name, (group, names) in groups.items()}
        function(**given, **made)

    command.__dict__["__signature__"] = Signature([*found.values()])
    command.__annotations__ = {name: one.annotation for name, one in found.items()}
    return command


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def bytes_of(size: str) -> int:
    """The bytes of a size such as ``2 GB`` or ``512 MiB``."""
    found = _SIZE.fullmatch(size.strip())
    number, unit, binary = found.groups() if found is not None else ("0", "", "")
    count = int(float(number) * (1024 if binary else 1000) ** (" kmgt".index(unit.lower()) if unit else 0))
    if count < 1:
        usage(f"'{size}' is not a size of memory, such as '500 MB' or '2 GB'")
    return count


def parse_most(text: str | int) -> int | None:
    """The greatest number of matches to write, None for any."""
    text = str(text)
    if text.strip().lower() in ("none", "0"):
        return None
    plain = text.replace("_", "").replace(",", "")
    if not (plain.isascii() and plain.isdecimal()):
        usage(f"'{text}' is not a number of matches, nor 'none'")
    return int(plain)


def seconds_of(duration: str) -> float:
    """The seconds of a duration such as ``30 seconds``."""
    from cerflow.language.parser import duration_in_microseconds

    try:
        return (duration_in_microseconds(duration) or 0) / 1e6
    except ValueError as error:
        usage(str(error))


def duration(text: str) -> str:
    """A duration as it is written."""
    seconds_of(text)
    return text


class Setting(NamedTuple):
    """A setting of Spark."""

    key: str
    value: str

    @classmethod
    def of(cls, text: str) -> Setting:
        """The setting that ``KEY=VALUE`` is."""
        key, equals, value = text.partition("=")
        if not equals or not key:
            usage(f"'{text}' is not of the form KEY=VALUE")
        return cls(key, value)


#: Which predicates there are besides those of cerflow, for parameters of this kind.
PREDICATES = option("Python that registers predicates for the query. May be repeated.", metavar="FILE.py|MODULE")
#: Help of options that several groups have.
LANGUAGE = "Language of the query; unless given, files *.sremo are in SREMO."
KEY_TIMEOUT = "A key starts again after a pause between its events that is longer than this, as in '30 minutes'."
DELIMITER = "What separates the columns of CSV: one character, such as ';' or '\\t'."
FLAT = "Write a column for each label and attribute, in place of the list of events."
BAD_RECORD = "What to do with a record that cannot be used."


@dataclass(frozen=True)
class QueryOptions:
    """Which query is meant, and how formulas are read."""

    query: str | None = field(
        default=None, metadata={"of": typer.Argument(metavar="QUERY", help="File with a query (*.sremo: in SREMO).")}
    )
    expression: str | None = option("The query itself, instead of a file.", "--expression", "-e", metavar="TEXT")
    language: Literal["ceql", "sremo"] | None = option(LANGUAGE)
    reading: Literal["second-order", "first-order"] = option(
        "First-order: a label is a variable for one event, matches are sets of positions.", default="second-order"
    )


@dataclass(frozen=True)
class InputOptions:
    """Where the events are, and what the columns of the inputs mean.

    Of a column ``VALUE`` applies to all inputs, ``NAME=VALUE`` to the one of that name; ``encoding``,
    ``delimiter``, ``decimal_point`` and ``time_format`` apply to all text, ``key_timeout`` to all inputs.
    """

    inputs: Many = option(
        "File or directory of events, '-' for standard input; NAME names the stream. May be repeated.",
        *("--input", "-i"),
        metavar="[NAME=]PATH",
    )
    input_format: InputFormat | None = option("Format of the input, if its name does not show it.")
    type: Many = option(
        "Column with the type of each event (default: type), of all inputs or of the one called NAME.",
        "--type-column",
        metavar="[NAME=]COLUMN",
    )
    time: Many = option(
        "Column with the time of each event; without it, the order is that of the rows.",
        "--time-column",
        metavar="[NAME=]COLUMN",
    )
    time_unit: Many = option("Unit of a time column of numbers: s, ms, us or ns (default: ms).", metavar="[NAME=]UNIT")
    sequence: Many = option(
        "Column that orders events of equal time (default: the rows' order).",
        "--sequence-column",
        metavar="[NAME=]COLUMN",
    )
    constant_type: Many = option("Type of all events of an input, instead of a column with it.", metavar="[NAME=]TYPE")
    rename: Many = option("A new name for a column of an input. May be repeated.", metavar="[NAME=]NEW=OLD")
    column_types: Many = option(
        "Type of a column, instead of the one that its values suggest: text, integer, float, timestamp or boolean. "
        "May be repeated.",
        "--column-type",
        metavar="[NAME=]COLUMN=TYPE",
    )
    encoding: str = option(
        "Encoding of CSV and JSON: utf-8, utf-16, latin-1, cp1252, …", default="utf-8", metavar="NAME"
    )
    delimiter: str = option(DELIMITER, default=",", metavar="SIGN")
    decimal_point: str = option("Decimal point of numbers in text: '.' or ','.", default=".", metavar="SIGN")
    time_format: str | None = option(
        "Form of times in text, as in '%d.%m.%Y %H:%M:%S' (default: ISO 8601).", metavar="FORMAT"
    )
    key_timeout: str | None = option(KEY_TIMEOUT, metavar="DURATION", parser=duration)


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs."""

    master: str | None = option("Master of Spark (default: local[*]).", metavar="URL")
    conf: list[Setting] | None = option("Setting of Spark. May be repeated.", metavar="KEY=VALUE", parser=Setting.of)


@dataclass(frozen=True)
class OutputOptions:
    """Where the matches go."""

    output: str = option(
        "File for the matches, '-' for standard output.", *("--output", "-o"), default="-", metavar="PATH|-"
    )
    output_format: OutputFormat | None = option("Format of the output, if its name does not show it.")
    flat: bool = option(FLAT, "--flat", default=False)
    output_mode: OutputMode | None = option(
        "Let Spark write a directory of files, and say what to do if it exists (with --partition-by: error)."
    )
    partition_by: Many = option(
        "Let Spark write a directory for each value of this column of the result. May be repeated.", metavar="COLUMN"
    )

    @property
    def directory(self) -> bool:
        """Whether Spark writes a directory of files."""
        return bool(self.output_mode or self.partition_by)


@dataclass(frozen=True)
class RunOptions:
    """What becomes of bad records, what is written of matches, and how much a run may take."""

    on_bad_record: str = option(BAD_RECORD, default="fail", metavar="fail|skip|dead-letter")
    dead_letter: str | None = option("File for refused records, with the reason.", metavar="PATH")
    positions: bool = option(
        "Whether to number the events of the whole input.", "--positions/--no-positions", default=True
    )
    max_matches: int | None = option(
        "Stop with an error if there are more matches than this; 'none': write all.",
        default=100_000_000,
        metavar="N|none",
        parser=parse_most,
    )
    memory: int | None = option(
        "End with an error if partial matches and matches need more memory than this, such as '2 GB', in this process.",
        metavar="SIZE",
        parser=bytes_of,
    )
    timeout: float | None = option(
        "End with an error if the run takes longer than this, such as '30 seconds', in this process.",
        metavar="DURATION",
        parser=seconds_of,
    )
    counts: Literal["decimal", "text"] = option(
        "How COUNT(*) is written: numbers of up to 38 digits, or text of any length.", default="decimal"
    )
    summary: bool = option("Also draw the number of matches over time, on standard error.", "--summary", default=False)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `TimeLimitError` if the block takes longer, wherever it is then."""
    if seconds is None:
        yield
        return
    if not hasattr(signal, "SIGALRM"):
        usage("this system has no timer for a command (SIGALRM)", "--timeout")

    def end(*_: object) -> NoReturn:
        raise TimeLimitError(
            f"the run takes longer than --timeout allows ({seconds:g} s); no file is left half-written"
        )

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def about(query: QueryOptions, predicates: Many) -> Iterator[None]:
    """Report errors in the block that are about exactly one query, after its predicates are registered."""
    if (query.query is None) == (query.expression is None):
        usage("give either a query file or a query after -e", "QUERY")
    with errors_reported(query.query):
        if predicates:
            from cerflow.cli.commands.request import load_predicates

            load_predicates(predicates)
        yield


def usage(message: str, parameter: str | None = None) -> NoReturn:
    """Refuse a command with a message; ``parameter`` is the option that is wrong, unless its value is being read."""
    raise typer.BadParameter(visible(message), param_hint=None if parameter is None else f"'{parameter}'")
