"""The target of programs: instructions, constants, event columns, and the predicates that kernels call by address."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from cerflow.base.array_types import Ints
from cerflow.base.errors import PredicateError
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine import layout
from cerflow.engine.evaluate.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.evaluate.predicate_answers import Argument, Words, compile_predicate, only_compiled
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.kernels.base.calls import FAILED, UNKNOWN
from cerflow.engine.tables.register_kinds import register_expression_kind
from cerflow.language.condition import Expression
from cerflow.language.formula import Window
from cerflow.language.predicates.asking import arguments_of_sets, ask, ask_of_set
from cerflow.logic.conditions.guards import Measure

_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
#: The address of rows and their words.
_WHERE = struct.Struct("qq")


class Calls:
    """The calls that kernels make, by number. Kernels record the first that fails in ``failure``."""

    def __init__(self, strings: Strings, unit: str) -> None:
        self._strings = strings
        self._unit = unit
        self._targets: list[_Target] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def __len__(self) -> int:
        return len(self._targets)

    def constants(self, call: Call | CallOfSet, arguments: tuple[Argument, ...]) -> tuple[int, int, int]:
        """The constants for a kernel: the address to call, the words of the arguments, the number of the call."""
        of_sets = (call.sets, call.gathered, call.here) if isinstance(call, CallOfSet) else ()
        key = (call.predicate, arguments, *of_sets)
        if key not in self._numbers:
            made = self._of_sets(call, arguments) if isinstance(call, CallOfSet) else self._of_values(call, arguments)
            self._numbers[key] = len(self._targets)
            self._targets.append(made)
        number = self._numbers[key]
        return self._targets[number].address, self._targets[number].words, number

    def _of_values(self, call: Call, arguments: tuple[Argument, ...]) -> _Target:
        predicate, given = call.predicate, Words(arguments, self._strings, self._unit)
        compiled = compile_predicate(predicate, [argument.kind for argument in arguments])
        return _Target(predicate.name, given.count, lambda words: ask(predicate, given.read(words)), compiled)

    def _of_sets(self, call: CallOfSet, arguments: tuple[Argument, ...]) -> _Target:
        """The arguments are the address of the rows of a collection, their number of words, and the current event."""
        predicate, sets, gathered, here = call.predicate, call.sets, call.gathered, call.here
        kept = [0 <= number < gathered for number in sets]
        # The position at the beginning of a row is not an argument.
        before = [Argument((ValueKind.INTEGER,))] * (1 + (gathered > 1))
        row = Words([*before, *compress(arguments, kept)], self._strings, self._unit)
        own = Words(call.own(arguments), self._strings, self._unit)

        def answer(words: bytes) -> bool | None:
            address, size = _WHERE.unpack(words[: _WHERE.size])
            held = ctypes.string_at(address, 8 * size) if size else b""
            rows = (row.read(held[at : at + 8 * row.count])[1:] for at in range(0, len(held), 8 * row.count))
            current = own.read(words[_WHERE.size :])
            return ask_of_set(predicate, arguments_of_sets(sets, gathered, rows, current, here))

        return _Target(predicate.name, 2 + own.count, answer)

    def failure(self) -> Ints:
        """Room for the record of a failure: one more than the number of the call, and its arguments."""
        return np.zeros(1 + max((target.words for target in self._targets), default=0), np.int64)

    def raise_failure(self, failure: Ints) -> None:
        """Raise the error of a recorded failure, and clear it."""
        number = int(failure[0]) - 1
        failure[0] = 0
        try:
            self._targets[number].fail(failure[1:])
        finally:
            for target in self._targets:
                target.error = None


class _Target:
    """A predicate as a C function of words from registers and event columns, ``compiled`` or by its ``answer``."""

    def __init__(
        self, name: str, words: int, answer: Callable[[bytes], bool | None], compiled: Any | None = None
    ) -> None:
        self._name = name
        self.words = words
        self._answer = answer
        #: The first exception of the function.
        self.error: BaseException | None = None
        # The owner of the address must live as long.
        self._function = compiled or _Function(self._ask)
        address = getattr(self._function, "address", None)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0 if address is None else address

    def _ask(self, address: int) -> int:
        # Compiled code calls this function, so it must not raise.
        try:
            answer = self._answer(ctypes.string_at(address, 8 * self.words))
        except BaseException as error:
            if self.error is None:
                self.error = error
            return FAILED
        return UNKNOWN if answer is None else int(answer)

    def fail(self, words: Ints) -> None:
        """Raise the exception of the function for these words."""
        if self.error is not None:
            raise self.error
        self._answer(words[: self.words].tobytes())
        raise PredicateError(only_compiled(self._name), self._name)


#: The numbers of operators in kernels.
OPERATORS: dict[Operator, int] = {operator: getattr(layout, operator.name) for operator in Operator}


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

    def constant(self, *words: int) -> int:
        """The number of the first of some constants of 64 bits, which are added."""
        self.constants += words
        return len(self.constants) - len(words)

    def call(self, call: Call | CallOfSet) -> int:
        """The same for a call of a predicate on the values, and rows of a collection, pushed before."""
        return self.constant(*self.calls.constants(call, tuple(map(self._argument, call.arguments))))

    def _argument(self, expression: Expression) -> Argument:
        if isinstance(expression, WholeEvent):
            return Argument(tuple(map(self.kind, expression.values)), expression.names)
        kind = self.kind(expression)
        # NULL does not have a kind, and the predicate will not be called.
        return Argument((ValueKind.INTEGER if kind is ValueKind.OTHER else kind,))
