"""Aggregates as computed columns: the events of a label in each match, for many matches at a time.

The values are those of `cerflow.theory.semantics.operators.aggregate` to the last bit: floats are added one by one in
the order of their positions, whole numbers exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cerflow.base.array_types import Floats, Ints, Mask
from cerflow.base.operators import ORDERS
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.vectors import TruthVector, Vector, compare_vectors, word
from cerflow.engine.layout import NULL
from cerflow.language.condition import COUNT_DISTINCT
from cerflow.logic.conditions.register_values import WORD


@dataclass(frozen=True)
class Grouping:
    """Values in consecutive groups: group g has the values ``[starts[g], starts[g] + sizes[g])``."""

    sizes: Ints

    @property
    def starts(self) -> Ints:
        """Where each group begins."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def of(self) -> Ints:
        """The group of each value."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def sums(self, values: Ints) -> Ints:
        """The sum of each group."""
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return np.asarray(total[self.starts + self.sizes] - total[self.starts])

    def sums_in_order(self, values: Floats) -> Floats:
        """The sum of each group; values are added one after the other."""
        # NumPy's other sums add values in pairs, which rounds differently.
        return np.asarray(np.bincount(self.of, weights=values, minlength=len(self.sizes)), np.float64)


def chosen(name: str, groups: Grouping, values: Vector | None) -> Ints:
    """The index of the first, last, least or greatest (known) value of each group, -1 for an empty group.

    ``values`` may be left out for the first and the last. If all values of a group are null, one of them is chosen.
    """
    starts, sizes = groups.starts, groups.sizes
    if name == "last":
        return np.where(sizes > 0, starts + sizes - 1, -1)
    found = starts
    if name in ("min", "max"):
        assert values is not None
        key = _order(values, reverse=name == "max")
        order = np.lexsort((key, values.missing(), groups.of))
        # An empty group at the end begins after the last value.
        found = np.append(order, -1)[starts]
    return np.where(sizes > 0, found, -1)


def _order(values: Vector, *, reverse: bool) -> Ints | Floats:
    """Numbers in the order of the values, or in the reverse order."""
    if values.kind is ValueKind.FLOAT:
        return -values.floats() if reverse else values.floats()
    places = values.data.astype(np.int64)
    if values.kind.coded:
        texts = values.dictionary
        ranks = np.zeros(max(1, len(texts)), np.int64)
        ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        places = ranks[values.data]
    return np.invert(places) if reverse else places


def aggregated(name: str, groups: Grouping, values: Vector | None) -> Vector:
    """``count`` (also of distinct values), ``sum``, ``avg`` or ``stddev`` of each group.

    Without values it counts events.
    """
    if values is None:
        return Vector(ValueKind.INTEGER, groups.sizes)
    known = ~values.missing()
    count = groups.sums(known.astype(np.int64))
    if name == "count":
        return Vector(ValueKind.INTEGER, count)
    if name == COUNT_DISTINCT:
        return Vector(ValueKind.INTEGER, _distinct(groups, values, known))
    if values.kind is not ValueKind.FLOAT and name == "sum":
        high, low = _words(groups, values)
        total = high * WORD + low
        beyond = (high < -(WORD // 2)) | (high >= WORD // 2) | (total == NULL)
        return Vector(ValueKind.INTEGER, total, (count == 0) | beyond)
    if values.kind is ValueKind.FLOAT:
        sums = groups.sums_in_order(np.asarray(word(values, high=False).data, np.float64))
    else:
        # The float nearest to the exact sum of whole numbers.
        high, low = _words(groups, values)
        sums = high.astype(np.float64) * WORD + low.astype(np.float64)
    with np.errstate(all="ignore"):
        if name == "sum":
            return Vector(ValueKind.FLOAT, np.where(count == 0, np.nan, sums))
        mean = sums / count
        if name == "avg":
            return Vector(ValueKind.FLOAT, mean)
        away = np.where(known, values.floats() - mean[groups.of], 0.0)
        variance = groups.sums_in_order(away * away) / (count - 1)
        return Vector(ValueKind.FLOAT, np.where(count < 2, np.nan, np.sqrt(variance)))


def _distinct(groups: Grouping, values: Vector, known: Mask) -> Ints:
    """The number of distinct values in each group, without nulls."""
    data = values.data[known]
    if values.kind.coded and len(data):
        # Functions of texts may give one text several codes.
        data = np.unique(np.array(values.dictionary, object), return_inverse=True)[1][data]
    distinct, codes = np.unique(data, return_inverse=True)
    pairs = np.unique(groups.of[known] * max(1, len(distinct)) + codes)
    return np.bincount(pairs // max(1, len(distinct)), minlength=len(groups.sizes)).astype(np.int64)


def in_order(name: str, groups: Grouping, values: Vector) -> TruthVector:
    """Whether the values of each group are in the order of a test of `SET_TESTS`, unknown where one is null."""
    count = len(values.data)
    compared = compare_vectors(ORDERS[name], values.chosen(np.arange(count - 1)), values.chosen(np.arange(1, count)))
    failing = (~compared).true
    inside = np.diff(groups.of) == 0
    fails = groups.sums(np.append(failing & inside, False).astype(np.int64)[:count]) > 0
    nulls = groups.sums(values.missing().astype(np.int64)) > 0
    return TruthVector(~fails & ~nulls, nulls & ~fails)


def _words(groups: Grouping, values: Vector) -> tuple[Ints, Ints]:
    """The sum of each group's whole numbers in two words, the low one in ``[0, WORD)``."""
    high, low = (groups.sums(np.asarray(word(values, high=h).data, np.int64)) for h in (True, False))
    return high + low // WORD, low % WORD
