"""Slices of very few events for several threads, however little time they take."""

from __future__ import annotations

import pytest

from cerflow.base import limits


def shorten(patch: pytest.MonkeyPatch, events: int = 3) -> None:
    """Let threads share slices of so many events."""
    for name, value in (
        *(("THREAD_SLICE_LEAST", events), ("THREAD_SLICE_MOST", events), ("THREAD_FIRST", 1 << 30)),
        *(("THREAD_OVERLAP_LEAST", 0), ("THREAD_OVERLAP", 0)),
        *(("THREAD_SECONDS", 0.0), ("THREAD_SLICE_SECONDS", 1e-9)),
    ):
        patch.setattr(limits, name, value)
