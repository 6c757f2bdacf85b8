"""Forgets strings that are not needed, so that a stream of ever new identifiers does not grow."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.state.memory import Memory
from cerflow.engine.tables.transducer_tables import TransducerTables


def forget_strings(tables: TransducerTables, memory: Memory) -> None:
    """Renumber the strings that registers and partition keys still hold; their codes keep their order."""
    if tables.collects_strings:
        # Collections are shared by content, with or without strings, so their words cannot be renumbered.
        tables.strings.replace(tables.strings.texts)
        return
    state = memory.state
    holders = memory.holders(tables.string_slots)
    state = memory.state
    own = tables.own_strings
    partitions = int(state.counters[layout.N_PARTITIONS])
    keys = [1 + k for k, kind in enumerate(tables.key_kinds) if kind.coded]
    found = [array[rows, slot] for array, rows, slot in holders]
    found += [state.partition_long[:partitions, word] for word in keys]
    used = np.unique(np.concatenate([*found, np.arange(own)]))
    used = used[(used >= 0) & (used < len(tables.strings))]

    places = [(array, rows, slot) for array, rows, slot in holders]
    places += [(state.partition_long, np.arange(partitions), word) for word in keys]
    held = [array[rows, slot] for array, rows, slot in places]
    # Make all arrays before the first change, as memory may run out.
    renumbered = [np.where(codes >= 0, np.searchsorted(used, codes), codes) for codes in held]
    for (array, rows, slot), codes in zip(places, renumbered):
        array[rows, slot] = codes
    tables.strings.replace([tables.strings.texts[k] for k in used.tolist()])
    memory.rehash()
