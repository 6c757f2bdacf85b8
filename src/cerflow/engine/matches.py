"""Matches: found, kept shared, and unfolded only when somebody reads them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cerflow.engine.aggregation import AggregateOf, Aggregation
from cerflow.engine.counting import count_detections
from cerflow.engine.listing import Detected, Listing, join_dictionaries
from cerflow.engine.picking import First, Order, Picker, Sample, picked
from cerflow.engine.results import COUNT_TYPE, EventForm, Report
from cerflow.engine.unfolding import NO_LIMIT, Part, unfolded
from cerflow.errors import UnsupportedQueryError
from cerflow.language.select import ProjectionKind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Matches"]

#: Matches per record batch, unless asked otherwise.
ROWS = 65_536
#: Matches per record batch when all are wanted at once.
MANY_ROWS = 1 << 20


class Matches:
    """The matches of a query, in the order of their detection.

    Nothing is unfolded before it is asked for, and then in batches of bounded size, so there may be more matches
    than fit in memory. Iterating gives one dict per match, with the columns of ``schema``.
    """

    def __init__(self, parts: Iterable[Part], report: Report, limit: int | None, picker: Picker | None = None) -> None:
        self._parts = parts
        self._report = report
        self._limit = limit
        self._picker = picker

    @property
    def parts(self) -> Iterable[Part]:
        """What was found, before unfolding (for other parts of cerflow)."""
        return self._parts

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result (spec §6)."""
        return self._report.schema

    def count(self) -> int:
        """The number of matches, computed on the shared graph without unfolding them."""
        if self._picker is not None:
            return sum(len(listing) for listing in self._listings(ROWS))
        return sum(sum(numbers) for part in self._parts for _, numbers in [count_detections(part, self._limit)])

    def to_batches(
        self, max_rows: int = ROWS, *, events: EventForm = "structs", columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Unfold the matches into record batches of at most ``max_rows`` rows, with some columns or all.

        With ``events="dictionary"`` the events are dictionary-encoded: each event of a batch stands in its dictionary
        once, with its attributes, and a match holds 32-bit numbers. Decoded they are the events of the default. Raises
        `ValueError` if there is no such form or column.
        """
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        schema = self._report.shown(events, columns)
        if self._report.counts:
            for part in self._parts:
                yield from self._counted(part, max_rows, schema.names)
            return
        for listing in self._listings(max_rows):
            yield listing.batch(schema)

    def _listings(self, max_rows: int) -> Iterator[Listing]:
        limit = NO_LIMIT if self._limit is None else self._limit
        chosen = None if self._picker is None else self._picker.start(self._report, self._limit)
        for part in self._parts:
            matches = unfolded(part, limit, max_rows) if chosen is None else picked(part, chosen.picks(part), max_rows)
            for found in matches:
                yield Listing(self._report, found, part.label_sets, part.kept)

    def _counted(self, part: Part, max_rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """One row per detecting event with the number of its matches. Raises OverflowError beyond 38 digits."""
        detected, numbers = count_detections(part, self._limit)
        for start in range(0, len(detected), max_rows):
            some = numbers[start : start + max_rows]
            if any(n >= 10**38 for n in some):
                raise OverflowError(f"the number of matches of one event, {max(some)}, does not fit 38 digits")
            leading = Detected(self._report, detected[start : start + max_rows], part.kept).leading()
            amounts = pa.array(some, COUNT_TYPE)
            arrays = [*leading, *[amounts for _ in self._report.counts]]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema).select(columns)

    def to_arrow(self, *, events: EventForm = "structs", columns: Sequence[str] | None = None) -> pa.Table:
        """All matches as a table; see `to_batches`. A dictionary of events is the same for the whole table."""
        schema = self._report.shown(events, columns)
        if events == "structs" or "events" not in schema.names:
            return pa.Table.from_batches(self.to_batches(columns=columns), schema)
        listings = list(self._listings(MANY_ROWS))
        if len(listings) > 1:
            join_dictionaries(listings)
        return pa.Table.from_batches([listing.batch(schema) for listing in listings], schema)

    def aggregate(self, wanted: Mapping[str, AggregateOf]) -> pa.Table:
        """Aggregates over the matches of each detecting event, without unfolding them: one row for each such event.

        ``wanted`` names the columns that follow ``detected_at``, ``end_time`` and the partition keys. Each is

        - ``"count"``: the number of matches;
        - ``(label, attribute, function)``: ``count``, ``sum``, ``avg``, ``min`` or ``max`` of an attribute of all
          events with a label in all matches, an event counting once for each match that it is in. ``count`` counts
          values; with None for the attribute it counts events;
        - ``(label, attribute, function, over)``: ``sum``, ``avg``, ``min`` or ``max`` over the matches, of ``count`` or
          ``sum`` in each; also ``min`` or ``max`` over them of ``min`` or ``max`` in each.

        Nulls (and NaN) do not count, and what has no value at all is null, as in SQL: the sum in a match without values
        is null, and such matches do not count in what is made of the sums, whereas a count is 0. Counts, and sums of
        integers, are exact, ``decimal128(38, 0)``; sums of floats are added up in float64, in the order of the graph;
        averages are float64; ``min`` and ``max`` have the type of the attribute, or int64 for counts.

        Raises `QueryError` for labels and attributes that the query does not report, `ValueError` for what is no
        aggregate, `UnsupportedQueryError` for what cannot be had from the graph and where LIMIT or ANY leaves open
        which matches are meant, and `OverflowError` for integers of more than 38 digits.
        """
        self._refuse("aggregated")
        aggregation = Aggregation(self._report, wanted)
        batches = [aggregation.rows(part, self._limit) for part in self._parts]
        return pa.Table.from_batches(batches, aggregation.schema)

    def first(self, size: int, *, by: Order, descending: bool = False) -> Matches:
        """The first ``size`` matches of each detecting event in an order, found without unfolding the others.

        ``by`` is ``"start"`` (the position of the first event), ``"events"`` (how many there are), or ``(label,
        attribute, function)`` with ``sum``, ``min``, ``max`` or ``count`` of the attribute over the events with a
        label, None as the attribute to count events. Matches without a value (null, as in `aggregate`) come last in
        either direction. Equal ones come in the order of `to_batches`; sums of floats that differ in rounding only may
        come in any order. Raises what `aggregate` raises.
        """
        if size < 1:
            raise ValueError("there must be at least one match")
        self._refuse("ordered")
        first = First(size, by, descending)
        first.check(self._report)
        return Matches(self._parts, self._report, self._limit, first)

    def sample(self, size: int, *, seed: int | None = None, replacement: bool = False) -> Matches:
        """``size`` random matches of each detecting event, each match equally likely, without unfolding the others.

        They come in the order of `to_batches`; all of them if there are no more, unless with ``replacement``, when a
        match may be drawn several times. The same seed gives the same sample, and reading again does so in any case.
        Raises `UnsupportedQueryError` where LIMIT or ANY leaves open which matches are meant.
        """
        if size < 1:
            raise ValueError("there must be at least one match")
        self._refuse("sampled")
        chosen = random.randrange(2**63) if seed is None else seed
        return Matches(self._parts, self._report, self._limit, Sample(size, chosen, replacement))

    def _refuse(self, what: str) -> None:
        if self._picker is not None:
            raise UnsupportedQueryError(f"matches that were chosen already cannot be {what}")
        if self._report.select.projection.kind is ProjectionKind.NONE:
            raise UnsupportedQueryError(f"SELECT NONE reports detections, whose matches cannot be {what}")
        if self._report.counts and what != "aggregated":
            raise UnsupportedQueryError(f"the query reports numbers of matches, which cannot be {what}")

    def to_pandas(self) -> pd.DataFrame:
        """All matches as a pandas data frame (pandas must be installed)."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """All matches as a list of dicts."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.to_batches(4096):
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        return f"<Matches with columns {', '.join(self.schema.names)}>"
