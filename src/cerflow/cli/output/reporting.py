"""Writes to standard error what a run has to say: errors, warnings, its progress, and a closing line.

Control characters in messages are made visible, so a terminal does not obey them: see `cerflow.base.errors.visible`.
"""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich import progress as bars
from rich.console import Console, RenderableType
from rich.filesize import pick_unit_and_suffix

from cerflow.base.errors import CerflowError, OutputError, PerformanceWarning, QueryWarning, counted, visible


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
        recognising = self.phases.get("recognising", 0.0)
        rates = {"recognising": f" ({self.events / recognising:,.0f} events/s)"} if recognising > 0 else {}
        phases = ", ".join(f"{phase}{rates.get(phase, '')} {seconds:.2f}" for phase, seconds in self.phases.items())
        counts = [counted(self.events, "event"), counted(self.matches, "match", "matches")]
        counts.append(counted(self.bad_records, "bad record"))
        said = [", ".join(counts), f"{sum(self.phases.values()):.2f} s: {phases}", self.where]
        return "; ".join(filter(None, said))


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
        number = error.args[0] if error.args else signal.SIGINT
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


class PhaseTimer:
    """The seconds that each phase of a run has taken so far; the first one began at ``started`` (default: now)."""

    def __init__(self, started: float | None = None) -> None:
        self.phases: dict[str, float] = {}
        self._at = time.perf_counter() if started is None else started

    def done(self, phase: str) -> None:
        """Count the time since the last call as this phase."""
        now = time.perf_counter()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._at
        self._at = now


class Progress(bars.Progress):
    """Shows the current work, with a bar if its amount is known; nothing unless on a terminal or in a notebook.

    As a context it begins when there is something to show; other lines on standard error appear above.
    """

    _reached: Callable[[], int] | None = None
    _unit = ""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        super().__init__(
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.TaskProgressColumn(),
            bars.TextColumn("{task.fields[rate]}"),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            # Matches may go to standard output.
            redirect_stdout=False,
            disable=not (console.is_terminal or console.is_jupyter),
        )

    def __enter__(self) -> Progress:
        return self

    def __call__(self, doing: str) -> None:
        """Show work whose amount is unknown; a bar that is shown already stays and gets the new text."""
        if not self.task_ids:
            self.start()
            self.add_task(visible(doing), total=None, rate="")
        self.update(self.task_ids[0], description=visible(doing))

    def bar(self, doing: str, total: int, reached: Callable[[], int], unit: str) -> None:
        """Show work of the amount ``total``; ``reached`` returns how much of it is done, at any time."""
        self(doing)
        self.reset(self.task_ids[0], total=total or None, rate="")
        self._unit, self._reached = unit, reached

    def stop(self) -> None:
        """Stop showing anything."""
        # Older versions of Rich end with an empty line, even if they have shown nothing.
        if not self.disable:
            super().stop()

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is drawn, with the position as it is now."""
        if self._reached is not None:
            done, elapsed = self._reached(), self.tasks[0].elapsed or 0.0
            amount = in_largest_unit(done / elapsed, ("", "k", "M", "G"), 1000) if elapsed > 0.5 else ""
            self.update(self.task_ids[0], completed=done, rate=amount and f"{amount}{self._unit}/s")
        yield from super().get_renderables()


def in_largest_unit(number: float, units: Sequence[str], base: int) -> str:
    """Write a number in the largest unit that it reaches; each unit is ``base`` times the one before."""
    size, unit = pick_unit_and_suffix(int(number), [*units], base)
    return f"{number / size:,.1f} {unit}" if size > 1 else f"{number:.0f} {unit}"


def bytes_read(files: Sequence[Path]) -> tuple[int, Callable[[], int]]:
    """The total size of files that are read one after the other, and a function that returns how much has been read.

    The function looks at the open files of this process, which only Linux shows; elsewhere it returns 0.
    """
    sizes = [file.stat().st_size for file in files]
    places = {os.path.realpath(file): number for number, file in enumerate(files)}
    most = 0

    def reached() -> int:
        nonlocal most
        with suppress(OSError):  # only Linux tells
            for number in os.listdir("/proc/self/fd"):
                with suppress(OSError):  # the file was closed in the meantime
                    place = places.get(os.readlink(f"/proc/self/fd/{number}"))
                    if place is not None:
                        position = Path(f"/proc/self/fdinfo/{number}").read_text().split()[1]
                        most = max(most, sum(sizes[:place]) + min(int(position), sizes[place]))
        return most

    return sum(sizes), reached


def compile_kernels(watch: PhaseTimer) -> bool:
    """Compile the kernels, with lines that say so, unless this machine has them; returns whether it compiled them."""
    from cerflow.engine.kernels.base import library

    if library.find_library():
        return False
    watch.done("starting")
    library.load_kernels()
    watch.done("compiling")
    return True
