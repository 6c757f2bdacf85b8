"""Room for the state, and for the work on one event, as their arrays are declared in `cerflow.engine.layout`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerflow.engine import layout
from cerflow.engine.declared_arrays import Sizes, declarations, empty_arrays
from cerflow.engine.kernels.state.classes import WORST
from cerflow.engine.layout import Ranking, Scratch, State
from cerflow.engine.tables.transducer_tables import TransducerTables

ARRAYS = declarations(State)
#: Those that compacting makes anew.
COMPACTED = {name: array for name, array in ARRAYS.items() if array.kept and not array.shared}
#: The room of the first state.
FIRST: Sizes = {"configs": 64, "partitions": 16, "members": 64, "sets": 64, "words": 256, "detections": 256}


def widths(tables: TransducerTables) -> dict[str, int]:
    """The sizes that a query determines."""
    options, states = tables.arrays.options, tables.transducer.states
    return {
        "states": states,
        "heads": states + 1,
        "groups": states + 1 if tables.grouped else states,
        "slots": int(options[layout.O_SLOTS]),
        "heaps": 1 + int(tables.arrays.indexes[:, layout.X_NUMBER].max(initial=-1)),
        "node words": layout.LIST_NODE_WORDS if options[layout.O_PICK] else layout.NODE_WORDS,
        "partition words": 2 + int(options[layout.O_KEY] + options[layout.O_FORGET]) + len(tables.arrays.checked),
        "label sets": len(tables.label_sets),
        "ranks": 64,
        "truth values": 2,
    }


def empty_state(tables: TransducerTables, room: Sizes) -> State:
    """A state with room for so many nodes, configurations, partitions, members, sets, words and detections."""
    configs, equal = room["configs"], layout.EQUAL in tables.arrays.indexes[:, layout.X_KIND]
    sizes = {
        **room,
        **widths(tables),
        # Tables that are probed with a mask: their sizes are powers of two, as those of the room are.
        "places of configs": 2 * configs,
        "places of partitions": 2 * room["partitions"],
        "places of sets": 4 * room["sets"],
        "places in indexes": 2 * configs if equal else 1,
        # Only strategies have classes besides the one without events; a configuration holds each of these.
        "classes": configs + 1 if tables.arrays.options[layout.O_STRATEGY] else 1,
    }
    return empty_arrays(State, sizes)


def first_state(tables: TransducerTables, nodes: int) -> State:
    """The state before any event, with room for this many nodes."""
    partitions = FIRST["partitions"] if tables.partitioned else 1
    state = empty_state(tables, {**FIRST, "partitions": partitions, "nodes": 1 if tables.detecting else nodes})
    begin(state, tables)
    return state


def begin(state: State, tables: TransducerTables) -> None:
    """Write what an empty state must have before the first event."""
    ones = [layout.N_NODES, layout.N_MARKS, layout.N_SETS, layout.N_CLASSES]
    state.counters[ones if tables.partitioned else [*ones, layout.N_PARTITIONS]] = 1
    small = state.nodes.view(np.int32)
    small[layout.BOTTOM] = 0
    small[layout.BOTTOM, [layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT]] = -1
    small[layout.BOTTOM, layout.I_RANK] = 1
    state.nodes[layout.BOTTOM, layout.W_MEASURE] = layout.NOT_BEGUN
    state.marks[layout.NO_MARK] = -1, 0
    state.classes[layout.NO_EVENTS, layout.K_NUMBER] = WORST


def first_scratch(capacity: int, tables: TransducerTables) -> Scratch:
    """Room for the work on one event, with this many updates."""
    fields = max([1, *(r.fields for r in tables.transducer.registers)])
    sizes = {
        **widths(tables),
        "updates": capacity,
        "members": max(capacity, 4 * tables.transducer.states),
        "stack": len(tables.arrays.code) + 4,
        "odometer": max(fields, len(tables.transducer.registers)),
        "fields": fields,
    }
    return empty_arrays(Scratch, sizes)


def first_ranking(capacity: int, tables: TransducerTables) -> Ranking:
    """Room for choosing among this many configurations."""
    return empty_arrays(Ranking, {**widths(tables), "entries": capacity, "places of covers": 4 * capacity})


def room_of(state: State) -> dict[str, int]:
    """How many configurations, partitions, members, sets and words a state has room for."""
    return {str(array.rows): len(getattr(state, name)) for name, array in COMPACTED.items()}


def grown(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """A copy of an array with this many rows; further ones are zero."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def kept_arrays(state: State) -> dict[str, NDArray[Any]]:
    """The arrays that a snapshot keeps of a compact state, by their names there."""
    found: dict[str, NDArray[Any]] = {}
    for name, array in ARRAYS.items():
        if array.kept:
            found[array.name or name] = getattr(state, name)[: state.counters[array.used]][array.at]
    return found
