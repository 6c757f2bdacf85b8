"""What the processes of a session use while a job runs (Linux; elsewhere nothing is told).

Memory is that of Spark's Python processes; processor time also that of the JVM, because it tells what limits a job, and
on a machine with other work it is the steadier figure.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Usage", "watched"]

_PROC = Path("/proc")
_SECONDS = 0.1
#: Where /proc/PID/stat has the parent and the ticks of the processor, counted after the name.
_PARENT, _USER, _SYSTEM = 1, 11, 12


@dataclass
class Usage:
    """The most resident memory in MB of one Python process (``one_mb``), and of all at the same time (``all_mb``; what
    they share counts for each); the seconds of processor time of the JVM and of all Python processes.
    """

    one_mb: float | None = None
    all_mb: float | None = None
    jvm: float = 0.0
    python: float = 0.0
    _begun: dict[int, float] = field(default_factory=dict)
    _spent: dict[int, tuple[str, float]] = field(default_factory=dict)

    def note(self, *, first: bool = False) -> None:
        """Look at all processes that descend from this one, and at this one."""
        sizes = []
        for pid, name, spent in _processes():
            if first:
                self._begun[pid] = spent
            self._spent[pid] = name, spent
            if name.startswith("python") and pid != os.getpid() and (size := _resident(pid)):
                sizes.append(size)
        if sizes:
            self.one_mb = max(self.one_mb or 0.0, *sizes)
            self.all_mb = max(self.all_mb or 0.0, sum(sizes))

    def end(self) -> None:
        """Look once more, and add up."""
        self.note()
        for pid, (name, spent) in self._spent.items():
            used = spent - self._begun.get(pid, 0.0)
            if name == "java":
                self.jvm += used
            elif name.startswith("python"):
                self.python += used


@contextmanager
def watched() -> Iterator[Usage]:
    """What is used while the body runs."""
    usage, done = Usage(), threading.Event()
    usage.note(first=True)

    def watch() -> None:
        while not done.wait(_SECONDS):
            usage.note()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        done.set()
        thread.join()
        usage.end()


def _processes() -> list[tuple[int, str, float]]:
    """Number, name and processor time of this process and of those that descend from it."""
    parents: dict[int, int] = {}
    found = []
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The name stands in parentheses and may hold anything.
            name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended, or is somebody else's
            continue
        pid, fields = int(folder.name), rest.split()
        parents[pid] = int(fields[_PARENT])
        ticks = int(fields[_USER]) + int(fields[_SYSTEM])
        found.append((pid, name, ticks / os.sysconf("SC_CLK_TCK")))
    return [process for process in found if _descends(process[0], parents)]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid > 0:
        if pid == os.getpid():
            return True
        pid = parents.get(pid, 0)
    return False


def _resident(pid: int) -> float:
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
