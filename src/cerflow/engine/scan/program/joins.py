"""Matches that columns decide, of as many events each, with anything between them: each event waits for the next one.

They are found like a join: what an event may end is looked up, by key if there is one, as far back as the window goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cerflow.base.array_types import IntRows
from cerflow.engine import layout as engine_layout
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.contiguous import key_column, labels_of_steps, undecided
from cerflow.engine.scan.program.emitting import ScannedColumns
from cerflow.engine.scan.program.flow import ByKey, Flow
from cerflow.engine.scan.program.guards import Guards, are_told
from cerflow.engine.scan.program.links import Links, levels_of
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import CountWindow

#: Events of a match, at most.
_EVENTS = 4


@dataclass(frozen=True)
class Joinable:
    """How some events are a match: for each step, ``guards`` has those of which one must hold for its event.

    An event between that of a step and the next one must have none of the guards that ``kills`` has for the step.
    ``handed`` are rows of `ScanArrays.join_keys`.
    ``links`` and ``labels`` are as in `cerflow.engine.scan.program.contiguous.Contiguity`. Runs wait in the states
    ``waiting``, as bits. Of the matches of an event a strategy makes a ``choice`` (see `cerflow.engine.layout`). Where
    the window counts the events of a key, ``within`` is how many it has, and ``numbers`` tells keys apart; else they
    are 0 and None.
    """

    guards: Sequence[int]
    kills: Sequence[int]
    handed: Sequence[Sequence[int]]
    links: Sequence[Sequence[int]]
    labels: IntRows
    waiting: int
    choice: int
    keyed: bool
    within: int
    numbers: ByKey | None


def join_of(
    tables: TransducerTables,
    outputs: Sequence[Sequence[int]],
    relevant: Guards | None,
    flow: Flow | str,
    to: ScannedColumns,
) -> Joinable | str:
    """How the events of matches are joined, or why the automaton has to find them.

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
    window, within = tables.transducer.window, 0
    if flow.by_key is not None and flow.by_key.counted == layout.HOW_MANY and isinstance(window, CountWindow):
        within = min(window.events, 1 << 32)
    if (flow.by_key is not None and not within) or flow.first:
        return "other events between those of a match count"
    if key_column([row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]) is None:
        return "a key in one of several columns"
    levels = levels_of(tables) or {}
    steps = [levels.get(move.transition.source, -1) for move in moves.rows]
    last = max(steps, default=0)
    if last < 1 or -1 in steps or any(m.final != (step == last) for m, step in zip(moves.rows, steps)):
        return "not all matches have the same number of events, two or more"
    if last >= _EVENTS:
        return f"more than {_EVENTS} events, which often have many combinations"
    kills = _kills(tables, levels, relevant)
    if kills is None:
        return "every event between those of a match counts"
    apart = any(column.window is not None for column in tables.columns) or len(tables.arrays.local) > 0
    if apart or (not within and flow.window != window):
        return "a window that is not one of all matches"
    if tables.detecting:
        # One match shows that there are some.
        choice = engine_layout.LATEST
    if last > 1 and choice != engine_layout.EVERYTHING:
        return "a strategy, and more than two events"
    bits = [1 << step for step in steps]
    whole = labels_of_steps(tables, bits, last + 1, relevant, choice)
    if isinstance(whole, str):
        return whole
    made = tables.arrays.transitions[[move.number for move in moves.rows], engine_layout.T_LABEL]
    if not (tables.detecting or made.all()):
        return "an event that is not part of the result"
    made_of = Links(tables, outputs, to, waiting=True)
    links, decided = made_of.rows(bits)
    if not decided:
        return made_of.reason
    if tables.limit is not None and choice == engine_layout.EVERYTHING:
        if tables.limit > 1 or links or last > 1:
            return "LIMIT or ANY chooses among runs with different values"
        # The latest start comes first.
        choice = engine_layout.LATEST
    guards, labels = whole
    waiting = sum(1 << state for state in levels.keys() - initial)
    # Without keys an event may end the waiting of all runs.
    handed = [] if flow.keyed or any(kills) else made_of.handed()
    keyed = len(flow.keyed) > 0 or len(handed) > 0
    return Joinable(guards, kills, handed, links, labels, waiting, choice, keyed, within, flow.by_key)


def _kills(tables: TransducerTables, levels: Mapping[int, int], relevant: Guards | None) -> list[int] | None:
    """By step, the guards of events that end the waiting behind it; None if guards do not say that."""
    kills = dict.fromkeys(range(max(levels.values())), 0)
    for state, level in levels.items():
        loops = tables.moves.loops[state]
        if frozenset() in loops:
            continue
        if relevant is None or not loops or not are_told(loops) or level == 0:
            return None
        kills[level - 1] |= relevant.failing(loops)
    return [*kills.values()]
