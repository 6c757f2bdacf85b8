"""Atoms as table rows: a comparison of an event column with a register slot where possible, else a small program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cerflow.automata.guards import Collected, InWindow, Measure, NoRow, Satisfied, Stored, conjunction, leaves
from cerflow.automata.guards import Truth as TruthOf
from cerflow.automata.transducer import Accumulation, Transducer
from cerflow.automata.values import If, Joined, SquareRoot
from cerflow.engine import layout, opcodes
from cerflow.engine.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.calls import Calls
from cerflow.engine.evaluate import finest_unit, instant
from cerflow.engine.kinds import kind_of
from cerflow.engine.strings import Strings
from cerflow.engine.words import Argument
from cerflow.language.condition import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Condition,
    Constant,
    Expression,
    Function,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Operator,
    Or,
)
from cerflow.language.formula import Window
from cerflow.language.node import Node
from cerflow.schema import Kind, Schema

__all__ = ["AtomCompiler", "Column"]

_OPERATORS = {
    Operator.LT: layout.LT,
    Operator.LE: layout.LE,
    Operator.EQ: layout.EQ,
    Operator.NE: layout.NE,
    Operator.GE: layout.GE,
    Operator.GT: layout.GT,
}
_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
}
_INTEGER_CODE = {
    "+": opcodes.ADD_I,
    "-": opcodes.SUBTRACT_I,
    "*": opcodes.MULTIPLY_I,
    "%": opcodes.REMAINDER_I,
}
_FLOAT_CODE = {
    "+": opcodes.ADD_F,
    "-": opcodes.SUBTRACT_F,
    "*": opcodes.MULTIPLY_F,
    "%": opcodes.REMAINDER_F,
    "/": opcodes.DIVIDE,
}
_ROUNDING = {"floor": opcodes.FLOOR, "ceil": opcodes.CEIL, "round": opcodes.ROUND}

Places = Mapping[int, int]


@dataclass(frozen=True)
class Column:
    """An event column: an expression, or (with ``window``) the measure of a window or its bound."""

    expression: Expression | None
    as_float: bool = False
    window: Window | None = None
    bound: bool = False


class AtomCompiler:
    """Collects the rows of all atoms and the columns that they and the registers read."""

    def __init__(self, transducer: Transducer, schema: Schema, kinds: list[list[Kind]], strings: Strings) -> None:
        self.transducer = transducer
        self.schema = schema
        self.kinds = kinds
        self.strings = strings
        self.unit = finest_unit(schema)
        self.rows: list[list[int]] = []
        self.code: list[list[int]] = []
        self.constants: list[int] = []
        self.ranges: list[list[int]] = []
        self.columns: list[Column] = []
        self._numbers: dict[Column, int] = {}
        self._kinds: dict[Expression, Kind] = {}
        self._computed: dict[tuple[object, ...], tuple[int, int]] = {}
        #: The calls of predicates in programs.
        self.calls = Calls(strings, self.unit)
        #: The move for which rows and columns are being added, and the moves that read each column.
        self.move = -1
        self.readers: dict[int, set[int]] = {}
        #: Whether the order of strings is asked for.
        self.ordered = any(
            r.keeps in (Accumulation.MIN, Accumulation.MAX) and Kind.STRING in kinds[k]
            for k, r in enumerate(transducer.registers)
        )

    @property
    def count(self) -> int:
        """The number of atoms so far."""
        return len(self.rows)

    def column(self, expression: Expression, *, as_float: bool) -> int:
        """The number of the column of an expression."""
        if isinstance(expression, Measure):
            return self._column(Column(None, window=expression.window))
        return self._column(Column(expression, as_float))

    def bound_column(self, window: Window) -> int:
        """The number of the column with the bound of a window."""
        return self._column(Column(None, window=window, bound=True))

    def _column(self, column: Column) -> int:
        if column not in self._numbers:
            self._numbers[column] = len(self.columns)
            self.columns.append(column)
        number = self._numbers[column]
        self.readers.setdefault(number, set()).add(self.move)
        return number

    def add(self, atom: Condition, places: Places) -> None:
        """Add the row of an atom, tested in a state whose registers are at ``places``."""
        if isinstance(atom, InWindow) and self._is_scalar(atom.start):
            slot = places[atom.start.register] + atom.start.field
            self.rows.append([layout.LT, layout.INT, self.bound_column(atom.window), slot, 0, 0])
            return
        simple = self._simple(atom, places) if isinstance(atom, Comparison) else None
        self.rows.append(simple if simple is not None else self._program(atom, places))

    def kind(self, expression: Expression) -> Kind:
        """The kind of an expression that may read registers."""
        known = self._kinds.get(expression)
        if known is None:
            known = self._kinds[expression] = kind_of(expression, self.schema, self.kinds) or Kind.OTHER
        return known

    def _is_scalar(self, expression: Expression) -> bool:
        return (
            isinstance(expression, Stored)
            and self.transducer.registers[expression.register].keeps is not Accumulation.SET
        )

    def _simple(self, atom: Comparison, places: Places) -> list[int] | None:
        operator, left, right = atom.operator, atom.left, atom.right
        if self._is_scalar(left) and not leaves(right):
            operator, left, right = _FLIPPED[operator], right, left
        if leaves(left) or not self._is_scalar(right):
            return None
        assert isinstance(right, Stored)
        a, b = self.kind(left), self.kind(right)
        if a != b or a is Kind.OTHER:
            return None
        column = self.column(left, as_float=a is Kind.FLOAT)
        order = layout.FLOAT if a is Kind.FLOAT else layout.INT
        if a is Kind.STRING and operator not in (Operator.EQ, Operator.NE):
            order = layout.RANK
            self.ordered = True
        return [_OPERATORS[operator], order, column, places[right.register] + right.field, 0, 0]

    def _program(self, atom: Condition, places: Places) -> list[int]:
        start = len(self.code)
        first, sets = self._ranges([atom], places)
        _Emitter(self, places, sets).condition(atom)
        return [layout.PROGRAM, 0, start, len(self.code), first, len(self.ranges)]

    def _ranges(self, roots: Iterable[Node], places: Places) -> tuple[int, dict[int, int]]:
        """Add a range for each collection that is read; the first of them, and their numbers by register."""
        first = len(self.ranges)
        sets: dict[int, int] = {}
        for leaf in dict.fromkeys(leaf for root in roots for leaf in leaves(root)):
            if not isinstance(leaf, Stored) or isinstance(leaf, Collected) or self._is_scalar(leaf):
                continue
            if leaf.register not in sets:
                sets[leaf.register] = len(sets)
                self.ranges.append([places[leaf.register], self.transducer.registers[leaf.register].fields])
        return first, sets

    def _computed_once(self, expression: Expression, places: Places, kind: Kind) -> tuple[int, int]:
        """The program of an expression that reads registers with one value each: its first and last instruction.

        ``kind`` is that of the register it is written to. Transitions that compute the same share the program.
        """
        read = sorted({leaf.register for leaf in leaves(expression) if isinstance(leaf, Stored)})
        key = (expression, kind, *((register, places[register]) for register in read))
        known = self._computed.get(key)
        if known is None:
            known = self._computed[key] = self._value_program(expression, places, {}, kind)
            return known
        for opcode, argument in self.code[slice(*known)]:
            if opcode == opcodes.COLUMN:
                self.readers[argument].add(self.move)
        return known

    def _value_program(
        self, expression: Expression, places: Places, sets: Mapping[int, int], kind: Kind
    ) -> tuple[int, int]:
        start = len(self.code)
        _Emitter(self, places, sets).expression(expression, as_float=kind is Kind.FLOAT)
        return start, len(self.code)

    def product(
        self, row: Sequence[Expression], where: Sequence[Condition], places: Places, kinds: Sequence[Kind]
    ) -> tuple[list[int], list[list[int]]]:
        """A row to be added to a collection for every choice of rows that it reads: the product, and its fields."""
        first, sets = self._ranges([*row, *where], places)
        start = len(self.code)
        if where:
            _Emitter(self, places, sets).condition(conjunction(list(where)))
        end = len(self.code)
        fields = [self.field(e, places, kind, sets) for e, kind in zip(row, kinds)]
        return [first, len(self.ranges), start, end], fields

    def field(
        self, expression: Expression, places: Places, kind: Kind, sets: Mapping[int, int] | None = None
    ) -> list[int]:
        """Where a value to be stored comes from: source, index or first instruction, last instruction.

        ``sets`` numbers the collections of which one row is chosen.
        """
        if not leaves(expression):
            return [layout.FROM_COLUMN, self.column(expression, as_float=kind is Kind.FLOAT), 0]
        if sets and any(isinstance(leaf, Stored) and leaf.register in sets for leaf in leaves(expression)):
            return [layout.FROM_PROGRAM, *self._value_program(expression, places, sets, kind)]
        if isinstance(expression, Stored):
            return [layout.FROM_SLOT, places[expression.register] + expression.field, 0]
        return [layout.FROM_PROGRAM, *self._computed_once(expression, places, kind)]

    def emit(self, opcode: int, argument: int = 0) -> None:
        """Append an instruction."""
        self.code.append([opcode, argument])

    def call(self, call: Call) -> None:
        """Append an instruction that asks a predicate about the values pushed before."""
        arguments = tuple(map(self._argument, call.arguments))
        self.emit(opcodes.CALL, len(self.constants))
        self.constants += self.calls.constants(call.predicate, arguments)

    def call_of_set(self, call: CallOfSet) -> None:
        """Append an instruction that asks about the rows pushed before, and about the event at hand."""
        arguments = tuple(map(self._argument, call.arguments))
        self.emit(opcodes.CALL, len(self.constants))
        self.constants += self.calls.constants_of_set(call.predicate, arguments, call.each, call.here)

    def _argument(self, expression: Expression) -> Argument:
        if isinstance(expression, WholeEvent):
            return Argument(tuple(map(self.kind, expression.values)), expression.names)
        kind = self.kind(expression)
        # NULL has no kind; the predicate will not be asked.
        return Argument((Kind.INTEGER if kind is Kind.OTHER else kind,))

    def constant(self, value: int) -> None:
        """Append an instruction that pushes 64 bits."""
        self.constants.append(value)
        self.emit(opcodes.CONSTANT, len(self.constants) - 1)


class _Emitter:
    """Writes the program of one atom or expression. Work still to do waits on a stack, so depth does not matter."""

    def __init__(self, compiler: AtomCompiler, places: Places, sets: Mapping[int, int]) -> None:
        self.to = compiler
        self.places = places
        self.sets = sets
        self._pending: list[Callable[[], None]] = []

    def condition(self, atom: Condition) -> None:
        """Write the program of an atom."""
        self._run(lambda: self._condition(atom))

    def expression(self, expression: Expression, *, as_float: bool) -> None:
        """Write the program of a value."""
        self._run(*(self._as_float(expression) if as_float else [self._value(expression)]))

    def _run(self, *work: Callable[[], None]) -> None:
        self._later(*work)
        while self._pending:
            self._pending.pop()()

    def _later(self, *work: Callable[[], None]) -> None:
        """Do these next, in this order."""
        self._pending.extend(reversed(work))

    def _then(self, opcode: int, argument: int = 0) -> Callable[[], None]:
        return lambda: self.to.emit(opcode, argument)

    def _condition(self, current: Condition) -> None:
        if not leaves(current):
            if isinstance(current, Constant):
                self.to.constant(int(current.value))
            else:
                self.to.emit(opcodes.COLUMN, self.to.column(TruthOf(current), as_float=False))
            return
        match current:
            case And(left, right):
                self._later(self._of(left), self._of(right), self._then(opcodes.AND))
            case Or(left, right):
                self._later(self._of(left), self._of(right), self._then(opcodes.OR))
            case Not(operand):
                self._later(self._of(operand), self._then(opcodes.NOT))
            case Satisfied(operand):
                self._later(self._of(operand), self._then(opcodes.TRUE_ONLY))
            case Comparison(operator, left, right):
                self._compare(operator, left, right)
            case NoRow():
                self.to.constant(0)
            case InWindow(start, window):
                self.to.emit(opcodes.COLUMN, self.to.bound_column(window))
                self._later(self._value(start), self._then(opcodes.COMPARE_I, layout.LT))
            case Between(operand, low, high, negated):
                parts: list[Condition] = []
                if low is not None:
                    parts.append(Comparison(Operator.GE, operand, low))
                if high is not None:
                    parts.append(Comparison(Operator.LE, operand, high))
                self._joined(parts, opcodes.AND, negated)
            case In(operand, items, negated):
                self._joined([Comparison(Operator.EQ, operand, item) for item in items], opcodes.OR, negated)
            case IsNull(operand, negated):
                is_float = self.to.kind(operand) is Kind.FLOAT
                work = [self._value(operand), self._then(opcodes.IS_NULL_F if is_float else opcodes.IS_NULL_I)]
                self._later(*work, *([self._then(opcodes.NOT)] if negated else []))
            case Call(_, arguments):
                self._later(*map(self._value, _words(arguments)), lambda: self.to.call(current))
            case CallOfSet(_, arguments, each, Collected(register)):
                own = [a for a, differs in zip(arguments, each) if not differs or current.here]
                rows = self._then(opcodes.ROWS, self.places[register])
                self._later(rows, *map(self._value, _words(own)), lambda: self.to.call_of_set(current))
            case _:
                raise AssertionError(f"{type(current).__name__} over several events")

    def _of(self, current: Condition) -> Callable[[], None]:
        return lambda: self._condition(current)

    def _joined(self, parts: list[Condition], opcode: int, negated: bool) -> None:
        work = [self._of(parts[0])]
        for part in parts[1:]:
            work += [self._of(part), self._then(opcode)]
        self._later(*work, *([self._then(opcodes.NOT)] if negated else []))

    def _compare(self, operator: Operator, left: Expression, right: Expression) -> None:
        a, b = self.to.kind(left), self.to.kind(right)
        if Kind.TIMESTAMP in (a, b) and Kind.STRING in (a, b):
            left, right = self._moment(left), self._moment(right)
            a = b = Kind.TIMESTAMP
        # NULL alone goes with everything.
        a, b = (b if a is Kind.OTHER else a), (a if b is Kind.OTHER else b)
        if Kind.FLOAT in (a, b):
            self._later(
                *self._as_float(left), *self._as_float(right), self._then(opcodes.COMPARE_F, _OPERATORS[operator])
            )
            return
        ranked = []
        if Kind.STRING in (a, b) and operator not in (Operator.EQ, Operator.NE):
            self.to.ordered = True
            ranked = [self._then(opcodes.RANKED)]
        self._later(
            self._value(left), *ranked, self._value(right), *ranked, self._then(opcodes.COMPARE_I, _OPERATORS[operator])
        )

    def _moment(self, expression: Expression) -> Expression:
        if isinstance(expression, Literal) and isinstance(expression.value, str):
            return Literal(instant(expression.value, self.to.unit))
        return expression

    def _as_float(self, expression: Expression) -> list[Callable[[], None]]:
        if not leaves(expression) and not isinstance(expression, Literal):
            return [self._then(opcodes.COLUMN, self.to.column(expression, as_float=True))]
        if isinstance(expression, Literal):
            value = expression.value
            assert value is None or isinstance(value, int | float)
            bits = int(np.float64(np.nan if value is None else value).view(np.int64))
            return [lambda: self.to.constant(bits)]
        work = [self._value(expression)]
        if self.to.kind(expression) is not Kind.FLOAT:
            work.append(self._then(opcodes.TO_FLOAT))
        return work

    def _alike(self, whole: Expression, *parts: Expression) -> list[Callable[[], None]]:
        """The parts in the form of the whole: floats or 64-bit integers."""
        if self.to.kind(whole) is Kind.FLOAT:
            return [work for part in parts for work in self._as_float(part)]
        return [self._value(part) for part in parts]

    def _value(self, expression: Expression) -> Callable[[], None]:
        return lambda: self._expression(expression)

    def _expression(self, current: Expression) -> None:
        match current:
            case Stored(register, field) if register in self.sets:
                self.to.emit(opcodes.SET_FIELD, (self.sets[register] << 16) | field)
            case Stored(register, field):
                self.to.emit(opcodes.SLOT, self.places[register] + field)
            case Literal(value):
                self._literal(value)
            case _ if not leaves(current):
                is_float = self.to.kind(current) is Kind.FLOAT
                self.to.emit(opcodes.COLUMN, self.to.column(current, as_float=is_float))
            case TruthOf(condition):
                self._condition(condition)
            case If(condition, then, otherwise):
                self._later(self._of(condition), *self._alike(current, then, otherwise), self._then(opcodes.SELECT))
            case Joined(high, low, floating):
                if self.to.kind(low) is Kind.FLOAT:
                    self._later(*self._as_float(low))
                else:
                    join = opcodes.JOIN_F if floating else opcodes.JOIN_I
                    self._later(self._value(high), self._value(low), self._then(join))
            case SquareRoot(operand):
                self._later(*self._as_float(operand), self._then(opcodes.SQUARE_ROOT))
            case Arithmetic() if self.to.kind(current) is Kind.OTHER:
                self.to.constant(layout.NULL)
            case Arithmetic(operator, left, right):
                if self.to.kind(current) is Kind.FLOAT:
                    self._later(*self._as_float(left), *self._as_float(right), self._then(_FLOAT_CODE[operator]))
                else:
                    self._later(self._value(left), self._value(right), self._then(_INTEGER_CODE[operator]))
            case Negative(operand):
                is_float = self.to.kind(operand) is Kind.FLOAT
                self._later(self._value(operand), self._then(opcodes.NEGATE_F if is_float else opcodes.NEGATE_I))
            case Function(name, (argument,)):
                is_float = self.to.kind(argument) is Kind.FLOAT
                work = [self._value(argument)]
                if name == "abs":
                    work.append(self._then(opcodes.ABS_F if is_float else opcodes.ABS_I))
                elif is_float:
                    work.append(self._then(_ROUNDING[name]))
                self._later(*work)
            case _:
                raise AssertionError(f"{type(current).__name__} over several events")

    def _literal(self, value: int | float | str | bool | None) -> None:
        if value is None:
            self.to.constant(layout.NULL)
        elif isinstance(value, str):
            self.to.constant(self.to.strings.code(value))
        elif isinstance(value, float):
            self.to.constant(int(np.float64(value).view(np.int64)))
        else:
            self.to.constant(int(value))


def _words(arguments: Iterable[Expression]) -> list[Expression]:
    """The values that make arguments, a whole event being many."""
    return [v for a in arguments for v in (a.values if isinstance(a, WholeEvent) else (a,))]
