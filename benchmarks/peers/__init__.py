"""The other engines: how each is found or fetched, started, and asked."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CACHE"]

#: Where the packages of the other engines are installed, unless told otherwise.
CACHE = Path.home() / ".cache" / "cerflow-benchmarks"
