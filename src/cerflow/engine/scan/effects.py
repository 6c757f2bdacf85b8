"""The effect of events on the states that may be occupied; events without effect are left out.

A state is occupied if some configuration may be in it. A run that takes the next event of a kind leaves its state then,
so further events of the kind do nothing until another run comes.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout as engine_layout
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.values.array_types import IntRows

__all__ = ["effects_of", "empties_states"]

#: States that have bits of their own.
_STATES = 62


def empties_states(tables: TransducerTables) -> bool:
    """Whether an event can end all runs of a state, and nothing but states says what an event does."""
    arrays, moves = tables.arrays, tables.moves
    initial, states = tables.transducer.initial, tables.transducer.states
    chosen = arrays.options[engine_layout.O_STRATEGY] != engine_layout.EVERYTHING
    if tables.grouped or tables.partitioned or tables.counted or tables.ticking or tables.asks or chosen:
        return False
    ends = any(loops and frozenset() not in loops for q, loops in enumerate(moves.loops) if q not in initial)
    return ends and states <= _STATES and not len(arrays.checked)


def effects_of(tables: TransducerTables) -> tuple[IntRows, IntRows]:
    """`ScanArrays.effects` and `ScanArrays.hops` for the signatures so far."""
    arrays = tables.arrays
    starts, rows = arrays.signature_start, arrays.signature_rows
    effects = np.zeros((len(starts) - 1, 4), np.int64)
    hops: list[tuple[int, int]] = []
    for signature, effect in enumerate(effects):
        begin = len(hops)
        for row in rows[starts[signature] : starts[signature + 1]].tolist():
            state = row[engine_layout.ROW_STATE]
            effect[0] |= 1 << state
            if row[engine_layout.ROW_LEAVES] == engine_layout.LEAVES and state not in tables.transducer.initial:
                effect[1] |= 1 << state
        for number in sorted(tables.allowed(signature)):
            move = tables.moves.rows[number]
            if move.target >= 0:
                hops.append((1 << move.transition.source, 1 << move.target))
        effect[2:] = begin, len(hops)
    return effects, np.array(hops, np.int64).reshape(-1, 2)
