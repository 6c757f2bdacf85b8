"""The figures of the papers beside ours: ``python -m benchmarks.papers`` measures them and writes one page."""

from __future__ import annotations

__all__: list[str] = []
