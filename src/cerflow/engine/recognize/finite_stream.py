"""A finite stream: a table of valid events in their order, recognised in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.store import WholeTable, one_batch
from cerflow.engine.events.time_order import EventsInOrder
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.plan import Plan, columns_kept

#: So many queries read a column of text that its texts become codes.
_QUERIES = 8


class FiniteStream:
    """The parts of the matches of some plans in events of their schema; every iteration recognises them again.

    ``until`` is an array with a time before which no more events come, if one is known. The last ``clocked`` events are
    matches that the clock detected; it shows each deadline before they do. ``memory`` bounds the bytes that each driver
    needs besides the events.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        schema: Schema,
        events: EventsInOrder,
        until: pa.Array | None = None,
        clocked: int = 0,
        memory: int | None = None,
    ) -> None:
        self.events = events = replace(events, table=schema.completed(events.table))
        self._plans = plans
        self._schema = schema
        self._until = until
        self._clocked = clocked
        self.memory = memory
        #: The number of events that the latest iteration has processed.
        self.reached = 0
        self._store = WholeTable(events.table.select(columns_kept(plans, schema, whole=True)), events.order)
        # Queries that do not share events keep their own, or report the times of some.
        read = frozenset[str]().union(*(plan.reads for plan in plans.values()))
        apart = [plan for plan in plans.values() if not (plan.shares_events or plan.chooses_events)]
        read = read.union(*(plan.columns for plan in apart))
        self._read = _encoded(events.select([name for name in schema.attributes if name in read]), plans)

    def __iter__(self) -> Iterator[Part]:
        """The parts of all queries, as they are detected."""
        for _, parts in self.detected():
            yield from parts

    def soon(self) -> Iterator[Part]:
        """The same parts from smaller batches at first, so that the first part does not wait for the whole stream."""
        for _, parts in self.detected(limits.SOON_ROWS):
            yield from parts

    def detected(self, rows: int | None = None) -> Iterator[tuple[str, list[Part]]]:
        """The detections of each query, batch by batch; raises as `detected_between`.

        If ``rows`` are given, the first batch has so many, and each later one `limits.SOON_TIMES` times as many.
        """
        driver, count = self.driver(0), len(self.events)
        at = 0
        while rows is not None and at + rows < count - self._clocked:
            yield from self.detected_between(driver, at, at + rows)
            at, rows = at + rows, limits.SOON_TIMES * rows
        yield from self.detected_between(driver, at, count - self._clocked)
        driver.prompt = True
        yield from self.detected_between(driver, count - self._clocked, count)
        yield from self.detected_at_end(driver)
        self.reached = count

    def driver(self, first: int) -> Driver:
        """A driver for the events from number ``first`` on."""
        checker = RecordChecker(self._schema, "fail", in_order=False, numbers=self.events.numbers)
        checker.numbered = first
        return Driver(self._plans, checker, self._store, self.memory)

    def detected_between(
        self, driver: Driver, start: int, stop: int, *, ending: bool = False
    ) -> Iterator[tuple[str, list[Part]]]:
        """The detections of each query of a driver in its next events, ``[start, stop)``, its last ones if ``ending``.

        Raises `BadRecordError` if an attribute that measures a window decreases.
        """
        at = start
        while at < stop:
            self.reached = at
            for rows in _batches(self._read.slice(at, min(driver.rows_at_once, stop - at))):
                driver.forget(wanted=True)
                driver.end_with_next(at + rows.num_rows == (stop if ending else len(self.events)))
                yield from driver.process(rows, at).items()
                at += rows.num_rows

    def detected_at_end(self, driver: Driver) -> Iterator[tuple[str, list[Part]]]:
        """The detections of each query of a driver after all events, as time passes."""
        return iter(()) if self._until is None else driver.until(self._until)


def _encoded(table: pa.Table, plans: Mapping[str, Plan]) -> pa.Table:
    """The table with texts that many queries read as codes of a dictionary, so that all find them there.

    Texts of which there are many stay as they are.
    """
    if len(plans) < _QUERIES or not all(plan.keeps_input for plan in plans.values()):
        return table
    for k, field in enumerate(table.schema):
        readers = sum(field.name in plan.reads for plan in plans.values())
        if readers >= _QUERIES and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            column = table.column(k)
            if len(column.slice(0, limits.ROWS_WEIGHED).unique()) <= limits.ENCODED_TEXTS:
                table = table.set_column(k, field.name, column.cast(pa.string()).dictionary_encode())
    return table


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows of a table in place, none empty; more than a few chunks are copied to one batch."""
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return batches if len(batches) <= limits.FEW_CHUNKS else [one_batch(table)]
