"""Polars and DuckDB, whose expressions and SQL an expert could write in place of a pattern."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.engines import Engine, UnavailableError, source_path
from benchmarks.processes import Worker

__all__ = ["duckdb_engine", "polars_engine"]


def _engine(name: str, package: str, environment: dict[str, str]) -> Callable[[Path, Path, Path], Engine]:
    def engine(cache: Path, folder: Path, ticks: Path) -> Engine:
        """The library with one thread. Raises `UnavailableError` if it is not installed."""
        if importlib.util.find_spec(package) is None:
            raise UnavailableError(f"{name} is not installed (it comes with the extra 'bench')")
        command = [sys.executable, "-m", f"benchmarks.peers.{package}_worker"]
        return Engine(
            name,
            lambda: Worker(command, folder=folder, environment=source_path(environment)),
            lambda case, mode, limit: json.dumps(case.request(name)),
        )

    return engine


polars_engine = _engine("Polars", "polars", {"POLARS_MAX_THREADS": "1"})
duckdb_engine = _engine("DuckDB", "duckdb", {})
