"""Atoms as table rows: comparisons of an event column with a register slot if possible, otherwise small programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from cerflow.automata.model.transducer import Accumulation, Transducer, registers_read
from cerflow.base.operators import MIRRORED, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine import layout, opcodes
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.tables.emitter import Emitter, Places
from cerflow.engine.tables.instructions import OPERATORS, Instructions
from cerflow.engine.tables.sums import limits_of
from cerflow.language import condition as c
from cerflow.language.node import Node
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.conditions.guards import AllRows, InWindow, Stored, leaves


class AtomCompiler(Instructions):
    """Collects the rows of all atoms, and the columns that atoms and registers read."""

    def __init__(self, transducer: Transducer, schema: Schema, kinds: Sequence[Sequence[ValueKind]], strings: Strings):
        super().__init__(schema, kinds, strings)
        self.transducer = transducer
        self.rows: list[list[int]] = []
        self.ranges: list[list[int]] = []
        self._computed: dict[tuple[object, ...], tuple[int, int]] = {}
        self._programs: dict[tuple[object, ...], list[int]] = {}
        self.ordered = any(
            r.keeps in (Accumulation.MIN, Accumulation.MAX) and any(kind.coded for kind in kinds[k])
            for k, r in enumerate(transducer.registers)
        )

    def add(self, atom: c.Condition, places: Places) -> None:
        """Add the row of an atom, tested in a state whose registers begin at the slots ``places``."""
        match atom:
            case InWindow(start, window) | c.Not(InWindow(start, window)) if self._is_scalar(start):
                operator = layout.LT if isinstance(atom, InWindow) else layout.GE
                slot = places[start.register] + start.field
                self.rows.append([operator, layout.INT, self.bound_column(window), slot, 0, 0])
            case _:
                simple = self._simple(atom, places) if isinstance(atom, c.Comparison) else None
                self.rows.append(simple if simple is not None else self._program(atom, places))

    def implied(self, row: Sequence[int]) -> Iterator[list[int]]:
        """Rows of comparisons of a column with a slot without which an atom, given by its row, does not hold."""
        if row[layout.A_OPERATOR] != layout.PROGRAM:
            return
        for limit in limits_of(self.code[row[layout.A_LEFT] : row[layout.A_RIGHT]], self.constants):
            column, constant = self.columns[limit.column].expression, c.Literal(limit.constant)
            # Times find few: those that a window has not forgotten.
            if not isinstance(column, c.Attribute) or column.name == self.schema.time or not self.kind(column).numeric:
                continue
            sides = (constant, column) if limit.constant_first else (column, constant)
            as_float = limit.opcode in (opcodes.ADD_F, opcodes.SUBTRACT_F)
            sign = "+" if limit.opcode in (opcodes.ADD_I, opcodes.ADD_F) else "-"
            value: c.Expression = c.Arithmetic(sign, *sides)
            if not limit.safe:
                beyond = c.Function("coalesce", (value, c.Literal(-MOST if limit.greatest else MOST)))
                value = c.If(c.IsNull(column), c.Literal(None), beyond)
            number = self.column(value, as_float=as_float)
            order = layout.FLOAT if as_float else layout.INT
            yield [layout.LE if limit.greatest else layout.GE, order, number, limit.slot, 0, 0]

    def _is_scalar(self, expression: c.Expression) -> bool:
        return (
            isinstance(expression, Stored)
            and self.transducer.registers[expression.register].keeps is not Accumulation.SET
        )

    def _simple(self, atom: c.Comparison, places: Places) -> list[int] | None:
        operator, left, right = atom.operator, atom.left, atom.right
        if self._is_scalar(left) and not leaves(right):
            operator, left, right = MIRRORED[operator], right, left
        if leaves(left) or not self._is_scalar(right):
            return None
        assert isinstance(right, Stored)
        a, b = self.kind(left), self.kind(right)
        if a != b or a is ValueKind.OTHER:
            return None
        column = self.column(left, as_float=a is ValueKind.FLOAT)
        order = layout.FLOAT if a is ValueKind.FLOAT else layout.INT
        if a.coded and operator not in (Operator.EQ, Operator.NE):
            order = layout.RANK
            self.ordered = True
        return [OPERATORS[operator], order, column, places[right.register] + right.field, 0, 0]

    def _program(self, atom: c.Condition, places: Places) -> list[int]:
        """The row of a condition; those that read the same slots share its program."""
        key = (atom, *((register, places[register]) for register in sorted(registers_read([atom]))))
        if key not in self._programs:
            start = len(self.code)
            first, sets = self._ranges([atom], places)
            Emitter(self, places, sets).write(atom)
            self._programs[key] = [layout.PROGRAM, 0, start, len(self.code), first, len(self.ranges)]
        row = self._programs[key]
        self._read(row[layout.A_LEFT], row[layout.A_RIGHT])
        return row

    def _read(self, start: int, end: int) -> None:
        """Note that the move reads the columns that a program reads."""
        for opcode, argument in self.code[start:end]:
            if opcode == opcodes.COLUMN:
                self.readers[argument].add(self.move)

    def _ranges(self, roots: Iterable[Node], places: Places) -> tuple[int, dict[int, int]]:
        """Add a range for each collection that is read; returns the first of them, and their numbers by register."""
        first = len(self.ranges)
        sets: dict[int, int] = {}
        for leaf in dict.fromkeys(leaf for root in roots for leaf in leaves(root)):
            if not isinstance(leaf, Stored) or isinstance(leaf, AllRows) or self._is_scalar(leaf):
                continue
            if leaf.register not in sets:
                sets[leaf.register] = len(sets)
                self.ranges.append([places[leaf.register], self.transducer.registers[leaf.register].fields])
        return first, sets

    def _computed_once(
        self, expression: c.Expression, places: Places, sets: Mapping[int, int], kind: ValueKind
    ) -> tuple[int, int]:
        """The program of an expression that reads registers: its first and last instruction.

        ``kind`` is the kind of the register that it is written to. Transitions with the same computation share the
        program.
        """
        read = sorted(registers_read([expression]))
        key = (expression, kind, *((register, places[register], sets.get(register)) for register in read))
        if key not in self._computed:
            start = len(self.code)
            Emitter(self, places, sets).write(expression, as_float=kind is ValueKind.FLOAT)
            self._computed[key] = start, len(self.code)
        self._read(*self._computed[key])
        return self._computed[key]

    def product(
        self, row: Sequence[c.Expression], where: Sequence[c.Condition], places: Places, kinds: Sequence[ValueKind]
    ) -> tuple[list[int], list[list[int]]]:
        """A row to add to a collection for every choice of rows that it reads: the product, and its fields."""
        first, sets = self._ranges([*row, *where], places)
        start = len(self.code)
        if where:
            Emitter(self, places, sets).write(conjunction(list(where)))
        end = len(self.code)
        fields = [self.field(e, places, kind, sets) for e, kind in zip(row, kinds)]
        return [first, len(self.ranges), start, end], fields

    def field(
        self, expression: c.Expression, places: Places, kind: ValueKind, sets: Mapping[int, int] = MappingProxyType({})
    ) -> list[int]:
        """The source of a value to be stored: source, index or first instruction, last instruction.

        ``sets`` numbers the collections from which one row is chosen.
        """
        if not leaves(expression):
            return [layout.FROM_COLUMN, self.column(expression, as_float=kind is ValueKind.FLOAT), 0]
        if isinstance(expression, Stored) and expression.register not in sets:
            return [layout.FROM_SLOT, places[expression.register] + expression.field, 0]
        return [layout.FROM_PROGRAM, *self._computed_once(expression, places, sets, kind)]
