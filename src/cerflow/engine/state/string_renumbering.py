"""Forgetting strings: a stream of ever new identifiers must not fill the memory."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.state.memory import Memory
from cerflow.engine.tables.transducer_tables import Program

__all__ = ["forget_strings"]


def forget_strings(program: Program, memory: Memory) -> None:
    """Renumber the strings that registers and partition keys still hold; the order of their codes stays."""
    if program.collects_strings:
        # Collections are shared by content, whatever it means, so their words cannot be renumbered.
        program.strings.replace(program.strings.texts)
        return
    state = memory.state
    holders = memory.holders(program.string_slots)
    state = memory.state
    own = program.own_strings
    partitions = int(state.counters[layout.N_PARTITIONS])
    keys = [1 + k for k, kind in enumerate(program.key_kinds) if kind.coded]
    found = [array[rows, slot] for array, rows, slot in holders]
    found += [state.partition_long[:partitions, word] for word in keys]
    used = np.unique(np.concatenate([*found, np.arange(own)]))
    used = used[(used >= 0) & (used < len(program.strings))]

    for array, rows, slot in holders:
        codes = array[rows, slot]
        array[rows, slot] = np.where(codes >= 0, np.searchsorted(used, codes), codes)
    for word in keys:
        codes = state.partition_long[:partitions, word]
        state.partition_long[:partitions, word] = np.searchsorted(used, codes)
    program.strings.replace([program.strings.texts[k] for k in used.tolist()])
    memory.rehash()
