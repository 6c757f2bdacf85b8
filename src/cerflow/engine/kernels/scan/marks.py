"""The guards that the texts of rows leave possible (see `cerflow.engine.scan.program.guards`), column by column.

``out`` is the address of a byte for each row, from row ``begin`` on.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.single_texts import LONGEST, by_single
from cerflow.engine.kernels.scan.texts import entry_of, short_entry
from cerflow.engine.scan import layout

#: Visits rows one by one if fewer than one in so many is left.
_FEW = 8


@part
def mark(s, begin, count, out, wanted, searched):
    """Close the guards of ``count`` rows that texts rule out; returns what stopped it, as ``scan`` does.

    ``searched`` says whether the columns are asked whose texts are looked for in a table, or all others. If ``wanted``
    are not 0 and none of these guards may hold for any row, all are closed.
    """
    texts = s.texts
    lead = s.control[layout.LEAD] if wanted != 0 else np.int64(0)
    for j in range(texts.shape[0]):
        t = lead + j
        if t >= texts.shape[0]:
            t -= texts.shape[0]
        guards, kind = texts[t, layout.T_GUARDS], texts[t, layout.T_LAYOUT]
        single = texts[t, layout.T_SINGLES] >= 0
        if guards == 0 or searched != (kind >= layout.TEXT32 and not single):
            continue
        if wanted != 0 and not _may_open(texts, t, begin, count, wanted):
            fill_guards(out, count, 0)
            s.control[layout.LEAD] = t
            return layout.SCANNED
        data, at, room = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin, texts[t, layout.T_ROOM]
        reason = layout.SCANNED
        plain = texts[t, layout.T_VALID] == 0
        indexed = kind in (layout.INT32, layout.UINT32, layout.INT8)
        if texts[t, layout.T_FROM] <= begin and begin + count <= texts[t, layout.T_TO]:
            _by_row(texts[t, layout.T_ASIDE] + begin - texts[t, layout.T_FROM], count, out)
        elif single and (indexed or kind in (layout.TEXT32, layout.TEXT64, layout.TEXT_VIEW)):
            done = by_single(s, t, begin, count, out)
            if done < count:
                reason = _by_entry(texts, t, begin + done, count - done, guards, out + done)
        elif plain and kind == layout.INT32:
            _by_index32(data, at, count, room, guards, out)
        elif plain and kind == layout.UINT32:
            _by_unsigned32(data, at, count, room, guards, out)
        elif plain and kind == layout.INT8:
            _by_index8(data, at, count, room, guards, out)
        elif plain and kind == layout.TEXT32 and _FEW * v.rows_with(out, count & ~7, 255) > count:
            reason = _by_text(texts, t, begin, count, guards, out)
        else:
            reason = _by_entry(texts, t, begin, count, guards, out)
        if reason != layout.SCANNED:
            s.control[layout.TEXT] = t
            return reason
        if wanted != 0 and not _any_open(out, count, wanted):
            fill_guards(out, count, 0)
            s.control[layout.LEAD] = t
            return layout.SCANNED
    return layout.SCANNED


@part
def list_marked(s, begin, end, guards):
    """List the rows ``[begin, end)`` that have ``guards`` in `chosen`; they are at most a stretch.

    ``s`` are the arrays of the scan. Returns how many rows there are.
    """
    chosen, some = v.start_of(s.chosen), np.int64(0)
    for first in range(begin, end, 64):
        left = v.marked_rows(guards + first, end - first)
        while left != 0:
            v.store_word(chosen, some, first + v.trailing_zeros(left))
            left = v.without_lowest(left)
            some += 1
    return some


@part
def fill_guards(out, count, guards):
    """Write the same ``guards`` for ``count`` rows."""
    for k in range(count):
        v.store_byte(out, k, guards)


@part
def _may_open(texts, t, begin, count, wanted):
    """Whether some row may have a text with any of the guards ``wanted``, by the dictionary or by lengths alone."""
    if texts[t, layout.T_OPEN] & wanted == 0:
        return False
    lengths = texts[t, layout.T_LENGTHS]
    views = texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW
    if lengths == -1 or texts[t, layout.T_VALID] != 0 or (texts[t, layout.T_LAYOUT] != layout.TEXT32 and not views):
        return True
    seen, at = np.int64(0), texts[t, layout.T_DATA] + 16 * (texts[t, layout.T_OFFSET] + begin)
    for k in range(count if views else 0):
        seen |= np.int64(1) << min(v.load_int(at, 4 * k), LONGEST)
    offsets = texts[t, layout.T_DATA] + 4 * (texts[t, layout.T_OFFSET] + begin)
    # The compiler makes vectors of this loop.
    for k in range(0 if views else count):
        seen |= np.int64(1) << min(v.load_int(offsets, k + 1) - v.load_int(offsets, k), LONGEST)
    return seen & lengths != 0


@part
def _any_open(guards, count, wanted):
    """Whether any of the guards ``wanted`` may hold for some row."""
    found = np.int64(0)
    for k in range(count >> 3):
        found |= v.load_word(guards, k)
    for k in range(count & ~7, count):
        found |= v.load_byte(guards, k)
    return found & wrapped_product(wanted, v.ONES) != 0


def _by_index(load, name):
    """Reads indices of a dictionary by a function."""

    def run(data, at, count, room, guards, out):
        for k in range(count):
            entry = 1 + load(data, at + k)
            if np.uint64(entry) >= np.uint64(room):
                entry = np.int64(0)
            v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, entry))

    run.__qualname__ = name
    return part(run)


_by_index32 = _by_index(v.load_int, "_by_index32")
_by_unsigned32 = _by_index(v.load_unsigned, "_by_unsigned32")
_by_index8 = _by_index(v.load_small, "_by_index8")


@part
def _by_text(texts, t, begin, count, guards, out):
    """Texts of at most eight bytes are looked for in one place; where that fails, `_by_entry` looks on."""
    data, at = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin
    letters, size, judged = texts[t, layout.T_BYTES], texts[t, layout.T_SIZE], texts[t, layout.T_JUDGED]
    table = texts[t, layout.T_SLOTS], texts[t, layout.T_MASK]
    start = v.load_int(data, at)
    for k in range(count):
        end = v.load_int(data, at + k + 1)
        entry = short_entry(letters, size, table, start, end - start)
        start = end
        if 0 < entry < judged:
            v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, entry))
        elif v.load_byte(out, k) != 0:
            reason = _by_entry_of(texts, t, begin + k, guards, out + k)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@part
def _by_row(guards, count, out):
    """The guards of each row are known."""
    for k in range(count):
        v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, k))


@part
def _by_entry(texts, t, begin, count, guards, out):
    """Only texts of rows for which a guard may hold get an entry."""
    for first in range(0, count, 64):
        left = v.marked_rows(out + first, count - first)
        while left != 0:
            k = first + v.trailing_zeros(left)
            left = v.without_lowest(left)
            reason = _by_entry_of(texts, t, begin + k, guards, out + k)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@part
def mark_by_others(s, t, begin, count, out):
    """Close the guards of ``count`` rows that texts of other columns than ``t`` rule out, as far as they are known.

    ``begin``, ``out`` and ``s`` are as for `mark`; rows behind a text that is not known may stay open.
    """
    texts = s.texts
    for u in range(texts.shape[0]):
        searched = texts[u, layout.T_LAYOUT] >= layout.TEXT32 and texts[u, layout.T_SINGLES] < 0
        if u != t and searched and texts[u, layout.T_ASIDE] == 0 and texts[u, layout.T_GUARDS] != 0:
            _by_entry(texts, u, begin, count, texts[u, layout.T_GUARDS], out)


@inlined
def _by_entry_of(texts, t, row, guards, out):
    """The same of one row; ``out`` is where its guards are."""
    entry = entry_of(texts, t, row)
    if entry < 0:
        return layout.NO_ROOM
    if entry >= texts[t, layout.T_JUDGED]:
        return layout.NO_CLASS
    v.store_byte(out, 0, v.load_byte(out, 0) & v.load_byte(guards, entry))
    return layout.SCANNED
