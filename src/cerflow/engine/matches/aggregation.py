"""Aggregates over the matches of each detecting event, computed on the shared graph.

Each is a fold over sets of complex events, given by a value for the complex event without events, the effect of an
event in front of a set on the value, and the combination of the values of two disjoint sets. Sums and counts are linear
in the number of complex events. Minima and maxima are semirings: (min, +), (min, min) and (min, max).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Floats, Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts
from cerflow.base.errors import ArgumentError, TooManyMatchesError, UnsupportedQueryError, expect
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.kernels.matches.semiring import FACTORS, SUMS
from cerflow.engine.matches import counting
from cerflow.engine.matches.folding import EXACT, Folding, MarkValues, Values, check_values, combining, extremes
from cerflow.engine.matches.listing import Detected
from cerflow.engine.matches.picking import Passing
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.report import COUNT_TYPE, CountForm, Report

#: The specification of an aggregate: "count", or (label, attribute, function[, over the matches]).
AggregateOf = str | tuple[str, str | None, str] | tuple[str, str | None, str, str]

_FUNCTIONS = ("count", "sum", "min", "max", "avg")
_OVER = ("sum", "min", "max", "avg")


@dataclass(frozen=True)
class _Wanted:
    """One column of the result: ``function`` of a label's events in all matches, or in each and then ``over`` them."""

    name: str
    label: str
    attribute: str | None
    function: str
    over: str
    kind: ValueKind

    @property
    def pools(self) -> bool:
        return self.over in ("sum", "avg")

    @property
    def adds_durations(self) -> bool:
        """Whether durations are added, as whole microseconds."""
        return self.kind is ValueKind.DURATION and self.function in ("sum", "avg")


class Aggregation:
    """The requested aggregates; `rows` computes them for the detecting events of a part."""

    def __init__(self, report: Report, wanted: Mapping[str, AggregateOf]) -> None:
        expect(wanted, Mapping, "aggregates are given as a dict by the names of their columns")
        for name in wanted:
            expect(name, str, "the name of an aggregate must be text")
        if not wanted:
            raise ArgumentError("there is nothing to aggregate")
        self._report = report
        self._wanted = [(name, None if of == "count" else _resolved(report, name, of)) for name, of in wanted.items()]
        known = ("detected_at", "detected_time", "end_time")
        leading = [report.schema.field(name) for name in report.leading if name in known]
        keys = list(report.schema)[len(report.leading) : len(report.leading) + len(report.select.partition)]
        fields = [pa.field(name, COUNT_TYPE if w is None else self._type(w)) for name, w in self._wanted]
        names = [field.name for field in [*leading, *keys]]
        for field in fields:
            if field.name in names:
                raise ArgumentError(f"the result has a column '{field.name}' already; give the aggregate another name")
        self.schema = pa.schema([*leading, *keys, *fields])

    def _type(self, wanted: _Wanted) -> pa.DataType:
        if wanted.adds_durations:
            return pa.duration("us")
        if wanted.over == "avg":
            return pa.float64()
        if wanted.function == "count":
            return COUNT_TYPE if wanted.pools else pa.int64()
        if wanted.function == "sum":
            return COUNT_TYPE if wanted.kind is ValueKind.INTEGER else pa.float64()
        assert wanted.attribute is not None
        of = self._report.events.columns.field(self._report.events.column(wanted.attribute)).type
        return of.value_type if pa.types.is_dictionary(of) else of

    def rows(self, part: Part, limit: int | None) -> pa.RecordBatch:
        """One row for each detecting event of a part."""
        positions, begins = counting.detecting(part.graph.detections)
        sums, values = _Sums(part, begins), MarkValues(part, self._report)
        given = [w and values.given(w.label, w.attribute, w.function) for _, w in self._wanted]
        pooled = [_Pooled(w, sums, v) if w is not None and w.pools else None for (_, w), v in zip(self._wanted, given)]
        matches = sums.numbers(sums.matches)
        counting.refuse_if_cut(matches, limit)
        columns = Detected(self._report, positions, part).leading()
        for (name, wanted), of, pool in zip(self._wanted, given, pooled):
            target = self.schema.field(name).type
            if wanted is None:
                columns.append(as_count_array(matches, target))
            else:
                columns.append(pool.array(target) if pool else _extreme(wanted, of, part, begins, target))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _resolved(report: Report, name: str, of: Any) -> _Wanted:
    """The specification, checked; raises `ArgumentError` if it is invalid, `QueryError` for unknown names."""
    if not isinstance(of, tuple) or len(of) not in (3, 4):
        raise ArgumentError(f"'{name}' must be 'count' or (label, attribute, function[, over]), not {of!r}")
    label, attribute, function = of[:3]
    kind = check_values(report, label, attribute, function, _FUNCTIONS, f"'{name}': ")
    if len(of) == 3:
        # All events of all matches at once: least of the least, sum of sums.
        return _Wanted(name, label, attribute, function, "sum" if function == "count" else function, kind)
    over = of[3]
    if over not in _OVER:
        raise ArgumentError(f"'{name}': the function over the matches must be one of {', '.join(_OVER)}, not {over!r}")
    if function == "avg" or (function in ("min", "max") and over in ("sum", "avg")):
        raise UnsupportedQueryError(
            f"'{name}': {over} over matches of the {function} in each cannot be computed without listing the matches",
            hint="Use count or sum in each match, or min or max for min or max over the matches.",
        )
    return _Wanted(name, label, attribute, function, over, kind)


class _Sums:
    """Sums over the matches of each detecting event, by the order in which they were added."""

    def __init__(self, part: Part, begins: Ints) -> None:
        self._part = part
        self._begins = begins
        self._added: list[tuple[int, Values, Floats]] = []
        self._numbers: dict[int, list[Any]] = {}
        self.matches = self.add(FACTORS, Values(pa.array(np.ones(len(part.graph.marks), np.int64))))

    def add(self, operation: int, values: Values) -> int:
        """One more sum of a value: by ``operation`` the events of a match add, or multiply it."""
        floats = np.add.reduceat(Folding(self._part, operation, values.floats).all()[:, 0], self._begins[:-1])
        self._added.append((operation, values, floats))
        return len(self._added) - 1

    @cached_property
    def _inexact(self) -> list[int]:
        """The numbers of the events some of whose sums are not exact as floats."""
        # A sum of integers is exact if that of magnitudes is; the number of matches is such a sum.
        sizes = np.column_stack([floats for _, values, floats in self._added if values.bounds])
        return [int(k) for k in np.flatnonzero(~np.all(sizes < EXACT, axis=1))]

    def numbers(self, of: int) -> list[Any]:
        if of not in self._numbers:
            operation, values, floats = self._added[of]
            numbers: list[Any] = floats.tolist()
            if values.whole:
                # Sums that are not exact may be infinite.
                inexact = frozenset(self._inexact)
                numbers = [v if k in inexact else int(v) for k, v in enumerate(numbers)]
            if values.whole and self._inexact:
                folding = Folding(self._part, operation, values.exact)
                # A fold goes through the events once, in their order.
                for k in self._inexact:
                    first, last = self._begins[k], self._begins[k + 1]
                    own = np.zeros((last - first, 2), object)
                    folding.fold(int(first), own)
                    numbers[k] = own[:, 0].sum()
            self._numbers[of] = numbers
        return self._numbers[of]


class _Pooled:
    """A sum or average over the events of all matches, or over values of matches."""

    def __init__(self, wanted: _Wanted, sums: _Sums, values: pa.Array) -> None:
        self._wanted = wanted
        self._sums = sums
        known = pc.is_valid(values)
        self._known = sums.add(SUMS, Values(pc.cast(known, pa.int64())))
        self._sum = self._known
        if wanted.function != "count":
            given = pc.fill_null(values, pa.scalar(0, values.type))
            self._sum = sums.add(SUMS, Values(given))
            if wanted.kind in (ValueKind.INTEGER, ValueKind.DURATION):
                sums.add(SUMS, Values(given, sizes=True))
        # A match without values has the factor 1 for each of its events.
        self._without = sums.add(FACTORS, Values(pc.cast(pc.invert(known), pa.int64())))

    def array(self, target: pa.DataType) -> pa.Array:
        sums, known = self._sums.numbers(self._sum), self._sums.numbers(self._known)
        wanted = self._wanted
        if wanted.over == "sum":
            return as_count_array([s if k or wanted.function == "count" else None for s, k in zip(sums, known)], target)
        divisors = known
        if wanted.function != "avg":
            divisors = self._sums.numbers(self._sums.matches)
            if wanted.function == "sum":
                divisors = [n - w for n, w in zip(divisors, self._sums.numbers(self._without))]
        if wanted.adds_durations:
            # Halves are rounded away from zero.
            means = [(2 * abs(s) + d) // (2 * d) * (1 if s > 0 else -1) if d else None for s, d in zip(sums, divisors)]
            return as_count_array(means, target)
        return pa.array([s / d if d else None for s, d in zip(sums, divisors)], target)


def _extreme(wanted: _Wanted, values: pa.Array, part: Part, begins: Ints, target: pa.DataType) -> pa.Array:
    """The least or greatest value of the matches of each detecting event."""
    operation, weights, chosen = combining(wanted.function, values)
    found, lacking = extremes(part, operation, weights, greatest=wanted.over == "max")
    result: list[Any] = []
    for first, last in zip(begins.tolist(), begins[1:].tolist()):
        some = [v for v in found[first:last] if v is not None]
        if wanted.function == "count" and any(lacking[first:last]):
            some.append(0)
        result.append((min if wanted.over == "min" else max)(some) if some else None)
    if chosen is not None:
        return values.take(pa.array([None if rank is None else int(chosen[int(rank)]) for rank in result], pa.int64()))
    return as_count_array(result, target)


def as_count_array(values: list[Any], target: pa.DataType) -> pa.Array:
    """Numbers as an array, durations beyond 64 bits as null; raises TooManyMatchesError for more than 38 digits."""
    if pa.types.is_decimal(target):
        sizes = [0 if v is None else abs(v) for v in values]
        if max(sizes, default=0) >= 10**38:
            beyond = next(v for v, size in zip(values, sizes) if size >= 10**38)
            raise TooManyMatchesError(f"{counting.readable_number(beyond)} does not fit 38 digits")
        if None not in values and max(sizes, default=0) < 2**63:
            return array_of_numbers(np.array(values, np.int64)).cast(target)
    if pa.types.is_duration(target):
        values = [v if v is not None and abs(v) <= MOST else None for v in values]
    return pa.array(values, target)


def counted_rows(
    part: Part, report: Report, limit: int | None, counts: CountForm, passing: Passing | None, max_rows: int
) -> Iterator[pa.RecordBatch]:
    """One row per detecting event of a part (with ``passing`` of some) with the number of its matches."""
    schema = report.shown("structs", None, counts=counts)
    detected, numbers = counting.count_detections(part, limit)
    if passing is not None:
        rows = passing.next(len(detected))
        detected, numbers = detected[rows.start : rows.stop : rows.step], [numbers[k] for k in rows]
    for start in range(0, len(detected), max_rows):
        some = numbers[start : start + max_rows]
        if counts == "decimal" and any(n >= 10**38 for n in some):
            raise TooManyMatchesError(
                f"the number of matches of one event, {counting.readable_number(max(some))}, does not fit 38 digits; "
                'counts="text" (--counts text) gives it as text'
            )
        leading = Detected(report, detected[start : start + max_rows], part).leading()
        texts = counts == "text"
        amounts = array_of_texts([*map(counting.digits, some)]) if texts else as_count_array(some, COUNT_TYPE)
        yield pa.RecordBatch.from_arrays([*leading, *[amounts for _ in report.counts]], schema=schema)
