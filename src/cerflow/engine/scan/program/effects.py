"""The effect of events on the states that may be occupied; events without effect are left out.

A state is occupied if some configuration may be in it. A run that takes the next event of a kind leaves its state then,
so further events of the kind do nothing until another run comes. Where nothing else matters, the runs in each state are
counted, and the match graph is made only when matches are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cerflow.base.array_types import IntRows, Ints, Smalls
from cerflow.engine import layout as engine_layout
from cerflow.engine.scan import layout
from cerflow.engine.tables.transducer_tables import TransducerTables


class CountedEvents(NamedTuple):
    """The events of a batch from number ``begin`` up to ``end``, before and behind which no run is open."""

    begin: int
    end: int
    matches: int
    signatures: Smalls
    positions: Ints


def empties_states(tables: TransducerTables) -> bool:
    """Whether an event can end all runs of a state, and nothing but states says what an event does."""
    arrays, moves = tables.arrays, tables.moves
    initial, states = tables.transducer.initial, tables.transducer.states
    chosen = arrays.options[engine_layout.O_STRATEGY] != engine_layout.EVERYTHING
    if tables.grouped or tables.partitioned or tables.counted or tables.ticking or tables.asks or chosen:
        return False
    ends = any(loops and frozenset() not in loops for q, loops in enumerate(moves.loops) if q not in initial)
    return ends and states <= engine_layout.STATE_BITS and not len(arrays.checked)


def counted_states(tables: TransducerTables, outputs: Sequence[Sequence[int]]) -> int:
    """The states that runs enter, as bits, if the number of runs in each says how many matches there are; or else 0.

    ``outputs`` are the rows of `ScanArrays.outputs`. Only where `empties_states` holds.
    """
    arrays = tables.arrays
    chosen = tables.pick != engine_layout.EVERYTHING or arrays.options[engine_layout.O_CONSUME]
    limited = tables.transducer.window is not None or len(arrays.atoms) or len(arrays.local)
    entered = {move.target for move in tables.moves.rows} - {-1}
    # A run that enters an initial state would be mixed up with those that begin there.
    if outputs or tables.detecting or chosen or limited or not entered.isdisjoint(tables.transducer.initial):
        return 0
    # Where no event may be skipped, a run ends with an event that is not written.
    return sum(1 << state for state in entered) if all(arrays.skips[state] for state in entered) else 0


def effects_of(tables: TransducerTables) -> tuple[IntRows, IntRows]:
    """`ScanArrays.effects` and `ScanArrays.moves` for the signatures so far."""
    arrays = tables.arrays
    starts, rows = arrays.signature_start, arrays.signature_rows
    effects = np.zeros((len(starts) - 1, layout.EFFECT_WORDS), np.int64)
    moves: list[tuple[int, int, bool]] = []
    for signature, effect in enumerate(effects):
        begin = len(moves)
        for row in rows[starts[signature] : starts[signature + 1]].tolist():
            state = row[engine_layout.ROW_STATE]
            effect[layout.E_MATTERS] |= 1 << state
            if row[engine_layout.ROW_LEAVES] == engine_layout.LEAVES and state not in tables.transducer.initial:
                effect[layout.E_LEAVES] |= 1 << state
        for number in tables.effects[signature][0]:
            move = tables.moves.rows[number]
            moves.append((move.transition.source, move.target, move.final))
        effect[layout.E_LEAD : layout.E_LEAD_END + 1] = begin, len(moves)
        effect[layout.E_SOURCE :] = _alone(moves[begin:], int(effect[layout.E_LEAVES]), tables.transducer.states)
    return effects, np.array(moves, np.int64).reshape(-1, 3)


def _alone(moves: Sequence[tuple[int, int, bool]], left: int, states: int) -> tuple[int, int, int, int]:
    """The last columns of `ScanArrays.effects` for some moves of an event that empties the states ``left``."""
    if len(moves) == 1:
        ((source, target, final),) = moves
        if source != target and left in (0, 1 << source) and final == (target < 0):
            return source, states if final else target, 0 if final else 1 << target, 0 if left else -1
    return -1, 0, 0, 0
