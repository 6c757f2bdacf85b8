"""The number of matches of each detecting event, from the shared graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerflow import limits
from cerflow.engine import layout
from cerflow.engine.kernels.matches.count import add_counts
from cerflow.engine.matches.sliding import count_sliding
from cerflow.engine.matches.unfolding import Part
from cerflow.errors import UnsupportedQueryError
from cerflow.values.array_types import Ints

__all__ = ["MatchCounter", "count_detections", "detecting", "refuse_if_cut"]


def detecting(detections: Ints) -> tuple[Ints, Ints]:
    """The positions of the detecting events, and where the detections of each begin (and the last end)."""
    positions = detections[:, layout.D_POSITION]
    begins = np.flatnonzero(np.append(True, positions[1:] != positions[:-1])) if len(positions) else positions
    return positions[begins], np.append(begins, len(positions))


def count_detections(part: Part, limit: int | None) -> tuple[Ints, list[int]]:
    """The positions of detecting events, and the number of matches of each, at most ``limit`` if given."""
    positions, begins = detecting(part.detections)
    if limit == 1 or part.alone:
        return positions, [1] * len(positions)
    numbers = MatchCounter(part).numbers()
    # As objects, sums are exact at any size.
    totals = np.add.reduceat(np.array(numbers, object), begins[:-1]).tolist() if numbers else []
    return positions, [total if limit is None else min(limit, total) for total in totals]


def refuse_if_cut(totals: Sequence[int], limit: int) -> None:
    """Raise `UnsupportedQueryError` if an event has more matches than the query reports."""
    most = max(totals, default=0)
    if most > limit:
        raise UnsupportedQueryError(
            f"the query reports at most {limit} of the {most} matches of an event, and the choice is open",
            hint="Leave out LIMIT and ANY to include all matches.",
        )


class MatchCounter:
    """Counts the matches of the detections of a part.

    Numbers are exact at any size: those beyond 64 bits are counted again with Python integers. Detections must be
    counted in their order.
    """

    def __init__(self, part: Part) -> None:
        top = len(part.nodes)
        self._graph = (part.nodes, part.nodes.view(np.int32), part.detections)
        self._part = part
        self._stack = np.empty(3 * top + 4, np.int32)
        self._found = np.zeros(len(part.detections), np.int64)
        self._amounts, self._low = np.zeros(top, np.int64), np.empty(top, np.int64)
        self._exact: NDArray[Any] | None = None
        self._exact_low = np.empty(top, np.int64)

    def numbers(self) -> list[int]:
        """The number of matches of every detection."""
        size = len(self._found)
        at = self._count(self._slide(), size)
        large: dict[int, int] = {}
        while at < size:
            large[at] = self._count_exactly(at)
            at = self._count(at + 1, size)
        numbers: list[int] = self._found.tolist()
        for at, number in large.items():
            numbers[at] = number
        return numbers

    def numbers_to_63_bits(self, *, go_on: bool) -> tuple[list[int], bool]:
        """The number of matches of the detections, and whether these are all and exact.

        Counting stops at a number of more than 63 bits, or continues with 2⁶² instead of such numbers.
        """
        size, exact = len(self._found), True
        at = self._count(self._slide(), size)
        while at < size:
            if not go_on:
                return [*self._found[:at].tolist(), self._count_exactly(at)], at == size - 1
            self._found[at], exact = 1 << 62, False
            at = self._count(at + 1, size)
        return self._found.tolist(), exact

    def number(self, detection: int) -> tuple[int, NDArray[Any]]:
        """The number of matches of one detection, and of complex events of each set below it, for `unrank`."""
        if self._count(detection, detection + 1) > detection:
            return int(self._found[detection]), self._amounts
        number = self._count_exactly(detection)
        assert self._exact is not None
        return number, self._exact

    def _slide(self) -> int:
        """Count along a sliding window if that pays; returns the number of detections that were counted so."""
        pays = len(self._found) * len(self._low) > limits.COUNTED_PAIRS
        return count_sliding(self._part, self._found) if pays else 0

    def _count(self, first: int, last: int) -> int:
        at: int = add_counts(*self._graph, first, last, self._amounts, self._low, self._stack, self._found)
        return at

    def _count_exactly(self, detection: int) -> int:
        if self._exact is None:
            self._exact = np.zeros(len(self._amounts), object)
        found = np.zeros(len(self._found), object)
        add_counts.py_func(*self._graph, detection, detection + 1, self._exact, self._exact_low, self._stack, found)
        return int(found[detection])
