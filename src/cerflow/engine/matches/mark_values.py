"""The attributes of the events in the matches of a part, one value for each mark."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Floats, Mask
from cerflow.base.arrow_columns import one_array, truths_of
from cerflow.base.errors import ArgumentError, QueryError, nearest
from cerflow.base.schema import ValueKind
from cerflow.base.units import MICROSECONDS
from cerflow.engine import layout
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.matches.listing import having_label
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.report import Report
from cerflow.logic.analysis.scopes import labels_of


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
        self._part = part
        self._positions = part.graph.marks[1:, layout.M_POSITION]
        self._labels = part.graph.marks[1:, layout.M_LABEL]

    def _column(self, attribute: str) -> pa.Array:
        values = one_array(self._part.kept.at(self._positions).column(self._report.events.column(attribute)))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return pc.if_else(pc.is_nan(values), None, values) if pa.types.is_floating(values.type) else values

    def positions(self) -> Floats:
        """The positions of the events that matches show, NaN for others."""
        return np.append(np.nan, np.where(self.shown(), self._positions, np.nan))

    def shown(self) -> Mask:
        """Whether an event is shown, for all marks but the first."""
        names = {item.label for item in self._report.listed}
        return np.array([not names or bool(s & names) for s in self._part.label_sets], bool)[self._labels]

    def having(self, label: str) -> Mask:
        """Whether an event has a label, for all marks but the first."""
        types = partial(self._column, self._report.events.type)
        return having_label(label, self._part.label_sets, self._labels, types)

    def given(self, label: str | None, attribute: str | None, function: str) -> pa.Array:
        """The values that a function gets: of the events with a label, or of all that matches show; else null.

        That is the attribute, null for NaN, or the number 1 for the event itself. Durations to be added are whole
        microseconds (rounded down, null beyond 64 bits).
        """
        having = np.append(False, self.shown() if label is None else self.having(label))
        if attribute is None:
            return pa.array(np.ones(len(having), np.int64), mask=~having)
        values = self._column(attribute)
        values = pa.concat_arrays([pa.nulls(1, values.type), values])
        values = pc.if_else(pa.array(having), values, pa.scalar(None, values.type))
        if function not in ("sum", "avg") or not pa.types.is_duration(values.type):
            return values
        size = MICROSECONDS[values.type.unit]
        known = values.cast(pa.int64())
        if size < 1:
            lacking = ~truths_of(values.is_valid())
            return pa.array(known.fill_null(0).to_numpy() // size.denominator, mask=lacking)
        held = pc.less_equal(pc.abs(known), MOST // size.numerator)
        return pc.multiply(pc.if_else(held, known, pa.scalar(None, pa.int64())), size.numerator)
