"""The second pass over a batch, for patterns without gaps: which of the candidate events may be part of a match."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import as_float
from cerflow.engine.kernels.scan.arrays import scan_at
from cerflow.engine.kernels.scan.scan import formed, is_missing, output_words, write_event
from cerflow.engine.kernels.scan.texts import SHIFT, entry_of, mixed
from cerflow.engine.kernels.scan.values import load_word, word_of
from cerflow.engine.kernels.step.guards import words_compare
from cerflow.engine.layout import EQ, FLOAT, NULL, PROGRAM
from cerflow.engine.scan import layout

#: All steps.
_ANY = (1 << layout.STEPS) - 1


@kernel
def narrow(address, first, last, key, count):
    """Say in `B_LEFT_OUT` which of the candidate rows of a batch of ``count`` rows may be part of a match.

    Matches begin at the steps ``first`` and end at the steps ``last``, as bits. ``key`` is the number of the text
    that is the key, or `NO_KEYS` or `HASHED_KEYS`. Matches may begin before the batch and go on behind it.
    """
    s = scan_at(address)
    if key == layout.NO_KEYS:
        kept = _in_a_row(s, first, last, count)
    else:
        if not _step_by_key(s, first, key):
            return layout.NO_ROOM
        kept = _kept_by_key(s, last)
    s.control[layout.RELEVANT], s.control[layout.KEPT] = s.control[layout.CANDIDATES], kept
    return layout.SCANNED


@part
def _in_a_row(s, first, last, count):
    candidates = s.control[layout.CANDIDATES]
    steps, before = _ANY, -1
    for k in range(candidates):
        row = s.candidates[k, layout.B_ROW]
        if row != before + 1:
            steps = 0
        steps = _steps_after(s, k, steps, before, first)
        s.candidates[k, layout.B_STEPS] = steps
        before = row
    kept = 0
    going_on, behind = _ANY, count
    for k in range(candidates - 1, -1, -1):
        row = s.candidates[k, layout.B_ROW]
        if row != behind - 1:
            going_on = 0
        useful = s.candidates[k, layout.B_STEPS] & (last | going_on)
        s.candidates[k, layout.B_LEFT_OUT] = 0 if useful else -1
        kept += useful != 0
        going_on, behind = _moved(s, useful, -1), row
    return kept


@part
def _step_by_key(s, first, key):
    """Note keys and steps; returns False if there is no room for a key."""
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_ROW], s.groups[g, layout.G_STEPS] = -1, _ANY
    words_at = key_words(s, key)
    for k in range(s.control[layout.CANDIDATES]):
        row = s.candidates[k, layout.B_ROW]
        g = key_number(s, row, key, words_at)
        if g < 0:
            return False
        s.candidates[k, layout.B_KEY] = g
        if g > 0:
            steps = _steps_after(s, k, s.groups[g, layout.G_STEPS], s.groups[g, layout.G_ROW], first)
            s.candidates[k, layout.B_STEPS] = steps
            s.groups[g, layout.G_ROW], s.groups[g, layout.G_STEPS] = row, steps
    return True


@part
def _kept_by_key(s, last):
    """Say which rows are left out; the last one of each key tells how many are left out before it."""
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_ROW], s.groups[g, layout.G_STEPS] = -1, _ANY
    kept = 0
    for k in range(s.control[layout.CANDIDATES] - 1, -1, -1):
        g = s.candidates[k, layout.B_KEY]
        s.candidates[k, layout.B_LEFT_OUT] = -1
        if g == 0:
            continue  # without a key
        useful = s.candidates[k, layout.B_STEPS] & (last | s.groups[g, layout.G_STEPS])
        behind = s.groups[g, layout.G_ROW]
        if useful or behind < 0:
            s.candidates[k, layout.B_LEFT_OUT] = 0
            s.groups[g, layout.G_ROW] = k
            kept += 1
        else:
            s.candidates[behind, layout.B_LEFT_OUT] += 1
        s.groups[g, layout.G_STEPS] = _moved(s, useful, -1)
    return kept


@inlined
def key_words(s, key):
    """Where the words of a ``key`` are, if it is one column of integers as they are; or else 0.

    ``s`` are the arrays of the scan.
    """
    single = key == layout.HASHED_KEYS and s.members.shape[1] == 1
    return output_words(s, s.outputs[0]) if single else np.int64(0)


@part
def group_of(s, row, words_at):
    """The number of the key of a ``row``, 0 if it has none; -1 if there is no room for it, as `TEXT` says.

    ``s`` are the arrays of the scan; see `key_words` for ``words_at``.
    """
    h = np.uint64(0)
    words = s.members.shape[1]
    if words_at != 0:
        s.members[0, 0] = load_word(words_at, row)
        h = mixed(h, s.members[0, 0])
    for k in range(words if words_at == 0 else 0):
        form, column = s.outputs[k, layout.O_FORM], s.outputs[k, layout.O_COLUMN]
        if form == layout.AS_TEXT:
            word = entry_of(s.texts, column, row)
            if word < 0:
                s.control[layout.TEXT] = column
                return np.int64(-1)
            if word == 0:
                return np.int64(0)
        else:
            word = formed(word_of(s.columns, column, row, s.control[layout.FIRST]), form, 0)
            if is_missing(word, form):
                return np.int64(0)
        s.members[0, k] = word
        h = mixed(h, word)
    mask = s.slots.shape[0] - 1
    slot = np.int64(h >> SHIFT) & mask
    # Half of the table is free.
    while s.slots[slot] != 0:
        g = np.int64(s.slots[slot])
        same = True
        for k in range(words):
            same &= s.members[g, k] == s.members[0, k]
        if same:
            return g
        slot = (slot + 1) & mask
    g = s.control[layout.GROUPS] + 1
    if g >= s.members.shape[0]:
        s.control[layout.TEXT] = layout.HASHED_KEYS
        return np.int64(-1)
    s.control[layout.GROUPS] = s.slots[slot] = g
    for k in range(words):
        s.members[g, k] = s.members[0, k]
    return g


@inlined
def key_number(s, row, key, words_at):
    """The number of the key of a ``row``, 0 if it has none; -1 if there is no room for it, as `TEXT` says.

    ``s`` are the arrays of the scan, ``key`` is as for `narrow`; see `key_words` for ``words_at``.
    """
    if key == layout.NO_KEYS:
        return np.int64(1)
    if key == layout.HASHED_KEYS:
        return group_of(s, row, words_at)
    g = entry_of(s.texts, key, row)
    if g < 0 or g >= s.groups.shape[0]:
        s.control[layout.TEXT] = key
        return np.int64(-1)
    return g


@inlined
def _steps_after(s, k, steps, before, first):
    """The steps that event ``k`` may be directly after an event of ``steps`` in the row ``before`` (-1: not known)."""
    found = (_moved(s, steps, 1) | first) & s.steps[s.candidates[k, layout.B_SIGNATURE]]
    if before >= 0:
        for n in range(s.links.shape[0]):
            mask = s.links[n, layout.L_MASK]
            # Only the event directly before is known here.
            plain = s.links[n, layout.L_OPERATOR] != PROGRAM
            if (
                found & mask
                and plain
                and s.links[n, layout.L_DISTANCE] == 1
                and not linked(s, n, s.candidates[k, layout.B_ROW], before)
            ):
                found &= ~mask
    return found


@inlined
def _moved(s, steps, towards):
    """The steps directly behind these (``towards`` is 1), or directly before them (-1)."""
    found = 0
    for n in range(s.follows.shape[0] if steps else 0):
        distance, own = s.follows[n, layout.F_DISTANCE], s.follows[n, layout.F_STEPS]
        if towards > 0:
            found |= _shifted(steps & own, distance)
        else:
            found |= _shifted(steps, -distance) & own
    return found


@inlined
def _shifted(bits, distance):
    return bits << distance if distance >= 0 else bits >> -distance


@part
def linked(s, n, row, before):
    """Whether comparison ``n`` of a ``row`` with one ``before`` holds; also if `TEXT` names a text without room."""
    if s.links[n, layout.L_KIND] == layout.OF_TEXT:
        column = s.links[n, layout.L_NOW]
        one, other = entry_of(s.texts, column, row), entry_of(s.texts, column, before)
        if one < 0 or other < 0:
            s.control[layout.TEXT] = column
            return True
        return one > 0 and other > 0 and (one == other) == (s.links[n, layout.L_OPERATOR] == EQ)
    now = word_of(s.columns, s.links[n, layout.L_NOW], row, s.control[layout.FIRST])
    other = word_of(s.columns, s.links[n, layout.L_BEFORE], before, s.control[layout.FIRST])
    if s.links[n, layout.L_KIND] == FLOAT:
        x, y = as_float(now), as_float(other)
        return not math.isnan(x) and not math.isnan(y) and words_compare(s.links[n, layout.L_OPERATOR], x, y)
    return now != NULL and other != NULL and words_compare(s.links[n, layout.L_OPERATOR], now, other)


@kernel
def write_candidates(address):
    """Write the candidate events that are not left out; returns what stopped it, as ``scan`` does."""
    s = scan_at(address)
    for k in range(s.control[layout.WRITTEN], s.control[layout.CANDIDATES]):
        left_out = s.candidates[k, layout.B_LEFT_OUT]
        if left_out >= 0:
            reason = write_event(
                s, s.candidates[k, layout.B_ROW], s.candidates[k, layout.B_SIGNATURE], left_out, address
            )
            if reason != layout.SCANNED:
                s.control[layout.WRITTEN] = k
                return reason
    return layout.SCANNED
