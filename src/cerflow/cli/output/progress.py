"""Shows the progress of a run on a terminal, measures its phases, and compiles the kernels before the first run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import progress as bars
from rich.console import Console, RenderableType

from cerflow.base.errors import visible


class PhaseTimer:
    """The seconds that each phase of a run has taken so far; the first one began at ``started`` (default: now)."""

    def __init__(self, started: float | None = None) -> None:
        self.phases: dict[str, float] = {}
        self._at = time.perf_counter() if started is None else started

    def done(self, phase: str) -> float:
        """Count the time since the last call as this phase; returns its seconds."""
        now = time.perf_counter()
        took, self._at = now - self._at, now
        self.phases[phase] = self.phases.get(phase, 0.0) + took
        return took


class Progress(bars.Progress):
    """Shows the current work, with a bar if its amount is known; nothing unless on a terminal or in a notebook."""

    _reached: Callable[[], int] | None = None
    _unit = ""

    def __init__(self, console: Console) -> None:
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
        )
        self._shown = console.is_terminal or console.is_jupyter

    def __call__(self, doing: str) -> None:
        """Show work whose amount is unknown; a bar that is shown already stays and gets the new text."""
        if not self._shown:
            return
        if not self.task_ids:
            self.start()
            self.add_task(visible(doing), total=None, rate="")
        self.update(self.task_ids[0], description=visible(doing))

    def bar(self, doing: str, total: int, reached: Callable[[], int], unit: str) -> None:
        """Show work of the amount ``total``; ``reached`` returns how much of it is done, at any time."""
        self(doing)
        if self._shown:
            self.reset(self.task_ids[0], total=total or None, rate="")
            self._unit, self._reached = unit, reached

    def stop(self) -> None:
        """Stop showing anything."""
        if self.task_ids:
            super().stop()

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is drawn, with the position as it is now."""
        if self._reached is not None and self.tasks:
            done, elapsed = self._reached(), self.tasks[0].elapsed or 0.0
            rate = f"{_short(done / elapsed)}{self._unit}/s" if elapsed > 0.5 else ""
            self.update(self.task_ids[0], completed=done, rate=rate)
        yield from super().get_renderables()


def _short(number: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} "


@contextmanager
def progress() -> Iterator[Progress]:
    """Show how far a run has come until the end of the block; other lines on standard error appear above."""
    shown = Progress(Console(stderr=True))
    try:
        yield shown
    finally:
        shown.stop()


def bytes_read(files: Sequence[Path]) -> tuple[int, Callable[[], int]]:
    """The total size of files that are read one after the other, and a function that returns how much has been read.

    The function looks at the open files of this process, which only Linux shows; elsewhere it returns 0.
    """
    sizes = [file.stat().st_size for file in files]
    places = {os.path.realpath(file): number for number, file in enumerate(files)}
    most = 0

    def reached() -> int:
        nonlocal most
        try:
            numbers = os.listdir("/proc/self/fd")
        except OSError:
            return most
        for number in numbers:
            try:
                place = places.get(os.readlink(f"/proc/self/fd/{number}"))
                if place is not None:
                    position = Path(f"/proc/self/fdinfo/{number}").read_text().split()[1]
                    most = max(most, sum(sizes[:place]) + min(int(position), sizes[place]))
            except OSError:
                # The file was closed in the meantime.
                continue
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
