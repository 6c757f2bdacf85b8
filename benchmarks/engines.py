"""The engines that take turns, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, Mode
from benchmarks.processes import Worker

__all__ = ["Engine", "UnavailableError", "cerflow_engine", "laid_out", "source_path"]

_ROOT = Path(__file__).resolve().parent.parent
#: Where compiled modules are kept.
_MODULES = Path.home() / ".cache" / "cerflow-benchmarks" / "modules"


class UnavailableError(Exception):
    """An engine is not here; the message says what is missing."""


@dataclass
class Engine:
    """An engine: how its process is started, and the line that puts a case to it with a time limit in seconds."""

    name: str
    start: Callable[[], Worker]
    line: Callable[[Case, Mode, float], str]
    #: What columns it is given its text in, for cerflow.
    layout: str | None = None
    _worker: Worker | None = field(default=None, init=False)

    @property
    def worker(self) -> Worker:
        """The running process."""
        if self._worker is None:
            self._worker = self.start()
        return self._worker

    def stop(self) -> None:
        """End the process; the next question starts another."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def cerflow_engine(name: str, layout: str, folder: Path) -> Engine:
    """Cerflow in a process of its own, on columns of a layout: ``text`` or ``encoded`` (Arrow dictionaries)."""

    def start() -> Worker:
        command = [sys.executable, "-m", "benchmarks.worker"]
        worker = Worker(command, folder=folder, environment=source_path({}))
        for text in _WARM_UP:
            for mode in ("count", "write", "detect"):
                worker.ask(json.dumps({"stream": _SMALL, "query": text, "mode": mode}), 600)
        return worker

    def line(case: Case, mode: Mode, limit: float) -> str:
        return json.dumps(
            {"stream": laid_out(case, layout), "query": case.query, "language": case.language, "mode": mode}
        )

    return Engine(name, start, line, layout)


def source_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with more variables, in which cerflow and its benchmarks can be imported."""
    # The sources beside the benchmarks are measured, whatever else is installed; as compiled modules, which every
    # installed package has, even where Python is told to write none.
    paths = [str(_ROOT / "src"), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    modules = {"PYTHONPYCACHEPREFIX": str(_MODULES)}
    return {**modules, **inherited, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def laid_out(case: Case, layout: str) -> dict[str, Any]:
    """The description of a case's stream with its text in a layout."""
    return {**case.stream.description, "layout": layout}


_SMALL = {"kind": "synthetic", "events": 400, "values": 5, "keys": 3}
#: So that no measurement pays for kernels that are compiled or loaded.
_WARM_UP: Sequence[str] = (
    "SELECT * WHERE (A AS a : B AS b) FILTER a.v < b.v PARTITION BY key",
    *(
        f"SELECT {strategy} * WHERE (A AS a ; B+ AS b ; C AS c) FILTER a.v < c.v {partition} WITHIN 20 EVENTS"
        for strategy in ("ALL", "NEXT", "LAST")
        for partition in ("", "PARTITION BY key")
    ),
)
