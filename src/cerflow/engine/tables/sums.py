"""What a sum or difference of a register and an event, compared with a constant, says of the register alone.

Floats are rounded, and rounding keeps order: if ``x - r`` rounded is more than ``k``, then ``x - r`` is more, so ``r``
is at most ``x - k`` rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cerflow.engine import opcodes
from cerflow.engine.layout import EQ, GE, GT, LE, LT
from cerflow.engine.opcodes import COLUMN, CONSTANT, SLOT

_MIRRORED = {LT: GT, LE: GE, GT: LT, GE: LE, EQ: EQ}
#: The comparisons that a magnitude below a constant satisfies.
_LOWER, _UPPER = {LT: GT, LE: GE, EQ: GE}, {LT: LT, LE: LE, EQ: LE}
_SUMS = {opcodes.ADD_I: opcodes.SUBTRACT_I, opcodes.ADD_F: opcodes.SUBTRACT_F}
_DIFFERENCES = {opcode: added for added, opcode in _SUMS.items()}


class Limit(NamedTuple):
    """A value that the register in ``slot`` must reach (``greatest``), or not exceed.

    It is ``column`` of an event and a constant, combined by an opcode in this or the other order. If it is not
    ``safe``, it is null where integers leave their range, though all registers meet it then.
    """

    slot: int
    greatest: bool
    column: int
    constant: int | float
    opcode: int
    constant_first: bool
    safe: bool


def limits_of(code: Sequence[Sequence[int]], constants: Sequence[int]) -> list[Limit]:
    """The limits without which the condition of a program is not true."""
    stack: list[tuple[Any, ...]] = []
    for opcode, argument in code:
        if opcode in (COLUMN, SLOT, CONSTANT):
            stack.append((opcode, argument))
        elif opcode in (opcodes.ABS_I, opcodes.ABS_F):
            stack.append((opcode, argument, stack.pop()))
        elif opcodes.AND <= opcode < opcodes.NOT:
            right = stack.pop()
            stack.append((opcode, argument, stack.pop(), right))
        else:
            return []
    return [limit for tree in stack for limit in _limits(tree, constants)]


def _limits(tree: tuple[Any, ...], constants: Sequence[int]) -> Iterator[Limit]:
    match tree:
        case (opcodes.AND, _, one, other):
            yield from _limits(one, constants)
            yield from _limits(other, constants)
        case (opcodes.COMPARE_I | opcodes.COMPARE_F, operator, (opcodes.CONSTANT, _) as left, right):
            if operator in _MIRRORED and right[0] != CONSTANT:
                yield from _limits((tree[0], _MIRRORED[operator], right, left), constants)
        case (opcodes.COMPARE_I | opcodes.COMPARE_F as compare, operator, left, (opcodes.CONSTANT, number)):
            word = int(constants[number])
            constant = float(np.int64(word).view(np.float64)) if compare == opcodes.COMPARE_F else word
            if left[0] not in (opcodes.ABS_I, opcodes.ABS_F):
                yield from _of_comparison(left, operator, constant)
            elif operator in _UPPER:
                yield from _of_comparison(left[2], _UPPER[operator], constant)
                yield from _of_comparison(left[2], _LOWER[operator], -constant)


def _of_comparison(tree: tuple[Any, ...], operator: int, constant: int | float) -> Iterator[Limit]:
    if tree[0] not in {*_SUMS, *_DIFFERENCES} or {tree[2][0], tree[3][0]} != {COLUMN, SLOT}:
        return
    added, slot_first = tree[0] in _SUMS, tree[2][0] == SLOT
    (_, slot), (_, column) = tree[2:] if slot_first else tree[:1:-1]
    opposite = _SUMS if added else _DIFFERENCES
    for more in (True, False):
        if operator not in ((GT, GE, EQ) if more else (LT, LE, EQ)):
            continue
        beyond = constant
        if isinstance(constant, float) and operator not in (LT, GT):
            beyond = math.nextafter(constant, -math.inf if more else math.inf)
        safe = not isinstance(beyond, int) or beyond == 0 or (beyond > 0) == more
        if math.isfinite(beyond):
            combined = opposite[tree[0]] if added or slot_first else tree[0]
            yield Limit(slot, more if added or slot_first else not more, column, beyond, combined, added, safe)
