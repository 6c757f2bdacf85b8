"""Matches of a single event that no other follows for a while, found in the rows of a batch without the automaton.

A run of `A NOT FOLLOWED BY B FOR 1 HOUR` waits from its only event on; any B of its key before the deadline ends it.
So for each A the next B of its key decides, and a pass from the end of a batch finds it. The automaton reads only what
crosses the borders of the batch: the rows up to that which shows the last earlier deadline, and those from the first
on whose deadline lies behind the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from cerflow.automata.model.clock import TICK, reads_tick
from cerflow.base import limits
from cerflow.base.array_types import Ints, Smalls
from cerflow.engine import layout as engine_layout
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.kernels.table import absent
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.graph import CountedMatches, MatchGraph, Moments, in_turn, single_events
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.program.contiguous import key_column, texts_of
from cerflow.engine.scan.program.guards import ALL, Guards, guards_of_absence
from cerflow.engine.scan.room import ScanRoom
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Not
from cerflow.language.formula import Window
from cerflow.logic.conditions.guards import InWindow

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Absence:
    """How matches wait: they begin by ``opening`` moves, which have the lowest bits in ``guards``; the others end them.

    ``labels`` has the label set of a match by the guards of its event. ``reach`` are the outputs that measure the time
    until the deadline; ``key`` and ``texts`` are as in `cerflow.engine.scan.program.contiguous.Contiguity`.
    """

    opening: frozenset[int]
    guards: Guards
    labels: Smalls
    reach: Sequence[Sequence[int]]
    key: int
    texts: frozenset[int]


@dataclass(frozen=True)
class Absences:
    """The matches within a batch: events at ``rows``, ascending, whose deadlines are ``shown`` by others.

    ``keys`` are the numbers of their keys, ``own`` says whether the row that shows a deadline is of the same key, and
    ``labels`` are the label sets. No two matches have the same moment if they are ``single``. The automaton reads the
    rows up to ``last``, of which those from ``begin`` on open no deadline, and the rows from ``behind`` on.
    """

    last: int
    begin: int
    behind: int
    single: bool
    rows: Ints
    shown: Ints
    keys: Ints
    own: Ints
    labels: Smalls

    def matches(self, whole: BatchRows, position: int) -> CountedMatches:
        """The matches in ``whole``, a batch from this position of the stream on."""
        return CountedMatches(len(self.rows), partial(self._graph, whole, position), single=self.single)

    def _graph(self, whole: BatchRows, position: int) -> MatchGraph:
        # A row shows the deadlines of its own key last.
        order = in_turn(2 * self.shown + self.own, self.keys[:, None], self.rows, -self.rows)
        shown, keys, positions = self.shown[order], self.keys[order], self.rows[order] + position
        first = np.append(True, (np.diff(shown) != 0) | (np.diff(keys) != 0))
        rows = shown[first]
        assert whole.schema.time is not None
        times = whole.batch.column(whole.schema.time).take(pa.array(rows))
        moments = Moments(pa.array(whole.positions_at(rows)[0]), times, positions[first], _NOTHING)
        return single_events(positions, self.labels[order], moments, np.cumsum(first) - 1)

    def read_before(
        self, how: Absence, tables: TransducerTables, events: EventArrays, rows: Ints
    ) -> tuple[Ints, Smalls]:
        """The numbers and signatures of the ``events`` at ``rows`` up to `last` that the automaton reads."""
        signatures, kept = events.signature.copy(), np.ones(len(rows), bool)
        apart = np.flatnonzero(rows >= self.begin)
        for signature in np.unique(signatures[apart]).tolist():
            other = tables.without(signature, how.opening)
            if other != signature:
                same = apart[signatures[apart] == signature]
                # The last row may be of the key whose deadlines it shows.
                signatures[same], kept[same] = other, tables.relevant[other] | (rows[same] == self.last)
        numbers = np.flatnonzero(kept)
        return numbers, signatures[numbers]


def absence(
    tables: TransducerTables,
    outputs: Sequence[Sequence[int]],
    by_block: frozenset[int],
    measured: Callable[[Window, bool], Sequence[int]],
) -> Absence | str:
    """How matches wait for their deadline, or why only the automaton can tell.

    ``outputs`` are the rows of `ScanArrays.outputs`, ``by_block`` the tests that blocks of rows are asked for;
    ``measured`` gives the output for the measure of a window, or for its bound.
    """
    moves, transducer, arrays = tables.moves, tables.transducer, tables.arrays
    if not tables.ticking:
        return "no deadline"
    if len(tables.deadlines) != 1 or tables.reached:
        return "more than one duration, or a deadline at a value of an attribute"
    if tables.schema.forget is not None or transducer.window is not None or len(arrays.checked) or tables.asks:
        return "a window, a predicate, or keys that are forgotten"
    strategy = arrays.options[engine_layout.O_STRATEGY], tables.pick
    if (
        tables.grouped
        or tables.detecting
        or arrays.options[engine_layout.O_CONSUME]
        or strategy != (engine_layout.EVERYTHING,) * 2
    ):
        return "a strategy, CONSUME, or a query without output"
    other = "more than one event before the deadline, or a condition that relates two events"
    opening = [move for move in moves.rows if move.transition.source in transducer.initial]
    waiting = {move.target for move in opening}
    rest = [move for move in moves.rows if move not in opening]
    begins = len(waiting) == len(transducer.initial) == 1 and not any(m.final or m.transition.atoms for m in opening)
    if not begins or len(rest) != 3 or any(frozenset() not in moves.loops[q] for q in transducer.initial):
        return other
    (state,) = waiting
    staying, leaving, ending = sorted(rest, key=lambda move: (move.final, move.target != state))
    ticks = all(reads_tick(move.transition) and move.transition.source == state for move in (staying, leaving))
    (atom,) = staying.transition.atoms if len(staying.transition.atoms) == 1 else (None,)
    passes = isinstance(atom, InWindow) and staying.target == state and leaving.transition.atoms == (Not(atom),)
    ends = ending.final and (ending.transition.source, ending.transition.test) == (leaving.target, Not(TICK))
    if not (ticks and passes and ends and not ending.transition.atoms and len(arrays.local) == 0):
        return other
    keys = [row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]
    key, needs = key_column(keys), [move.needs for move in opening]
    # No event of the input is a tick.
    known = {number for number, test in enumerate(tables.tests) if test == Not(TICK)}
    guards = guards_of_absence(needs, [loop - known for loop in moves.loops[state]], by_block)
    if key is None or guards is None or len(set(needs)) < len(needs):
        return "a key in one of several columns, or too many different conditions"
    labels = np.zeros(ALL + 1, np.int32)
    for k, move in enumerate(opening):
        labels[[byte for byte in range(ALL + 1) if byte >> k & 1]] = arrays.transitions[
            move.number, engine_layout.T_LABEL
        ]
    reach = [measured(tables.deadlines[0], False), measured(tables.deadlines[0], True)]
    return Absence(frozenset(move.number for move in opening), guards, labels, reach, key, texts_of(keys))


def find_absences(
    room: ScanRoom, how: Absence, exported: ExportedBatch, batch: pa.RecordBatch, carried: int
) -> Absences | None:
    """Find the matches within a batch; None if the automaton should read all of it.

    ``carried`` is the measure of the last deadline that is open before it (`NULL`: none is).
    """
    count = batch.num_rows
    if count < limits.NARROWED_ROWS or room.unfound:
        return None
    room.room_for_rows(count, "guards", "slot_of")
    found, told, opening = np.empty((count, 4), np.int32), [0] * 5, (1 << len(how.opening)) - 1

    def find() -> int:
        call = room.shared.address, exported.address, count, how.key, opening, ALL - opening, carried, found
        reason, *told[:] = absent(*call)
        return int(reason)

    if not room.with_keys(find, how.key, how.texts, batch):
        return None
    last, begin, behind, single, many = told
    if many < 0:
        return None
    rows, shown, keys, own = found[:many][::-1].T.astype(np.int64)
    return Absences(last, begin, behind, single == 1, rows, shown, keys, own, how.labels[room.arrays.guards[rows]])
