"""The compact form of a state, which is made to find room, to restart with other numbers, and for a snapshot.

In it nothing is unused: configurations stand in the order of their lists, classes in their own order, members and
words of collections in the order of their use. All that follows from the kept columns of its arrays (see
`cerflow.engine.layout.State`) is computed by the kernel `restore_links`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import Ints, Smalls
from cerflow.base.errors import MemoryLimitError
from cerflow.engine import layout
from cerflow.engine.declared_arrays import Sizes
from cerflow.engine.kernels.state.partitions import FREE
from cerflow.engine.layout import State
from cerflow.engine.state.room import COMPACTED, empty_state
from cerflow.engine.tables.transducer_tables import TransducerTables


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
            register = max((first, number) for number, first in tables.slots.at[q].items() if first <= slot)[1]
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
        for place in places_in(state, tables, [[at[number]] if number in at else [] for at in tables.slots.at]):
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
    held += [
        (getattr(state, array), rows, slot) for array, rows, slot, _ in places_in(state, tables, tables.string_slots)
    ]
    used = np.unique(
        np.concatenate([np.arange(tables.own_strings), *(array[rows, slot] for array, rows, slot in held)])
    )
    used = used[(used >= 0) & (used < len(tables.strings))]
    for array, rows, slot in held:
        codes = array[rows, slot]
        array[rows, slot] = np.where(codes >= 0, np.searchsorted(used, codes), codes)
    return [tables.strings.texts[k] for k in used.tolist()]


def _ranges(starts: Ints | Smalls, counts: Ints | Smalls) -> Ints:
    """The numbers ``[start, start + count)`` of each range, one range after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
