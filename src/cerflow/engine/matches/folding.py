"""The values of marks, and folds over the matches of a part, by kernels or in Python's numbers beyond 64 bits."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Floats, Ints, Mask
from cerflow.base.arrow_columns import array_of_numbers, nan_as_null, numbers_of, truths_of
from cerflow.base.errors import ArgumentError, QueryError, nearest
from cerflow.base.schema import ValueKind, kind_of
from cerflow.base.units import MICROSECONDS
from cerflow.engine import layout
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.kernels import table
from cerflow.engine.kernels.matches.fold import PlainFold
from cerflow.engine.kernels.matches.fold import fold_values as fold_exact
from cerflow.engine.kernels.matches.semiring import COUNT, FACTORS, GREATEST, LEAST, PLUS, SUMS
from cerflow.engine.kernels.matches.slide import PROGRESS_WORDS, SlidingFold
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.report import Report
from cerflow.engine.results.unfolded_events import StoredRows, Unfolded, having_label
from cerflow.engine.stopping import portions
from cerflow.logic.analysis.scopes import labels_of

#: Integers below this are exact as floats; so are their sums if the sum of magnitudes is below it.
EXACT = 2.0**53
#: The greatest number of numbers in the values of all sets on the frontier of a sliding window.
_FRONTIER = 8


class Values:
    """A number for each mark, NaN for none: as ``floats``, and exactly. They are ``whole`` if all are integers."""

    def __init__(self, given: pa.Array) -> None:
        self.whole = kind_of(given.type) is ValueKind.INTEGER
        self._given = given if pa.types.is_integer(given.type) or not self.whole else given.cast(pa.int64())
        self.floats: Floats = given.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

    @cached_property
    def exact(self) -> NDArray[Any]:
        """The same as Python's numbers."""
        return np.array([float("nan") if v is None else v for v in self._given.to_pylist()], object)


def combining(function: str, given: pa.Array) -> tuple[int, Values, Ints | None]:
    """The operation by which a function combines what it takes from the events of a match, and the values of the marks.

    For the least and the greatest these are ranks; the last result says where the value of each rank is.
    """
    if function not in ("min", "max"):
        counted = pc.if_else(pc.is_valid(given), pa.scalar(1, pa.int64()), pa.scalar(None, pa.int64()))
        return PLUS, Values(counted if function == "count" else given), None
    ranks = pc.rank(given, sort_keys="ascending", tiebreaker="dense")
    _, chosen = np.unique(ranks.to_numpy(), return_index=True)
    kept = pc.if_else(pc.is_valid(given), pc.cast(pc.subtract(ranks, pa.scalar(1, ranks.type)), pa.int64()), None)
    return LEAST if function == "min" else GREATEST, Values(kept), chosen


class Folding:
    """The values of the matches of a part, and of the sets below them, for an operation of `semiring`.

    ``numbers`` has one for each mark: floats, or Python's numbers as objects. To `COUNT` it is the number of digits.
    """

    def __init__(self, part: Part, operation: int, numbers: NDArray[Any] | int) -> None:
        self._part = part
        self._operation = operation
        self._graph = part.graph.nodes, part.graph.nodes.view(np.int32)
        if isinstance(numbers, int):
            self._units = np.zeros((2, numbers), np.int64)
            self._units[1, 0] = 1
            self.weights = self._units[1:]
        else:
            none = {SUMS: ((0, 0), (0, 1)), FACTORS: ((0, 0), (1, 1))}.get(operation, ((np.nan, 0), (np.nan, 1)))
            self._units = np.array(none, numbers.dtype)
            second = np.ones_like(numbers) if operation in (SUMS, FACTORS) else numbers != numbers
            self.weights = np.column_stack((numbers, second)).astype(numbers.dtype)
        self.width = self._units.shape[1]

    @cached_property
    def _fold(self) -> PlainFold:
        top = len(self._part.graph.nodes)
        values, low = self._room(top), np.full(top, np.iinfo(np.int64).min)
        own = self._operation, self._units, self.weights, values, low
        return PlainFold(*self._graph, *own, np.empty(3 * top + 4, np.int32), np.array([MOST, 0]))

    @property
    def values(self) -> NDArray[Any]:
        """The values of the sets below the detections folded so far: (nodes, width)."""
        values: NDArray[Any] = self._fold.values
        return values

    def _room(self, *shape: int) -> NDArray[Any]:
        return np.zeros((*shape, self.width), self._units.dtype)

    def all(self) -> NDArray[Any]:
        """The value of each detection's matches: (detections, width). Not for `COUNT`, whose digits may not suffice."""
        found = self._room(len(self._part.graph.detections))
        first = self.slide(found)
        self.fold(first, found[first:])
        return found

    def fold(self, first: int, found: NDArray[Any]) -> int:
        """Write the values of the detections from number ``first`` on to ``found``, one after the other.

        Detections must be folded in their order. Returns the first without a value: its number needs more digits.
        """
        if self._units.dtype.hasobject:
            return self._run(fold_exact, self._fold, first, found)
        return self._run(table.fold_counts if self._operation == COUNT else table.fold_values, self._fold, first, found)

    def of_unfolded(self, found: Unfolded) -> Floats:
        """The value of each unfolded match, NaN for none; only for `PLUS`, `LEAST` and `GREATEST` of floats."""
        listed = found.listed
        values, own = np.full(len(found), np.nan), self.weights[listed.used[listed.events], 0]
        some = np.flatnonzero(np.diff(listed.offsets))
        if len(some):
            begins, known = listed.offsets[some], ~np.isnan(own)
            if self._operation == PLUS:
                values[some] = np.add.reduceat(np.where(known, own, 0.0), begins)
                values[some[~np.logical_or.reduceat(known, begins)]] = np.nan
            else:
                values[some] = (np.fmin if self._operation == LEAST else np.fmax).reduceat(own, begins)
        return values

    def slide(self, found: NDArray[Any]) -> int:
        """Write values of detections to ``found`` along a sliding window; returns the first without a value.

        That is the first of all for small parts, where a plain walk is faster. In large parts one is tried first.
        """
        part, dtype = self._part, self._units.dtype
        top, marks, bounds = len(part.graph.nodes), len(part.graph.marks), part.graph.detections[:, layout.D_BOUND]
        least = limits.COUNTED_PAIRS if self._operation == COUNT else limits.FOLDED_PAIRS
        if len(found) * top <= least or dtype.hasobject or (np.diff(bounds) < 0).any():
            return 0
        most = int(limits.FOLD_VISITS * (top + len(found)))
        # The first detections may visit all nodes; then each tells whether all take too long.
        self._fold.credit[:] = 3 * most // 8, 5 * most // (8 * len(found))
        done = self.fold(0, found)
        self._fold.credit[:] = MOST, 0
        if done == len(found):
            return done
        del self._fold
        sets = _FRONTIER // self.width
        starts = np.zeros(marks, np.int32), np.empty(marks, np.int64)
        # All of it is written before it is read.
        sizes = (top,), (sets, marks + 1), (top,), (top, sets), ()
        state: Any = [np.empty((*size, self.width), self._units.dtype) for size in sizes]
        progress = np.empty(sets, np.int32), np.zeros(PROGRESS_WORDS, np.int64)
        given = self._operation, self._units, self.weights, *starts, *state, *progress
        sliding = SlidingFold(*self._graph, *given)
        return self._run(table.slide_counts if self._operation == COUNT else table.slide_values, sliding, 0, found)

    def _run(self, kernel: Any, state: PlainFold | SlidingFold, first: int, found: NDArray[Any]) -> int:
        rest = self._part.graph.detections[first:][: len(found)]
        for begin, end in portions(0, len(found)):
            done: int = begin + kernel(rest[begin:end], found[begin:end], *state)
            if done < end:
                return first + done
        return first + len(found)


def lowest(part: Part, operation: int, values: Values, *, greatest: bool) -> tuple[int, Folding]:
    """A fold to the least (or greatest) value of a match, whose events combine theirs by an operation of `semiring`.

    The greatest value is minus the least; returns also the operation on these values.
    """
    largest = np.nanmax(np.abs(values.floats), initial=0.0) if len(values.floats) else 0.0
    # A sum has at most one integer per event, a Python integer if it may be too large.
    exact = values.whole and operation == PLUS and largest * len(part.graph.marks) >= EXACT
    numbers = values.exact if exact else values.floats
    if greatest:
        numbers, operation = -numbers, {PLUS: PLUS, LEAST: GREATEST, GREATEST: LEAST}[operation]
    return operation, Folding(part, operation, numbers)


def extremes(part: Part, operation: int, values: Values, *, greatest: bool) -> tuple[list[Any], list[bool]]:
    """The least (or greatest) value of a match of each detection, None if none has one; and whether some has none."""
    found = lowest(part, operation, values, greatest=greatest)[1].all()
    shown = [None if v != v else (-v if greatest else v) for v in found[:, 0].tolist()]
    return [int(v) if v is not None and values.whole else v for v in shown], (found[:, 1] == 1).tolist()


def check_values(
    report: Report, label: str, attribute: str | None, function: str, known: Collection[str], where: str = ""
) -> ValueKind:
    """The kind of the values that a function, one of the ``known``, takes from the events with a label.

    Raises `ArgumentError` for another function or a missing attribute, said to be ``where``, and `QueryError` for a
    label or an attribute that the query does not report, or whose values do not fit.
    """
    if function not in known:
        raise ArgumentError(f"{where}the function must be one of {', '.join(known)}, not {function!r}")
    labels = labels_of(report.select.formula)
    shown = labels.assigned if report.keep is None else report.keep
    if label not in shown and not (labels.wildcard and report.keep is None):
        if label in labels.assigned:
            raise QueryError(f"the label '{label}' is not selected by the query", hint=f"Add it to SELECT: {label}.")
        raise _unknown("label", label, shown)
    if attribute is None:
        if function != "count":
            raise ArgumentError(f"{where}{function} needs an attribute")
        return ValueKind.INTEGER
    column = report.events.column(attribute)
    if column not in report.events.attributes:
        raise _unknown("attribute", attribute, report.events.attributes)
    if column not in report.stored:
        raise QueryError(f"the attribute '{attribute}' is not selected by the query", hint="SELECT * keeps them all.")
    kind = report.events.kind(column)
    if kind is ValueKind.OTHER or (function in ("sum", "avg") and not (kind.numeric or kind is ValueKind.DURATION)):
        raise QueryError(f"{function} of '{attribute}': its values are of kind {kind}")
    return kind


def _unknown(what: str, name: str, known: Collection[str]) -> QueryError:
    near = nearest(name, known)
    hint = None if near or not known else f"There are {', '.join(sorted(known))}."
    return QueryError(f"unknown {what} '{name}'", suggestion=near, hint=hint)


class MarkValues:
    """The values of marks that aggregates and orders need; mark 0, the empty mark, has none."""

    def __init__(self, part: Part, report: Report) -> None:
        self._report = report
        self._sets = part.label_sets
        self._positions = part.graph.marks[1:, layout.M_POSITION]
        self._labels = part.graph.marks[1:, layout.M_LABEL]
        self._rows = StoredRows(report, part.kept, self._positions)

    def positions(self) -> Floats:
        """The positions of the events that matches show, NaN for others."""
        return np.append(np.nan, np.where(self._having(None), self._positions, np.nan))

    def _having(self, label: str | None) -> Mask:
        """Whether an event has a label, or is shown if that is None, for all marks but the first."""
        if label is not None:
            return having_label(label, self._sets, self._labels, lambda: self._rows.types)
        names = {item.label for item in self._report.listed}
        return np.array([not names or bool(s & names) for s in self._sets], bool)[self._labels]

    def given(self, label: str | None, attribute: str | None, function: str) -> pa.Array:
        """The values that a function gets: of the events with a label, or of all that matches show; else null.

        That is the attribute, null for NaN, or the number 1 for the event itself. Durations to be added are whole
        microseconds (rounded down, null beyond 64 bits).
        """
        lacking = ~np.append(False, self._having(label))
        if attribute is None:
            return array_of_numbers(np.ones(len(lacking), np.int64), lacking)
        values = self._rows.column(self._report.events.column(attribute))
        values = nan_as_null(values.dictionary_decode() if pa.types.is_dictionary(values.type) else values)
        values = values.take(array_of_numbers(np.arange(-1, len(values)), lacking))
        if function not in ("sum", "avg") or not pa.types.is_duration(values.type):
            return values
        size, numbers = MICROSECONDS[values.type.unit], numbers_of(values.cast(pa.int64()))
        most = MOST // size.numerator
        lacking = ~truths_of(values.is_valid()) | (numbers > most) | (numbers < -most)
        return array_of_numbers(np.where(lacking, 0, numbers) * size.numerator // size.denominator, lacking)
