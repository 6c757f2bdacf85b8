"""A finite stream: a table of usable events in their order, recognised where it is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cerflow.engine.machine import ROWS, Machine
from cerflow.engine.plan import Plan
from cerflow.engine.records import DECREASES
from cerflow.engine.store import EventStore, WholeTable, one_batch
from cerflow.engine.unfolding import Part
from cerflow.errors import BadRecordError

__all__ = ["FiniteStream"]


class FiniteStream:
    """The parts of the matches of one plan in a table; recognised anew by every iteration."""

    def __init__(self, plan: Plan, table: pa.Table) -> None:
        self.plan = plan
        self.table = table
        # Queries of some streams only number events for themselves, and keep those.
        self._store = WholeTable(table.select(plan.columns)) if plan.counts_all else None
        self._read = table.select(plan.reads) if plan.counts_all else table

    def __iter__(self) -> Iterator[Part]:
        machine = self.machine(0)
        for start in range(0, self.table.num_rows, ROWS):
            yield from self.parts(machine, start, min(start + ROWS, self.table.num_rows))

    def machine(self, first: int) -> Machine:
        """A machine for the events from number ``first`` on."""
        store = EventStore(self.plan.stored) if self._store is None else self._store
        machine = Machine(self.plan, store)
        machine.next = first
        return machine

    def parts(self, machine: Machine, start: int, stop: int) -> list[Part]:
        """What a machine detects in the events ``[start, stop)``.

        Raises `BadRecordError` if an attribute that measures a window decreases.
        """

        def refuse(row: int) -> None:
            raise BadRecordError(start + row, DECREASES)

        return machine.process(one_batch(self._read.slice(start, stop - start)), start, refuse)
