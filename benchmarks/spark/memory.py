"""How much memory Spark's Python processes have at most while a job runs (Linux; elsewhere nothing is told)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Peak", "watched"]

_PROC = Path("/proc")
_SECONDS = 0.1


@dataclass
class Peak:
    """The most resident memory in MB: of one process, and of all at the same time (what they share counts for each)."""

    one: float | None = None
    all: float | None = None

    def note(self, sizes: list[float]) -> None:
        """Take account of the sizes that processes have now."""
        if sizes:
            self.one = max(self.one or 0.0, *sizes)
            self.all = max(self.all or 0.0, sum(sizes))


@contextmanager
def watched() -> Iterator[Peak]:
    """The peak of the Python processes below this one while the body runs."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(_SECONDS):
            peak.note(_sizes())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _sizes() -> list[float]:
    """The resident memory of each Python process that descends from this one."""
    parents: dict[int, int] = {}
    pythons = set()
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The name stands in parentheses and may hold anything.
            name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended, or is somebody else's
            continue
        parents[int(folder.name)] = int(rest.split()[1])
        if name.startswith("python"):
            pythons.add(int(folder.name))
    return [size for pid in pythons if _descends(pid, parents) and (size := _resident(pid))]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while (pid := parents.get(pid, 0)) > 0:
        if pid == os.getpid():
            return True
    return False


def _resident(pid: int) -> float:
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
