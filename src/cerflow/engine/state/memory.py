"""The memory of the engine: it holds the state as arrays, makes room in them, and copies them."""

from __future__ import annotations

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import Bytes, Ints, Smalls
from cerflow.engine import layout
from cerflow.engine.declared_arrays import block_of
from cerflow.engine.kernels import table as kernels
from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.base.shared_arrays import WITHOUT_END, SharedArrays
from cerflow.engine.layout import EventArrays, State
from cerflow.engine.state import compact as arrays
from cerflow.engine.stopping import wait_for
from cerflow.engine.tables.event_room import room_for
from cerflow.engine.tables.transducer_tables import TransducerTables

#: What is freed and taken again: the reason that it lacks, its room, the counters of those ever taken and of free ones.
_REUSED = (
    (layout.FULL_CONFIGS, "configs", layout.N_CONFIGS, layout.N_FREE),
    (layout.FULL_PARTITIONS, "partitions", layout.N_PARTITIONS, layout.N_FREE_PARTITIONS),
)
#: The options with the addresses of kernels that only some queries need.
_BY_ADDRESS = {
    layout.O_PROGRAMS: kernels.call_predicate,
    layout.O_SETS: kernels.group_by_labels,
    layout.O_CHOOSE: kernels.choose,
    layout.O_SETTLE: kernels.settle,
    layout.O_LET_GO: kernels.let_go,
    layout.O_ENTER: kernels.enter,
}
#: A state grows by at most this factor at once, where many events are left of a batch.
_AT_ONCE = 64
#: Partitions that are looked at together for the states in which runs are.
_LOOKED_AT = 1 << 12


class Memory:
    """The arrays of one recogniser. Arrays are replaced, never resized, so holders of old nodes can still read them."""

    def __init__(self, tables: TransducerTables) -> None:
        self.state = arrays.first_state(tables, limits.FIRST_NODES)
        self.scratch = arrays.first_scratch(64, tables)
        self.ranking = arrays.first_ranking(64, tables)
        self._tables = tables
        self._last_request = (-1, -1)
        self._swept = 0
        #: The nodes of which matches or a copy of the state hold some.
        self._handed_out: Ints | None = None
        for option, kernel in _BY_ADDRESS.items():
            tables.arrays.options[option] = kernel.address
        self._shared = SharedArrays(tables.shared)
        self._row = Row(kernels.advance, self._shared.address)
        self._words, self._step = self._row.words, self._row.call
        #: The same for one event, which releasing Python's lock would double.
        self._step_once = self._row.call_held
        self._shared.allow(limits.CALL_WORK)
        #: The groups of arrays that kernels see at present.
        self._shown: tuple[object, ...] = (None,) * 5
        self._address()

    def begin_anew(self) -> None:
        """Forget all events, but keep the memory."""
        state = self.state
        if state.nodes is self._handed_out:
            state = state._replace(nodes=np.empty_like(state.nodes), marks=np.empty_like(state.marks))
        # Nodes and marks are written before they are read.
        for name, array in arrays.ARRAYS.items():
            if not array.shared:
                getattr(state, name).fill(array.fill)
        arrays.begin(state, self._tables)
        self.state = state
        self._last_request = (-1, -1)

    def saved(self) -> Bytes:
        """A copy of the bytes of the state that change, for `StateBefore`."""
        # Nodes and marks are not among them, as written ones never change.
        self._handed_out = self.state.nodes
        return block_of(self.state.counters).copy()

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
            self._shared.allow(WITHOUT_END)
            try:
                reason = wait_for(self._step, lambda: self._shared.allow(-1))
            finally:
                self._shared.allow(limits.CALL_WORK)
        return reason, words[3]

    def _address(self, events: EventArrays | None = None) -> int:
        """The address of the shared arrays, brought up to date; without events it keeps the last ones."""
        shared = self._shared
        state, tables, scratch, ranking, shown = self._shown
        # For each push, and each single event.
        if (
            self.state is not state
            or self._tables.arrays is not tables
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
            scratch = arrays.first_scratch(2 * len(self.scratch.updates), self._tables)
            self.scratch, self.ranking = scratch, arrays.first_ranking(2 * len(self.ranking.entries), self._tables)
        elif lacking == layout.FULL_NODES:
            if self._tables.arrays.options[layout.O_FORGET]:
                self._sweep(events, k)
            self._collect_nodes(self._bound(events, k), grow=again)
        elif lacking == layout.FULL_DETECTIONS:
            self.state = self.state._replace(detections=arrays.grown(self.state.detections))
        else:
            self._make_room(lacking, self._sweep(events, k), again=again)

    def take_detections(self) -> tuple[Ints, Ints, Ints] | None:
        """The detections since the last call, with their nodes and marks; None without any."""
        state, counters = self.state, self.state.counters
        n = counters[layout.N_DETECTIONS]
        if not n:
            return None
        counters[layout.N_DETECTIONS] = 0
        self._handed_out = state.nodes
        nodes, marks = int(counters[layout.N_NODES]), int(counters[layout.N_MARKS])
        return state.detections[:n].copy(), state.nodes[:nodes], state.marks[:marks]

    @property
    def occupied(self) -> int:
        """The states in which runs may be, as bits; -1 (all) unless a state alone describes a run."""
        tables = self._tables
        first = first_occupied(tables)
        if tables.grouped or first == -1:
            return -1
        partitions = int(self.state.counters[layout.N_PARTITIONS]) if tables.partitioned else 1
        heads, found = self.state.heads[:partitions, :-1], first
        if partitions == 1:
            # The masks of NumPy take as long as a small batch.
            return found | sum(1 << q for q, head in enumerate(heads[0].tolist()) if head >= 0)
        # In a large state runs are soon found in all of them.
        for start in range(0, partitions, _LOOKED_AT):
            filled = (heads[start : start + _LOOKED_AT] >= 0).any(axis=0)
            found |= sum(1 << q for q in np.flatnonzero(filled).tolist())
            if found == (1 << heads.shape[1]) - 1:
                break
        return found

    def live_positions(self, bound: int) -> Ints:
        """The positions of all events that may still be part of a match that is reported."""
        if not self._tables.detecting:
            self._collect_nodes(bound)
        n = int(self.state.counters[layout.N_MARKS])
        positions = self.state.marks[1:n, layout.M_POSITION]
        # Marks are in the order of events.
        return positions[np.diff(positions, prepend=-1) > 0]

    def _collect_nodes(self, bound: int, *, grow: bool = False) -> None:
        """Copy the live nodes to a new arena, which is larger if they fill more than a quarter of the old one."""
        state = self.state
        used = np.zeros(int(state.counters[layout.N_MARKS]), np.int32)
        forward = np.full(int(state.counters[layout.N_NODES]), -1, np.int32)
        # Kernels read only what they have written to the new arrays.
        new, marks, stack = np.empty_like(state.nodes), np.empty_like(state.marks), np.empty_like(forward)
        count, mark_count = kernels.collect(self._address(), bound, new, marks, forward, used, stack)
        if grow or 4 * count > len(new):
            size = _power(4 * count, 2 * len(new))
            new, marks = arrays.grown(new[:count], size), arrays.grown(marks[:mark_count], size)
        roots = state.config[: state.counters[layout.N_CONFIGS], layout.C_ROOT]
        roots[:] = np.where(roots >= 0, forward[roots], roots)
        state.counters[layout.N_NODES] = count
        state.counters[layout.N_MARKS] = mark_count
        self.state = state._replace(nodes=new, marks=marks)

    def _make_room(self, lacking: int, often: bool, *, again: bool) -> None:
        """Compact the state in larger arrays, unless enough is free after a sweep; these may come ``often``."""
        state, tables = self.state, self._tables
        room = arrays.room_of(state)
        # Where many events are left of a batch, much more is soon needed.
        left = int(self._words[2] - self._words[3])
        for reason, name, taken, freed in _REUSED:
            capacity, needed = room[name], len(self.scratch.updates) if name == "configs" else 0
            live = int(state.counters[taken] - state.counters[freed])
            free = capacity - live
            if 2 * free <= capacity or free <= needed or (lacking == reason and often and capacity < limits.SWEPT_ROOM):
                if tables.partitioned or name == "configs":
                    soon = min(max(left // 8, 2 * capacity), _AT_ONCE * capacity)
                    room[name] = _power(max(2 * live + needed, soon), 2 * capacity)
            elif lacking == reason:
                return
        used = self._in_use()
        members, sets, words = (len(used.rows[n]) for n in (layout.N_MEMBERS, layout.N_SETS, layout.N_SET_WORDS))
        if lacking == layout.FULL_MEMBERS:
            room["members"] = _power(2 * members + len(self.scratch.members), max(room["members"], limits.MEMBERS))
        elif lacking == layout.FULL_SETS:
            grow = 1 + (again or 2 * sets > room["sets"] or 2 * words > room["words"])
            # Finding the sets that are held visits all; those that may grow without bound are cleaned more often.
            many = (2 if tables.guessing else 8) * sets
            room["sets"] = grow * _power(many, max(room["sets"], limits.COLLECTIONS))
            room["words"] = grow * max(room["words"], 8 * words, 4 * limits.COLLECTIONS)
        compact = arrays.compacted(state, tables, used, room)
        if lacking == layout.FULL_SETS:
            arrays.check_guesses(compact, tables)
        self._use(compact)

    def _in_use(self) -> arrays.Used:
        """What of the state is in use."""
        state = self.state
        order, classes = np.empty(len(state.config), np.int32), np.zeros(len(state.classes), np.int32)
        return arrays.in_use(state, self._tables, order[: kernels.list_used(self._address(), order, classes)], classes)

    def _use(self, compact: State) -> None:
        """Continue with a compact state, after computing all that follows from it."""
        self.state = compact
        kernels.restore_links(self._address())

    def _bound(self, events: EventArrays, k: int) -> int:
        """Where the window of event ``k`` begins if it is that of all partitions, which else know their own."""
        return int(events.bound[k]) if self._tables.global_window else layout.NO_BOUND

    def _sweep(self, events: EventArrays, k: int) -> bool:
        """Free what can be freed before event ``k``; returns whether a large batch needs that often.

        Then more room is cheaper. Small pushes copy the state each time, so it stays small for them.
        """
        kernels.sweep(self._address(events), self._bound(events, k), k)
        often = limits.SWEPT_EVENTS // 4 < self._swept <= k < self._swept + limits.SWEPT_EVENTS
        self._swept = k
        return often

    def forget_strings(self) -> None:
        """Renumber the strings that registers and partition keys still hold; their codes keep their order."""
        tables, strings = self._tables, self._tables.strings
        if tables.collects_strings:
            # Collections are shared by content, with or without strings, so their words cannot be renumbered.
            strings.replace(strings.texts)
            return
        compact = arrays.compacted(self.state, tables, self._in_use(), arrays.room_of(self.state))
        # All arrays are made before the first change, as memory may run out.
        strings.replace(arrays.with_few_strings(compact, tables))
        self._use(compact)

    def image(self) -> State:
        """The compact form of the state, for a snapshot."""
        used = self._in_use()
        room = {str(array.rows): len(used.rows[array.used]) for array in arrays.COMPACTED.values()}
        return arrays.compacted(self.state, self._tables, used, room)

    def take_over(self, image: State) -> None:
        """Continue from an image, which must be valid; see `cerflow.engine.state.validation`."""
        tables, nodes = self._tables, len(image.nodes)
        # Sweeps free configurations and partitions all the time; members, sets and words only when their room is full.
        times = {"members": 2, "sets": 4, "words": 2}
        given = arrays.room_of(image).items()
        room = {name: _power(times.get(name, 1) * rows, arrays.FIRST[name]) for name, rows in given}
        first = arrays.first_state(tables, max(limits.FIRST_NODES, _power(2 * nodes, 1)))
        first.nodes[:nodes], first.marks[: len(image.marks)] = image.nodes, image.marks
        image.counters[layout.N_RANK] = image.nodes.view(np.int32)[:, layout.I_RANK].max()
        image = image._replace(nodes=first.nodes, marks=first.marks, detections=first.detections)
        self._use(arrays.moved(image, tables, {}, room))


def _power(least: int, at_least: int) -> int:
    """The least ``at_least`` times a power of two that is ``least`` or more."""
    while at_least < least:
        at_least *= 2
    return at_least


def first_occupied(tables: TransducerTables) -> int:
    """The states in which runs may be before the first event, as bits; -1 (all) if there are too many states."""
    if tables.transducer.states > layout.STATE_BITS:
        return -1
    return sum(1 << q for q in tables.transducer.initial)


def whole_graph(tables: TransducerTables, signatures: Smalls, positions: Ints) -> tuple[Ints, Ints, Ints]:
    """All detections of some events, as `Memory.take_detections` gives them.

    The events have only signatures and positions, and runs are not open before them.
    """
    memory = Memory(tables)
    room = room_for(tables, len(signatures), windowed=False, narrowed=False)
    events = room._replace(signature=signatures, position=positions)
    at = 0
    while True:
        reason, at = memory.advance(events, at, len(signatures))
        if reason == layout.DONE:
            found = memory.take_detections()
            assert found is not None
            return found
        if reason == layout.FULL_NODES:
            # Keep all nodes, as the detections so far need them.
            state = memory.state
            memory.state = state._replace(nodes=arrays.grown(state.nodes), marks=arrays.grown(state.marks))
        else:
            memory.make_room(reason, events, at)
