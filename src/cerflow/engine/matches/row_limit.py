"""A bound on how many matches are listed, kept by counting them before they are unfolded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import pairwise

from cerflow.engine.matches.counting import MatchCounter, detecting
from cerflow.engine.matches.unfolding import Part
from cerflow.errors import TooManyMatchesError

__all__ = ["LESS", "Announced", "Bound", "digits", "readable_number", "row_count"]

#: How to ask for less than all matches.
LESS = "LIMIT n, COUNT(*), SELECT NONE and, in Python, aggregates give less"

#: Larger numbers are shown with an exponent.
_READABLE = 10**15


class Bound:
    """Counts rows, and raises TooManyMatchesError when there are more than ``most`` (None: any number).

    ``known`` is the number of rows, ``exact`` says that there are not more of those that were added.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.known = 0
        self.exact = True

    def add(self, rows: int, exact: bool = True) -> None:
        """Further rows, or at least so many unless ``exact``."""
        self.known += rows
        self.exact &= exact
        if self.most is not None and self.known > self.most:
            raise TooManyMatchesError(
                f"there are {readable_number(self.known)} matches or more, and at most {self.most:,} are to be listed; "
                f"max_matches (--max-matches N, or none) allows more; {LESS}"
            )


class Announced:
    """Parts whose numbers of rows are told before they are unfolded; as often as they are iterated."""

    def __init__(
        self, parts: Iterable[Part], limit: int | None, counts: bool, tell: Callable[[int, bool], None]
    ) -> None:
        self._parts = parts
        self._limit = limit
        self._counts = counts
        self._tell = tell

    def __iter__(self) -> Iterator[Part]:
        for part in self._parts:
            self._tell(*row_count(part, self._limit, self._counts))
            yield part


def row_count(part: Part, limit: int | None, counts: bool) -> tuple[int, bool]:
    """How many rows there are for a part, and whether that is all.

    One row for each match, at most ``limit`` for each detecting event, or one for each such event if they are only
    counted. Without a limit, counting stops at a number of more than 63 bits.
    """
    positions, begins = detecting(part.detections)
    if counts or limit == 1:
        return len(positions), True
    numbers, exact = MatchCounter(part).numbers_to_63_bits(go_on=limit is not None)
    if limit is None:
        return sum(numbers), exact
    ends = begins.tolist()
    return sum(min(limit, sum(numbers[first:last])) for first, last in pairwise(ends)), True


def digits(number: int) -> str:
    """All digits of a number, of which Python itself shows no more than some thousands."""
    return format(Decimal(number), "f")


def readable_number(number: int) -> str:
    """A number for people."""
    return f"{number:,}" if abs(number) < _READABLE else f"{Decimal(number):.1e}".replace("e+", "e")
