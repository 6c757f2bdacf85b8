"""Complex events as plain data (spec §1)."""

from __future__ import annotations

from collections.abc import Collection

#: A label without a name: it counts in the support of a complex event, and results do not show it.
UNNAMED = "\0event"

#: Pairs (label, position); positions count within the stream that is evaluated.
ComplexEvent = frozenset[tuple[str, int]]


def support(complex_event: ComplexEvent) -> frozenset[int]:
    """The positions of a complex event."""
    return frozenset(p for _, p in complex_event)


def next_at_most(first: Collection[int], second: Collection[int]) -> bool:
    """``first ≤next second``: they are equal, or the least position at which they differ is in the second (P1 §4)."""
    differing = set(first) ^ set(second)
    return not differing or min(differing) in second


def last_at_most(first: Collection[int], second: Collection[int]) -> bool:
    """``first ≤last second``: they are equal, or the greatest position where they differ is in the second (P1 §4)."""
    differing = set(first) ^ set(second)
    return not differing or max(differing) in second
