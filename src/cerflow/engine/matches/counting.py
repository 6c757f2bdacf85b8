"""The number of matches of each detecting event, from the shared graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import IntRows, Ints
from cerflow.base.errors import TooManyMatchesError, UnsupportedQueryError
from cerflow.engine import layout
from cerflow.engine.kernels.matches.semiring import COUNT, DIGIT, FACTORS
from cerflow.engine.matches.folding import EXACT, Folding
from cerflow.engine.matches.graph import CountedMatches
from cerflow.engine.matches.unfolding import Part

#: The window of a `MatchCounter` moves when it has this many times the matches in the window of the detections.
_OUTSIDE = 2


def detecting(detections: Ints) -> tuple[Ints, Ints]:
    """The positions of the detecting events, and the first detection of each (and the last end)."""
    positions = detections[:, layout.D_POSITION]
    begins = np.flatnonzero(np.append(True, positions[1:] != positions[:-1])) if len(positions) else positions
    return positions[begins], np.append(begins, len(positions))


def events_of(part: Part, limit: int | None) -> Iterator[tuple[range, int]]:
    """The detections of each event, and the number of their matches, at most ``limit`` if given."""
    _, begins = detecting(part.graph.detections)
    _, totals = count_detections(part, limit)
    yield from ((range(*ends), total) for ends, total in zip(pairwise(begins.tolist()), totals))


def count_detections(part: Part, limit: int | None) -> tuple[Ints, list[int]]:
    """The positions of detecting events, and the number of matches of each, at most ``limit`` if given."""
    positions, begins = detecting(part.graph.detections)
    if limit == 1 or part.alone or not len(positions):
        return positions, [1] * len(positions)
    totals = np.add.reduceat(match_numbers(part), begins[:-1]).tolist()
    return positions, totals if limit is None else [min(limit, total) for total in totals]


def matches_of_part(part: Part, limit: int | None) -> int:
    """The number of matches of a part, at most ``limit`` of each event if given."""
    if isinstance(part.found, CountedMatches) and (limit is None or part.found.single):
        return part.found.count
    if limit is None and not part.alone:
        return int(match_numbers(part).sum())
    return sum(count_detections(part, limit)[1])


def refuse_if_cut(totals: Sequence[int], limit: int | None) -> None:
    """Raise `UnsupportedQueryError` if an event has more matches than the query reports."""
    most = max(totals, default=0)
    if limit is not None and most > limit:
        raise UnsupportedQueryError(
            f"the query reports at most {limit} of the {most} matches of an event, and this would include all",
            hint="Leave out LIMIT and ANY to include all matches.",
        )


class LongNumbers:
    """Numbers of several digits, the lowest first, as integers of Python; ``digits`` is (numbers, digits)."""

    def __init__(self, digits: IntRows) -> None:
        self._digits = digits

    def __getitem__(self, at: int) -> int:
        return int(_integers(self._digits[at : at + 1])[0])


def _integers(digits: IntRows) -> NDArray[Any]:
    """Numbers of one digit as they are, of several as integers of Python."""
    if digits.shape[1] == 1:
        return digits[:, 0]
    found = digits[:, -1].astype(object)
    for digit in digits.T[-2::-1]:
        found = (found << DIGIT) + digit
    return found


def match_numbers(part: Part) -> NDArray[Any]:
    """The number of matches of every detection: int64, or integers of Python where their sum may need more bits."""
    size, folding = len(part.graph.detections), Folding(part, COUNT, 1)
    found = np.zeros((size, 1), np.int64)
    at = folding.slide(found)
    at = folding.fold(at, found[at:])
    numbers = found[:at, 0]
    if at == size and int(numbers.max(initial=0)) < 2**63 // max(1, size):
        return numbers
    pieces, enough = [numbers.astype(object)], False
    while at < size:
        if not enough:
            folding = Folding(part, COUNT, 2 * folding.width)
        found = np.zeros((min(limits.COUNTED_WORDS // folding.width + 1, size - at), folding.width), np.int64)
        counted = folding.fold(at, found) - at
        enough, at = counted == len(found), at + counted
        pieces.append(_integers(found[:counted]))
    return np.concatenate(pieces)


#: The numbers of matches up to each detection of an event, and of complex events of each set below, for `unrank`.
Counted = tuple[list[int], Ints | LongNumbers]


class MatchCounter:
    """Counts the matches of one event of a part after the other, exactly at any size.

    The numbers of the complex events below a set depend on the window, and counting again for each detection takes time
    for the whole window. So a window that ``lags`` moves only when more than half of its matches have left the window
    of the detections. ``part`` is the part with these windows.
    """

    def __init__(self, part: Part, *, lags: bool) -> None:
        self.part = replace(part, found=replace(part.graph, detections=part.graph.detections.copy()))
        self._bounds = part.graph.detections[:, layout.D_BOUND]
        # Counts remain valid only while bounds ascend.
        self._lags = lags and not bool((np.diff(self._bounds) < 0).any())
        self._bound: int | None = None
        self._folding = Folding(self.part, COUNT, 1)

    def behind(self, detections: range) -> bool:
        """Whether the window lags behind that of the detections of an event."""
        return self._bound != int(self._bounds[detections.start])

    def counted(self, detections: range, total: int, *, lags: bool = True) -> Counted:
        """Count the matches of the detections of an event, of which ``total`` are in their window."""
        own = int(self._bounds[detections.start])
        if self._bound is None or not (lags and self._lags):
            self._bound = own
        found = self._numbers(detections, self._bound)
        if self._bound != own and found[0][-1] > _OUTSIDE * total:
            self._bound = own
            found = self._numbers(detections, own)
        return found

    def _numbers(self, detections: range, bound: int) -> Counted:
        # The detections of an event have one window.
        self.part.graph.detections[detections.start : detections.stop, layout.D_BOUND] = bound
        width = self._folding.width
        found = np.zeros((len(detections), width), np.int64)
        if self._folding.fold(detections.start, found) < detections.stop:
            self._folding = Folding(self.part, COUNT, 2 * width)
            return self._numbers(detections, bound)
        values = self._folding.values
        return [*accumulate(_integers(found).tolist())], values[:, 0] if width == 1 else LongNumbers(values)


#: The advice on asking for fewer matches.
LESS = "LIMIT n, COUNT(*), SELECT NONE and, in Python, aggregates report fewer"

#: Larger numbers are shown with an exponent.
_READABLE = 10**15


@dataclass(eq=False)
class Bound:
    """Counts rows, and raises TooManyMatchesError if there are more than ``most`` (None: unlimited).

    ``known`` is the number of rows; ``exact`` says whether it is exact, or rounded.
    """

    most: int | None
    known: int = 0
    exact: bool = True

    def add(self, rows: int, exact: bool = True) -> None:
        """Add rows; without ``exact`` their number is rounded."""
        self.known += rows
        self.exact &= exact
        if self.most is not None and self.known > self.most:
            raise TooManyMatchesError(
                f"there are {readable_number(self.known)} matches or more, and at most {self.most:,} may be listed; "
                f"max_matches (--max-matches N, or none) allows more; {LESS}"
            )


def told_if_none(parts: Iterable[Part], tell: Callable[[], None]) -> Iterator[Part]:
    """Parts; ``tell`` is called when all have been read and none was there."""
    none = True
    for part in parts:
        none = False
        yield part
    if none:
        tell()


def row_count(part: Part, limit: int | None, counts: bool) -> tuple[int, bool]:
    """The number of rows of a part, and whether it is exact; large numbers are rounded.

    There is one row per match, at most ``limit`` per detecting event, or one per such event if matches are only
    counted.
    """
    positions, begins = detecting(part.graph.detections)
    if counts or limit == 1:
        return len(positions), True
    numbers = Folding(part, FACTORS, np.ones(len(part.graph.marks))).all()[:, 0]
    if limit is not None:
        numbers = np.minimum(limit, np.add.reduceat(numbers, begins[:-1]))
    total = float(numbers.sum())
    return int(min(total, sys.float_info.max)), total < EXACT


def digits(number: int) -> str:
    """All digits of a number; Python itself stops at some thousands."""
    return format(Decimal(number), "f")


def readable_number(number: int) -> str:
    """A number in short form, with an exponent if it is large."""
    return f"{number:,}" if abs(number) < _READABLE else f"{Decimal(number):.1e}".replace("e+", "e")
