"""Folds over the matches of a part: the arrays for the kernels, and exact numbers beyond 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.base.array_types import Floats, Ints, Mask
from cerflow.base.schema import ValueKind, kind_of
from cerflow.engine import layout
from cerflow.engine.kernels.matches.fold import GREATEST, LEAST, PLUS
from cerflow.engine.kernels.matches.fold import best as best_exact
from cerflow.engine.kernels.matches.fold import total as total_exact
from cerflow.engine.kernels.matches.slide_folds import FACTORS, SUMS
from cerflow.engine.kernels.table import best, total
from cerflow.engine.matches.sliding import fold_sliding
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.stopping import portions

#: Integers below this are exact as floats; so are their sums if the sum of magnitudes is below it.
EXACT = 2.0**53


@dataclass(frozen=True)
class Values:
    """A number for each mark that changes the value of a complex event to ``factor`` times the value, plus ``weight``.

    ``given`` has the weights exactly, null where there is none; without it they are 0. ``start`` is the value of the
    complex event without events. With ``sizes`` the signs of the weights are ignored.
    """

    weight: Floats
    factor: Floats
    given: pa.Array | None = None
    start: int = 0
    sizes: bool = False

    @classmethod
    def of(cls, values: pa.Array, *, sizes: bool = False) -> Values:
        """Weights from a column, NaN where it is null."""
        if not pa.types.is_integer(values.type):
            values = values.cast(pa.int64() if kind_of(values.type) is ValueKind.INTEGER else pa.float64())
        weight = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return cls(np.abs(weight) if sizes else weight, np.ones(len(values)), values, sizes=sizes)

    @classmethod
    def one(cls, count: int) -> Values:
        """1 for every complex event."""
        return cls(np.zeros(count), np.ones(count), start=1)

    @classmethod
    def without(cls, known: Mask) -> Values:
        """1 for a complex event without any of some marks, else 0."""
        return cls(np.zeros(len(known)), np.where(known, 0.0, 1.0), start=1)

    @property
    def exact(self) -> list[Any]:
        """The weights as Python numbers, None for none."""
        if self.given is None:
            return [0] * len(self.weight)
        weights: list[Any] = self.given.to_pylist()
        return [abs(v) for v in weights] if self.sizes else weights

    @property
    def whole(self) -> bool:
        """Whether the weights are integers."""
        return self.given is None or kind_of(self.given.type) is ValueKind.INTEGER

    @property
    def bounds(self) -> bool:
        """Whether no intermediate sum can exceed the last one: integers, none of them negative."""
        return self.whole and not bool((self.weight < 0).any())


def ranked(values: pa.Array) -> tuple[Values, Ints]:
    """Values of any kind as numbers in the same order, and the place of the value of each number."""
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    known = pc.is_valid(values)
    _, chosen = np.unique(ranks.to_numpy(), return_index=True)
    kept = pc.if_else(known, pc.cast(pc.subtract(ranks, pa.scalar(1, ranks.type)), pa.int64()), None)
    return Values.of(kept), chosen


class Folding:
    """Folds over the detections of one part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._small = part.nodes.view(np.int32)
        top = len(part.nodes)
        self._stack = np.empty(3 * top + 4, np.int32)
        self._order = np.empty(top, np.int32)

    def _memory(self) -> tuple[NDArray[Any], ...]:
        """The memory of a fold: which nodes have values, and for how long these are valid."""
        top = len(self._part.nodes)
        return np.zeros(top, np.int8), np.empty(top, np.int64), self._stack, self._order

    def sums(self, columns: Sequence[Values]) -> NDArray[np.float64]:
        """The sums of columns over the matches of each detection; the first column must be constant 1."""
        part = self._part
        found = np.empty((len(part.detections), len(columns)))
        start = np.array([float(c.start) for c in columns])
        factor = np.column_stack([c.factor for c in columns])
        weight = np.column_stack([c.weight for c in columns])
        sums = np.empty((len(part.nodes), len(columns)))
        first = self._slide_sums(columns, found)
        graph, memory = (part.nodes, self._small, part.detections), self._memory()
        for begin, end in portions(first, len(found)):
            total(*graph, begin, end, start, factor, weight, sums, found, *memory)
        return found

    def _slide_sums(self, columns: Sequence[Values], found: NDArray[np.float64]) -> int:
        """`sums` along a sliding window; returns the first detection without sums."""
        part = self._part
        mark = part.detections[:, layout.D_MARK]
        folded = len(found)
        for j, column in enumerate(columns):
            multiplies = bool(column.start)
            own = column.factor if multiplies else column.weight
            below = np.zeros((len(found), 2))
            weights = np.column_stack((own, np.ones(len(own))))
            folded = min(folded, fold_sliding(part, FACTORS if multiplies else SUMS, weights, below))
            if folded == 0:
                break
            value, number = below.T
            found[:, j] = value * own[mark] if multiplies else value + own[mark] * number
        return folded

    def exact_sums(self, columns: Sequence[Values], first: int, last: int) -> list[list[Any]]:
        """`sums` of the detections ``[first, last)``, in Python numbers."""
        part = self._part
        found = np.zeros((len(part.detections), len(columns)), object)
        start = np.array([c.start for c in columns], object)
        factor = np.column_stack([c.factor.astype(np.int64).astype(object) for c in columns])
        weight = np.empty((len(part.marks), len(columns)), object)
        for j, column in enumerate(columns):
            weight[:, j] = column.exact
        sums = np.empty((len(part.nodes), len(columns)), object)
        graph = (part.nodes, self._small, part.detections, first, last)
        total_exact(*graph, start, factor, weight, sums, found, *self._memory())
        return [list(row) for row in found[first:last]]

    def extremes(self, operation: int, values: Values, *, greatest: bool) -> tuple[list[Any], list[bool]]:
        """The least (or greatest) value of a match of each detection, None if none has one; and whether some has none.

        ``operation`` combines the values of the events of a match.
        """
        marks = self._part.detections[:, layout.D_MARK]
        lowest = Lowest(self._part, operation, values, greatest=greatest)
        found, lacking = lowest.fold_all()
        result = [lowest.with_mark(mark, value, bool(w)) for mark, value, w in zip(marks.tolist(), found, lacking)]
        shown = [None if v != v else (-v if greatest else v) for v, _ in result]
        whole = values.whole
        return [v if v is None or not whole else int(v) for v in shown], [w for _, w in result]


class Lowest(Folding):
    """The least (or greatest) value of the complex events of each set; the greatest is computed as a least value."""

    def __init__(self, part: Part, operation: int, values: Values, *, greatest: bool) -> None:
        super().__init__(part)
        top = len(part.nodes)
        largest = np.nanmax(np.abs(values.weight), initial=0.0) if len(values.weight) else 0.0
        # A sum has at most one integer per event, a Python integer if it may be too large.
        self._exact = values.whole and operation == PLUS and largest * len(part.marks) >= EXACT
        kind = object if self._exact else np.float64
        given = [float("nan") if v is None else v for v in values.exact] if self._exact else values.weight
        self.weight = np.array(given, kind)
        if greatest:
            self.weight = -self.weight
            operation = {PLUS: PLUS, LEAST: GREATEST, GREATEST: LEAST}[operation]
        self.operation = operation
        self.least = np.zeros(top, kind)
        self.without = np.zeros(top, np.int8)
        self._known = self._memory()

    def fold(self, first: int, last: int) -> tuple[list[Any], list[int]]:
        """The least value below each detection ``[first, last)``, NaN for none, and whether some has none."""
        part = self._part
        found = np.zeros(len(part.detections), self.least.dtype)
        lacking = np.zeros(len(found), np.int8)
        kernel = best_exact if self._exact else best
        for begin, end in portions(first, last):
            kernel(
                *(part.nodes, self._small, part.detections, begin, end, self.operation, self.weight),
                *(self.least, self.without, found, lacking, *self._known),
            )
        return found[first:last].tolist(), lacking[first:last].tolist()

    def fold_all(self) -> tuple[list[Any], list[int]]:
        """The same for all detections."""
        part = self._part
        below = np.zeros((len(part.detections), 2))
        begin = 0
        if not self._exact:
            weights = np.column_stack((self.weight, np.isnan(self.weight)))
            begin = fold_sliding(part, self.operation, weights, below)
        found, lacking = self.fold(begin, len(below))
        return below[:begin, 0].tolist() + found, below[:begin, 1].astype(int).tolist() + lacking

    def joined(self, value: Any, other: Any) -> Any:
        """The value of two parts of one complex event."""
        if value != value:
            return other
        if other != other:
            return value
        if self.operation == PLUS:
            return value + other
        return min(value, other) if self.operation == LEAST else max(value, other)

    def least_with(self, own: Any, node: int) -> Any:
        """The least value of the complex events of a set combined with another value."""
        return self._least_with(own, self.least[node], bool(self.without[node]))

    def with_mark(self, mark: int, value: Any, without: bool) -> tuple[Any, bool]:
        """The least value of complex events with one more event; ``without`` says whether some has none."""
        own = self.weight[mark]
        return self._least_with(own, value, without), without and own != own

    def _least_with(self, own: Any, value: Any, without: bool) -> Any:
        least = self.joined(own, value)
        return min(own, least) if without and own == own else least
