"""A machine whose query has deadlines reads their ticks, too, between the events of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.reader import whole_numbers
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.deadlines import Deadlines
from cerflow.engine.scan.program.absence import Absence
from cerflow.engine.tables.event_room import some_events

if TYPE_CHECKING:
    from cerflow.engine.recognize.machine import Machine, RelevantEvents


def take_with_ticks(
    machine: Machine, deadlines: Deadlines, reading: RelevantEvents, refuse: Callable[[int], None]
) -> list[Part]:
    """Process the events that `Machine.read` has found, with the ticks of deadlines."""
    at_rows, first = reading.at_rows, reading.first
    whole, accepted, column = reading.whole, reading.accepted, machine.plan.position
    # All rows of the input have the positions that results have.
    numbers = range(accepted, accepted + whole.num_rows) if column is None else whole_numbers(whole.column(column))
    numbered = BatchRows(whole, machine.tables.schema, numbers, machine.reader.unit)
    times = deadlines.times(numbered)
    events = some_events(reading.events, slice(reading.found))
    scan = machine.reader.scan
    how, apart = scan.program.absence, scan.absences

    def moments(rows: Ints) -> tuple[pa.Array, pa.Array]:
        time = machine.tables.schema.time
        shown = pa.nulls(len(rows)) if time is None else whole.column(time).take(array_of_numbers(rows))
        return array_of_numbers(numbered.positions_at(rows)[0]), shown

    def read(some: Ints, found: EventArrays, rows: int) -> list[Part]:
        """Process the events with some numbers, and the ticks of the deadlines that the first ``rows`` rows show."""
        at = at_rows[some]
        deadlines.add(found, times, at)
        found, count, shown, sources = deadlines.woven_in(times[:rows], found, at, moments)
        return machine.advance(found, count, lambda n: refuse(int(at[sources[n]])), shown) if count else []

    if apart is None or not isinstance(how, Absence):
        return read(np.arange(len(at_rows)), events, whole.num_rows)
    # The automaton reads what crosses the borders of the batch.
    parts, before = list[Part](), int(np.searchsorted(at_rows, apart.last, "right"))
    if apart.last >= 0:
        front = some_events(events, slice(before))
        chosen, signatures = apart.read_before(how, machine.tables, front, at_rows[:before])
        front = some_events(front, chosen)._replace(signature=signatures)
        parts = read(chosen, front, apart.last + 1)
    if len(apart.rows):
        parts.append(Part(apart.matches(numbered, first), machine.store.kept(), machine.tables.label_sets))
    if before < len(at_rows):
        after, at = some_events(events, slice(before, None)), at_rows[before:]
        deadlines.add(after, times, at)
        parts += machine.advance(after, len(at), lambda n: refuse(int(at[n])))
    return parts


def nobody(_: int) -> None:
    """Refuse no event, as there is none."""
    raise AssertionError("no event is refused where there is none")
