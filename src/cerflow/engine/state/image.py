"""The image of a state: the arrays from which the whole state can be restored.

In a state many numbers point from one array into another. An image leaves out those that follow from its order, and
spare room: configurations stand in the order of their lists, classes are numbered in their order, members and words of
collections stand in the order of their use. Lists, hash tables, indexes, free slots and counters are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cerflow.engine import layout
from cerflow.engine.kernels.state.classes import GAP
from cerflow.engine.kernels.state.partitions import FREE
from cerflow.engine.layout import State
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.values.array_types import IntRows, Ints, SmallRows, Smalls

#: Columns of `Image.configs`
GROUP, PARTITION, ROOT, CLASS, COUNT = range(5)
#: Columns of `Image.config_long`
LAST, START = range(2)


class Image(NamedTuple):
    """The arrays of an image; `cerflow.engine.state.validation` says what must hold for them."""

    nodes: IntRows  # (nodes, NODE_WORDS)
    marks: IntRows  # (marks, 2)
    configs: SmallRows  # (configurations, 5), by partition and group, the latest of each list first
    config_long: IntRows  # (configurations, 2)
    values: IntRows  # (configurations, slots)
    members: Smalls  # the states of the members of all configurations of several, one configuration after the other
    member_values: IntRows  # (members, slots)
    moved: Smalls  # (partitions,)
    partition_long: IntRows  # (partitions, words)
    set_sizes: Ints  # words of each collection; the first collection is empty
    set_words: Ints


def image_of(state: State, tables: TransducerTables, order: Smalls) -> Image:
    """The image of a state whose live configurations are ``order`` (see `kernels.upkeep.list_configurations`)."""
    counters = state.counters
    config = state.config[order]
    partitions = int(counters[layout.N_PARTITIONS])
    used = state.partition[:partitions, layout.R_LIVE] != FREE
    configs = np.empty((len(order), 5), np.int32)
    configs[:, GROUP] = config[:, layout.C_GROUP]
    configs[:, PARTITION] = (np.cumsum(used) - 1)[config[:, layout.C_PARTITION]]
    configs[:, ROOT] = config[:, layout.C_ROOT]
    configs[:, CLASS] = _places_in_order(state, config)
    configs[:, COUNT] = config[:, layout.C_COUNT]
    several = configs[:, GROUP] == tables.transducer.states
    rows = _ranges(config[several, layout.C_MEMBER], configs[several, COUNT])
    image = Image(
        nodes=state.nodes[: counters[layout.N_NODES]],
        marks=state.marks[: counters[layout.N_MARKS]],
        configs=configs,
        config_long=state.config_long[order][:, [layout.L_LAST, layout.L_START]],
        values=state.values[order],
        members=state.members[rows],
        member_values=state.member_values[rows],
        moved=state.partition[:partitions, layout.R_MOVED][used],
        partition_long=state.partition_long[:partitions][used],
        set_sizes=np.zeros(1, np.int64),
        set_words=np.zeros(0, np.int64),
    )
    return _with_sets(image, state, tables)


def _places_in_order(state: State, config: Smalls) -> Smalls:
    """The number of each configuration's class among those of all partitions; 0 for the class without events."""
    own = config[:, layout.C_CLASS]
    partition_of = np.zeros(len(state.classes), np.int32)
    partition_of[own] = config[:, layout.C_PARTITION]
    held = np.unique(own[own != layout.NO_EVENTS])
    ordered = held[np.lexsort((state.classes[held, layout.K_NUMBER], partition_of[held]))]
    places = np.zeros(len(state.classes), np.int32)
    places[ordered] = 1 + np.arange(len(ordered))
    return places[own]


def _ranges(starts: Ints | Smalls, counts: Ints | Smalls) -> Ints:
    """The numbers ``[start, start + count)`` of each range, one range after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def set_holders(image: Image, tables: TransducerTables) -> list[tuple[IntRows, Ints, int, int]]:
    """Where collections are held: an array, its rows, the slot, and the register."""
    found: list[tuple[IntRows, Ints, int, int]] = []
    for q, slots in enumerate(tables.set_slots):
        if not slots:
            continue
        registers = {slot: register for register, slot in tables.slots.at[q].items()}
        rows, members = np.flatnonzero(image.configs[:, GROUP] == q), np.flatnonzero(image.members == q)
        for slot in slots:
            found.append((image.values, rows, slot, registers[slot]))
            found.append((image.member_values, members, slot, registers[slot]))
    return found


def set_widths(image: Image, tables: TransducerTables) -> Ints:
    """For each collection the words of a row; 0 if it is not held by a register."""
    widths = np.zeros(len(image.set_sizes), np.int64)
    for array, rows, slot, register in set_holders(image, tables):
        widths[array[rows, slot]] = tables.transducer.registers[register].fields
    widths[0] = 0
    return widths


def _with_sets(image: Image, state: State, tables: TransducerTables) -> Image:
    """The image with the collections that its registers hold, numbered again."""
    holders = set_holders(image, tables)
    if not holders:
        return image
    held = np.unique(np.concatenate([np.zeros(1, np.int64), *(array[rows, slot] for array, rows, slot, _ in holders)]))
    for array, rows, slot, _ in holders:
        array[rows, slot] = np.searchsorted(held, array[rows, slot])
    sizes = state.set_index[held, layout.SET_SIZE]
    return image._replace(
        set_sizes=sizes, set_words=state.set_words[_ranges(state.set_index[held, layout.SET_BEGIN], sizes)]
    )


def state_of(image: Image, tables: TransducerTables, empty: State) -> State:
    """The state that a valid image was taken of, without hashes and hash tables (`Memory.take_over` adds these).

    ``empty`` is the state of a recogniser before the first event.
    """
    configs, nodes, members = len(image.configs), len(image.nodes), len(image.members)
    partitions, sets = len(image.moved), len(image.set_sizes)
    room = _power(configs, len(empty.config))
    slots = _power(partitions, len(empty.partition))
    arena = max(len(empty.nodes), 1 if tables.detecting else _power(2 * nodes, 1))
    collections = _power(4 * sets, len(empty.set_index))
    strategy = bool(tables.arrays.options[layout.O_STRATEGY])
    classes = int(image.configs[:, CLASS].max(initial=0)) + 1
    counters = np.zeros(layout.COUNTERS, np.int64)
    counters[layout.N_NODES] = nodes
    counters[layout.N_RANK] = image.nodes.view(np.int32)[:, layout.I_RANK].max()
    counters[layout.N_MARKS] = len(image.marks)
    counters[[layout.N_CONFIGS, layout.N_LIVE]] = configs
    counters[layout.N_MEMBERS] = members
    counters[layout.N_PARTITIONS] = partitions
    counters[layout.N_SETS] = sets
    counters[layout.N_SET_WORDS] = len(image.set_words)
    counters[layout.N_CLASSES] = classes
    state = empty._replace(
        counters=counters,
        nodes=_in(image.nodes, arena),
        marks=_in(image.marks, arena),
        config=np.zeros((room, layout.CONFIG_COLUMNS), np.int32),
        config_long=np.zeros((room, layout.CONFIG_LONG_COLUMNS), np.int64),
        values=_in(image.values, room),
        free=np.zeros(room, np.int32),
        table=np.full(2 * room, -1, np.int32),
        members=_in(image.members, _power(2 * members, len(empty.members))),
        member_values=_in(image.member_values, _power(2 * members, len(empty.members))),
        heads=np.full((slots, empty.heads.shape[1]), -1, np.int32),
        partition=np.zeros((slots, layout.PARTITION_COLUMNS), np.int32),
        partition_long=_in(image.partition_long, slots),
        free_partitions=np.zeros(slots, np.int32),
        partition_table=np.full(2 * slots, -1, np.int32),
        set_index=np.zeros((collections, 3), np.int64),
        set_words=_in(image.set_words, max(2 * len(image.set_words), len(empty.set_words))),
        set_table=np.full(4 * collections, -1, np.int32),
        sizes=np.zeros_like(empty.sizes),
        index_table=np.full(2 * room if len(empty.index_table) > 1 else 1, -1, np.int32),
        tops=np.full((slots, empty.tops.shape[1]), -1, np.int32),
        classes=np.zeros((room + 1 if strategy else 1, 4), np.int64),
    )
    state.set_index[:sets, layout.SET_BEGIN] = np.cumsum(image.set_sizes) - image.set_sizes
    state.set_index[:sets, layout.SET_SIZE] = image.set_sizes
    state.partition[:partitions, layout.R_MOVED] = image.moved
    state.classes[layout.NO_EVENTS] = empty.classes[layout.NO_EVENTS]
    _link_configurations(image, state, tables)
    _link_classes(image, state, classes)
    return state


def _power(least: int, at_least: int) -> int:
    """The least ``at_least`` times a power of two that is ``least`` or more."""
    while at_least < least:
        at_least *= 2
    return at_least


def _in(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """A copy of an array with room for this number of rows."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _link_configurations(image: Image, state: State, tables: TransducerTables) -> None:
    configs = image.configs
    count = len(configs)
    numbers = np.arange(count, dtype=np.int32)
    group, partition = configs[:, GROUP], configs[:, PARTITION]
    fresh = np.append(True, (group[1:] != group[:-1]) | (partition[1:] != partition[:-1]))[:count]
    ends = np.append(fresh[1:], True)[:count]
    config = state.config[:count]
    config[:, layout.C_GROUP], config[:, layout.C_PARTITION] = group, partition
    config[:, layout.C_ROOT], config[:, layout.C_COUNT] = configs[:, ROOT], configs[:, COUNT]
    config[:, layout.C_NEXT] = np.where(ends, -1, numbers + 1)
    config[:, layout.C_PREVIOUS] = np.where(fresh, -1, numbers - 1)
    several = group == tables.transducer.states
    inside = np.where(several, configs[:, COUNT], 0)
    config[:, layout.C_MEMBER] = np.where(several, np.cumsum(inside) - inside, 0)
    state.heads[partition[fresh], group[fresh]] = numbers[fresh]
    state.config_long[:count, [layout.L_LAST, layout.L_START]] = image.config_long
    state.partition[: len(image.moved), layout.R_LIVE] = np.bincount(partition, minlength=len(image.moved))
    sizes = np.bincount(group[~several], minlength=len(state.sizes))
    indexed = tables.arrays.indexes[:, layout.X_KIND] != layout.SCAN
    state.sizes[:] = np.where(indexed, sizes, 0)


def _link_classes(image: Image, state: State, count: int) -> None:
    """Link the classes of each partition into a list, from the worst to the best."""
    own = image.configs[:, CLASS]
    state.config[: len(own), layout.C_CLASS] = own
    partition = np.full(count, -1, np.int64)
    partition[own] = image.configs[:, PARTITION]
    partition = partition[1:]
    numbers = 1 + np.arange(len(partition))
    first = np.append(True, partition[1:] != partition[:-1])[: len(numbers)]
    last = np.append(first[1:], True)[: len(numbers)]
    classes = state.classes[1:count]
    begins = np.maximum.accumulate(np.where(first, numbers, 0))
    classes[:, layout.K_NUMBER] = (numbers - begins) * GAP
    classes[:, layout.K_WORSE] = np.where(first, layout.NO_EVENTS, numbers - 1)
    classes[:, layout.K_BETTER] = np.where(last, layout.NO_EVENTS, numbers + 1)
    classes[:, layout.K_HELD] = np.bincount(own, minlength=count)[1:]
    state.partition[partition[first], layout.R_WORST] = numbers[first]
    state.partition[partition[last], layout.R_BEST] = numbers[last]
