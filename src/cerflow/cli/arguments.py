"""Checks of arguments that all commands share."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from cerflow.cli.options import PredicateOptions, QueryOptions, SparkOptions
from cerflow.errors import TimeLimitError, visible

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def load(options: PredicateOptions) -> None:
    """Register the predicates of these files and modules."""
    if options.predicates:
        from cerflow.cli.commands.predicate_files import load_predicates

        load_predicates(options.predicates)


def spark_settings(options: SparkOptions) -> list[tuple[str, str]]:
    """The settings KEY=VALUE."""
    settings = []
    for setting in options.conf or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            usage(f"'{setting}' is not of the form KEY=VALUE", "--conf")
        settings.append((key, value))
    return settings


def bytes_of(size: str | None, parameter: str) -> int | None:
    """The bytes of a size such as ``2 GB`` or ``512 MiB``; None for None."""
    if size is None:
        return None
    found = _SIZE.fullmatch(size.strip())
    number, unit, binary = found.groups() if found is not None else ("0", "", "")
    count = int(float(number) * (1024 if binary else 1000) ** (" kmgt".index(unit.lower()) if unit else 0))
    if count < 1:
        usage(f"'{size}' is not a size of memory, such as '500 MB' or '2 GB'", parameter)
    return count


def seconds_of(duration: str | None, parameter: str) -> float | None:
    """The seconds of a duration such as ``30 seconds``; None for None."""
    from cerflow.language.parser import duration_in_microseconds

    with values_of(parameter):
        found = duration_in_microseconds(duration)
    return None if found is None else found / 1e6


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


def one_query(options: QueryOptions) -> None:
    """Refuse a command unless it names exactly one query."""
    if (options.query is None) == (options.expression is None):
        usage("give either a query file or a query after -e", "QUERY")


@contextmanager
def values_of(parameter: str) -> Iterator[None]:
    """Refuse the command for a ValueError about an option."""
    try:
        yield
    except ValueError as error:
        usage(str(error), parameter)


def usage(message: str, parameter: str) -> NoReturn:
    """Refuse a command with a message; ``parameter`` is the option that is wrong."""
    raise typer.BadParameter(visible(message), param_hint=f"'{parameter}'")
