"""The arrays of a state, and its compact form: to find room, to restart with other numbers, and for a snapshot.

In that nothing is unused: configurations stand in the order of their lists, classes in their own order, members and
words of collections in the order of their use. All that follows from the kept columns of its arrays (see
`cerflow.engine.layout.State`) is computed by the kernel `restore_links`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Ints, Smalls
from cerflow.base.errors import MemoryLimitError
from cerflow.engine import layout
from cerflow.engine.declared_arrays import Sizes, declarations, empty_arrays
from cerflow.engine.kernels.state.classes import WORST
from cerflow.engine.kernels.state.partitions import FREE
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
        "trees": 1 + int(tables.arrays.indexes[:, layout.X_NUMBER].max(initial=-1)),
        "node words": layout.LIST_NODE_WORDS if options[layout.O_PICK] else layout.NODE_WORDS,
        "partition words": 2 + int(options[layout.O_KEY] + options[layout.O_FORGET]) + len(tables.arrays.checked),
        "label sets": len(tables.label_sets),
        "ranks": 64,
        "truth values": 2,
    }


def empty_state(tables: TransducerTables, room: Sizes) -> State:
    """A state with ``room`` for these numbers of nodes, configurations, …; without keys it has one partition."""
    configs, equal = room["configs"], layout.EQUAL in tables.arrays.indexes[:, layout.X_KIND]
    partitions = room["partitions"] if tables.partitioned else 1
    sizes = {
        **room,
        "partitions": partitions,
        **widths(tables),
        # Tables that are probed with a mask: their sizes are powers of two, as those of the room are.
        "places of configs": 2 * configs,
        "places of partitions": 2 * partitions,
        "places of sets": 4 * room["sets"],
        "places in indexes": 2 * configs if equal else 1,
        # Only strategies have classes besides the one without events; a configuration holds each of these.
        "classes": configs + 1 if tables.arrays.options[layout.O_STRATEGY] else 1,
    }
    return empty_arrays(State, sizes)


def first_state(tables: TransducerTables, nodes: int) -> State:
    """The state before any event, with room for this many nodes."""
    state = empty_state(tables, {**FIRST, "nodes": 1 if tables.detecting else nodes})
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


def grown(array: NDArray[Any], rows: int = 0) -> NDArray[Any]:
    """A copy of an array with this many rows, or twice as many; further ones are zero."""
    larger = np.zeros((rows or 2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def kept_arrays(state: State) -> dict[str, NDArray[Any]]:
    """The arrays that a snapshot keeps of a compact state, by their names there."""
    found: dict[str, NDArray[Any]] = {}
    for name, array in ARRAYS.items():
        if array.kept:
            found[array.name or name] = getattr(state, name)[: state.counters[array.used]][array.at]
    return found


class RegisterPlace(NamedTuple):
    """Where registers are: the array, its rows, the slot, and the number of the register."""

    array: str
    rows: Ints
    slot: int
    register: int


class Used(NamedTuple):
    """What of a state is in use: rows by the counters of their arrays, new numbers by the sizes that `Ref` names."""

    rows: dict[int, Ints | Smalls]
    numbers: dict[str, Ints | Smalls]


def places(groups: Smalls, members: Smalls, slots_of: list[list[int]], tables: TransducerTables) -> list[RegisterPlace]:
    """Where the registers in some slots of each state are, by the groups of configurations and states of members."""
    found: list[RegisterPlace] = []
    for q, slots in enumerate(slots_of):
        if not slots:
            continue
        both = [("values", np.flatnonzero(groups == q)), ("member_values", np.flatnonzero(members == q))]
        for slot in slots:
            # A register has one slot or more.
            register = max((first, number) for number, first in tables.slots[q].items() if first <= slot)[1]
            found += [RegisterPlace(array, rows, slot, register) for array, rows in both]
    return found


def in_use(state: State, tables: TransducerTables, order: Smalls, classes: Smalls) -> Used:
    """What of a state is in use, by the live configurations in ``order``, and new numbers of ``classes``."""
    config, counters = state.config, state.counters
    used = state.partition[: counters[layout.N_PARTITIONS], layout.R_LIVE] != FREE
    groups, rows = config[order, layout.C_GROUP], np.zeros(0, np.int64)
    if tables.grouped:
        several = order[groups == tables.transducer.states]
        rows = _ranges(config[several, layout.C_MEMBER], config[several, layout.C_COUNT])
    sets = np.zeros(1, np.int64)
    for place in places(groups, state.members[rows], tables.set_slots, tables):
        where = order if place.array == "values" else rows
        sets = np.append(sets, getattr(state, place.array)[where[place.rows], place.slot])
    sets = np.unique(sets)
    held: dict[int, Ints | Smalls] = {
        layout.N_CONFIGS: order,
        layout.N_MEMBERS: rows,
        layout.N_PARTITIONS: np.flatnonzero(used),
        layout.N_SETS: sets,
        layout.N_SET_WORDS: _ranges(state.set_index[sets, layout.SET_BEGIN], state.set_index[sets, layout.SET_SIZE]),
    }
    return Used(held, {"partitions": np.cumsum(used) - 1, "classes": classes})


def compacted(state: State, tables: TransducerTables, used: Used, room: Sizes) -> State:
    """The compact form of a state, in arrays with this room; nodes, marks and detections are those of the state."""
    new = moved(state, tables, used.rows, room)
    for name, array in COMPACTED.items():
        for ref, column in array.ref_columns(getattr(new, name)[: new.counters[array.used]]):
            if ref.to in used.numbers:
                column[:] = used.numbers[ref.to][column]
    sets = used.rows[layout.N_SETS]
    for place in places_in(new, tables, tables.set_slots):
        values = getattr(new, place.array)
        values[place.rows, place.slot] = np.searchsorted(sets, values[place.rows, place.slot])
    return new


def moved(state: State, tables: TransducerTables, rows: Mapping[int, Ints | Smalls], room: Sizes) -> State:
    """A state with other room, and these rows of the kept arrays, by their counters; otherwise the first ones."""
    new = empty_state(tables, {**room, "nodes": 1, "detections": 1})
    new = new._replace(nodes=state.nodes, marks=state.marks, detections=state.detections)
    counters = new.counters
    counters[:] = state.counters
    counters[[layout.N_FREE, layout.N_FREE_PARTITIONS, layout.N_FREE_CLASS]] = 0
    for name, array in COMPACTED.items():
        old, here = getattr(state, name), getattr(new, name)
        if array.used in rows:
            np.take(old, rows[array.used], axis=0, out=here[: len(rows[array.used])], mode="clip")
        else:
            here[: counters[array.used]] = old[: counters[array.used]]
    for counter, some in rows.items():
        counters[counter] = len(some)
    return new


def places_in(state: State, tables: TransducerTables, slots_of: list[list[int]]) -> list[RegisterPlace]:
    """Where the registers in some slots of each state are in a compact state."""
    groups = state.config[: state.counters[layout.N_CONFIGS], layout.C_GROUP]
    return places(groups, state.members[: state.counters[layout.N_MEMBERS]], slots_of, tables)


def check_guesses(state: State, tables: TransducerTables) -> None:
    """Raise `MemoryLimitError` if runs of one partition have too many guesses of a collection's content.

    The state is compact.
    """
    config = state.config[: state.counters[layout.N_CONFIGS]]
    several = config[config[:, layout.C_GROUP] == tables.transducer.states]
    owners = {
        "values": config[:, layout.C_PARTITION].astype(np.int64),
        "member_values": np.repeat(several[:, layout.C_PARTITION], several[:, layout.C_COUNT]).astype(np.int64),
    }
    most = limits.GUESSED_TOGETHER if tables.grouped else limits.GUESSED_CONTENTS
    for number in tables.guessing:
        contents = np.zeros(0, np.int64)
        for place in places_in(state, tables, [[at[number]] if number in at else [] for at in tables.slots]):
            values = getattr(state, place.array)[place.rows, place.slot]
            contents = np.append(contents, (owners[place.array][place.rows] << 32) + values)
        held = np.unique(contents) >> 32
        if len(held) > most and np.bincount(held).max() > most:
            meaning = tables.transducer.registers[number].meaning
            raise MemoryLimitError(
                f"partial matches keep more than {most:,} different sets of values ({meaning}), "
                "one for each choice of events, and these double with each further event: a small window (WITHIN), "
                "PARTITION BY, or comparisons other than <> need fewer (see 'explain')"
            )


def with_few_strings(state: State, tables: TransducerTables) -> list[str]:
    """Renumber the strings that registers and keys of a compact state hold, in their order; returns all it needs."""
    keys = state.partition_long[: state.counters[layout.N_PARTITIONS]]
    held = [(keys, np.arange(len(keys)), 1 + k) for k, kind in enumerate(tables.key_kinds) if kind.coded]
    for place in places_in(state, tables, tables.string_slots):
        held.append((getattr(state, place.array), place.rows, place.slot))
    codes = [array[rows, slot] for array, rows, slot in held]
    used = np.unique(np.concatenate([np.arange(tables.own_strings), *codes]))
    used = used[(used >= 0) & (used < len(tables.strings))]
    for (array, rows, slot), old in zip(held, codes):
        array[rows, slot] = np.where(old >= 0, np.searchsorted(used, old), old)
    return [tables.strings.texts[k] for k in used.tolist()]


def _ranges(starts: Ints | Smalls, counts: Ints | Smalls) -> Ints:
    """The numbers ``[start, start + count)`` of each range, one range after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
