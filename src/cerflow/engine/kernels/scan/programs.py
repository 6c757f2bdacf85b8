"""Programs on one event, for what is not a plain comparison.

Only some queries have them, so `compute` is called by its address.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.scan.texts import entry_of
from cerflow.engine.kernels.scan.values import scan_at, truth_of, word_of
from cerflow.engine.kernels.step.bytecode import binary, unary
from cerflow.engine.layout import CODE_ARGUMENT, CODE_OPCODE, NULL
from cerflow.engine.opcodes import COLUMN, CONSTANT, NOT, SELECT
from cerflow.engine.scan import layout


def compute(address, start, stop, row):
    """The result of the instructions ``[start, stop)`` for a row; see `UNJUDGED` for texts that are not known yet."""
    s = scan_at(address)
    stack = s.stack
    top = 0
    for at in range(start, stop):
        opcode = s.code[at, CODE_OPCODE]
        argument = s.code[at, CODE_ARGUMENT]
        if opcode == COLUMN:
            if s.columns[argument, layout.C_LAYOUT] == layout.TRUTH:
                stack[top] = truth_at(s, np.int64(argument), row)
            else:
                stack[top] = word_of(s.columns, np.int64(argument), row, s.control[layout.FIRST])
            top += 1
        elif opcode == CONSTANT:
            stack[top] = s.constants[argument]
            top += 1
        elif opcode == SELECT:
            top -= 2
            stack[top - 1] = stack[top] if stack[top - 1] == 1 else stack[top + 1]
        elif opcode < NOT:
            top -= 1
            binary(opcode, argument, stack, top)
        else:
            unary(opcode, stack, top - 1, s.constants)
    return stack[0]


@part
def truth_at(s, column, row):
    """What the condition of a truth ``column`` says of the text of a ``row``; sets `UNJUDGED` if that is not known yet.

    ``s`` are the arrays of the scan.
    """
    t = s.columns[column, layout.C_FACTOR]
    entry = entry_of(s.texts, t, row)
    if 0 <= entry < s.texts[t, layout.T_JUDGED]:
        return truth_of(s.texts, t, entry, s.columns[column, layout.C_CONDITION])
    s.control[layout.UNJUDGED] = layout.NO_ROOM if entry < 0 else layout.NO_CLASS
    s.control[layout.TEXT] = t
    return np.int64(NULL)
