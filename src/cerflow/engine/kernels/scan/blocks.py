"""Tests and programs on blocks of rows: one instruction at a time, so that each is looked at once for many rows."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import opcodes as o
from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of, call
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan import vectors
from cerflow.engine.kernels.scan.marks import fill_guards, mark
from cerflow.engine.kernels.scan.programs import truth_at
from cerflow.engine.kernels.scan.texts import entries_of, equal_texts
from cerflow.engine.kernels.step.bytecode import words_compare
from cerflow.engine.layout import CODE_ARGUMENT, CODE_OPCODE, EQ, GE, GT, LE, LT, NULL, PROGRAM
from cerflow.engine.scan import layout


@part
def compute_block(s, start, stop, count):
    """Leave the results of the instructions ``[start, stop)`` for the first ``count`` `chosen` rows in `wide`, row 0.

    Where a column is that of an event before which there is none, or `UNJUDGED` is set, the result means nothing.
    """
    wide = s.wide
    top = 0
    for step in range(start, stop):
        opcode, argument = s.code[step, CODE_OPCODE], np.int64(s.code[step, CODE_ARGUMENT])
        if opcode == o.COLUMN:
            _read(s, argument & (1 << layout.COLUMN_BITS) - 1, argument >> layout.COLUMN_BITS, count, top)
            top += 1
        elif opcode == o.CONSTANT:
            vectors.fill(v.start_of(wide[top]), s.constants[argument], count)
            top += 1
        elif opcode == o.KEPT:
            vectors.copy(v.start_of(wide[top]), v.start_of(s.kept[argument]), count)
            top += 1
        elif opcode == o.KEEP:
            vectors.copy(v.start_of(s.kept[argument]), v.start_of(wide[top - 1]), count)
        elif opcode == o.SELECT:
            top -= 2
            vectors.select_words(v.start_of(wide[top - 1]), v.start_of(wide[top]), v.start_of(wide[top + 1]), count)
        elif opcode < o.NOT:
            top -= 1
            vectors.combine(s, opcode, argument, count, top)
        else:
            vectors.change(s, opcode, count, top - 1)


@part
def compute_link(s, n, count):
    """Leave 1 in `wide`, row 0, for those of the first ``count`` `chosen` rows that fulfil link ``n``.

    See `compute_block` for rows before which there are too few events. ``s`` are the arrays of the scan.
    """
    operator, start, stop, _, distance = s.links[n]
    if operator == PROGRAM:
        compute_block(s, start, stop, count)
        return
    t, u, wanted, at = start, stop, np.int64(operator == EQ), _in_a_row(s, distance, count)
    indexed = t == u and s.texts[t, layout.T_LAYOUT] == layout.INT32 and s.texts[t, layout.T_VALID] == 0
    codes, entries = s.texts[t, layout.T_DATA] + 4 * s.texts[t, layout.T_OFFSET], s.texts[t, layout.T_ROOM] - 1
    if indexed and at >= 0:
        _compare_codes(codes + 4 * (at + distance), codes + 4 * at, count, entries, wanted, v.start_of(s.wide))
        return
    others = _rows_before(s, distance, count)
    if indexed:
        for k in range(count):
            one, two = v.load_int(codes, s.chosen[k]), v.load_int(codes, v.load_word(others, k))
            s.wide[0, k] = _fulfil(one, two, entries, wanted)
    else:
        for k in range(count):
            s.wide[0, k] = equal_texts(s.texts, t, s.chosen[k], u, v.load_word(others, k)) == wanted


@part
def _compare_codes(left, right, count, entries, wanted, out):
    """Write what `_fulfil` says of each pair of codes. The compiler makes vectors of it."""
    for k in range(count):
        v.store_word(out, k, _fulfil(v.load_int(left, k), v.load_int(right, k), entries, wanted))


@inlined
def _fulfil(one, two, entries, wanted):
    """Whether two codes are equal (``wanted`` is 1) or differ (0); a code outside its dictionary is like null."""
    known = (np.uint64(one) < np.uint64(entries)) & (np.uint64(two) < np.uint64(entries))
    return known & (np.int64(one == two) == wanted)


@inlined
def _in_a_row(s, distance, count):
    """The event ``distance`` events before the first `chosen` row, if these follow each other in the rows; or -1."""
    # Pairs may repeat a row.
    direct = s.control[layout.WALKED] >= 0 and (distance == 0 or _lies_before(s))
    if count > 0 and direct and s.chosen[count - 1] - s.chosen[0] == count - 1:
        return max(s.chosen[0] - distance, np.int64(-1))
    return np.int64(-1)


@inlined
def _lies_before(s):
    """Whether the event before another one is in the row before."""
    return s.before.shape[0] == 0 or s.control[layout.SORTED] == 1


@inlined
def _rows_before(s, distance, count):
    """Where the events are that lie ``distance`` events before each of the `chosen` rows, or their partners."""
    walks = s.control[layout.WALKED] >= 0
    if distance == 0:
        return v.start_of(s.chosen)
    if walks and _lies_before(s):
        for k in range(count):
            s.rows[k] = max(s.chosen[k] - distance, 0)
        return v.start_of(s.rows)
    before = v.start_of(s.before)
    while walks and s.control[layout.WALKED] < distance:
        far = s.control[layout.WALKED]
        last = v.start_of(s.chosen) if far == 0 else v.start_of(s.partners[far])
        for k in range(count):
            s.partners[far + 1, k] = max(v.load_int(before, v.load_word(last, k)), 0)
        s.control[layout.WALKED] = far + 1
    return v.start_of(s.partners[distance])


@inlined
def _read(s, column, distance, count, top):
    """Write the words of a column for each row, read from the event ``distance`` events before."""
    to = v.start_of(s.wide[top])
    data, first = v.words_of(s.columns, column), _in_a_row(s, distance, count)
    truth = s.columns[column, layout.C_LAYOUT] == layout.TRUTH
    if first >= 0 and not truth:
        v.write_words(s.columns, column, first, count, s.control[layout.FIRST], to)
        return
    at = _rows_before(s, distance, count)
    if data != 0:
        for k in range(count):
            v.store_word(to, k, v.load_word(data, v.load_word(at, k)))
        valid, offset = s.columns[column, layout.C_VALID], s.columns[column, layout.C_OFFSET]
        null = np.int64(v.NAN) if s.columns[column, layout.C_FLOAT] else np.int64(NULL)
        for k in range(count if valid != 0 else 0):
            v.store_word(to, k, v.load_word(to, k) if v.has_bit(valid, offset + v.load_word(at, k)) else null)
    elif truth and first >= 0:
        _write_truths(s, column, first, count, to)
    elif truth:
        for k in range(count):
            v.store_word(to, k, truth_at(s, column, v.load_word(at, k)))
    else:
        for k in range(count):
            v.store_word(to, k, v.word_of(s.columns, column, v.load_word(at, k), s.control[layout.FIRST]))


@part
def _write_truths(s, column, begin, count, to):
    """Write `truth_at` for ``count`` rows from row ``begin`` on; their texts are looked for together."""
    t, number, entries = s.columns[column, layout.C_FACTOR], s.columns[column, layout.C_CONDITION], s.rows
    known = entries_of(s.texts, t, begin, count, entries)
    classes, truths = s.texts[t, layout.T_CLASSES], s.texts[t, layout.T_TRUTHS]
    width, judged, last = s.texts[t, layout.T_WIDTH], s.texts[t, layout.T_JUDGED], np.int64(0)
    for k in range(count if known else 0):
        last = max(last, entries[k])
    if not known or last >= judged:
        s.control[layout.UNJUDGED] = layout.NO_CLASS if known else layout.NO_ROOM
        s.control[layout.TEXT] = t
        return
    for k in range(count):
        v.store_word(to, k, v.load_word(truths, v.load_word(classes, entries[k]) * width + number))


# -- tests -------------------------------------------------------------------------------------------------------------


@part
def satisfies(s, k, row, address):
    """Whether a test is true."""
    kind, _, start, stop = s.tests[k]
    if kind == layout.RUN:
        return call(s.control[layout.PROGRAMS], (address, start, stop, row)) == 1
    return _satisfied(s, k, row)


@inlined
def _satisfied(s, k, row):
    """Whether a test that is not a program is true."""
    kind, operator, what, other = s.tests[k]
    word = v.word_of(s.columns, what, row, s.control[layout.FIRST])
    if kind == layout.COMPARE_INT:
        return word != NULL and words_compare(operator, word, other)
    if kind == layout.COMPARE_FLOAT:
        x = as_float(word)
        return not math.isnan(x) and words_compare(operator, x, as_float(other))
    if kind == layout.NULL_INT:
        return (word == NULL) == (operator == 1)
    return math.isnan(as_float(word)) == (operator == 1)


@part
def mark_block(s, begin, count, guards, wanted, programs, address):
    """Write the ``guards`` of ``count`` rows from row ``begin`` on, by texts and tests; returns as `mark`.

    See `mark` for the guards ``wanted``; ``programs`` says whether those tests are asked, too, that are programs. ``s``
    are the arrays of the scan at ``address``.
    """
    fill_guards(guards, count, 255)
    # Slow tests come last: only the rows that all others leave are asked.
    for late in range(2):
        reason = mark_by(s, begin, count, guards, wanted, late == 1, programs)
        if reason != layout.SCANNED:
            return reason
    return layout.SCANNED


@part
def mark_by(s, begin, count, guards, wanted, late, programs):
    """Close the ``guards`` that tests rule out; ``late`` are texts that are looked for, and programs.

    See `mark_block` for ``programs`` and ``s``, and `mark` for ``begin``, ``count``, ``wanted`` and what it returns.
    """
    reason = mark(s, begin, count, guards, wanted, late)
    if reason != layout.SCANNED:
        return reason
    for n in range(s.decided.shape[0]):
        program = s.tests[s.decided[n, layout.D_TEST], layout.K_KIND] == layout.RUN
        if program == late and (programs or not program):
            _decide(s, n, begin, count, guards)
        if s.control[layout.UNJUDGED] != 0:
            reason, s.control[layout.UNJUDGED] = s.control[layout.UNJUDGED], 0
            return reason
    return layout.SCANNED


@part
def _decide(s, n, begin, size, guards):
    """Close the guards that a test rules out, in the rows where it matters."""
    test, held, failed = s.decided[n]
    matters = ~(held & failed)
    kind, operator, what, other = s.tests[test]
    if kind == layout.RUN:
        _decide_by_program(s, what, other, begin, size, guards, matters, held, failed)
        return
    if 32 * v.rows_with(guards, size & ~7, 255) > size:
        words, step = v.words_at_once(s.columns, what), layout.STRETCH
        step = step if words == 0 else size
        for first in range(0, size, step):
            count, some = min(size - first, step), words + 8 * (begin + first)
            if words == 0:
                # Nothing else is in these while rows are marked.
                some = v.start_of(s.at)
                v.write_words(s.columns, what, begin + first, count, s.control[layout.FIRST], some)
            _decide_all(kind, operator, some, other, count, held, failed, guards + first)
        return
    matters = wrapped_product(matters & 255, v.ONES)
    for first in range(0, size, 8):
        left = v.not_zero(v.load_word(guards + first, 0) & matters)
        while left != 0:
            k = first + (v.trailing_zeros(left) >> 3)
            left = v.without_lowest(left)
            if k < size:
                holds = _satisfied(s, test, begin + k)
                v.store_byte(guards, k, v.load_byte(guards, k) & (held if holds else failed))


@part
def _decide_by_program(s, start, stop, begin, size, guards, matters, held, failed):
    """Close the guards that a program rules out; sets `UNJUDGED` where a text is not known yet."""
    row, chosen, wide = np.int64(0), v.start_of(s.chosen), v.start_of(s.wide)
    while row < size and s.control[layout.UNJUDGED] == 0:
        first, some = row, np.int64(0)
        count = min(size - row, layout.STRETCH)
        dense = 2 * v.rows_with(guards + row, count & ~7, matters & 255) > count
        if dense:
            # The compiler makes vectors of these loops; guards that do not matter stay as they are.
            for k in range(count):
                v.store_word(chosen, k, begin + first + k)
            row, some = row + count, count
        while row < size and some < layout.STRETCH and not dense:
            v.store_word(chosen, some, begin + row)
            some += np.int64(v.load_byte(guards, row) & matters & 255 != 0)
            row += 1
        compute_block(s, start, stop, some)
        for k in range(count if dense else 0):
            left = held if v.load_word(wide, k) == 1 else failed
            v.store_byte(guards + first, k, v.load_byte(guards + first, k) & left)
        for k in range(0 if dense else some):
            at = guards + v.load_word(chosen, k) - begin
            v.store_byte(at, 0, v.load_byte(at, 0) & (held if v.load_word(wide, k) == 1 else failed))


def _deciding(name, compare):
    """Closes the guards that a comparison with a constant rules out, for all rows; the compiler makes vectors of it.

    Words are turned around where less is compared, so that ``compare`` asks for more; one of them says null.
    """

    def run(words, turn, constant, size, held, failed, guards):
        null = np.int64(NULL) ^ turn
        for k in range(size):
            holds = compare(v.load_word(words, k) ^ turn, constant, null)
            v.store_byte(guards, k, v.load_byte(guards, k) & (held if holds else failed))

    run.__qualname__ = run.__name__ = name
    return part(run)


_more_f = _deciding("_more_f", inlined(lambda a, b, null: as_float(a) > as_float(b)))
_more_i = _deciding("_more_i", inlined(lambda a, b, null: (a > b) & (a != null)))
_least_f = _deciding("_least_f", inlined(lambda a, b, null: as_float(a) >= as_float(b)))
_least_i = _deciding("_least_i", inlined(lambda a, b, null: (a >= b) & (a != null)))
_same_f = _deciding("_same_f", inlined(lambda a, b, null: as_float(a) == as_float(b)))
_same_i = _deciding("_same_i", inlined(lambda a, b, null: a == b))
_other_f = _deciding("_other_f", inlined(lambda a, b, null: (as_float(a) < as_float(b)) | (as_float(a) > as_float(b))))
_other_i = _deciding("_other_i", inlined(lambda a, b, null: (a != b) & (a != null)))


@inlined
def _decide_all(kind, operator, words, constant, size, held, failed, guards):
    """Close the guards that a test of the ``words`` of all rows, a comparison with a ``constant``, rules out."""
    turn, floating = np.int64(0), kind == layout.COMPARE_FLOAT
    if kind in (layout.NULL_INT, layout.NULL_FLOAT):
        one, other = (held, failed) if operator == 1 else (failed, held)
        if kind == layout.NULL_INT:
            _same_i(words, turn, np.int64(NULL), size, one, other, guards)
        else:
            _least_f(words, turn, bits_of(-math.inf), size, other, one, guards)
        return
    if operator in (LT, LE):
        turn = np.int64(NULL) if floating else np.int64(-1)
    constant ^= turn
    if operator in (LT, GT) and floating:
        _more_f(words, turn, constant, size, held, failed, guards)
    elif operator in (LT, GT):
        _more_i(words, turn, constant, size, held, failed, guards)
    elif operator in (LE, GE) and floating:
        _least_f(words, turn, constant, size, held, failed, guards)
    elif operator in (LE, GE):
        _least_i(words, turn, constant, size, held, failed, guards)
    elif operator == EQ and floating:
        _same_f(words, turn, constant, size, held, failed, guards)
    elif operator == EQ:
        _same_i(words, turn, constant, size, held, failed, guards)
    elif floating:
        _other_f(words, turn, constant, size, held, failed, guards)
    else:
        _other_i(words, turn, constant, size, held, failed, guards)
