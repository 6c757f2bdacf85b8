"""The state of a recogniser before the first event, and its initial memory."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.state.classes import WORST
from cerflow.engine.kernels.table import call_predicate, choose, enter, group_by_labels, let_go, settle
from cerflow.engine.layout import Ranking, Scratch, State
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.values.array_types import Ints

#: The options that hold the addresses of kernels that the step calls.
_BY_ADDRESS = {
    layout.O_PROGRAMS: call_predicate,
    layout.O_SETS: group_by_labels,
    layout.O_CHOOSE: choose,
    layout.O_SETTLE: settle,
    layout.O_LET_GO: let_go,
    layout.O_ENTER: enter,
}


def first_state(tables: TransducerTables, nodes: int) -> State:
    """The state before any event, with room for this many nodes."""
    slots = int(tables.arrays.options[layout.O_SLOTS])
    groups = tables.transducer.states + 1
    words = int(tables.arrays.options[layout.O_KEY])
    index = tables.arrays.indexes
    counters = np.zeros(layout.COUNTERS, np.int64)
    counters[layout.N_NODES] = 1
    counters[layout.N_MARKS] = 1
    counters[layout.N_SETS] = 1
    counters[layout.N_CLASSES] = 1
    forgets = int(tables.arrays.options[layout.O_FORGET])
    partitions = 1
    # Only strategies have classes besides the one without events; a configuration holds each of these.
    classes = 65 if tables.arrays.options[layout.O_STRATEGY] else 1
    if not tables.partitioned:
        counters[layout.N_PARTITIONS] = 1
    nodes = 1 if tables.detecting else nodes
    width = layout.LIST_NODE_WORDS if tables.arrays.options[layout.O_PICK] else layout.NODE_WORDS
    state = State(
        counters=counters,
        nodes=_first_nodes(nodes, width),
        marks=np.zeros((nodes, 2), np.int64),
        config=np.zeros((64, layout.CONFIG_COLUMNS), np.int32),
        config_long=np.zeros((64, layout.CONFIG_LONG_COLUMNS), np.int64),
        values=np.zeros((64, slots), np.int64),
        free=np.zeros(64, np.int32),
        table=np.full(128, -1, np.int32),
        members=np.zeros(64, np.int32),
        member_values=np.zeros((64, slots), np.int64),
        heads=np.full((partitions, groups), -1, np.int32),
        partition=np.zeros((partitions, layout.PARTITION_COLUMNS), np.int32),
        partition_long=np.full((partitions, 2 + words + len(tables.arrays.checked) + forgets), layout.NULL),
        free_partitions=np.zeros(partitions, np.int32),
        partition_table=np.full(2, -1, np.int32),
        set_index=np.zeros((64, 3), np.int64),
        set_words=np.zeros(256, np.int64),
        set_table=np.full(256, -1, np.int32),
        detections=np.zeros((256, 4), np.int64),
        sizes=np.zeros(groups - 1, np.int32),
        indexing=np.zeros(groups - 1, np.int32),
        index_table=np.full(128 if layout.EQUAL in index[:, layout.X_KIND] else 1, -1, np.int32),
        tops=np.full((partitions, 1 + index[:, layout.X_NUMBER].max(initial=-1)), -1, np.int32),
        classes=np.zeros((classes, 4), np.int64),
    )
    state.marks[layout.NO_MARK, layout.M_POSITION] = -1
    state.classes[layout.NO_EVENTS, layout.K_NUMBER] = WORST
    return state


def enter_addresses(tables: TransducerTables) -> None:
    """Give the step the addresses of kernels that only some queries need."""
    for option, kernel in _BY_ADDRESS.items():
        tables.arrays.options[option] = kernel.address


def first_scratch(capacity: int, slots: int, tables: TransducerTables) -> Scratch:
    """Room for the work on one event: updates with this many register slots."""
    members = max(capacity, 4 * tables.transducer.states)
    code = len(tables.arrays.code) + 4
    fields = max([1, *(r.fields for r in tables.transducer.registers)])
    return Scratch(
        updates=np.zeros((capacity, layout.UPDATE_COLUMNS), np.int32),
        starts=np.zeros(capacity, np.int64),
        update_values=np.zeros((capacity, slots), np.int64),
        results=np.zeros((capacity, 6), np.int32),
        result_values=np.zeros((capacity, slots), np.int64),
        members=np.zeros(members, np.int32),
        member_values=np.zeros((members, slots), np.int64),
        removed=np.zeros(capacity, np.int32),
        path=np.zeros(256, np.int32),
        stack=np.zeros(code, np.int64),
        odometer=np.zeros(max(fields, len(tables.transducer.registers)), np.int64),
        row=np.zeros(fields, np.int64),
        registers=np.zeros((1, slots), np.int64),
        answers=np.zeros(3, np.int64),
    )


def first_ranking(capacity: int, slots: int) -> Ranking:
    """Room for choosing among this many configurations."""
    return Ranking(
        entries=np.zeros((capacity, 5), np.int64),
        order=np.zeros(capacity, np.int32),
        covers=np.zeros((capacity, 6), np.int64),
        cover_values=np.zeros((capacity, slots), np.int64),
        cover_table=np.full(4 * capacity, -1, np.int32),
    )


def _first_nodes(capacity: int, width: int) -> Ints:
    nodes = np.zeros((capacity, width), np.int64)
    small = nodes.view(np.int32)
    nodes[layout.BOTTOM, layout.W_MEASURE] = layout.NOT_BEGUN
    small[layout.BOTTOM, [layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT]] = -1
    small[layout.BOTTOM, layout.I_RANK] = 1
    return nodes
