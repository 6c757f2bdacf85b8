"""A machine recognises the matches of one query with its tables and memory; its driver checks events and calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Ints
from cerflow.engine import layout
from cerflow.engine.events.reader import EventReader
from cerflow.engine.events.store import ChosenEvents, EventStore, StoredEvents
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.graph import CountedMatches, MatchGraph, Moments, in_one_graph
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.deadlines import Deadlines, ascending
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.sessions import Sessions
from cerflow.engine.recognize.ticking import nobody, take_with_ticks
from cerflow.engine.recognize.transaction import Changing, StateBefore
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.program.effects import CountedEvents
from cerflow.engine.state.compact import kept_arrays
from cerflow.engine.state.memory import Memory, first_occupied, whole_graph
from cerflow.engine.state.snapshot import Contents
from cerflow.engine.state.validation import check_image, check_number, check_strings, image_in

#: Called with the number of a given row that cannot be used after all.
Refuse = Callable[[int], None]


class RelevantEvents(NamedTuple):
    """The relevant events of a batch ``whole``, whose first row has number ``accepted`` in the input.

    The query's streams have the ``rows``, numbered from ``first`` on, which are the rows ``admitted`` of the batch
    (None: all). The first ``found`` of the ``events`` count. The store must keep the rows at the positions ``needed``.
    """

    whole: pa.RecordBatch
    accepted: int
    rows: pa.RecordBatch
    first: int
    events: EventArrays
    found: int
    needed: Ints
    admitted: Ints | None

    @property
    def positions(self) -> Ints:
        """The positions of the events."""
        return self.events.position[: self.found]

    @property
    def at_rows(self) -> Ints:
        """The rows of the batch that contain the events."""
        rows = self.positions - self.first
        return rows if self.admitted is None else self.admitted[rows]


class Machine:
    """Recognises the matches of one plan; the events that matches may refer to are kept in ``store``."""

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("_admitted", "last_bound", "reported", "_greatest")

    def __init__(self, plan: Plan, store: EventStore) -> None:
        self.plan = plan
        self.store = store
        scan = plan.begin_scan()
        self.tables = scan.tables
        if self.tables.consumes_at_once:
            # They change while events are read.
            self.tables.arrays = self.tables.arrays._replace(options=self.tables.arrays.options.copy())
        #: Whether it may refuse an event that the checker accepted, since a value that measures a window decreases.
        self.may_refuse = len(self.tables.arrays.checked) > 0
        self.reader = EventReader(scan, plan.keys, plan.evaluation, plan.streams.position)
        #: The ticks and pauses that are read besides events; None if deadlines do not matter.
        self.deadlines = Deadlines(self.reader) if self.tables.ticking else None
        #: The sessions of keys; None if there are none, or the kernel tells them apart.
        self.sessions = Sessions(self.reader, plan.select.partition, plan.schema) if plan.by_session else None
        #: The number of events of the query's streams so far, if these are not all streams.
        self._admitted = 0
        #: The number of matches found so far, if they are numbered.
        self.reported = 0
        #: Where the window of the last event begins.
        self.last_bound = layout.NO_BOUND
        #: The state before a push, until it changes.
        self._before: StateBefore | None = None
        self._strict = False
        #: Called when more memory was taken; raises an error if that is too much.
        self.look_at_memory: Callable[[], None] | None = None
        #: The bytes of nodes that only the detections of the present push hold.
        self._beside = 0
        #: The greatest values so far of the columns that must not decrease, if known.
        self._greatest: Ints | None = None

    @cached_property
    def memory(self) -> Memory:
        """Made for the first event that the automaton reads; many rules of a large set have none."""
        return Memory(self.tables)

    @property
    def remembers(self) -> bool:
        """Whether there is a memory."""
        return "memory" in vars(self)

    def forget_memory(self) -> None:
        """Go back to a state without memory."""
        vars(self).pop("memory", None)

    def read(
        self, whole: pa.RecordBatch, accepted: int, exported: ExportedBatch | None = None
    ) -> RelevantEvents | None:
        """Find the relevant events in rows of the input, which follow ``accepted`` earlier ones; None if nothing is.

        ``exported`` says where the rows are, if that is known. The events are valid until the next call.
        """
        rows, index = self.plan.streams.admit(whole, accepted)
        first = accepted if self.plan.counts_all else self._admitted
        self._admitted += rows.num_rows
        if index is not None and isinstance(self.store, ChosenEvents):
            self.store.choose(accepted + index)
        if not rows.num_rows and self.deadlines is None:
            return None
        rows = self.plan.total_keys.added(rows if self.sessions is None else self.sessions.added(rows, first))
        own = exported if exported is not None and rows is whole else ExportedBatch(rows)
        scan = self.reader.choose_scan(own, rows.num_rows, self._occupied)
        # A small batch goes without knowing in which states runs may be, unless it must.
        asks = scan.follows or (scan.flows and scan.narrows(rows.num_rows))
        carried = self.deadlines.carried if self.deadlines is not None and index is None else None
        events, count = self.reader.read(rows, first, self._occupied() if asks else -1, own, carried)
        needed = events.position[:count]
        if scan.absences is not None:
            needed = ascending(needed, scan.absences.rows + first)
        if not count and self.deadlines is None:
            if scan.complete is None:
                return None
            # The store keeps the whole batch.
            needed = np.array([first])
        return RelevantEvents(whole, accepted, rows, first, events, count, needed, index)

    def _occupied(self) -> int:
        """The states in which runs may be, as bits."""
        return self.memory.occupied if self.remembers else first_occupied(self.tables)

    def take(self, reading: RelevantEvents, refuse: Refuse) -> list[Part]:
        """Process the events that `read` has found, which are stored."""
        events, count = reading.events, reading.found
        complete = self.reader.scan.complete
        if self.reader.scan.counted is not None:
            return self._counted(events, count, self.reader.scan.counted)
        if self.deadlines is None:
            parts = self.advance(events, count, lambda at: refuse(int(reading.at_rows[at]))) if count else []
            if complete is None:
                return parts
            found: MatchGraph | CountedMatches = complete
            graphs = [part.graph for part in parts]
            if graphs:
                # Detections of the automaton may lie between those found on columns.
                join = partial(in_one_graph, [*graphs, complete])
                count = sum(len(graph.detections) for graph in graphs) + complete.count
                found = CountedMatches(count, join, single=True) if complete.single else join()
            return [Part(found, self.store.kept(), self.tables.label_sets)]
        return take_with_ticks(self, self.deadlines, reading, refuse)

    def until(self, clock: pa.Array) -> list[Part]:
        """The detections once no event before a time can come; ``clock`` is an array with that time."""
        if self.deadlines is None:
            return []
        events, count, moments = self.deadlines.until(clock)
        return self.advance(events, count, nobody, moments) if count else []

    def matches(self, parts: Sequence[Part]) -> Matches:
        """The matches in parts that were found just now; from now on they are reported."""
        report = self.plan.report
        found = Matches(parts, report, self.plan.limit, before=self.reported)
        if report.numbers_matches:
            # Matches with numbers beyond 64 bits cannot be listed.
            self.reported = min(self.reported + found.count(), 2**63 - 1)
        return found

    def about_to_change(self, events: EventArrays | None = None, count: int = 0) -> None:
        """Copy the state, if necessary, before the first ``count`` events change it."""
        if self._before is None:
            self._greatest = None
            return
        before, self._before = self._before, None
        # Forgetting takes as long as copying, and does not see whether an event will be refused.
        before.leave(self, keep=events is None or (self._strict and not self._surely_passes(events, count)))

    def _counted(self, events: EventArrays, count: int, counted: CountedEvents) -> list[Part]:
        """Process ``count`` events, of which some are counted."""
        self.about_to_change(events, count)
        parts: list[Part] = []
        self._read(events, 0, counted.begin, nobody, None, parts)
        self._close_part(parts, None)
        if counted.matches:
            # Copy the tables, as they learn and forget signatures.
            tables = copy(self.tables)

            def make() -> MatchGraph:
                return MatchGraph(*whole_graph(tables, counted.signatures, counted.positions))

            found = CountedMatches(counted.matches, make, single=False)
            parts.append(Part(found, self.store.kept(), tables.label_sets))
        self._read(events, counted.end, count, nobody, None, parts)
        self._close_part(parts, None)
        return parts

    def advance(self, events: EventArrays, count: int, refuse: Refuse, moments: Moments | None = None) -> list[Part]:
        """Process the first ``count`` prepared events, which are stored; ``refuse`` is called for invalid ones.

        ``moments`` are those of the pauses among them. Call `tidy` once all prepared events are processed.
        """
        parts: list[Part] = []
        self.about_to_change(events, count)
        if moments is None or not self.tables.consumes_at_once:
            self._read(events, 0, count, refuse, moments, parts)
        else:
            self._read_at_once(events, count, refuse, moments, parts)
        self._close_part(parts, moments)
        self.last_bound = max(self.last_bound, int(events.bound[count - 1]))
        return parts

    def _read_at_once(
        self, events: EventArrays, count: int, refuse: Refuse, moments: Moments, parts: list[Part]
    ) -> None:
        """Process events where a match drops all others except those of the same moment in other partitions."""
        memory, together = self.memory, moments.together[:count]
        firsts = np.flatnonzero(np.diff(together, prepend=together[0] - 1))
        paused = np.logical_or.reduceat(Moments.among(events.position[:count]), firsts)
        # Read a moment with pauses by itself, and all others between two such moments in one go.
        begins = firsts[paused | np.append(True, paused[:-1])].tolist()
        alone = dict(zip(firsts.tolist(), paused.tolist()))
        for begin, end in zip(begins, [*begins[1:], count]):
            if not alone[begin]:
                self._read(events, begin, end, refuse, moments, parts)
                continue
            self._close_part(parts, moments)
            found = len(parts)
            self.tables.arrays.options[layout.O_CONSUME] = 0
            try:
                self._read(events, begin, end, refuse, moments, parts)
            finally:
                self.tables.arrays.options[layout.O_CONSUME] = self.tables.consume
            self._close_part(parts, moments)
            if len(parts) > found:
                memory.begin_anew()

    def _read(
        self, events: EventArrays, at: int, count: int, refuse: Refuse, moments: Moments | None, parts: list[Part]
    ) -> None:
        """Process events from number ``at`` on, up to ``count``; the last detections stay in memory."""
        memory = self.memory
        while True:
            reason, at = memory.advance(events, at, count)
            if reason == layout.DONE:
                break
            if reason == layout.CALL_FAILED:
                self.tables.atoms.calls.raise_failure(self.tables.arrays.failure)
            if reason == layout.FULL_NODES:
                # The nodes found so far move away with their detections.
                self._close_part(parts, moments)
                self._beside += memory.state.nodes.nbytes + memory.state.marks.nbytes if parts else 0
            if reason == layout.DECREASED:
                refuse(at)
                at += 1
                continue
            memory.make_room(reason, events, at)
            if self.look_at_memory is not None:
                self.look_at_memory()

    def tidy(self) -> None:
        """Forget strings if there are many; prepared events must be done, as they name strings by number."""
        if self.tables.strings.wants_cleaning:
            texts = self.tables.strings.texts
            self.memory.forget_strings()
            for part in self._beside_state:
                part.renumber(texts)
            self.tables.strings.settle()

    def _close_part(self, parts: list[Part], moments: Moments | None) -> None:
        taken = self.memory.take_detections()
        if taken is not None:
            detections, nodes, marks = taken
            tables = self.tables
            graph = MatchGraph(detections, nodes, marks, moments)
            parts.append(Part(graph, self.store.kept(), tables.label_sets, tables.pick, tables.alone, tables.by))

    def live_positions(self) -> Ints:
        """The positions of all events that may still be part of a match."""
        bound = self.last_bound if self.tables.global_window else layout.NO_BOUND
        live = self.memory.live_positions(bound) if self.remembers else np.zeros(0, np.int64)
        return live if self.deadlines is None else ascending(live, self.deadlines.positions)

    def begin_anew(self) -> None:
        """Forget all events."""
        if self.remembers:
            self.memory.begin_anew()
        for part in self._beside_state:
            part.begin_anew()
        self._admitted = self.reported = 0
        self.last_bound = layout.NO_BOUND
        self._greatest = None

    # -- snapshots -----------------------------------------------------------------------------------------------

    def came(self, description: Mapping[str, Any]) -> int:
        """The number of events of the query before a snapshot, by its description."""
        return check_number(description, "accepted" if self.plan.counts_all else "next", least=0)

    def contents(self, counts: Mapping[str, object], events: StoredEvents) -> Contents:
        """All that is remembered, with the counts of the record checker and the events to keep."""
        description = {
            **self.plan.identity(self.tables),
            **counts,
            "strings": self.tables.strings.texts,
            "next": counts["accepted"] if self.plan.counts_all else self._admitted,
            "bound": self.last_bound,
            "reported": self.reported,
            "visited": int(self.memory.state.counters[layout.N_VISITED]),
        }
        arrays = kept_arrays(self.memory.image())
        for part in self._beside_state:
            arrays |= part.arrays()
        return Contents(description, arrays, events.rows, events.positions)

    def take_over(self, contents: Contents, positions: Ints) -> None:
        """Continue from a snapshot of the same plan (see `check_origin`); ``positions`` are those of the kept events.

        Raises `SnapshotError` if the kernels could not rely on it.
        """
        header = contents.description
        texts: Any = header.get("strings")
        check_strings(texts, self.tables)
        count, self.last_bound = self.came(header), check_number(header, "bound")
        self._admitted, self.reported = count, check_number({"reported": 0, **header}, "reported", least=0)
        image = image_in(contents.arrays, self.tables)
        check_image(image, self.tables, positions, count, len(texts))
        image.counters[layout.N_VISITED] = check_number(header, "visited", least=0)
        self.tables.strings.replace(texts)
        if self.deadlines is not None:
            self.deadlines.take_over(contents.arrays, self.plan.total_keys.added(contents.events), contents.positions)
        if self.sessions is not None:
            self.sessions.take_over(contents.arrays, len(texts), count)
        self.memory.take_over(image)
        self._greatest = None

    @property
    def bytes(self) -> int:
        """The bytes of the state, and of what the current push has found."""
        return (self.memory.bytes if self.remembers else 0) + self._beside

    def may_fail(self, *, strict: bool) -> bool:
        """Whether it may fail after processing some events; ``strict`` says that a refused event is a failure."""
        return (self.may_refuse and strict) or self.tables.asks or bool(self.tables.guessing)

    @property
    def parts(self) -> list[Changing]:
        """What changes with the machine, besides the state."""
        queues = () if self.deadlines is None else self.deadlines.queues
        return [self, self.tables.strings, *self._beside_state, *queues]

    @property
    def _beside_state(self) -> list[Deadlines | Sessions]:
        return [part for part in (self.deadlines, self.sessions) if part is not None]

    def begin_push(self, *, processed: bool, strict: bool, room: int) -> StateBefore:
        """The present state, which is kept for a push as far as necessary.

        ``processed`` says whether events may be processed when a push fails with an expected error; otherwise only this
        machine may, and only once events are prepared. ``strict`` says that a refused event is a failure. Against all
        other failures and interruptions a state of up to ``room`` bytes is copied.
        """
        self._before = before = StateBefore(self)
        before.always = processed or self.tables.asks or bool(self.tables.guessing) or before.bytes <= room
        self._strict = strict and self.may_refuse
        self._beside = 0
        return before

    def _surely_passes(self, events: EventArrays, count: int) -> bool:
        """Whether no event of the first ``count`` can fail, as what measures windows ascends."""
        checked = self.tables.arrays.checked
        latest = self._greatest
        if latest is None:
            # Substreams remember the latest values after their keys.
            first = layout.PARTITION_KEY + int(self.tables.arrays.options[layout.O_KEY])
            latest = self.memory.state.partition_long[:, first : first + len(checked)].max(axis=0, initial=layout.NULL)
        values = events.columns[:count, checked]
        self._greatest = np.maximum(latest, values.max(axis=0))
        return bool((values[0] >= latest).all() and (values[1:] >= values[:-1]).all())
