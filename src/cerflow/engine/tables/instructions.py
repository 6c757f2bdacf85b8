"""The target of programs: instructions, constants, and the event columns that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine import layout, opcodes
from cerflow.engine.evaluate.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.evaluate.predicate_words import Argument
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.tables.predicate_calls import Calls
from cerflow.engine.tables.register_kinds import register_expression_kind
from cerflow.language.condition import Expression
from cerflow.language.formula import Window
from cerflow.logic.conditions.guards import Measure

OPERATORS = {
    Operator.LT: layout.LT,
    Operator.LE: layout.LE,
    Operator.EQ: layout.EQ,
    Operator.NE: layout.NE,
    Operator.GE: layout.GE,
    Operator.GT: layout.GT,
}


@dataclass(frozen=True)
class EventColumn:
    """An event column: an expression, or (with ``window``) the measure of a window or its bound."""

    expression: Expression | None
    as_float: bool = False
    window: Window | None = None
    bound: bool = False


class Instructions:
    """Programs one after another, with the parts they share.

    ``kinds`` are the kinds of the fields of each register. ``move`` is the move whose instructions are being added,
    ``readers`` the moves that read each column. ``ordered`` says whether the order of strings is needed.
    """

    def __init__(self, schema: Schema, kinds: Sequence[Sequence[ValueKind]], strings: Strings) -> None:
        self.schema = schema
        self.kinds = kinds
        self.strings = strings
        self.unit = finest_unit(schema)
        self.code: list[list[int]] = []
        self.constants: list[int] = []
        self.columns: list[EventColumn] = []
        self._numbers: dict[EventColumn, int] = {}
        self._kinds: dict[Expression, ValueKind | None] = {}
        #: The calls of predicates in programs.
        self.calls = Calls(strings, self.unit)
        self.move = -1
        self.readers: dict[int, set[int]] = {}
        self.ordered = False

    def column(self, expression: Expression, *, as_float: bool) -> int:
        """The number of the column of an expression."""
        if isinstance(expression, Measure):
            return self._column(EventColumn(None, window=expression.window))
        return self._column(EventColumn(expression, as_float))

    def bound_column(self, window: Window) -> int:
        """The number of the column with the bound of a window."""
        return self._column(EventColumn(None, window=window, bound=True))

    def _column(self, column: EventColumn) -> int:
        if column not in self._numbers:
            self._numbers[column] = len(self.columns)
            self.columns.append(column)
        number = self._numbers[column]
        self.readers.setdefault(number, set()).add(self.move)
        return number

    def kind(self, expression: Expression) -> ValueKind:
        """The kind of an expression that may read registers."""
        if expression not in self._kinds:
            register_expression_kind(expression, self.schema, self.kinds, self._kinds)
        return self._kinds[expression] or ValueKind.OTHER

    def emit(self, opcode: int, argument: int = 0) -> None:
        """Append an instruction."""
        self.code.append([opcode, argument])

    def constant(self, value: int) -> None:
        """Append an instruction that pushes 64 bits."""
        self.constants.append(value)
        self.emit(opcodes.CONSTANT, len(self.constants) - 1)

    def call(self, call: Call) -> None:
        """Append an instruction that calls a predicate on the values pushed before."""
        arguments = tuple(map(self._argument, call.arguments))
        self.emit(opcodes.CALL, len(self.constants))
        self.constants += self.calls.constants(call.predicate, arguments)

    def call_of_set(self, call: CallOfSet) -> None:
        """Append an instruction that calls a predicate on the rows pushed before, and on the current event."""
        arguments = tuple(map(self._argument, call.arguments))
        self.emit(opcodes.CALL, len(self.constants))
        self.constants += self.calls.constants_of_set(call.predicate, arguments, call.sets, call.gathered, call.here)

    def _argument(self, expression: Expression) -> Argument:
        if isinstance(expression, WholeEvent):
            return Argument(tuple(map(self.kind, expression.values)), expression.names)
        kind = self.kind(expression)
        # NULL does not have a kind, and the predicate will not be called.
        return Argument((ValueKind.INTEGER if kind is ValueKind.OTHER else kind,))
