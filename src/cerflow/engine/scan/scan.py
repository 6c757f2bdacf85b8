"""One kernel reads batches of Arrow; Python helps when something occurs for the first time."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow import limits
from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.kernels.table import find_rows, flow, flow_by_key, narrow, next_dictionary, scan, write_candidates
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.graph import CountedMatches, consecutive_events
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.contiguous import Contiguity
from cerflow.engine.scan.decisions import Decisions, TooManyDecisionsError
from cerflow.engine.scan.effects import CountedEvents, effects_of
from cerflow.engine.scan.first_arrays import first_arrays
from cerflow.engine.scan.flow import Flow, Strict
from cerflow.engine.scan.programs import ScanProgram
from cerflow.engine.scan.texts import TextEntries
from cerflow.engine.tables.event_room import room_for
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.values.array_types import Ints

#: Events that there is room for at first.
_EVENTS = 1 << 10
#: There may be this many entries of keys, even if there are fewer rows.
_ENTRIES = 1 << 12
#: Batches that are read whole after one of which most relevant rows were left.
_PAUSE = 7
#: Bytes of `ScanArrays.hits` that are copied at most.
_COPIED = 1 << 12
#: Times as much room for keys if it was too little.
_MORE_KEYS = 8
#: Retries when the key table is full.
_TRIES = 16
#: The arrays that change while a scan reads, where they are not replaced.
_CHANGED = (
    *("control", "columns", "texts", "stack", "fixes", "chosen", "at", "candidates", "groups", "members", "slots"),
    *("guards", "runs", "led", "ends", "hits", "flows", "entered", "slot_of", "before", "numbers", "allowed", "rows"),
    "wide",
)


class BatchScan:
    """Reads batches for one recogniser, by a program for its tables.

    Answers that depend on no event are found at once, so a query makes one scan and its recognisers take fresh copies.
    """

    def __init__(self, tables: TransducerTables, program: ScanProgram) -> None:
        #: The tables of the recogniser.
        self.tables = tables
        self.program = program
        self._contiguity = None if isinstance(program.contiguity, str) else program.contiguity
        #: What runs can pass through, where rows are ruled out by that.
        self._through = program.flow if isinstance(program.flow, Flow) and self._contiguity is None else None
        self._narrowed = self._contiguity is not None or (
            self._through is not None and self._through.strict is not None
        )
        self._marks = layout.NOT_MARKED
        if program.guards is not None and program.guards.narrows:
            self._marks = layout.DECIDED if program.guards.decides else layout.MARKED
        #: The matches of consecutive events that the last batch has by itself, beside the events that `read` gave.
        self.consecutive: CountedMatches | None = None
        #: Arrays by name, which other scans of the same recogniser may use before and after.
        self.shared_room: dict[str, NDArray[Any]] = {}
        self._windowed = any(row[layout.O_TO] == layout.TO_BOUND for row in program.outputs)
        #: Whether texts were too many to find matches without the automaton.
        self._unfound = False
        #: Whether no event follows the batch that is read next.
        self.ending = False
        #: This many further batches are read whole.
        self._whole = 0
        #: Whether the arrays of events belong to matches by now.
        self._given_away = False
        #: Those of the events that `read` gave whose matches are counted.
        self.counted: CountedEvents | None = None
        columns_of_tests = {column.name: column for column in program.judge.columns}
        self._tested = [columns_of_tests.get(name) for name in program.texts]
        texts = np.zeros((len(program.texts), layout.TEXT_WORDS), np.int64)
        texts[:, layout.T_LAYOUT] = program.text_layouts
        last = program.flow.last if isinstance(program.flow, Flow) else 0
        self._texts = [
            TextEntries(words, column, truths, tables.strings, self._guards_left(tests, readers), last)
            for words, column, truths, tests, readers in zip(
                texts, self._tested, program.truths, program.text_tests, program.text_readers
            )
        ]
        self._decisions = self._begin_deciding()
        self._decisions.explore(limits.SCAN_EXPLORED)
        self._arrays = first_arrays(tables, program, texts, self._decisions)
        self._share()
        #: Whether the states matter in which runs may be before a batch.
        self.follows = self._control[layout.FOLLOWS] == 1
        #: The same for runs that pass through the batch, or keys.
        self.flows = self._through is not None or (self._contiguity is not None and self._contiguity.related)
        on_columns = self._control[layout.OPENED] != 0
        if self._contiguity is not None:
            on_columns = self._contiguity.alone
        #: This many rows make a batch at most; where little is written of them, more of them tell more.
        keyed = self._through is not None and self._through.keyed
        self.rows_at_once = limits.FLOW_ROWS if keyed else limits.BATCH_ROWS
        if on_columns:
            self.rows_at_once = limits.COLUMN_ROWS
        #: The list of signatures whose steps are known.
        self._stepped_of = tables.relevant
        #: The same for those whose effects are known.
        self._effects_of = tables.relevant
        #: The schema of the last batch.
        self._schema: pa.Schema | None = None
        self._know_effects()

    def fresh(self) -> BatchScan:
        """The same scan for another recogniser, if this one has read no batch; with `tables` of its own."""
        other = copy(self)
        other.shared_room = {}
        other.tables = tables = self.tables.fresh()
        other._decisions = self._decisions.fresh(tables)
        other._stepped_of = other._effects_of = tables.relevant
        changed = {name: getattr(self._arrays, name).copy() for name in _CHANGED}
        other._arrays = self._arrays._replace(**changed)
        other._texts = [text.fresh(own, tables.strings) for text, own in zip(self._texts, other._arrays.texts)]
        other._share()
        return other

    def _share(self) -> None:
        """Let kernels see the arrays."""
        self._events = self._room_for(_EVENTS)
        self._shared = SharedArrays()
        self._shared.hold(self._events)
        self._row = Row(scan, self._shared.address)
        self._dictionaries = Row(next_dictionary, self._shared.address)
        control: Any = self._arrays.control
        self._control = memoryview(control)
        self._shown: tuple[Ints, ...] | None = None
        self._show()
        #: The list of strings that the codes of texts are of.
        self._coded = self.tables.strings.texts

    def _begin_deciding(self) -> Decisions:
        classes = [[] if column is None else column.satisfied for column in self._tested]
        return Decisions(self.tables, self.program.text_tests, self.program.text_readers, classes)

    def _decide(self, node: int, outcome: int) -> None:
        """Find out where an outcome of a node leads; where there are too many nodes, they are forgotten."""
        try:
            self._decisions.answer(node, outcome)
        except TooManyDecisionsError:
            self._forget_decisions()
        self._show()
        self._know_effects()

    def _forget_decisions(self) -> None:
        self._decisions = self._begin_deciding()
        self._arrays.led.fill(layout.UNKNOWN)

    def _guards_left(self, tests: frozenset[int], readers: frozenset[int]) -> Callable[[frozenset[int]], int] | None:
        """The guards that a column of text leaves possible, by the tests that hold; None if nothing asks for them."""
        guards = self.program.guards
        return None if guards is None or not (tests or readers) else partial(guards.left_by, tests)

    def read(
        self, batch: pa.RecordBatch, first: int, occupied: int = -1, exported: ExportedBatch | None = None
    ) -> tuple[EventArrays, int]:
        """The relevant events of a batch that begins at position ``first`` of the stream, and how many these are.

        ``occupied`` are the states in which runs may be, as bits; ``exported`` says where the batch is. The arrays may
        have room for more events, and are used again by the next call.
        """
        self.tables.forget_signatures()
        if self._decisions.signatures_of is not self.tables.relevant:
            self._forget_decisions()
            self._show()
        if self._schema is None or not batch.schema.equals(self._schema):
            self._find_columns(batch.schema)
        exported = exported or ExportedBatch(batch)
        if self._coded is not self.tables.strings.texts:
            self._coded = self.tables.strings.texts
            for text in self._texts:
                text.forget_codes()
        self._use_dictionaries(exported, batch)
        count = batch.num_rows
        control = self._control
        control[layout.FIRST] = first
        control[layout.COUNT] = control[layout.FIXES] = 0
        contiguity = self._contiguity
        large = count >= limits.NARROWED_ROWS
        whole = self._whole > 0 or not large
        self._whole = max(0, self._whole - large)
        control[layout.OCCUPIED] = occupied
        if self._given_away:
            self._given_away, events = False, self._events
            room = np.empty_like(events.signature), np.empty_like(events.position)
            self._events = events._replace(signature=room[0], position=room[1])
            self._shared.hold(self._events)
        self.counted = None
        if self.follows:
            self._know_effects()
            self._begin_counting(count)
        self.consecutive = None
        alone = contiguity is not None and contiguity.alone and large and count >= 2 * contiguity.length
        if contiguity is not None and alone:
            alone = self._find(contiguity, exported, batch, occupied)
        narrows = not whole and not alone and contiguity is not None
        marks = layout.NOT_MARKED if alone else self._marks
        control[layout.NARROWS], control[layout.MARKS] = narrows, marks
        control[layout.CANDIDATES] = control[layout.WRITTEN] = control[layout.LOOKED_AHEAD] = 0
        chosen = contiguity is not None and contiguity.keyed and alone
        if self._through is not None and not whole:
            if self._through.strict is None:
                self._flow(self._through, exported, batch, occupied)
            else:
                chosen = self._flow_by_key(self._through, self._through.strict, exported, batch)
        if narrows:
            self._room_for_candidates(count)
        if contiguity is not None and alone:
            self.consecutive = self._consecutive(contiguity, count, first)
            # Matches that begin or end in another batch.
            others = contiguity.length - 1
            if not chosen:
                self._scan(exported, batch, 0, others)
                self._scan(exported, batch, count - others, count)
        elif not chosen:
            self._scan(exported, batch, 0, count)
        if chosen:
            self._read_chosen(exported, batch)
        if contiguity is not None and narrows:
            self._narrow(contiguity, batch)
            self._write_candidates(batch)
        self._learn(batch)
        found = control[layout.COUNT]
        if self.follows:
            self._take_counted(*control[layout.BEGUN : layout.FOUND + 1].tolist())
        if self.tables.atoms.ordered:
            self._events = self._events._replace(ranks=self.tables.strings.ranks())
        return self._events, found

    def _use_dictionaries(self, exported: ExportedBatch, batch: pa.RecordBatch) -> None:
        """Take the entries of texts from the dictionaries of a batch, where these are others than before."""
        words = self._dictionaries.words
        words[1], words[2] = exported.address, 0
        while (number := self._dictionaries.call_held()) >= 0:
            self._texts[number].use_dictionary(batch)
            words[2] = number + 1

    def _scan(self, exported: ExportedBatch, batch: pa.RecordBatch, begin: int, end: int) -> None:
        """Read the events of some rows of a batch."""
        control, words = self._control, self._row.words
        control[layout.ROW] = begin
        while True:
            words[1], words[2] = exported.address, end
            reason = self._row.call()
            if reason == layout.SCANNED:
                return
            if reason == layout.NO_OUTCOME:
                self._decide(control[layout.NODE], control[layout.OUTCOME])
            elif reason == layout.NO_EVENTS:
                # As many of the further rows as of those before.
                rows, found = control[layout.ROW : layout.COUNT + 1].tolist()
                self._make_room(max(2 * len(self._events.signature), found + found * (end - rows) // max(1, rows)))
            else:
                self._go_on(reason, batch)

    def _room_for(self, events: int) -> EventArrays:
        return room_for(self.tables, events, windowed=self._windowed, narrowed=self._narrowed)

    def _make_room(self, events: int) -> None:
        """Make room for this many events; those found so far stay."""
        old, count = self._events, self._control[layout.COUNT]
        if events > len(old.signature):
            self._events = self._room_for(1 << (events - 1).bit_length())
            for name in EventArrays._fields[:-1]:  # the last are not by event
                array = getattr(self._events, name)
                if array.flags.writeable:
                    array[:count] = getattr(old, name)[:count]
            self._events = self._events._replace(ranks=old.ranks)
            self._shared.hold(self._events)

    def _flow(self, found: Flow, exported: ExportedBatch, batch: pa.RecordBatch, occupied: int) -> None:
        """Clear all guards of the rows of a batch that no run can pass through to the end of a match."""
        control, count = self._control, int(batch.num_rows)
        self._room_for_flow(count, by_row=len(found.keyed) > 0)
        keys = min(1 << (count - 1).bit_length(), limits.FLOW_KEYS) if found.keyed else 1
        if keys != len(self._arrays.flows):
            self._use("flows", keys, len(found.states))
            self._use("entered", (keys >> 6) + 1)
        states = sum((occupied >> state & 1) << k for k, state in enumerate(found.states))
        control[layout.ROW] = count
        while (reason := flow(self._shared.address, exported.address, count, states, self.ending)) != layout.SCANNED:
            self._go_on(reason, batch)
        self._know_overlap(count)
        control[layout.LOOKED_AHEAD] = 1
        if self._marks == layout.NOT_MARKED:
            control[layout.MARKS] = layout.MARKED

    def _room_for_flow(self, count: int, *, by_row: bool) -> None:
        self._room_for_guards(count)
        if len(self._arrays.useful) < len(self._arrays.guards):
            self._use("useful", len(self._arrays.guards))
        if by_row and count > len(self._arrays.slot_of):
            self._use("slot_of", 1 << (count - 1).bit_length())

    def _know_overlap(self, count: int) -> None:
        """Read more rows at once if windows are long beside a batch of ``count``, or some whole if most were left."""
        if 4 * self._control[layout.OVERLAP] > count:
            self.rows_at_once = min(2 * self.rows_at_once, limits.COLUMN_ROWS)
        self._rest_if_kept()

    def _rest_if_kept(self) -> None:
        """Read the next batches whole if most relevant rows of this one are left."""
        relevant, kept = self._control[layout.RELEVANT : layout.KEPT + 1].tolist()
        if 4 * kept > 3 * relevant:
            self._whole = _PAUSE

    def _know_effects(self) -> None:
        """Let kernels know the effects of new signatures."""
        if not self.follows:
            return
        if self._effects_of is not self.tables.relevant or len(self._arrays.effects) < len(self.tables.relevant):
            self._effects_of = self.tables.relevant
            effects, moves = effects_of(self.tables)
            self._hold(effects=effects, moves=moves)

    def _begin_counting(self, rows: int) -> None:
        """Count the runs in a batch of this many rows if that may pay."""
        control, runs = self._control, self._arrays.runs
        control[layout.BEGUN] = control[layout.ENDED] = -1
        control[layout.FOUND] = 0
        control[layout.COUNTS] = control[layout.OPENED] != 0 and rows >= limits.COUNTED_EVENTS
        if control[layout.COUNTS]:
            runs.fill(0)
            runs[list(self.tables.transducer.initial), layout.RUNS] = 1
            if not control[layout.OCCUPIED] & control[layout.OPENED]:
                control[layout.BEGUN] = control[layout.ENDED] = 0

    def _take_counted(self, begin: int, end: int, matches: int) -> None:
        """Set apart the events from ``begin`` up to ``end``, which have this many matches."""
        if end - begin < limits.COUNTED_EVENTS:
            return
        signatures, positions = self._events.signature, self._events.position
        if 2 * (end - begin) < len(signatures):
            some = signatures[begin:end].copy(), positions[begin:end].copy()
        else:
            # To make room for other events costs less than to copy so many.
            some = signatures[begin:end], positions[begin:end]
            self._given_away = True
        self.counted = CountedEvents(begin, end, matches, *some)

    def _find(self, contiguity: Contiguity, exported: ExportedBatch, batch: pa.RecordBatch, occupied: int) -> bool:
        """Look for the matches whose events are all in a batch; False if there are too many different texts."""
        arrays, control, count = self._arrays, self._control, batch.num_rows
        if self._unfound:
            return False
        size, related = (count + 7) >> 3, contiguity.related
        if size > len(arrays.hits) or size > _COPIED:
            self._hold(hits=np.empty(max(size, _COPIED), np.uint8))
        arrays.guards[: layout.CARRIED] = 0
        if related:
            # They go with the matches.
            self._hold(before=np.full(count, -1, np.int32))
            self._room_for_guards(count)
        begun = occupied & ~sum(1 << state for state in self.tables.transducer.initial) != 0
        control[layout.FOUND] = 0

        find = partial(find_rows, self._shared.address, exported.address, count, contiguity.key, begun)
        return self._numbered(find, contiguity.key if related else layout.NO_KEYS, contiguity.texts, batch)

    def _numbered(self, read: Callable[[], Any], key: int, texts: frozenset[int], batch: pa.RecordBatch) -> bool:
        """Let a kernel ``read`` a batch by numbers of keys and ``texts``; False if there are too many of them."""
        arrays, control = self._arrays, self._control
        keys = max(len(arrays.members), _ENTRIES)
        control[layout.ROW] = 0
        while True:
            if control[layout.ROW] == 0:
                self._begin_groups(keys, key)
            reason = read()
            text = control[layout.TEXT]
            if reason == layout.SCANNED:
                return True
            if reason == layout.NO_ROOM and text == layout.HASHED_KEYS:
                keys *= _MORE_KEYS
                continue
            room = arrays.texts[text, [layout.T_ROOM, layout.T_LIMIT]].tolist()
            self._go_on(reason, batch)
            if reason == layout.NO_ROOM and text in texts:
                control[layout.ROW] = 0
                self._unfound = room == arrays.texts[text, [layout.T_ROOM, layout.T_LIMIT]].tolist()
                if self._unfound:
                    return False

    def _flow_by_key(self, flow: Flow, strict: Strict, exported: ExportedBatch, batch: pa.RecordBatch) -> bool:
        """Choose the rows that a match may need, where the next event of a key ends runs; False for too many keys."""
        count = int(batch.num_rows)
        self._room_for_flow(count, by_row=True)
        self._use("before", count)
        self._arrays.before.fill(-1)

        def choose() -> Any:
            if len(self._arrays.flows) != len(self._arrays.groups):
                self._use("flows", len(self._arrays.groups), len(flow.states))
            return flow_by_key(self._shared.address, exported.address, count, strict.key, self.ending)

        if self._unfound or not self._numbered(choose, strict.key, strict.texts, batch):
            return False
        self._know_overlap(count)
        return True

    def _consecutive(self, contiguity: Contiguity, count: int, first: int) -> CountedMatches | None:
        """The matches that `_find` has found among this many rows from position ``first`` on."""
        arrays, size = self._arrays, (count + 7) >> 3
        assert contiguity.labels is not None
        # Many bytes are not copied but given away.
        hits = arrays.hits[:size] if size > _COPIED else arrays.hits[:size].copy()
        before = arrays.before if contiguity.related else None
        make = partial(consecutive_events, first, hits, contiguity.labels, before)
        found = self._control[layout.FOUND]
        return CountedMatches(found, make, single=True) if found else None

    def _read_chosen(self, exported: ExportedBatch, batch: pa.RecordBatch) -> None:
        """Read the rows of a batch that `find_rows` or `flow_by_key` has chosen."""
        control, chosen = self._control, self._arrays.guards[: batch.num_rows]
        control[layout.NARROWS], control[layout.MARKS], control[layout.LOOKED_AHEAD] = 1, layout.MARKED, 1
        self._room_for_candidates(int(np.count_nonzero(chosen)))
        self._scan(exported, batch, 0, batch.num_rows)
        candidates = self._arrays.candidates[: control[layout.CANDIDATES]]
        candidates[:, layout.B_LEFT_OUT] = chosen[candidates[:, layout.B_ROW]] == layout.BEHIND_OTHERS
        self._write_candidates(batch)

    def _write_candidates(self, batch: pa.RecordBatch) -> None:
        control = self._control
        self._make_room(control[layout.COUNT] + control[layout.CANDIDATES])
        while (reason := write_candidates(self._shared.address)) != layout.SCANNED:
            self._go_on(reason, batch)

    def _room_for_candidates(self, count: int) -> None:
        """Make room for this many candidates."""
        if count > len(self._arrays.candidates):
            self._use("candidates", 1 << (count - 1).bit_length(), layout.CANDIDATE_WORDS)

    def _room_for_guards(self, count: int) -> None:
        """Make room for the guards of this many rows; the kernels read 64 at a time."""
        if max(count, layout.BLOCK) + 64 > len(self._arrays.guards):
            self._use("guards", 64 + max(layout.BLOCK, 1 << (count - 1).bit_length()))

    def _narrow(self, contiguity: Contiguity, batch: pa.RecordBatch) -> None:
        """Leave out candidate rows that are part of no match; the columns of the batch are located already."""
        known = len(self._arrays.steps)
        if self._stepped_of is not self.tables.relevant:
            self._stepped_of, known = self.tables.relevant, 0
        signatures = range(known, len(self.tables.relevant))
        if len(signatures):
            added = [contiguity.bits(self.tables.allowed(signature)) for signature in signatures]
            self._hold(steps=np.append(self._arrays.steps[:known], np.array(added, np.int64)))
        key, count = contiguity.key, self._control[layout.CANDIDATES]
        for _ in range(_TRIES):
            if key == layout.HASHED_KEYS:
                self._begin_groups(1 + count, key)
            ends = contiguity.first, contiguity.last
            if narrow(self._shared.address, *ends, key, batch.num_rows) == layout.SCANNED:
                self._rest_if_kept()
                return
            entries = int(self._arrays.texts[key, layout.T_ROOM]) if key >= 0 else 0
            if entries > 2 * max(count, _ENTRIES):
                break
            if entries > len(self._arrays.groups):
                self._hold(groups=np.zeros((entries, layout.GROUP_WORDS), np.int64))
            else:
                self._go_on(layout.NO_ROOM, batch)
        # There are so many keys that few events could be left out.
        self._arrays.candidates[:count, layout.B_LEFT_OUT] = 0

    def _begin_groups(self, most: int, key: int) -> None:
        """Forget all keys that have numbers, with room for this many, or for all entries of a ``key`` that is text."""
        arrays = self._arrays
        if key >= 0:
            most = int(arrays.texts[key, layout.T_ROOM]) - 1
        if key == layout.HASHED_KEYS and most > len(arrays.members):
            room = 1 << most.bit_length()
            self._hold(members=np.zeros((room, arrays.members.shape[1]), np.int64), slots=np.zeros(2 * room, np.int64))
            most = room - 1
        if most >= len(arrays.groups):
            self._hold(groups=np.zeros((most + 1, layout.GROUP_WORDS), np.int64))
        self._control[layout.GROUPS] = 0
        self._arrays.slots.fill(0)

    def _go_on(self, reason: int, batch: pa.RecordBatch) -> None:
        """Do what a kernel stopped for."""
        self._learn(batch)
        if reason == layout.NO_ROOM:
            self._texts[self._control[layout.TEXT]].grow()

    def _use(self, name: str, *shape: int) -> None:
        """Give an array of which nothing outlasts a batch this shape, in room that the scans of a recogniser share."""
        size, now = prod(shape), getattr(self._arrays, name)
        room = self.shared_room.get(name)
        if room is None or len(room) < size:
            room = self.shared_room[name] = np.zeros(size, now.dtype)
        self._hold(**{name: room[:size].reshape(shape)})

    def _hold(self, **arrays: Any) -> None:
        """Replace some arrays."""
        self._arrays = self._arrays._replace(**arrays)
        self._shared.hold(self._arrays)

    def _learn(self, batch: pa.RecordBatch) -> None:
        """Read new texts, and give codes to those that events have."""
        for text in self._texts:
            text.learn(batch)
        count = self._control[layout.FIXES]
        if not count:
            return
        fixes = self._arrays.fixes[:count]
        self._control[layout.FIXES] = 0
        for number, text in enumerate(self._texts):
            some = fixes[fixes[:, layout.X_TEXT] == number]
            codes = text.codes(some[:, layout.X_ENTRY])
            places, events = some[:, layout.X_PLACE], some[:, layout.X_EVENT]
            keyed = places < 0
            if keyed.any():
                self._events.keys[events[keyed], -1 - places[keyed]] = codes[keyed]
            if not keyed.all():
                self._events.columns[events[~keyed], places[~keyed]] = codes[~keyed]

    # -- arrays --------------------------------------------------------------------------------------------------

    def _find_columns(self, schema: pa.Schema) -> None:
        """Say where the columns are among those of batches of a schema."""
        program, arrays = self.program, self._arrays
        arrays.columns[:, layout.C_CHILD] = [0 if n is None else schema.names.index(n) for n in program.attributes]
        arrays.texts[:, layout.T_CHILD] = [schema.names.index(name) for name in program.texts]
        self._schema = schema

    def _show(self) -> None:
        """Let kernels see the arrays of the decisions, where these have grown."""
        decisions = self._decisions
        now = (decisions.nodes, decisions.next, decisions.outcomes, decisions.together)
        if self._shown is None or any(a is not b for a, b in zip(now, self._shown)):
            nodes, following, outcomes, together = self._shown = now
            self._hold(nodes=nodes, next=following, outcomes=outcomes, together=together)
        self._control[layout.ROOT] = decisions.root
