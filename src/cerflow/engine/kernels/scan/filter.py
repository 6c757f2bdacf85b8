"""A filter of keys: it rules out rows of whose key no event is near that every match needs."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import leads
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.keys import FOR_LIST, KNOWN, begin_list, list_rows
from cerflow.engine.kernels.scan.leads import BOUND, MEASURE, window_value
from cerflow.engine.kernels.scan.texts import mixed, slot_for
from cerflow.engine.scan import layout

#: Bits for each entry of the filter.
_FILTER = 16
#: Added to the shift that gives the stretch of a time, if all of a batch is one.
_WHOLE = 64


@part
def filter_keys(s, count, states, ends, guards, address):
    """Clear the ``guards`` of rows of whose key no event is near that every match needs; returns how many, or -1.

    The rarest event that matches need beside their last one decides. If none is much rarer than that, -1 is returned;
    otherwise `listed` has all rows with guards afterwards. ``states`` and ``ends`` are as for `flow`; ``s`` are the
    arrays of the scan at ``address``.
    """
    needed, rare = np.int64(-1), v.rows_with(guards, count, s.step_guards[0]) >> 2
    for n in range(1, s.step_guards.shape[0]):
        found = v.rows_with(guards, count, s.step_guards[n])
        if found < rare:
            needed, rare = s.step_guards[n], found
    # Matches of rows from here to there lie in the batch; of too many states it is not known whether runs are in them.
    alone = states == 0 and s.control[layout.FORWARDS] == 1
    first = np.int64(0) if alone else leads.first_behind(s, BOUND, count, window_value(s, MEASURE, 0) - 1)
    stop = count if ends != 0 else leads.first_behind(s, MEASURE, count, window_value(s, BOUND, count - 1))
    if needed < 0 or first >= stop:
        return np.int64(-1)
    # A match lies in two stretches of time as long as its window, or in one if that is as long as the batch. Floats are
    # not divided.
    size, shift = s.reach[BOUND, layout.O_SIZE], np.int64(0)
    one = s.reach[BOUND, layout.O_FORM] != layout.AS_BOUND
    one |= window_value(s, BOUND, count - 1) < window_value(s, MEASURE, 0)
    while shift < 62 and np.int64(1) << shift < size:
        shift += 1
    bits = np.int64(64)
    while bits < 3 * _FILTER * rare and bits <= 32 * s.entered.shape[0]:
        bits <<= 1
    shift |= np.int64(_WHOLE) if one else np.int64(0)
    _enter_keys(s, count, guards, needed, shift, bits, address)
    return _clear_far(s, count, first, stop, guards, needed, shift, bits, address)


@inlined
def _stretch(measure, shift):
    """The stretch of time in which a ``measure`` lies; all of them are one if ``shift`` is beyond `_WHOLE`."""
    return np.int64(0) if shift >= _WHOLE else measure >> shift


@inlined
def _bit(key, stretch, bits):
    """The number of the bit for a key and a stretch of time, less than ``bits``."""
    return slot_for(mixed(np.uint64(key), stretch), bits - 1)


@part
def _enter_keys(s, count, guards, needed, shift, bits, address):
    """Set the bits of the keys of the events ``needed`` and the stretches of time near them."""
    words, near = s.entered, np.int64(0 if shift >= _WHOLE else 1)
    for k in range(words.shape[0]):
        words[k] = 0
    begin_list(s, np.int64(0), count)
    for block in range(0, count, layout.STRETCH):
        end = min(block + layout.STRETCH, count)
        for n in range(list_rows(s, block, end, guards, 0, False, FOR_LIST, address)):
            if s.at[n] >= 0 and v.load_byte(guards, s.chosen[n]) & needed != 0:
                stretch = _stretch(s.measures[n], shift)
                for beside in range(stretch - near, stretch + near + 1):
                    bit = _bit(s.at[n], beside, bits)
                    words[bit >> 6] |= np.int64(1) << (bit & 63)


@part
def _clear_far(s, count, first, stop, guards, needed, shift, bits, address):
    """Clear the guards of the rows ``[first, stop)`` with no event ``needed`` of their key near; returns how many."""
    removed = np.int64(0)
    for block in range(0, count, layout.STRETCH):
        end = min(block + layout.STRETCH, count)
        for n in range(list_rows(s, block, end, guards, 0, False, KNOWN, address)):
            k, key = s.chosen[n], s.at[n]
            if key >= 0 and first <= k < stop and v.load_byte(guards, k) & needed == 0:
                bit = _bit(key, _stretch(s.measures[n], shift), bits)
                if s.entered[bit >> 6] >> (bit & 63) & 1 == 0:
                    v.store_byte(guards, k, np.int64(0))
                    removed += 1
    return removed
