"""Messages on standard error: errors, warnings, and a closing line.

Control characters in messages are made visible, so a terminal does not obey them: see `cerflow.base.errors.visible`.
"""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import typer

from cerflow.base.errors import CerflowError, OutputError, PerformanceWarning, QueryWarning, counted, visible
from cerflow.cli import Interrupted


@dataclass(frozen=True)
class RunSummary:
    """The result of a run: valid events, matches written, records refused, the seconds of each phase.

    ``where`` says where the query ran if that was not given; ``ignored`` says that nothing was done because the output
    existed. ``drawn`` are lines that show the matches.
    """

    events: int
    matches: int
    bad_records: int
    phases: Mapping[str, float]
    where: str = ""
    ignored: bool = False
    drawn: str = ""

    def __str__(self) -> str:
        if self.ignored:
            return "the output already exists: nothing was read or written"
        counts = (
            f"{counted(self.events, 'event')}, {counted(self.matches, 'match', 'matches')}, "
            f"{counted(self.bad_records, 'bad record')}"
        )
        phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in self.phases.items())
        recognising = self.phases.get("recognising", 0.0)
        rate = f" ({self.events / recognising:,.0f} events/s)" if recognising > 0 else ""
        phases = phases.replace("recognising", f"recognising{rate}", 1)
        said = [counts, f"{sum(self.phases.values()):.2f} s: {phases}", *([self.where] if self.where else [])]
        return "; ".join(said)


def note(message: str) -> None:
    """Write a line of information, in a terminal as lines that fit it."""
    shown = visible(message)
    width = width_of(sys.stderr, len(shown))
    for line in textwrap.wrap(shown, width, break_on_hyphens=False, break_long_words=False) or [""]:
        typer.echo(line, err=True)


def width_of(stream: Any, otherwise: int) -> int:
    """The columns of a terminal, by ``$COLUMNS`` if that is set; for files and pipes ``otherwise``."""
    with suppress(OSError, ValueError, AttributeError):
        return max(20, int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns))
    return max(1, otherwise)


def warn(message: str) -> None:
    """Write a line about a probable mistake."""
    _say("warning", "yellow", message)


def _say(kind: str, colour: str, message: str) -> None:
    # Messages quote data, file names and queries, and a terminal would obey control characters in them.
    typer.echo(f"{typer.style(f'{kind}:', fg=colour, bold=True)} {visible(message)}", err=True)


def located(error: Exception, place: str | None) -> str:
    """The message of an error or warning; if it names a line, the file (``place``) stands before it."""
    message = str(error)
    return f"{place}, {message}" if place is not None and getattr(error, "line", None) is not None else message


@contextmanager
def errors_reported(place: str | None = None) -> Iterator[None]:
    """Turn errors of cerflow and of the file system into a message and exit code 1; a closed pipe into silence.

    A signal that ends the command gets a line, and 128 and its number as the exit code.

    ``place`` names the file that an error about the query is in. Warnings of cerflow become lines, too.
    """
    try:
        with _warnings_reported():
            yield
    except BrokenPipeError as error:
        # The reader of our output has closed the pipe.
        _close_standard_output()
        raise typer.Exit(0) from error
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        typer.echo(f"interrupted by {signal.Signals(number).name}; no file is left half-written", err=True)
        raise typer.Exit(128 + number) from error
    except (CerflowError, OSError) as error:
        if not _close_standard_output() and not isinstance(error, CerflowError):
            error = OutputError(f"cannot write to standard output: {error.strerror}")
        _say("error", "red", located(error, place))
        raise typer.Exit(1) from error


def reopen_closed_streams() -> None:
    """Make standard streams that the caller closed fail when they are used; messages are dropped.

    Else a file that is opened later would take their place.
    """
    streams = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDWR))
    for name, mode, access in streams:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def _close_standard_output() -> bool:
    """Flush standard output; if that fails, return False and keep Python from complaining again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


@contextmanager
def _warnings_reported() -> Iterator[None]:
    with warnings.catch_warnings():
        others = warnings.showwarning
        said: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, PerformanceWarning | QueryWarning):
                if str(message) not in said:
                    warn(str(message))
                said.add(str(message))
            else:
                others(message, category, *where, **more)

        warnings.showwarning = show
        yield
