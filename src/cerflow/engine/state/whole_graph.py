"""The match graph of events whose matches have only been counted so far."""

from __future__ import annotations

from cerflow.base.array_types import Ints, Smalls
from cerflow.engine import layout
from cerflow.engine.state.memory import Memory
from cerflow.engine.state.room import grown
from cerflow.engine.tables.event_room import room_for
from cerflow.engine.tables.transducer_tables import TransducerTables


def whole_graph(tables: TransducerTables, signatures: Smalls, positions: Ints) -> tuple[Ints, Ints, Ints]:
    """All detections of some events, as `Memory.take_detections` gives them.

    The events have only signatures and positions, and runs are not open before them.
    """
    memory = Memory(tables)
    events = room_for(tables, len(signatures), windowed=False, narrowed=False)._replace(
        signature=signatures, position=positions
    )
    at = 0
    while True:
        reason, at = memory.advance(events, at, len(signatures))
        if reason == layout.DONE:
            found = memory.take_detections()
            assert found is not None
            return found
        if reason == layout.FULL_NODES:
            # Keep all nodes, as the detections so far need them.
            nodes, marks = memory.state.nodes, memory.state.marks
            memory.state = memory.state._replace(nodes=grown(nodes, 2 * len(nodes)), marks=grown(marks, 2 * len(marks)))
        else:
            memory.make_room(reason, events, at)
