"""Passes over a stretch of rows that ask for the class of a text, column by column, before all else is asked.

``s.chosen`` are the rows that may be relevant, ``s.at`` is where the answers so far have led.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan.texts import entry_of, short_entry
from cerflow.engine.kernels.scan.values import load_int, load_small, load_word, start_of, store_word
from cerflow.engine.scan import layout


@part
def pass_of_text(s, t, count):
    """Ask the first ``count`` chosen rows for text ``t``; returns how many are left.

    If it stops, it returns less than 0: a reason of the kind, negated. What is unknown then, `TEXT`, `NODE` and
    `OUTCOME` say.
    """
    kind = s.texts[t, layout.T_LAYOUT]
    if s.texts[t, layout.T_VALID] == 0:
        if kind == layout.INT32:
            return _by_index32(s, t, count)
        if kind == layout.INT8:
            return _by_index8(s, t, count)
        if kind == layout.TEXT32:
            return _by_text(s, t, count)
    return _by_entry(s, t, count)


def _pass(entry_at, name):
    """A pass by a function that gives the entry of a row."""

    def run(s, t, count):
        texts, control = s.texts, s.control
        # Read before anything is written.
        nodes, following = start_of(s.nodes), start_of(s.next)
        chosen, at = start_of(s.chosen), start_of(s.at)
        classes, data, offset = texts[t, layout.T_CLASSES], texts[t, layout.T_DATA], texts[t, layout.T_OFFSET]
        letters, size = texts[t, layout.T_BYTES], texts[t, layout.T_SIZE]
        slots, mask = texts[t, layout.T_SLOTS], texts[t, layout.T_MASK]
        room = texts[t, layout.T_ROOM]
        kept = np.int64(0)
        for k in range(count):
            row, node = load_word(chosen, k), load_word(at, k)
            fields = nodes + 8 * layout.NODE_WORDS * node
            if node >= 0 and load_word(fields, layout.N_ASKS) == t:
                entry = entry_at(texts, t, row, data, offset + row, letters, size, slots, mask, room)
                cls = np.int64(-1) if entry < 0 else load_word(classes, entry)
                to = np.int64(layout.UNKNOWN)
                if 0 <= cls < load_word(fields, layout.N_WIDTH):
                    to = load_word(following, load_word(fields, layout.N_NEXT) + cls)
                if to == layout.UNKNOWN:
                    control[layout.TEXT], control[layout.NODE], control[layout.OUTCOME] = t, node, cls
                    return np.int64(
                        -layout.NO_ROOM if entry < 0 else -layout.NO_CLASS if cls < 0 else -layout.NO_OUTCOME
                    )
                node = to
            store_word(chosen, kept, row)
            store_word(at, kept, node)
            kept += node != layout.IRRELEVANT
        return kept

    run.__qualname__ = name
    return part(run)


@inlined
def _index32(texts, t, row, data, at, letters, size, slots, mask, room):
    return _within(1 + load_int(data, at), room)


@inlined
def _index8(texts, t, row, data, at, letters, size, slots, mask, room):
    return _within(1 + load_small(data, at), room)


@inlined
def _within(entry, room):
    return entry if np.uint64(entry) < np.uint64(room) else np.int64(0)


@inlined
def _text(texts, t, row, data, at, letters, size, slots, mask, room):
    """The entry of a text of at most eight bytes, if it is where it is first looked for."""
    start = load_int(data, at)
    length = load_int(data, at + 1) - start
    entry = short_entry(letters, size, (slots, mask), start, length)
    return entry if entry > 0 else entry_of(texts, t, row)


@inlined
def _entry(texts, t, row, data, at, letters, size, slots, mask, room):
    return entry_of(texts, t, row)


_by_index32 = _pass(_index32, "_by_index32")
_by_index8 = _pass(_index8, "_by_index8")
_by_text = _pass(_text, "_by_text")
_by_entry = _pass(_entry, "_by_entry")
