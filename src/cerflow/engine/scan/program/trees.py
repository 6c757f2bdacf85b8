"""Conditions on events before as trees of instructions, in which what registers hold stands where they are read.

A part that is read twice is computed once and kept. The best of some values, such as their maximum, is a node of its
own, as instructions of two values say it in a few steps, and as one condition on it becomes several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cerflow.base import limits
from cerflow.engine import opcodes
from cerflow.engine.layout import EQ, GE, GT, LE, LT, NE, NULL
from cerflow.engine.opcodes import CONSTANT, SELECT
from cerflow.engine.scan.layout import COLUMN_BITS

#: An opcode, its argument (of `CONSTANT` the word itself), and the numbers of its operands.
_Node = tuple[int, ...]
#: The best known value of some, the first of those that are equal; the argument says how it compares with the others.
_BEST_I, _BEST_F = -1, -2
_COMPARED = {_BEST_I: opcodes.COMPARE_I, _BEST_F: opcodes.COMPARE_F}
_OF_TWO = {_BEST_I: opcodes.BEST_I, _BEST_F: opcodes.BEST_F}
_IS_NULL = {_BEST_I: opcodes.IS_NULL_I, _BEST_F: opcodes.IS_NULL_F}
_COALESCE = {_BEST_I: opcodes.COALESCE_I, _BEST_F: opcodes.COALESCE_F}
_JOINED = {test: _COALESCE[best] for best, test in _IS_NULL.items()}
_MIRRORED = {LT: GT, LE: GE, GT: LT, GE: LE, EQ: EQ, NE: NE}
_OR_EQUAL = {LT: LE, GT: GE}
_UNWRITTEN = (opcodes.ROWS, opcodes.CALL, opcodes.RANKED)
_LEAVES = (opcodes.COLUMN, opcodes.SLOT, CONSTANT, opcodes.SET_FIELD)
#: The instructions with floats as operands, and as results, that are null if an operand is; the others of integers.
_FLOATS = frozenset({
    opcodes.ADD_F, opcodes.SUBTRACT_F, opcodes.MULTIPLY_F, opcodes.REMAINDER_F, opcodes.DIVIDE, opcodes.NEGATE_F,
    opcodes.ABS_F, opcodes.FLOOR, opcodes.CEIL, opcodes.ROUND, opcodes.SQUARE_ROOT,
})  # fmt: skip
_INTEGERS = frozenset({
    opcodes.ADD_I, opcodes.SUBTRACT_I, opcodes.MULTIPLY_I, opcodes.REMAINDER_I, opcodes.QUOTIENT_I, opcodes.NEGATE_I,
    opcodes.ABS_I, opcodes.DATED, opcodes.COMPARE_I, opcodes.NOT,
})  # fmt: skip
_TO_FLOATS = _FLOATS | {opcodes.TO_FLOAT}
_FROM_FLOATS = _FLOATS | {opcodes.COMPARE_F, opcodes.WHOLE}
#: A value that a condition reads of so many events becomes a column.
_SHARED = 3
_NAN = int(np.float64(math.nan).view(np.int64))


class Trees:
    """Nodes by number; equal trees have the same number. Operands come before the nodes that they are part of."""

    def __init__(self, computed: Callable[[list[tuple[int, int]]], int] | None = None, *, keyed: bool = False) -> None:
        #: The number of a column that has what a program says of each event.
        self._computed = computed
        #: Whether it takes longer to read a column again, of an event before, than to keep what was read.
        self._keyed = keyed
        #: By node the column that has its value, or that of the same node at another event.
        self._shared: dict[int, int] = {}
        self._nodes: list[_Node] = []
        self._numbers: dict[_Node, int] = {}
        self._shifted: dict[tuple[int, int], int] = {}
        #: How many events before the latest and the first are that a node reads.
        self._reach: list[tuple[int, int] | None] = []
        self._written: dict[int, int] = {}

    def of_code(self, code: Iterable[Sequence[int]], leaf: Callable[[int, int], int | None]) -> int | None:
        """The tree of a program whose leaves are given; None if one is not known, or an instruction has no columns."""
        stack: list[int] = []
        for opcode, argument in code:
            if opcode in _UNWRITTEN:
                return None
            operands = 0
            if opcode not in _LEAVES:
                operands = 3 if opcode == SELECT else 2 if opcode < opcodes.NOT else 1
            parts = stack[len(stack) - operands :]
            del stack[len(stack) - operands :]
            made = self.node(opcode, argument, *parts) if operands else leaf(opcode, argument)
            if made is None:
                return None
            stack.append(made)
        (whole,) = stack
        return whole

    def node(self, opcode: int, argument: int = 0, *parts: int) -> int:
        """The number of a node, or of one with the same value."""
        if opcode == SELECT:
            return self._chosen(*parts)
        if opcode in _FROM_FLOATS or opcode in _INTEGERS or opcode == opcodes.TO_FLOAT:
            for k, part in enumerate(parts):
                # What is null unless a condition holds makes the whole null.
                some, _, *chosen = self._nodes[part]
                if some == SELECT and self._is_null(chosen[2], floating=opcode in _FROM_FLOATS):
                    whole = self.node(opcode, argument, *parts[:k], chosen[1], *parts[k + 1 :])
                    return self._chosen(chosen[0], whole, self._held(CONSTANT, _NAN if opcode in _TO_FLOATS else NULL))
        if opcode == opcodes.TO_FLOAT and self._nodes[parts[0]][0] == _BEST_I:
            _, better, *values = self._nodes[parts[0]]
            return self._held(_BEST_F, better, *(self.node(opcode, 0, value) for value in values))
        return self._held(opcode, argument, *parts)

    def _held(self, *node: int) -> int:
        if node not in self._numbers:
            opcode, argument, *parts = node
            written = self._best_of(opcode, argument, parts) if opcode in _COMPARED else None
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            if written is not None:
                self._written[number] = written
            reached = [reach for p in parts if (reach := self._reach[p]) is not None]
            if opcode == opcodes.COLUMN:
                reached = [(argument >> COLUMN_BITS,) * 2]
            self._reach.append((min(r[0] for r in reached), max(r[1] for r in reached)) if reached else None)
        return self._numbers[node]

    def _is_null(self, number: int, *, floating: bool) -> bool:
        opcode, word = self._nodes[number][:2]
        return opcode == CONSTANT and (math.isnan(np.int64(word).view(np.float64)) if floating else word == NULL)

    def _chosen(self, condition: int, value: int, other: int) -> int:
        """``SELECT``, or what says the same with fewer instructions."""
        match self._nodes[condition]:
            case (opcodes.IS_NULL_I | opcodes.IS_NULL_F as test, _, tested) if tested == other:
                return self._held(_JOINED[test], 0, other, value)
            case (opcodes.NOT, _, negated) if (
                self._nodes[negated][2:] == (value,) and self._nodes[negated][0] in _JOINED
            ):
                return self._held(_JOINED[self._nodes[negated][0]], 0, value, other)
            case (opcodes.OR, _, missing, only) if self._nodes[only][0] == opcodes.TRUE_ONLY:
                compared, better, *two = self._nodes[self._nodes[only][2]]
                for best, test in _IS_NULL.items():
                    alike = self._nodes[missing] == (test, 0, other) and compared == _COMPARED[best]
                    if alike and better in _OR_EQUAL and two == [value, other]:
                        kind, former, *values = self._nodes[other]
                        before = values if (kind, former) == (best, better) else [other]
                        return self._held(best, better, *before, value)
            case (opcodes.COMPARE_I, operator, counted, most) if operator == LT and counted == other:
                total = self._counted(value, other, most)
                if total is not None:
                    return self._held(_BEST_I, LT, total, most)
        inner, _, *chosen = self._nodes[value]
        if inner == SELECT and chosen[2] == other and self._nodes[other][0] == CONSTANT:
            return self._held(SELECT, 0, self._held(opcodes.AND, 0, condition, chosen[0]), chosen[1], other)
        return self._held(SELECT, 0, condition, value, other)

    def _counted(self, value: int, count: int, most: int) -> int | None:
        """What a ``count`` that stops at ``most`` counts with one event more, as ``value`` says; None if it is none."""
        added, _, *parts = self._nodes[value]
        if (
            added != opcodes.ADD_I
            or parts[0] != count
            or not self._is_bit(parts[1])
            or self._nodes[most][0] != CONSTANT
        ):
            return None
        kind, better, *values = self._nodes[count]
        if (kind, better) == (_BEST_I, LT) and values[1:] == [most]:
            return self._held(opcodes.ADD_I, 0, values[0], parts[1])
        return value if self._is_bit(count) and self._nodes[most][1] > 0 else None

    def _is_bit(self, number: int) -> bool:
        """Whether a node is known to be 0 or 1."""
        opcode, argument, *parts = self._nodes[number]
        return (opcode, argument) == (CONSTANT, 1) or (opcode == opcodes.NOT and self._nodes[parts[0]][0] in _JOINED)

    def _best_of(self, best: int, better: int, values: Sequence[int]) -> int:
        """The best of some values as instructions, each of two."""
        whole = values[0]
        for value in values[1:]:
            whole = self._held(_OF_TWO[best], better, whole, value)
        return whole

    def before(self, root: int, distance: int) -> int:
        """The same tree where each event is ``distance`` events further before."""
        below, pending = {root}, [root]
        while pending:
            for part in self._nodes[pending.pop()][2:]:
                if part not in below and (part, distance) not in self._shifted:
                    below.add(part)
                    pending.append(part)
        for number in sorted(below):
            opcode, argument, *parts = self._nodes[number]
            argument += (distance << COLUMN_BITS) if opcode == opcodes.COLUMN else 0
            moved = self._held(opcode, argument, *(self._shifted[part, distance] for part in parts))
            self._shifted[number, distance] = moved
        return self._shifted[root, distance]

    def at_latest_event(self, root: int) -> tuple[int, int]:
        """A condition as that of the latest event that it reads, and how many events before that one is."""
        distance, _ = self._reach[root] or (0, 0)
        return (self.before(root, -distance), distance) if distance else (root, 0)

    def instructions(self, root: int) -> tuple[int, int]:
        """How many instructions a tree becomes, and how many pay for the events that it reads."""
        latest, first = self._reach[root] or (0, 0)
        each = limits.LINKED_INSTRUCTIONS_EACH * (first - latest + 1)
        return len(self._parts(root)), max(limits.LINKED_INSTRUCTIONS, each)

    def _parts(self, root: int) -> dict[int, int]:
        """The nodes that the program of a tree computes, and how many of them read each."""
        reads = {root: 1}
        pending = [root]
        while pending:
            number = pending.pop()
            for part in self._nodes[self._written.get(number, number)][2:]:
                reads[part] = reads.get(part, 0) + 1
                if reads[part] == 1:
                    pending.append(part)
        return reads

    def conditions(self, root: int) -> list[int]:
        """Conditions that are all true if and only if this one is; those that are likelier to fail come first."""
        found: list[int] = []
        left = [root]
        while left:
            number = left.pop()
            match self._nodes[number]:
                case (opcodes.AND, _, one, other):
                    left += [other, one]
                case (opcodes.TRUE_ONLY, _, one):
                    left.append(one)
                case (opcodes.SELECT, _, condition, value, other) if self._nodes[other] == (CONSTANT, NULL):
                    left += [condition, value]
                case (opcodes.COMPARE_I | opcodes.COMPARE_F, operator, one, other) if operator not in (EQ, NE):
                    of_each = self._of_each(operator, one, other) or self._of_each(_MIRRORED[operator], other, one)
                    left += reversed(of_each)
                    found += [] if of_each else [number]
                case _:
                    found.append(number)
        return found

    def _of_each(self, operator: int, one: int, other: int) -> list[int]:
        """The conditions on each of some values that say how the best of them, ``one``, compares."""
        best, better, *values = self._nodes[one]
        if best not in _COMPARED or self._reach[values[-1]] is None:
            return []
        compared = [self._held(_COMPARED[best], operator, value, other) for value in values]
        if operator in (better, _OR_EQUAL[better]):
            return [self._joined(opcodes.OR, compared)]
        missing = [self._held(_IS_NULL[best], 0, value) for value in values]
        known = self._joined(_COALESCE[best], values)
        return [
            *(self._held(opcodes.OR, 0, *two) for two in zip(missing, compared)),
            self._held(_COMPARED[best], operator, known, other),
        ]

    def _joined(self, opcode: int, parts: Sequence[int]) -> int:
        whole = parts[0]
        for part in parts[1:]:
            whole = self._held(opcode, 0, whole, part)
        return whole

    def _pays_to_keep(self, number: int) -> bool:
        opcode, argument, *_ = self._nodes[self._written.get(number, number)]
        return opcode not in _LEAVES or (self._keyed and opcode == opcodes.COLUMN and argument >> COLUMN_BITS > 0)

    def _share(self, root: int, constant: Callable[[int], int]) -> None:
        """Read from a column what a tree computes of several events."""
        assert self._computed is not None
        distances: dict[int, dict[int, int]] = {}
        for number in self._parts(root):
            reach = self._reach[number]
            plain = self._nodes[number][0] in _LEAVES or number in self._shared
            if not plain and reach is not None and reach[0] == reach[1]:
                distances.setdefault(self.before(number, -reach[0]), {})[reach[0]] = number
        # Larger ones first: the parts of a node have smaller numbers.
        for own, some in sorted(distances.items(), reverse=True):
            known = own in self._shared
            if (known or len(some) >= _SHARED) and not self._parts(root).keys().isdisjoint(some.values()):
                column = self._shared[own] if known else self._computed(self.code(own, constant))
                for distance, number in {0: own, **some}.items():
                    self._written[number] = self._held(opcodes.COLUMN, column | distance << COLUMN_BITS)
                    self._shared[number] = column

    def code(self, root: int, constant: Callable[[int], int]) -> list[tuple[int, int]]:
        """The program of a tree; ``constant`` gives the number of a word."""
        if self._computed is not None:
            self._share(root, constant)
        code: list[tuple[int, int]] = []
        left = {part: reads for part, reads in self._parts(root).items() if self._pays_to_keep(part)}
        places: dict[int, int] = {}
        free: list[int] = []
        most = 0
        # Nodes, and whether their operands are computed already.
        pending = [(root, False)]
        while pending:
            number, ready = pending.pop()
            opcode, argument, *parts = self._nodes[self._written.get(number, number)]
            if number in places:
                code.append((opcodes.KEPT, places[number]))
            elif parts and not ready:
                pending.append((number, True))
                pending += [(part, False) for part in reversed(parts)]
                continue
            else:
                code.append((opcode, constant(argument) if opcode == CONSTANT else argument))
                if left.get(number, 0) > 1:
                    places[number] = free.pop() if free else most
                    most = max(most, places[number] + 1)
                    code.append((opcodes.KEEP, places[number]))
            if number in places:
                left[number] -= 1
                if left[number] == 0:
                    free.append(places[number])
        return code
