"""Polars, whose expressions an expert could write in place of a pattern."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from benchmarks.cases import Case, Mode
from benchmarks.engines import Engine, UnavailableError, source_path
from benchmarks.processes import Worker

__all__ = ["polars_engine"]


def polars_engine(cache: Path, folder: Path, ticks: Path, *, fetch: bool = True) -> Engine:
    """Polars with one thread. Raises `UnavailableError` if it is not installed."""
    if importlib.util.find_spec("polars") is None:
        raise UnavailableError("Polars is not installed (it comes with the extra 'dev')")
    command = [sys.executable, "-m", "benchmarks.peers.polars_worker"]
    environment = source_path({"POLARS_MAX_THREADS": "1"})
    return Engine("Polars", lambda: Worker(command, folder=folder, environment=environment), _line)


def _line(case: Case, mode: Mode, limit: float) -> str:
    assert case.peer is not None
    return json.dumps(case.peer.request)
