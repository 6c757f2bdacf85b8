"""Complex events as plain data (spec §1)."""

from __future__ import annotations

__all__ = ["ComplexEvent", "support"]

#: Pairs (label, position); positions count within the stream that is evaluated.
ComplexEvent = frozenset[tuple[str, int]]


def support(complex_event: ComplexEvent) -> frozenset[int]:
    """The positions of a complex event."""
    return frozenset(p for _, p in complex_event)
