"""Counts before unfolding: bounds the number of listed matches, and makes rows with numbers of matches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from cerflow.base.arrow_columns import array_of_numbers, array_of_texts
from cerflow.base.errors import TooManyMatchesError
from cerflow.engine.kernels.matches.semiring import FACTORS
from cerflow.engine.matches.counting import count_detections, detecting
from cerflow.engine.matches.folding import EXACT, Folding
from cerflow.engine.matches.listing import Detected
from cerflow.engine.matches.picking import Passing
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.report import COUNT_TYPE, CountForm, Report

#: The advice on asking for fewer matches.
LESS = "LIMIT n, COUNT(*), SELECT NONE and, in Python, aggregates report fewer"

#: Larger numbers are shown with an exponent.
_READABLE = 10**15


class Bound:
    """Counts rows, and raises TooManyMatchesError if there are more than ``most`` (None: unlimited).

    ``known`` is the number of rows; ``exact`` says whether it is exact, or rounded.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.known = 0
        self.exact = True

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


def counted_rows(
    part: Part, report: Report, limit: int | None, counts: CountForm, passing: Passing | None, max_rows: int
) -> Iterator[pa.RecordBatch]:
    """One row per detecting event of a part (with ``passing`` of some) with the number of its matches."""
    schema = report.shown("structs", None, counts=counts)
    detected, numbers = count_detections(part, limit)
    if passing is not None:
        rows = passing.next(len(detected))
        detected, numbers = detected[rows.start : rows.stop : rows.step], [numbers[k] for k in rows]
    for start in range(0, len(detected), max_rows):
        some = numbers[start : start + max_rows]
        if counts == "decimal" and any(n >= 10**38 for n in some):
            raise TooManyMatchesError(
                f"the number of matches of one event, {readable_number(max(some))}, does not fit 38 digits; "
                'counts="text" (--counts text) gives it as text'
            )
        leading = Detected(report, detected[start : start + max_rows], part).leading()
        amounts = _decimals(some) if counts == "decimal" else array_of_texts([*map(digits, some)])
        yield pa.RecordBatch.from_arrays([*leading, *[amounts for _ in report.counts]], schema=schema)


def _decimals(numbers: Sequence[int]) -> pa.Array:
    if max(numbers, default=0) < 2**63:
        return array_of_numbers(np.array(numbers, np.int64)).cast(COUNT_TYPE)
    return pa.array(numbers, COUNT_TYPE)


def digits(number: int) -> str:
    """All digits of a number; Python itself stops at some thousands."""
    return format(Decimal(number), "f")


def readable_number(number: int) -> str:
    """A number in short form, with an exponent if it is large."""
    return f"{number:,}" if abs(number) < _READABLE else f"{Decimal(number):.1e}".replace("e+", "e")
