"""Aggregates over the matches of each detecting event, computed on the shared graph.

Each is a fold over sets of complex events, given by a value for the complex event without events, the effect of an
event in front of a set on the value, and the combination of the values of two disjoint sets. Sums and counts are linear
in the number of complex events. Minima and maxima are semirings: (min, +), (min, min) and (min, max).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Floats, Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, without_codes
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

    label: str
    attribute: str | None
    function: str
    over: str
    kind: ValueKind

    @property
    def adds_durations(self) -> bool:
        """Whether durations are added, as whole microseconds."""
        return self.kind is ValueKind.DURATION and self.function in ("sum", "avg")

    def type(self, report: Report) -> pa.DataType:
        """The type of the column."""
        if self.adds_durations:
            return pa.duration("us")
        if self.over == "avg":
            return pa.float64()
        if self.function == "count":
            return COUNT_TYPE if self.over == "sum" else pa.int64()
        if self.function == "sum":
            return COUNT_TYPE if self.kind is ValueKind.INTEGER else pa.float64()
        assert self.attribute is not None
        return without_codes(report.events.columns.field(report.events.column(self.attribute)).type)


class Aggregation:
    """The requested aggregates; `rows` computes them for the detecting events of a part."""

    def __init__(self, report: Report, wanted: Mapping[str, AggregateOf]) -> None:
        expect(wanted, Mapping, "aggregates are given as a dict by the names of their columns")
        for name in wanted:
            expect(name, str, "the name of an aggregate must be text")
        if not wanted:
            raise ArgumentError("there is nothing to aggregate")
        self._report = report
        #: None stands for the number of matches.
        self._wanted = [None if of == "count" else _resolved(report, name, of) for name, of in wanted.items()]
        known = ("detected_at", "detected_time", "end_time")
        fields = [report.schema.field(name) for name in report.leading if name in known]
        fields += list(report.schema)[len(report.leading) :][: len(report.select.partition)]
        for name, column in zip(wanted, self._wanted):
            if any(name == field.name for field in fields):
                raise ArgumentError(f"the result has a column '{name}' already; give the aggregate another name")
            fields.append(pa.field(name, COUNT_TYPE if column is None else column.type(report)))
        self.schema = pa.schema(fields)

    def rows(self, part: Part, limit: int | None) -> pa.RecordBatch:
        """One row for each detecting event of a part."""
        positions, begins = counting.detecting(part.graph.detections)
        sums, marks = _Sums(part, begins), MarkValues(part, self._report)
        counting.refuse_if_cut(sums.matches, limit)
        columns = Detected(self._report, positions, part).leading()
        for wanted, field in zip(self._wanted, list(self.schema)[len(columns) :]):
            if wanted is None:
                columns.append(as_count_array(sums.matches, field.type))
                continue
            values = marks.given(wanted.label, wanted.attribute, wanted.function)
            if wanted.over in ("sum", "avg"):
                columns.append(as_count_array(_pooled(wanted, values, sums), field.type))
            else:
                columns.append(_extreme(wanted, values, part, begins, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _resolved(report: Report, name: str, of: Any) -> _Wanted:
    """The specification, checked; raises `ArgumentError` if it is invalid, `QueryError` for unknown names."""
    if not isinstance(of, tuple) or len(of) not in (3, 4):
        raise ArgumentError(f"'{name}' must be 'count' or (label, attribute, function[, over]), not {of!r}")
    label, attribute, function = of[:3]
    kind = check_values(report, label, attribute, function, _FUNCTIONS, f"'{name}': ")
    if len(of) == 3:
        # All events of all matches at once: least of the least, sum of sums.
        return _Wanted(label, attribute, function, "sum" if function == "count" else function, kind)
    over = of[3]
    if over not in _OVER:
        raise ArgumentError(f"'{name}': the function over the matches must be one of {', '.join(_OVER)}, not {over!r}")
    if function == "avg" or (function in ("min", "max") and over in ("sum", "avg")):
        raise UnsupportedQueryError(
            f"'{name}': {over} over matches of the {function} in each cannot be computed without listing the matches",
            hint="Use count or sum in each match, or min or max for min or max over the matches.",
        )
    return _Wanted(label, attribute, function, over, kind)


class _Sums:
    """Sums over the ``matches`` of each detecting event, whose numbers they are."""

    def __init__(self, part: Part, begins: Ints) -> None:
        self._part = part
        self._begins = begins
        self.matches = self.of(FACTORS, pa.array(np.ones(len(part.graph.marks), np.int64)))

    def of(self, operation: int, given: pa.Array) -> list[Any]:
        """The sums of the values of matches, of which events give parts (`SUMS`) or factors; exact for integers."""
        values = Values(given)
        found = self._floats(operation, values.floats)
        sums: list[Any] = found.tolist()
        if not values.whole:
            return sums
        # A sum of integers is exact if that of magnitudes is. A sum that is not exact may be infinite.
        sizes = self._floats(operation, np.abs(values.floats)) if (values.floats < 0).any() else found
        fits = sizes < EXACT
        sums = np.where(fits, found, 0).astype(np.int64).tolist()
        if not fits.all():
            folding = Folding(self._part, operation, values.exact)
            # A fold goes through the events once, in their order.
            for k in np.flatnonzero(~fits).tolist():
                first, last = self._begins[k : k + 2].tolist()
                own = np.zeros((last - first, 2), object)
                folding.fold(first, own)
                sums[k] = own[:, 0].sum()
        return sums

    def _floats(self, operation: int, numbers: Floats) -> Floats:
        return np.add.reduceat(Folding(self._part, operation, numbers).all()[:, 0], self._begins[:-1])


def _pooled(wanted: _Wanted, values: pa.Array, sums: _Sums) -> list[Any]:
    """A sum or average over the events of all matches, or over values of matches."""
    known = pc.is_valid(values)
    totals = counts = sums.of(SUMS, pc.cast(known, pa.int64()))
    if wanted.function != "count":
        totals = sums.of(SUMS, pc.fill_null(values, pa.scalar(0, values.type)))
    if wanted.over == "sum":
        return [s if n or wanted.function == "count" else None for s, n in zip(totals, counts)]
    divisors = counts if wanted.function == "avg" else sums.matches
    if wanted.function == "sum":
        # A match without values has the factor 1 for each of its events.
        without = sums.of(FACTORS, pc.cast(pc.invert(known), pa.int64()))
        divisors = [n - w for n, w in zip(divisors, without)]
    if wanted.adds_durations:
        # Halves are rounded away from zero.
        return [(2 * abs(s) + d) // (2 * d) * (1 if s > 0 else -1) if d else None for s, d in zip(totals, divisors)]
    return [s / d if d else None for s, d in zip(totals, divisors)]


def _extreme(wanted: _Wanted, given: pa.Array, part: Part, begins: Ints, target: pa.DataType) -> pa.Array:
    """The least or greatest value of the matches of each detecting event."""
    operation, values, chosen = combining(wanted.function, given)
    found, lacking = extremes(part, operation, values, greatest=wanted.over == "max")
    result: list[Any] = []
    for first, last in pairwise(begins.tolist()):
        some = [v for v in found[first:last] if v is not None]
        if wanted.function == "count" and any(lacking[first:last]):
            some.append(0)
        result.append((min if wanted.over == "min" else max)(some, default=None))
    if chosen is not None:
        return given.take(pa.array([None if rank is None else int(chosen[rank]) for rank in result], pa.int64()))
    return as_count_array(result, target)


def as_count_array(values: list[Any], target: pa.DataType) -> pa.Array:
    """Numbers as an array, durations beyond 64 bits as null; raises TooManyMatchesError for more than 38 digits."""
    if pa.types.is_decimal(target):
        try:
            return array_of_numbers(np.array(values, np.int64)).cast(target)
        except (OverflowError, TypeError):
            pass  # large numbers or nulls
        for beyond in (v for v in values if v is not None and abs(v) >= 10**38):
            raise TooManyMatchesError(f"{counting.readable_number(beyond)} does not fit 38 digits")
    if pa.types.is_duration(target):
        values = [v if v is not None and abs(v) <= MOST else None for v in values]
    return pa.array(values, target)


def counted_rows(
    part: Part, report: Report, limit: int | None, counts: CountForm, passing: Passing, max_rows: int
) -> Iterator[pa.RecordBatch]:
    """One row per detecting event of a part, with the number of its matches; ``passing`` chooses some of the rows."""
    schema = report.shown("structs", None, counts=counts)
    detected, numbers = counting.count_detections(part, limit)
    rows = passing.next(len(detected))
    chosen = slice(rows.start, rows.stop, rows.step)
    detected, numbers = detected[chosen], numbers[chosen]
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
