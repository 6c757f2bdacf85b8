"""One kernel reads batches of Arrow; Python helps when something occurs for the first time."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.table import next_dictionary, scan, write_candidates
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.graph import CountedMatches
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch, layout_of_text
from cerflow.engine.scan.decisions import Decisions, TooManyDecisionsError
from cerflow.engine.scan.first_arrays import first_arrays
from cerflow.engine.scan.narrowing import Joining, Narrowing, find_consecutive, follow_runs, matches_found
from cerflow.engine.scan.program.absence import Absence, Absences, find_absences
from cerflow.engine.scan.program.compiler import ScanProgram
from cerflow.engine.scan.program.effects import CountedEvents, effects_of
from cerflow.engine.scan.program.flow import Flow
from cerflow.engine.scan.program.joins import Joinable
from cerflow.engine.scan.room import ScanRoom
from cerflow.engine.scan.texts import TextEntries
from cerflow.engine.tables.event_room import room_for
from cerflow.engine.tables.transducer_tables import TransducerTables

#: The arrays that change while a scan reads, where they are not replaced.
_CHANGED = (
    *("control", "columns", "texts", "stack", "chosen", "at", "measures", "candidates", "groups", "members", "slots"),
    *("guards", "runs", "led", "ends", "hits", "flows", "entered", "slot_of", "before", "numbers", "allowed", "rows"),
    *("wide", "kept", "computed", "key_steps", "edges", "limits", "values", "partners", "opened", "looked_up"),
    *("partials", "ordinals", "key_of", "order", "sorted", "sorted_guards"),
)


class BatchScan:
    """Reads batches for one recogniser, by a program for its tables.

    Answers that depend on no event are found at once, so a query makes one scan and its recognisers take fresh copies.
    The ``whole`` scan, of the same tables, is for batches in which types may occur that the program takes for absent.
    """

    def __init__(self, tables: TransducerTables, program: ScanProgram, whole: BatchScan | None = None) -> None:
        #: The one given; a scan that held itself would outlast its recogniser.
        self._of_any_type = whole
        #: The tables of the recogniser.
        self.tables = tables
        self.program = program
        self._contiguity = None if isinstance(program.contiguity, str) else program.contiguity
        #: What runs can pass through, where rows are ruled out by that.
        self._through = program.flow if isinstance(program.flow, Flow) and self._contiguity is None else None
        join = program.join if self._through is not None else ""
        self._joining = Joining(join) if isinstance(join, Joinable) else None
        self._narrowed = self._contiguity is not None or (
            self._through is not None and self._through.by_key is not None
        )
        self._marks = layout.NOT_MARKED
        if program.guards is not None and program.guards.narrows:
            self._marks = layout.DECIDED if program.guards.decides else layout.MARKED
        #: The matches that were found in the last batch, beside the events that `read` gave.
        self.complete: CountedMatches | None = None
        #: The same for matches of single events that nothing follows.
        self.absences: Absences | None = None
        self._windowed = any(row[layout.O_TO] == layout.TO_BOUND for row in program.outputs)
        #: Whether no event follows the batch that is read next.
        self.ending = False
        #: Whether narrowing pays.
        self._narrowing = Narrowing(by_key=self._through is None or self._through.tells_keys)
        #: Whether the arrays of events belong to matches by now.
        self._given_away = False
        #: Those of the events that `read` gave whose matches are counted.
        self.counted: CountedEvents | None = None
        columns_of_tests = {column.name: column for column in program.judge.columns}
        self._tested = [columns_of_tests.get(name) for name in program.texts]
        texts = np.zeros((len(program.texts), layout.TEXT_WORDS), np.int64)
        texts[:, layout.T_LAYOUT] = program.text_layouts
        last = program.flow.last if isinstance(program.flow, Flow) else 0
        entries = [
            TextEntries(words, column, truths, tables.strings, self._guards_left(tests, readers), last)
            for words, column, truths, tests, readers in zip(
                texts, self._tested, program.truths, program.text_tests, program.text_readers
            )
        ]
        self._decisions = self._begin_deciding()
        self._decisions.explore(limits.SCAN_EXPLORED)
        self._share(ScanRoom(first_arrays(tables, program, texts, self._decisions), entries, self._events_for()))
        #: Whether the states matter in which runs may be before a batch.
        self.follows = self.room.control[layout.FOLLOWS] == 1
        #: The same for runs that pass through the batch, or keys.
        contiguity = self._contiguity
        self.flows = self._through is not None or (contiguity is not None and contiguity.keyed)
        #: This many rows make a batch at most; where little is written of them, more of them tell more.
        ruled_out = self._through is not None or isinstance(program.absence, Absence)
        self.rows_at_once = limits.FLOW_ROWS if ruled_out else limits.BATCH_ROWS
        counts = self._joining is not None and self._joining.counts
        if counts or contiguity is not None or self.room.control[layout.OPENED] != 0:
            self.rows_at_once = limits.COLUMN_ROWS
        #: The list of signatures whose effects are known.
        self._effects_of = tables.relevant
        #: The schema of the last batch, and that batch if it was a single row.
        self._schema: pa.Schema | None = None
        self._of_row: pa.RecordBatch | None = None
        self._know_effects()

    @property
    def whole(self) -> BatchScan:
        """The scan for batches with events of any type."""
        return self._of_any_type or self

    def fresh(self, tables: TransducerTables | None = None) -> BatchScan:
        """The same scan for another recogniser, if this one has read no batch; with fresh `tables`, or these."""
        other = copy(self)
        other.tables = tables = tables or self.tables.fresh()
        other._narrowing, other._joining = copy(self._narrowing), copy(self._joining)
        other._of_any_type = None if self._of_any_type is None else self._of_any_type.fresh(tables)
        other._decisions = self._decisions.fresh(tables)
        other._effects_of = tables.relevant
        mine = self.room.arrays
        changed = {name: array.copy() for name in _CHANGED if (array := getattr(mine, name)).size}
        # They are written before they are read.
        arrays = mine._replace(**changed, fixes=np.empty_like(mine.fixes))
        texts = [text.fresh(own, tables.strings) for text, own in zip(self.room.texts, arrays.texts)]
        other._share(ScanRoom(arrays, texts, other._events_for(), self.room))
        return other

    def _share(self, room: ScanRoom) -> None:
        """Let kernels see the arrays of a room."""
        self.room = room
        self._row = Row(scan, self.room.shared.address)
        self._dictionaries = Row(next_dictionary, self.room.shared.address)
        self._shown: tuple[Ints, ...] | None = None
        self._show()
        #: The list of strings that the codes of texts are of.
        self._coded = self.tables.strings.known

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
        self.room.arrays.led.fill(layout.UNKNOWN)

    def _guards_left(self, tests: frozenset[int], readers: frozenset[int]) -> Callable[[frozenset[int]], int] | None:
        """The guards that a column of text leaves possible, by the tests that hold; None if nothing asks for them."""
        guards = self.program.guards
        return None if guards is None or not (tests or readers) else partial(guards.left_by, tests)

    def narrows(self, rows: int) -> bool:
        """Whether the scan leaves out the rows of a batch of this size that no run of their key can use."""
        return self._narrowing.pays(rows)

    def read(
        self,
        batch: pa.RecordBatch,
        first: int,
        occupied: int = -1,
        exported: ExportedBatch | None = None,
        carried: int | None = None,
    ) -> tuple[EventArrays, int]:
        """The relevant events of a batch that begins at position ``first`` of the stream, and how many these are.

        ``occupied`` are the states in which runs may be, as bits; ``exported`` says where the batch is; ``carried`` is
        the measure of the last open deadline (`NULL`: none is open) where absences may be found. The arrays may have
        room for more events, and are used again by the next call.
        """
        self._settle(batch)
        self._of_row = None
        exported = exported or ExportedBatch(batch)
        exported, batch = self._use_dictionaries(exported, batch)
        count, control = batch.num_rows, self.room.control
        control[layout.FIRST] = first
        control[layout.COUNT] = control[layout.FIXES] = 0
        contiguity = self._contiguity
        if self._through is not None:
            self._narrowing.try_out(self.room, self._through, batch)
        large, narrowed = count >= limits.NARROWED_ROWS, self.narrows(count)
        self._narrowing.count(rows=count)
        if self._joining is not None:
            self._joining.count(rows=count)
        control[layout.OCCUPIED] = occupied
        self.counted = None
        if self.follows:
            self._begin_counting(count)
        self.complete = None
        alone = contiguity is not None and count >= 2 * contiguity.length and (narrowed if contiguity.keyed else large)
        if contiguity is not None and alone:
            begun = occupied & ~sum(1 << state for state in self.tables.transducer.initial) != 0
            alone = find_consecutive(self.room, contiguity, exported, batch, begun=begun, ending=self.ending)
        self._ask_all(layout.NOT_MARKED if alone else self._marks)
        chosen = contiguity is not None and contiguity.keyed and alone
        through = self._through if narrowed else None
        joining, joined = None if through is None else self._joining, None
        if joining is not None:
            joined = joining.join(self.room, exported, batch, first, occupied, ending=self.ending)
        if joined is None and through is not None and (carried is not None or not through.waits):
            followed = follow_runs(self.room, through, exported, batch, occupied, ending=self.ending)
            chosen = followed and through.by_key is not None
            if 4 * control[layout.OVERLAP] > count >= self.rows_at_once:
                # Rows that later batches may need do not show that most rows matter.
                self.rows_at_once = min(2 * self.rows_at_once, limits.COLUMN_ROWS)
            else:
                self._narrowing.looked_ahead(count, through, *control[layout.RELEVANT : layout.KEPT + 1].tolist())
            if joining is not None and joining.narrows and control[layout.KEPT] >= limits.JOINED_ROWS:
                joined = joining.join(self.room, exported, batch, first, occupied, ending=self.ending, again=True)
        self.absences, how = None, self.program.absence
        if isinstance(how, Absence) and carried is not None:
            self.absences = find_absences(self.room, how, exported, batch, carried)
        if joined is not None:
            self.complete = joined.matches
            self._scan(exported, batch, 0, joined.begin)
            self._scan(exported, batch, joined.end, count)
        elif self.absences is not None:
            self._scan(exported, batch, 0, self.absences.last + 1)
            self._scan(exported, batch, self.absences.behind, count)
        elif contiguity is not None and alone:
            self.complete = matches_found(self.room, contiguity, count, first)
            # Matches that begin or end in another batch.
            others = contiguity.length - 1
            if not chosen:
                self._scan(exported, batch, 0, others)
                self._scan(exported, batch, count - others, count)
        elif not chosen:
            self._scan(exported, batch, 0, count)
        if chosen:
            self._read_chosen(exported, batch)
        self.room.learn(batch)
        found = control[layout.COUNT]
        if self.follows:
            self._take_counted(*control[layout.BEGUN : layout.FOUND + 1].tolist())
        if self.tables.atoms.ordered:
            self.room.events = self.room.events._replace(ranks=self.tables.strings.ranks())
        return self.room.events, found

    def read_one(self, exported: ExportedBatch, batch: pa.RecordBatch, position: int) -> EventArrays | None:
        """The event of a batch of one row at this position, if it is relevant, as `read` gives events.

        The batch is the same for all events, and its columns of text are plain.
        """
        room, tables = self.room, self.tables
        control = room.control
        stale = self._decisions.signatures_of is not tables.relevant or self._coded is not tables.strings.known
        if stale or self._of_row is not batch:
            self._settle(batch)
            self._of_row = batch
            self._ask_all(self._marks)
            control[layout.COUNTS] = control[layout.FIXES] = 0
            self._row.words[1], self._row.words[2] = exported.address, 1
        control[layout.FIRST], control[layout.COUNT], control[layout.ROW] = position, 0, 0
        if self.follows:
            control[layout.OCCUPIED] = -1
        if self._row.call_held() != layout.SCANNED:
            # There may be a new signature.
            tables.forget_signatures()
            if self._decisions.signatures_of is not tables.relevant:
                self._settle(batch)
                self._of_row = batch
            self._scan(exported, batch, 0, 1)
        room.learn(batch)
        return room.events if control[layout.COUNT] else None

    def _settle(self, batch: pa.RecordBatch) -> None:
        """See to it that what kernels know is still so and their arrays are free, and find the columns of a batch."""
        self.tables.forget_signatures()
        self.room.arrays.texts[:, layout.T_ASKED : layout.T_HELD] = 0
        if self._decisions.signatures_of is not self.tables.relevant:
            self._forget_decisions()
            self._show()
        if self._coded is not self.tables.strings.known:
            self._coded = self.tables.strings.known
            for text in self.room.texts:
                text.forget_codes()
        if self._schema is None or not batch.schema.equals(self._schema):
            self._find_columns(batch.schema)
        if self._given_away:
            self._given_away, events = False, self.room.events
            room = np.empty_like(events.signature), np.empty_like(events.position)
            self.room.events = events._replace(signature=room[0], position=room[1])
            self.room.shared.hold(self.room.events)
        self._know_effects()
        self._of_row = None

    def _ask_all(self, marks: int) -> None:
        """Let the kernel ask of all rows what is relevant, beginning with ``marks``."""
        control = self.room.control
        control[layout.NARROWS], control[layout.MARKS] = 0, marks
        control[layout.CANDIDATES] = control[layout.WRITTEN] = control[layout.LOOKED_AHEAD] = 0

    def _use_dictionaries(self, exported: ExportedBatch, batch: pa.RecordBatch) -> tuple[ExportedBatch, pa.RecordBatch]:
        """Take the entries of texts from the dictionaries of a batch, where these are others than before.

        Returns the batch, whose dictionaries have each text once, and where it is.
        """
        words = self._dictionaries.words
        words[1], words[2] = exported.address, 0
        while (number := self._dictionaries.call_held()) >= 0:
            used = self.room.texts[number].use_dictionary(batch)
            if used is not batch:
                batch, exported = used, ExportedBatch(used)
                words[1] = exported.address
            words[2] = number + 1
        return exported, batch

    def _scan(self, exported: ExportedBatch, batch: pa.RecordBatch, begin: int, end: int) -> None:
        """Read the events of some rows of a batch."""
        control, words = self.room.control, self._row.words
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
                double = 2 * len(self.room.events.signature)
                self.room.make_room(max(double, found + found * (end - rows) // max(1, rows)))
            else:
                self.room.resume(reason, batch)

    def _events_for(self) -> Callable[[int], EventArrays]:
        return partial(room_for, self.tables, windowed=self._windowed, narrowed=self._narrowed)

    def _know_effects(self) -> None:
        """Let kernels know the effects of new signatures."""
        if not self.follows:
            return
        if self._effects_of is not self.tables.relevant or len(self.room.arrays.effects) < len(self.tables.relevant):
            self._effects_of = self.tables.relevant
            effects, moves = effects_of(self.tables)
            self.room.hold(effects=effects, moves=moves)

    def _begin_counting(self, rows: int) -> None:
        """Count the runs in a batch of this many rows if that may pay."""
        control, runs = self.room.control, self.room.arrays.runs
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
        signatures, positions = self.room.events.signature, self.room.events.position
        if 2 * (end - begin) < len(signatures):
            some = signatures[begin:end].copy(), positions[begin:end].copy()
        else:
            # To make room for other events costs less than to copy so many.
            some = signatures[begin:end], positions[begin:end]
            self._given_away = True
        self.counted = CountedEvents(begin, end, matches, *some)

    def _read_chosen(self, exported: ExportedBatch, batch: pa.RecordBatch) -> None:
        """Read the rows of a batch that `find_rows` or `flow_by_key` has chosen."""
        control, chosen = self.room.control, self.room.arrays.guards[: batch.num_rows]
        control[layout.NARROWS], control[layout.MARKS], control[layout.LOOKED_AHEAD] = 1, layout.MARKED, 1
        left = int(np.count_nonzero(chosen))
        if self._contiguity is not None:
            self._narrowing.learn(batch.num_rows, batch.num_rows, left)
        self.room.room_for_candidates(left)
        self._scan(exported, batch, 0, batch.num_rows)
        candidates = self.room.arrays.candidates[: control[layout.CANDIDATES]]
        through = self._through
        counted = through is None or (through.by_key is not None and through.by_key.counted != layout.NEITHER)
        candidates[:, layout.B_LEFT_OUT] = self.room.arrays.slot_of[candidates[:, layout.B_ROW]] if counted else 0
        self.room.make_room(control[layout.COUNT] + control[layout.CANDIDATES])
        while (reason := write_candidates(self.room.shared.address)) != layout.SCANNED:
            self.room.resume(reason, batch)

    # -- arrays --------------------------------------------------------------------------------------------------

    def _find_columns(self, schema: pa.Schema) -> None:
        """Say where the columns are among those of batches of a schema."""
        program, arrays = self.program, self.room.arrays
        arrays.columns[:, layout.C_CHILD] = [0 if n is None else schema.names.index(n) for n in program.attributes]
        arrays.texts[:, layout.T_CHILD] = [schema.names.index(name) for name in program.texts]
        for name, text in zip(program.texts, self.room.texts):
            kind = layout_of_text(schema.field(name).type)
            assert kind is not None, f"the scan cannot read the texts of '{name}'"
            text.set_layout(kind)
        self._schema = schema

    def _show(self) -> None:
        """Let kernels see the arrays of the decisions, where these have grown."""
        decisions = self._decisions
        now = (decisions.nodes, decisions.next, decisions.outcomes, decisions.together)
        if self._shown is None or any(a is not b for a, b in zip(now, self._shown)):
            nodes, following, outcomes, together = self._shown = now
            self.room.hold(nodes=nodes, next=following, outcomes=outcomes, together=together)
        self.room.control[layout.ROOT] = decisions.root
