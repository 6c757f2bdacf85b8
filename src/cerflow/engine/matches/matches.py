"""Matches: kept in shared form, and unfolded only when they are read."""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import count, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.arrow_columns import python_rows
from cerflow.base.errors import ArgumentError, TooManyMatchesError, UnsupportedQueryError, at_least_one, expect
from cerflow.engine.events.time_order import EventsInOrder
from cerflow.engine.matches.aggregation import AggregateOf, Aggregation, counted_rows
from cerflow.engine.matches.counting import detecting, digits, matches_of_part, readable_number, row_count, told_if_none
from cerflow.engine.matches.display import SHOWN, as_html, drawn, page
from cerflow.engine.matches.listing import Listing, join_dictionaries
from cerflow.engine.matches.picking import First, NumberRange, Order, Passing, Picked, Picker, Sample
from cerflow.engine.matches.unfolding import Part, RereadParts, chosen_parts, unfolded
from cerflow.engine.results.report import CountForm, EventForm, Report
from cerflow.language.select import ProjectionKind

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

    from cerflow.look.viewing.plots import PlotKind

#: Matches per record batch by default.
ROWS = 65_536


class Matches:
    """The matches of a query, in the order of their detection.

    Matches are unfolded only when they are read, in batches of bounded size, so they need not fit into memory.
    Iterating gives one dict per match, with the columns of ``schema``.

    The truth value says whether there is any match, without unfolding. ``len`` is the number of items that iterating
    gives. ``matches[i]`` and ``matches[i:j]`` find matches by number, without unfolding those before. Libraries that
    read Arrow streams (Polars, DuckDB, pyarrow, pandas) read matches.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        report: Report,
        limit: int | None,
        picker: Picker | None = None,
        *,
        before: int = 0,
        stream: EventsInOrder | None = None,
        tell_none: Callable[[], None] | None = None,
    ) -> None:
        #: The number of matches of the query that were reported before.
        self._before = before
        #: The events in their order, if the stream is finite.
        self._stream = stream
        self._found = parts
        #: The parts as they are read: ``tell_none`` is called once when all were read and there was none.
        self._tell_none = tell = None if tell_none is None else cache(tell_none)
        self._told = parts if tell is None else RereadParts(partial(told_if_none, parts, tell))
        self._parts = RereadParts(partial(chosen_parts, self._told))
        self._report = report
        self._limit = limit
        self._picker = picker
        self._number: int | None = None

    @property
    def parts(self) -> Iterable[Part]:
        """The parts of the result, before unfolding (for other parts of cerflow)."""
        return self._found

    def announced(self, tell: Callable[[int, bool], None]) -> Matches:
        """The same matches; ``tell`` is called before unfolding with the number of rows that follow, part by part.

        It gets the number and whether it is exact, or rounded (see `counting.row_count`).
        """

        def told() -> Iterator[Part]:
            for part in self._parts:
                tell(*row_count(part, self._limit, bool(self._report.counts)))
                yield part

        return self._like(RereadParts(told), self._picker)

    def held(self) -> Matches:
        """The same matches, recognised now and kept in their shared form (for other parts of cerflow)."""
        return self._like(list(self._parts), self._picker)

    def reached(self) -> int:
        """The number of events read so far, if known (for other parts of cerflow)."""
        return getattr(self._found, "reached", 0)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._report.schema

    def shown_schema(self, *, flat: bool = False, counts: CountForm = "decimal") -> pa.Schema:
        """The schema of the batches of `to_batches` (for other parts of cerflow)."""
        return self._report.shown("structs", None, flat, counts)

    def count(self) -> int:
        """The number of matches, computed once on the shared graph without unfolding them."""
        if self._number is None:
            self._number = self._counted()
        return self._number

    def _counted(self) -> int:
        if not self._found:
            return 0
        if isinstance(self._picker, NumberRange):
            if self._report.counts:
                last = self.schema.names[-1]
                return sum(int(n) for batch in self.to_batches(columns=[last]) for n in batch[last].to_pylist())
            return self._picker.size(self._like(self._parts, self._picker.of).count())
        if self._picker is not None:
            return sum(len(listing) for listing in self._listings(ROWS))
        return sum(matches_of_part(part, self._limit) for part in self._to_count())

    def rows(self) -> int:
        """The number of rows: one per match, or one per detecting event if matches are only counted."""
        if not self._report.counts:
            return self.count()
        total = sum(len(detecting(part.graph.detections)[0]) for part in self._told)
        return self._range.size(total)

    def __bool__(self) -> bool:
        if isinstance(self._picker, NumberRange):
            return next(iter(self.to_batches(1, columns=["detected_at"])), None) is not None
        soon, parts = getattr(self._found, "soon", None), self._told
        if soon is not None:
            parts = soon() if self._tell_none is None else told_if_none(soon(), self._tell_none)
        # Every detection has a match.
        return any(len(part.graph.detections) for part in parts)

    def __len__(self) -> int:
        rows = self.rows()
        if rows > sys.maxsize:
            raise TooManyMatchesError(f"there are {digits(rows)} matches, more than len() can return; use .count()")
        return rows

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> Matches: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | Matches:
        if isinstance(at, slice):
            return self._span(at)
        number = _number(at)
        place = number if number >= 0 else self.rows() + number
        found = [] if place < 0 else self._numbered(place, place + 1, 1).to_pylist()
        if not found:
            raise IndexError(f"there is no match number {number}, there are {digits(self.rows())}")
        return found[0]

    def _span(self, at: slice) -> Matches:
        step = 1 if at.step is None else _number(at.step)
        if step < 1:
            raise ArgumentError(f"matches are read forwards, so the step of a slice is 1 or more, not {step}")
        ends = [None if end is None else _number(end) for end in (at.start, at.stop)]
        if any(end is not None and end < 0 for end in ends):
            rows = self.rows()
            ends = [end if end is None or end >= 0 else max(0, rows + end) for end in ends]
        return self._numbered(ends[0] or 0, ends[1], step)

    def _numbered(self, begin: int, stop: int | None, step: int) -> Matches:
        return self._chosen(self._range.among(begin, stop, step))

    @property
    def _range(self) -> NumberRange:
        """The numbers that are chosen, at first all."""
        return self._picker if isinstance(self._picker, NumberRange) else NumberRange(0, None, 1, self._picker)

    def _chosen(self, picker: Picker) -> Matches:
        return self._like(self._parts, picker)

    def _like(self, parts: Iterable[Part], picker: Picker | None) -> Matches:
        return Matches(parts, self._report, self._limit, picker, before=self._before, stream=self._stream)

    def to_batches(
        self,
        max_rows: int = ROWS,
        *,
        flat: bool = False,
        events: EventForm = "structs",
        columns: Sequence[str] | None = None,
        counts: CountForm = "decimal",
    ) -> Iterator[pa.RecordBatch]:
        """Unfold the matches into record batches of at most ``max_rows`` rows, with some columns or all.

        With ``flat`` there is a column ``label_field`` for every label and every field of its events (position, type
        and attributes) instead of the nested ``events``: a value if a match has at most one event of the label, a list
        if the query allows several. Names of event types have columns if an event may have no other label.

        With ``events="dictionary"`` the events are dictionary-encoded: each event of a batch is in its dictionary once,
        with its attributes, and a match holds 32-bit numbers. Decoded, they equal the events of the default. With
        ``counts="text"`` the numbers of ``COUNT(*)`` are text, exact at any length; as decimals they have at most 38
        digits, and `TooManyMatchesError` is raised beyond. Raises `ArgumentError` for an unknown form or column.
        """
        # Larger batches are not faster, and buffers have room for this number of rows.
        max_rows = min(at_least_one(max_rows, "max_rows"), limits.LARGE_RESULT_ROWS)
        yield from self._batches(self._report.shown(events, columns, flat, counts), counts, max_rows)

    def _batches(self, schema: pa.Schema, counts: CountForm, max_rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        if self._report.counts:
            passing = Passing(self._range)
            for part in self._to_count():
                for batch in counted_rows(part, self._report, self._limit, counts, passing, max_rows):
                    yield batch.select(schema.names)
                if passing.done:
                    return
            return
        for listing in self._listings(max_rows):
            yield listing.batch(schema)

    def _to_count(self) -> Iterator[Part]:
        """The parts, with the strategy applied if the number of matches depends on it."""
        for part in self._told:
            yield from [part] if part.alone else chosen_parts([part])

    def _listings(self, max_rows: int) -> Iterator[Listing]:
        picker = self._picker
        numbers = count(self._before + 1 + self._range.begin, self._range.step)
        unfolding: Picked
        if picker is None:
            unfolding = ((part, unfolded(part, self._limit, max_rows)) for part in self._parts)
        else:
            unfolding = picker.picks(self._parts, self._report, self._limit, max_rows)
        for part, matches in unfolding:
            for found in matches:
                own = list(islice(numbers, len(found) if self._report.numbers_matches else 0))
                if own and own[-1] >= 2**63:
                    last = readable_number(own[-1])
                    raise TooManyMatchesError(f"the number of a match, {last}, does not fit 64 bits")
                yield Listing(self._report, found, part, np.array(own, np.int64))

    def to_arrow(
        self,
        *,
        flat: bool = False,
        events: EventForm = "structs",
        columns: Sequence[str] | None = None,
        counts: CountForm = "decimal",
    ) -> pa.Table:
        """All matches as a table; see `to_batches`. A dictionary of events is the same for the whole table."""
        schema = self._report.shown(events, columns, flat, counts)
        coded = events == "dictionary" and "events" in schema.names
        batches = self._with_one_dictionary(schema) if coded else self._batches(schema, counts)
        return pa.Table.from_batches(batches, schema)

    def _with_one_dictionary(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        listings = list(self._listings(limits.LARGE_RESULT_ROWS))
        if len(listings) > 1:
            join_dictionaries(listings)
        return (listing.batch(schema) for listing in listings)

    def aggregate(self, wanted: Mapping[str, AggregateOf]) -> pa.Table:
        """Aggregates over the matches of each detecting event, without unfolding them: one row per detecting event.

        ``wanted`` names the columns that follow ``detected_at``, ``detected_time``, ``end_time`` and the partition
        keys. Each is

        - ``"count"``: the number of matches;
        - ``(label, attribute, function)``: ``count``, ``sum``, ``avg``, ``min`` or ``max`` of an attribute over all
          events with a label in all matches; an event counts once for each match that contains it. ``count`` counts
          values, and with None for the attribute it counts events;
        - ``(label, attribute, function, over)``: ``sum``, ``avg``, ``min`` or ``max`` over the matches, of ``count`` or
          ``sum`` in each match; also ``min`` or ``max`` over the matches, of ``min`` or ``max`` in each.

        Nulls (and NaN) do not count, as in SQL. An aggregate without any value is null, and a match whose sum is null
        does not count over the matches; counts are 0 instead. Counts and sums of integers are exact:
        ``decimal128(38, 0)``. Sums of floats are float64, added in the order of the graph. Averages are float64.
        ``min`` and ``max`` have the type of the attribute, or int64 for counts. Sums and averages of durations are
        ``duration[us]``, null beyond 64 bits.

        Raises `QueryError` for labels and attributes that the query does not report, `ArgumentError` for an invalid
        aggregate, `UnsupportedQueryError` for one that cannot be computed on the graph, and if LIMIT or ANY leave out
        matches, and `TooManyMatchesError` for integers of more than 38 digits.
        """
        self._refuse("aggregated")
        aggregation = Aggregation(self._report, wanted)
        batches = [aggregation.rows(part, self._limit) for part in self._parts]
        return pa.Table.from_batches(batches, aggregation.schema)

    def first(self, size: int, *, by: Order, descending: bool = False) -> Matches:
        """The first ``size`` matches of each detecting event in an order, found without unfolding the others.

        ``by`` is ``"start"`` (the position of the first event), ``"events"`` (the number of events), or
        ``(label, attribute, function)`` with ``sum``, ``min``, ``max`` or ``count`` of the attribute over the events
        with a label; None as the attribute counts events. Matches without a value (null, as in `aggregate`) come last
        in either direction. Equal matches come in the order of `to_batches`; sums of floats that differ only by
        rounding may come in any order. Raises the errors of `aggregate`.
        """
        first = First(at_least_one(size, "the number of matches"), by, descending)
        self._refuse("ordered")
        first.check(self._report)
        return self._chosen(first)

    def sample(self, size: int, *, seed: int | None = None, replacement: bool = False) -> Matches:
        """``size`` random matches of each detecting event, all equally likely, without unfolding the others.

        They come in the order of `to_batches`. If an event has at most ``size`` matches, all are returned; with
        ``replacement`` a match may be drawn several times instead. The same seed gives the same sample, and reading the
        sample again always gives the same matches. Raises `UnsupportedQueryError` if LIMIT or ANY leave out
        matches.
        """
        size = at_least_one(size, "the number of matches")
        self._refuse("sampled")
        seed = random.randrange(2**63) if seed is None else seed
        expect(seed, (int, float, str, bytes), "the seed must be a number or a text")
        return self._chosen(Sample(size, seed, replacement))

    def _refuse(self, what: str) -> None:
        if self._picker is not None:
            raise UnsupportedQueryError(f"matches that were chosen already cannot be {what}")
        if self._report.select.projection.kind is ProjectionKind.NONE:
            raise UnsupportedQueryError(f"SELECT NONE reports detections, whose matches cannot be {what}")
        if self._report.counts and what != "aggregated":
            raise UnsupportedQueryError(f"the query reports numbers of matches, which cannot be {what}")
        if self._report.numbers_matches and what != "aggregated":
            raise UnsupportedQueryError(
                f"MATCH_NUMBER() numbers matches in the order of reporting, and they cannot be {what} without that",
                hint="Leave MATCH_NUMBER() out.",
            )

    def to_pandas(self, *, flat: bool = False, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All matches as a pandas data frame (pandas must be installed); see `to_batches`."""
        frame: pd.DataFrame = self.to_arrow(flat=flat, columns=columns).to_pandas()
        return frame

    def to_polars(self, *, flat: bool = False, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """All matches as a Polars data frame (Polars must be installed); see `to_batches`."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow(flat=flat, columns=columns))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """All matches as a list of dicts."""
        # Not list(self), which would ask for the length first.
        return [match for match in self]  # noqa: C416

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        events: Any = None,
        title: str | None = None,
        limit: int | None = None,
    ) -> str:
        """The matches in their stream as one HTML page, which needs no network; it is also written to ``path``.

        The page shows the events in lanes on a time axis, the matches as lines between them, and a table. It has the
        first ``limit`` matches (100,000 unless given) and says so if there are more. ``events`` is the stream, as in
        `Query.match`; matches of a recogniser need it, because they do not contain the stream. Without it, events
        outside matches are left out. Raises `InputError` for matches without positions, or of other events.
        """
        text = page(self, self._report, self._stream, events, title, limit)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def show(self, *, events: Any = None, title: str | None = None, limit: int | None = None) -> None:
        """Show the page of `to_html`: in the notebook, or else in the browser, from a temporary file."""
        from cerflow.look.viewing.page import open_page

        open_page(self.to_html(events=events, title=title, limit=limit))

    def plot(self, kind: PlotKind = "over_time", *, ax: Axes | None = None) -> Axes:
        """Plot the matches with matplotlib (``pip install 'cerflow[plots]'``) and return its axes.

        ``kind`` is ``"over_time"`` (the number of matches by the time of their detection), ``"duration"`` (from the
        first to the last event) or ``"size"`` (events per match). The first does not unfold the matches; the others
        take the first million of them and say so. ``ax`` are axes to draw on.
        """
        return drawn(self, self._report, kind, ax)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The matches as an Arrow stream, unfolded while it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches()).__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.to_batches(4096):
            yield from python_rows(batch)

    def first_as_html(self, limit: int = SHOWN) -> str:
        """The first matches as a table of HTML, with the number of all; notebooks show the first 20 in this way."""
        return as_html(self._report, self[:limit].to_pylist(), self.rows())

    _repr_html_ = first_as_html

    def __repr__(self) -> str:
        return f"<Matches with columns {', '.join(self.schema.names)}>"


def _number(given: object) -> int:
    try:
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"the index of a match must be an integer or a slice, not {given!r}") from None
