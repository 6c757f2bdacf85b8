"""What the command line says on standard error: errors, warnings, progress, and a closing line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import typer
from rich.console import Console

from cerflow.errors import CerflowError, PerformanceWarning

__all__ = ["Outcome", "count", "errors_reported", "located", "note", "progress", "warn"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to: usable events, matches written, records refused, seconds it took.

    ``ignored`` says that there was an output already, and nothing was done.
    """

    events: int
    matches: int
    bad_records: int
    seconds: float
    ignored: bool = False

    def __str__(self) -> str:
        if self.ignored:
            return "there is an output already: nothing was read or written"
        rate = f", {self.events / self.seconds:,.0f} events/s" if self.seconds > 0 else ""
        return (
            f"{count(self.events, 'event')}, {count(self.matches, 'match', 'matches')}, "
            f"{count(self.bad_records, 'bad record')}, {self.seconds:.2f} s{rate}"
        )


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun in the right form; the plural is regular unless given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def note(message: str) -> None:
    """A line for the person at the terminal."""
    typer.echo(message, err=True)


def warn(message: str) -> None:
    """A line about something that is probably not meant."""
    typer.echo(f"{typer.style('warning:', fg='yellow', bold=True)} {message}", err=True)


def located(error: Exception, place: str | None) -> str:
    """The message of an error or warning; if it has a line, with the file (``place``) that this is in."""
    message = str(error)
    return f"{place}, {message}" if place is not None and getattr(error, "line", None) is not None else message


@contextmanager
def errors_reported(place: str | None = None) -> Iterator[None]:
    """Turn errors of cerflow and of the file system into a message and exit code 1; a closed pipe into silence.

    ``place`` names the file that an error about the query is in. Warnings of cerflow become lines, too.
    """
    try:
        with _warnings_reported():
            yield
    except BrokenPipeError as error:
        # Whoever read our output has had enough. What Python would still flush at its end must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error
    except (CerflowError, OSError) as error:
        typer.echo(f"{typer.style('error:', fg='red', bold=True)} {located(error, place)}", err=True)
        raise typer.Exit(1) from error


@contextmanager
def _warnings_reported() -> Iterator[None]:
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, PerformanceWarning):
                warn(str(message))
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done; it shows nothing unless standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield status.update
