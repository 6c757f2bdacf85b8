"""A finite stream: a table of usable events in their order, recognised where it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.events.records import DECREASES
from cerflow.engine.events.store import EventStore, WholeTable, one_batch
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.machine import ROWS, Machine
from cerflow.engine.recognize.plan import Plan
from cerflow.errors import BadRecordError

__all__ = ["FiniteStream"]


class FiniteStream:
    """The parts of the matches of one plan in a table; recognised anew by every iteration.

    ``numbers`` are the numbers of the rows in the input, by which errors name them, if they are others.
    """

    def __init__(self, plan: Plan, table: pa.Table, numbers: NDArray[np.int64] | None = None) -> None:
        self.plan = plan
        self.table = table
        self._numbers = numbers
        #: The number of events that the latest iteration has come to.
        self.reached = 0
        # Queries of some streams only number events for themselves, and keep those.
        self._store = WholeTable(table.select(plan.columns)) if plan.counts_all else None
        self._read = table.select(plan.reads) if plan.counts_all else table

    def __iter__(self) -> Iterator[Part]:
        machine = self.machine(0)
        for start in range(0, self.table.num_rows, ROWS):
            self.reached = start
            yield from self.parts(machine, start, min(start + ROWS, self.table.num_rows))
        self.reached = self.table.num_rows

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
            number = start + row
            raise BadRecordError(number if self._numbers is None else int(self._numbers[number]), DECREASES)

        return machine.process(one_batch(self._read.slice(start, stop - start)), start, refuse)
