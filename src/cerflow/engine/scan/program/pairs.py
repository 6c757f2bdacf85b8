"""Matches of two events that columns decide, with anything between them: a first event waits for a last one.

They are found like a join: what an event may end is looked up, by key if there is one, as far back as the window goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.base.array_types import IntRows
from cerflow.engine import layout as engine_layout
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.contiguous import key_column, labels_of_steps, undecided
from cerflow.engine.scan.program.emitting import ScannedColumns
from cerflow.engine.scan.program.flow import Flow
from cerflow.engine.scan.program.guards import Guards
from cerflow.engine.scan.program.links import Links
from cerflow.engine.tables.transducer_tables import TransducerTables


@dataclass(frozen=True)
class Pairs:
    """How two events are a match: the first has one of the guards ``opening``, the last one of the guards ``ending``.

    ``links`` and ``labels`` are as in `cerflow.engine.scan.program.contiguous.Contiguity`. Runs wait in the states
    ``waiting``, as bits. Of the matches of an event a strategy makes a ``choice`` (see `cerflow.engine.layout`).
    """

    opening: int
    ending: int
    links: Sequence[Sequence[int]]
    labels: IntRows
    waiting: int
    choice: int
    keyed: bool


def pairs_of(
    tables: TransducerTables,
    outputs: Sequence[Sequence[int]],
    relevant: Guards | None,
    flow: Flow | str,
    to: ScannedColumns,
) -> Pairs | str:
    """How matches are pairs of events, or why the automaton has to find them.

    ``outputs`` are the rows of `ScanArrays.outputs`, ``relevant`` the guards of relevant events, and ``flow`` is that
    of the same tables. The programs of conditions are added to the code of ``to``.
    """
    moves, initial = tables.moves, tables.transducer.initial
    choice = max(tables.pick, int(tables.arrays.options[engine_layout.O_STRATEGY]))
    reason = undecided(tables, choice)
    if reason is not None:
        return reason
    if choice == engine_layout.LARGEST or tables.by:
        return "a strategy that compares labels, or keeps several matches"
    if isinstance(flow, str):
        return flow
    if flow.by_key is not None or flow.first:
        return "other events between the two count"
    if key_column([row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]) is None:
        return "a key in one of several columns"
    first = [move.transition.source in initial for move in moves.rows]
    opening = [move for move, is_first in zip(moves.rows, first) if is_first]
    ending = [move for move, is_first in zip(moves.rows, first) if not is_first]
    waiting = {move.target for move in opening}
    two = {move.transition.source for move in ending} == waiting and len(waiting) == 1
    if not two or any(m.final for m in opening) or not all(m.final and m.target < 0 for m in ending):
        return "not all matches have two events"
    if any(frozenset() not in moves.loops[state] for state in initial | waiting):
        return "events between the two count"
    apart = any(column.window is not None for column in tables.columns) or len(tables.arrays.local) > 0
    if apart or flow.window != tables.transducer.window:
        return "a window that is not one of all matches"
    if tables.detecting:
        # One match shows that there are some.
        choice = engine_layout.LATEST
    steps = [1 if is_first else 2 for is_first in first]
    whole = labels_of_steps(tables, steps, 2, relevant, choice)
    if isinstance(whole, str):
        return whole
    made = tables.arrays.transitions[[move.number for move in moves.rows], engine_layout.T_LABEL]
    if not (tables.detecting or made.all()):
        return "an event that is not part of the result"
    links, decided = Links(tables, outputs, to, waiting=True).rows(steps)
    if not decided:
        return "a condition that columns cannot decide"
    if tables.limit is not None and choice == engine_layout.EVERYTHING:
        if tables.limit > 1 or links:
            return "LIMIT or ANY chooses among runs with different values"
        # The latest start comes first.
        choice = engine_layout.LATEST
    (opens, closes), labels = whole
    return Pairs(opens, closes, links, labels, sum(1 << state for state in waiting), choice, len(flow.keyed) > 0)
