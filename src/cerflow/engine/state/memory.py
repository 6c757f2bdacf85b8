"""The memory of the engine: it holds the state as arrays, enlarges them, and cleans them up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cerflow import limits
from cerflow.engine import layout
from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.base.shared_arrays import WITHOUT_END, SharedArrays
from cerflow.engine.kernels.table import (
    advance,
    collect,
    compact_members,
    enter_sets,
    list_configurations,
    rebuild_tables,
    rehash,
    sweep,
)
from cerflow.engine.layout import EventArrays, State
from cerflow.engine.state.first_state import enter_addresses, first_ranking, first_scratch, first_state
from cerflow.engine.state.image import Image, image_of, set_widths, state_of
from cerflow.engine.stopping import wait_for
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.errors import MemoryLimitError
from cerflow.values.array_types import Ints, Smalls

W = TypeVar("W", np.int32, np.int64)


def grown(array: NDArray[W], rows: int) -> NDArray[W]:
    """A copy of an array with this many rows; further ones are zero."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class Memory:
    """The arrays of one recogniser. Arrays are replaced, never resized, so holders of old nodes can still read them."""

    def __init__(self, tables: TransducerTables) -> None:
        slots = int(tables.arrays.options[layout.O_SLOTS])
        self.state = first_state(tables, limits.FIRST_NODES)
        self.scratch = first_scratch(64, slots, tables)
        self.ranking = first_ranking(64, slots)
        self._slots = slots
        self._tables = tables
        self._last_request = (-1, -1)
        self._swept = 0
        self._measured: tuple[State | None, int] = (None, 0)
        #: A state, its copy, and the bytes of the arrays of both.
        self._brief: tuple[State | None, State | None, list[tuple[memoryview, memoryview]]] = (None, None, [])
        #: The nodes of which matches or a copy of the state hold some.
        self._handed_out: Ints | None = None
        enter_addresses(tables)
        self._shared = SharedArrays()
        self._row = Row(advance, self._shared.address)
        self._words, self._step = self._row.words, self._row.call
        #: The same for one event, which releasing Python's lock would double.
        self._step_once = self._row.call_held
        self._shared.allow(limits.CALL_WORK)
        #: The groups of arrays that kernels see at present.
        self._shown: tuple[object, ...] = (None,) * 5
        self._address()

    def begin_anew(self) -> None:
        """Forget all events, but keep the memory."""
        state, first = self.state, first_state(self._tables, 1)
        if state.nodes is self._handed_out:
            state = state._replace(nodes=np.empty_like(state.nodes), marks=np.empty_like(state.marks))
        for array, new in zip(state, first):
            # Nodes and marks are written before they are read.
            _overwrite(array, new, fill=array is not state.nodes and array is not state.marks)
        self.state = state
        self._last_request = (-1, -1)

    def copied(self) -> State:
        """A copy of the state; it shares nodes and marks, as written ones never change."""
        state = self.state
        self._handed_out = state.nodes
        return State._make((state[0].copy(), state.nodes, state.marks, *[array.copy() for array in state[3:]]))

    def copied_briefly(self) -> State:
        """A copy that is needed only until the next such copy is made: it takes a fifth of the time."""
        if self.changing > limits.COPIED_BYTES:
            return self.copied()
        of, copy, views = self._brief
        if of is self.state and copy is not None:
            self._handed_out = of.nodes
            for new, old in views:
                new[:] = old
            return copy
        copy = self.copied()
        both: Iterable[tuple[Any, Any]] = zip(copy, self.state)
        pairs = [(new, old) for new, old in both if new is not old and new.size]
        self._brief = self.state, copy, [(memoryview(new).cast("B"), memoryview(old).cast("B")) for new, old in pairs]
        return copy

    @property
    def changing(self) -> int:
        """The bytes of the state that `copied` copies."""
        if self._measured[0] is not self.state:
            self._measured = self.state, sum(array.nbytes for array in self.state[3:])
        return self._measured[1]

    @property
    def bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for group in (self.state, self.scratch, self.ranking) for array in group)

    def advance(self, events: EventArrays, at: int, end: int) -> tuple[int, int]:
        """Process events from number ``at`` to ``end``; returns the reason for stopping, and the first one left.

        The same ``events`` object as in the last call is cheapest, even if its arrays now hold other events. Long work
        can be stopped (see `cerflow.engine.stopping`); then the state is incomplete.
        """
        self._address(events)
        words = self._words
        words[1], words[2] = at, end
        reason: int = self._step_once() if end - at == 1 else self._step()
        if reason == layout.DONE:
            return reason, end
        if reason == layout.PAUSED:
            words[1] = words[3]
            reason = self._advance_long()
        return reason, words[3]

    def _advance_long(self) -> int:
        shared = self._shared
        shared.allow(WITHOUT_END)
        try:
            reason: int = wait_for(self._step, lambda: shared.allow(-1))
            return reason
        finally:
            shared.allow(limits.CALL_WORK)

    def _address(self, events: EventArrays | None = None) -> int:
        """The address of the shared arrays, brought up to date; without events it keeps the last ones."""
        shared = self._shared
        state, arrays, scratch, ranking, shown = self._shown
        if (
            self.state is not state
            or self._tables.arrays is not arrays
            or self.scratch is not scratch
            or self.ranking is not ranking
            or events is not shown
        ):
            now = (self.state, self._tables.arrays, self.scratch, self.ranking, events or shown)
            before_all, self._shown = self._shown, (None,) * 5
            for group, before in zip(now, before_all):
                if group is not None and group is not before:
                    shared.hold(group)
            self._shown = now
        return shared.address

    def make_room(self, lacking: int, events: EventArrays, k: int) -> None:
        """Make room for event ``k``; ``lacking`` says which room the kernel lacked.

        All new arrays are made before anything changes, so after an error the state is whole and means the same. Raises
        `MemoryLimitError` if there are too many collections.
        """
        # If cleaning up is not enough for an event, the kernel asks again, and the array grows.
        request = (lacking, int(events.position[k]))
        again = request == self._last_request
        self._last_request = request
        if lacking == layout.FULL_SCRATCH:
            scratch = first_scratch(2 * len(self.scratch.updates), self._slots, self._tables)
            self.scratch, self.ranking = scratch, first_ranking(2 * len(self.ranking.entries), self._slots)
        elif lacking == layout.FULL_NODES:
            if self._tables.arrays.options[layout.O_FORGET]:
                self._sweep(events, k)
            self._collect_nodes(int(events.bound[k]), grow=again)
        elif lacking == layout.FULL_CONFIGS:
            self._free_configurations(events, k)
        elif lacking == layout.FULL_MEMBERS:
            self._compact_members()
        elif lacking == layout.FULL_PARTITIONS:
            self._free_partitions(events, k)
        elif lacking == layout.FULL_SETS:
            self._clean_sets(grow=again)
        else:
            detections = self.state.detections
            self.state = self.state._replace(detections=grown(detections, 2 * len(detections)))

    def take_detections(self) -> tuple[Ints, Ints, Ints] | None:
        """The detections since the last call, with their nodes and marks; None without any."""
        state = self.state
        n = state.counters[layout.N_DETECTIONS]
        if not n:
            return None
        state.counters[layout.N_DETECTIONS] = 0
        self._handed_out = state.nodes
        return (
            state.detections[:n].copy(),
            state.nodes[: int(state.counters[layout.N_NODES])],
            state.marks[: int(state.counters[layout.N_MARKS])],
        )

    @property
    def occupied(self) -> int:
        """The states in which runs may be, as bits; -1 (all) unless a state alone describes a run."""
        tables = self._tables
        if tables.grouped or tables.transducer.states > layout.STATE_BITS:
            return -1
        partitions = int(self.state.counters[layout.N_PARTITIONS]) if tables.partitioned else 1
        filled = np.flatnonzero((self.state.heads[:partitions, :-1] >= 0).any(axis=0))
        return sum(1 << q for q in {*filled.tolist(), *tables.transducer.initial})

    def live_positions(self, bound: int) -> Ints:
        """The positions of all events that may still be part of a match that is reported."""
        if not self._tables.detecting:
            self._collect_nodes(bound)
        n = int(self.state.counters[layout.N_MARKS])
        positions = self.state.marks[1:n, layout.M_POSITION]
        # Marks are in the order of events.
        return positions[np.diff(positions, prepend=-1) > 0]

    @property
    def _bound_is_global(self) -> bool:
        return self._tables.global_window

    def _collect_nodes(self, bound: int, *, grow: bool = False) -> None:
        """Copy the live nodes to a new arena, which is larger if they fill more than a quarter of the old one."""
        state = self.state
        configs = int(state.counters[layout.N_CONFIGS])
        top = int(state.counters[layout.N_NODES])
        roots = state.config[:configs, layout.C_ROOT].astype(np.int64)
        living = np.flatnonzero((roots >= 0) & (state.config[:configs, layout.C_DEAD] == 0))
        roots = np.ascontiguousarray(roots[living])
        # Unless one window holds for all partitions, the last event of each says where its window begins.
        bounds = np.full(len(roots), bound)
        if not self._bound_is_global:
            bounds = np.ascontiguousarray(state.partition_long[state.config[living, layout.C_PARTITION], -1])
        # Kernels read only what they have written to the new arrays.
        new, marks = np.empty_like(state.nodes), np.empty_like(state.marks)
        forward = np.full(top, -1, np.int32)
        used = np.zeros(int(state.counters[layout.N_MARKS]), np.int32)
        stack = np.empty(top, np.int32)
        nodes = (state.nodes, state.nodes.view(np.int32), new, new.view(np.int32))
        count, mark_count = collect(*nodes, state.marks, marks, roots, bounds, forward, used, stack)
        # Nodes keep their order.
        new[:count, layout.NODE_WORDS :] = state.nodes[np.flatnonzero(forward >= 0), layout.NODE_WORDS :]
        if grow or 4 * count > len(new):
            size = 2 * len(new)
            while size < 4 * count:
                size *= 2
            new, marks = grown(new[:count], size), grown(marks[:mark_count], size)
        state.config[living, layout.C_ROOT] = roots
        state.counters[layout.N_NODES] = count
        state.counters[layout.N_MARKS] = mark_count
        self.state = state._replace(nodes=new, marks=marks)

    def _free_configurations(self, events: EventArrays, k: int) -> None:
        often = self._sweep(events, k)
        state = self.state
        capacity = len(state.config)
        needed = len(self.scratch.updates)
        free = capacity - int(state.counters[layout.N_CONFIGS]) + int(state.counters[layout.N_FREE])
        if 2 * free > capacity and free > needed and not (often and capacity < limits.SWEPT_ROOM):
            return
        while capacity < 2 * (len(state.config) - free) + needed:
            capacity *= 2
        capacity = max(capacity, 2 * len(state.config))
        larger = state._replace(
            config=grown(state.config, capacity),
            config_long=grown(state.config_long, capacity),
            values=grown(state.values, capacity),
            free=grown(state.free, capacity),
            table=np.full(2 * capacity, -1, np.int32),
            index_table=np.full(2 * capacity if len(state.index_table) > 1 else 1, -1, np.int32),
        )
        if self._tables.arrays.options[layout.O_STRATEGY]:
            larger = larger._replace(classes=grown(state.classes, capacity + 1))
        self.state = larger
        self._rebuild()

    def _sweep(self, events: EventArrays, k: int) -> bool:
        """Free what can be freed before event ``k``; returns whether a large batch needs that often.

        Then more room is cheaper. Small pushes copy the state each time, so it stays small for them.
        """
        bound = int(events.bound[k]) if self._bound_is_global else layout.NO_BOUND
        sweep(self._address(events), bound, k)
        often = limits.SWEPT_EVENTS // 4 < self._swept <= k < self._swept + limits.SWEPT_EVENTS
        self._swept = k
        return often

    def _rebuild(self) -> None:
        self.state.table.fill(-1)
        self.state.partition_table.fill(-1)
        self.state.index_table.fill(-1)
        self.state.tops.fill(-1)
        rebuild_tables(self._address())

    def _free_partitions(self, events: EventArrays, k: int) -> None:
        often = self._sweep(events, k)
        state = self.state
        capacity = len(state.partition)
        free = capacity - int(state.counters[layout.N_PARTITIONS]) + int(state.counters[layout.N_FREE_PARTITIONS])
        if 2 * free > capacity and not (often and capacity < limits.SWEPT_ROOM):
            return
        heads = np.full((2 * capacity, state.heads.shape[1]), -1, np.int32)
        heads[:capacity] = state.heads
        self.state = state._replace(
            heads=heads,
            tops=np.full((2 * capacity, state.tops.shape[1]), -1, np.int32),
            partition=grown(state.partition, 2 * capacity),
            partition_long=grown(state.partition_long, 2 * capacity),
            free_partitions=grown(state.free_partitions, 2 * capacity),
            partition_table=np.full(4 * capacity, -1, np.int32),
        )
        self._rebuild()

    def _compact_members(self) -> None:
        state = self.state
        count = len(self._owners())
        capacity = max(len(state.members), limits.MEMBERS)
        while capacity < 2 * count + len(self.scratch.members):
            capacity *= 2
        compact = state._replace(
            members=np.zeros(capacity, np.int32),
            member_values=np.zeros((capacity, state.member_values.shape[1]), np.int64),
        )
        compact_members(self._address(), compact.members, compact.member_values)
        state.counters[layout.N_MEMBERS] = count
        self.state = compact

    def _owners(self) -> Smalls:
        """The partition of each member of the live configurations of several, in their order."""
        config = self.state.config[: int(self.state.counters[layout.N_CONFIGS])]
        several = config[:, layout.C_GROUP] == self._tables.transducer.states
        rows = config[several & (config[:, layout.C_ROOT] >= 0)]
        return np.repeat(rows[:, layout.C_PARTITION], rows[:, layout.C_COUNT])

    def _clean_sets(self, *, grow: bool) -> None:
        """Renumber the collections that registers still hold; make room for many more, as this visits all of them."""
        holders = self._set_holders()
        # Finding the holders replaces the state, as it moves members.
        state = self.state
        self._limit_guesses()
        old = np.unique(np.concatenate([array[rows, slot] for array, rows, slot in holders] or [np.zeros(0, np.int64)]))
        old = np.union1d(old, [0])
        # The table below is probed with a mask, so its size is a power of two.
        capacity = max(len(state.set_index), limits.COLLECTIONS)
        # Collections that may grow without bound are cleaned more often.
        room = 2 if self._tables.guessing else 8
        while capacity < room * len(old):
            capacity *= 2
        index = np.zeros((capacity, 3), np.int64)
        sizes = state.set_index[old, layout.SET_SIZE]
        words = np.zeros(max(len(state.set_words), 8 * int(sizes.sum()), 4 * limits.COLLECTIONS), np.int64)
        if grow or 2 * len(old) > len(state.set_index) or 2 * int(sizes.sum()) > len(state.set_words):
            words = np.zeros(2 * len(words), np.int64)
            index = np.zeros((2 * len(index), 3), np.int64)
        table = np.full(4 * len(index), -1, np.int32)
        begins, total = np.cumsum(sizes) - sizes, int(sizes.sum())
        index[: len(old)] = np.column_stack((begins, sizes, state.set_index[old, layout.SET_HASH]))
        words[:total] = state.set_words[
            np.repeat(state.set_index[old, layout.SET_BEGIN] - begins, sizes) + np.arange(total)
        ]
        _enter(table, index[1 : len(old), layout.SET_HASH])
        cleaned = state._replace(set_index=index, set_words=words, set_table=table)
        renumbered = [np.searchsorted(old, array[rows, slot]) for array, rows, slot in holders]
        for (array, rows, slot), numbers in zip(holders, renumbered):
            array[rows, slot] = numbers
        state.counters[layout.N_SETS] = len(old)
        state.counters[layout.N_SET_WORDS] = total
        self.state = cleaned
        if holders:
            self.rehash()

    def _limit_guesses(self) -> None:
        """Raise `MemoryLimitError` if runs of one partition have too many guesses of a collection's content."""
        state, tables = self.state, self._tables
        owners: Ints = np.concatenate([state.config[:, layout.C_PARTITION], self._owners()], dtype=np.int64)
        first_member = len(state.config)
        most = limits.GUESSED_TOGETHER if tables.grouped else limits.GUESSED_CONTENTS
        for number in tables.guessing:
            held = self._places([[at[number]] if number in at else [] for at in tables.slots.at])
            pairs = [
                (owners[rows + (0 if array is self.state.values else first_member)] << 32) + array[rows, slot]
                for array, rows, slot in held
            ]
            contents = np.unique(np.concatenate([np.zeros(0, np.int64), *pairs])) >> 32
            if len(contents) > most and np.bincount(contents).max() > most:
                meaning = tables.transducer.registers[number].meaning
                raise MemoryLimitError(
                    f"partial matches keep more than {most:,} different sets of values ({meaning}), "
                    "one for each choice of events, and these double with each further event: a small window (WITHIN), "
                    "PARTITION BY, or comparisons other than <> need fewer (see 'explain')"
                )

    def _set_holders(self) -> list[tuple[Ints, Ints, int]]:
        return self.holders(self._tables.set_slots)

    def holders(self, slots_of: list[list[int]]) -> list[tuple[Ints, Ints, int]]:
        """Where the registers in some slots of each state are: (array, rows, slot)."""
        self._compact_members()
        return self._places(slots_of)

    def _places(self, slots_of: list[list[int]]) -> list[tuple[Ints, Ints, int]]:
        state = self.state
        configs = int(state.counters[layout.N_CONFIGS])
        alive = state.config[:configs, layout.C_ROOT] >= 0
        holders: list[tuple[Ints, Ints, int]] = []
        compact = int(state.counters[layout.N_MEMBERS])
        for q, slots in enumerate(slots_of):
            rows = np.flatnonzero(alive & (state.config[:configs, layout.C_GROUP] == q))
            members = np.flatnonzero(state.members[:compact] == q)
            for slot in slots:
                holders.append((state.values, rows, slot))
                holders.append((state.member_values, members, slot))
        return holders

    def image(self) -> Image:
        """The image of the state, for a snapshot."""
        order = np.empty(int(self.state.counters[layout.N_LIVE]), np.int32)
        count = list_configurations(self._address(), order)
        return image_of(self.state, self._tables, order[:count])

    def take_over(self, image: Image) -> None:
        """Continue from an image, which must be valid; see `cerflow.engine.state.validation`."""
        self.state = state_of(image, self._tables, Memory(self._tables).state)
        enter_sets(self._address(), set_widths(image, self._tables))
        self.rehash()

    def rehash(self) -> None:
        """Compute the hashes of configurations and all hash tables again, after registers have changed."""
        rehash(self._address())
        self._rebuild()


def _overwrite(array: Any, new: Any, *, fill: bool) -> None:
    """Write the rows of another array, and with ``fill`` its last one into all further rows."""
    array[: len(new)] = new
    if fill:
        array[len(new) :] = new[-1]


def _enter(table: Smalls, hashes: Ints) -> None:
    """Enter the numbers from 1 on into an empty table by their hashes; the table's size is a power of two."""
    mask = len(table) - 1
    slots, left = hashes & mask, np.arange(len(hashes))
    while len(left):
        # The first of those that hit one free slot gets it; the others try the next slot.
        free = left[table[slots[left]] < 0]
        taken, first = np.unique(slots[free], return_index=True)
        table[taken] = free[first] + 1
        left = left[table[slots[left]] != left + 1]
        slots[left] = (slots[left] + 1) & mask
