"""The target of programs: instructions, constants, event columns, and the predicates that kernels call by address."""

from __future__ import annotations

import ctypes
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cerflow.base.array_types import Ints
from cerflow.base.errors import PredicateError
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine import layout, opcodes
from cerflow.engine.evaluate.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.evaluate.predicate_answers import Argument, Words, compile_predicate, only_compiled
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.kernels.base.calls import FAILED, UNKNOWN
from cerflow.engine.tables.register_kinds import register_expression_kind
from cerflow.language.condition import Expression
from cerflow.language.formula import Window
from cerflow.language.predicates.asking import arguments_of_sets, ask, ask_of_set
from cerflow.language.predicates.predicate import Predicate
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

    def constants(self, predicate: Predicate, arguments: tuple[Argument, ...]) -> tuple[int, int, int]:
        """The constants for a kernel: the address to call, the words of the arguments, the number of the call."""
        key = (predicate, arguments)
        return self._constants(key, lambda: _ValueTarget(predicate, arguments, self._strings, self._unit))

    def constants_of_set(
        self, predicate: Predicate, arguments: tuple[Argument, ...], sets: tuple[int, ...], gathered: int, here: int
    ) -> tuple[int, int, int]:
        """`constants` for a predicate of sets: the address of the rows, their number of words, and its own arguments.

        See `cerflow.engine.evaluate.binding.CallOfSet`.
        """
        key = (predicate, arguments, sets, gathered, here)
        return self._constants(key, lambda: _SetTarget(*key, self._strings, self._unit))

    def _constants(self, key: tuple[object, ...], make: Callable[[], _Target]) -> tuple[int, int, int]:
        if key not in self._numbers:
            self._numbers[key] = len(self._targets)
            self._targets.append(make())
        number = self._numbers[key]
        return self._targets[number].address, self._targets[number].words, number

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
                target.forget()


class _Target(ABC):
    """A predicate as a C function of words from registers and event columns."""

    #: The number of words it takes, and its address.
    words: int
    address: int

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        self._error: BaseException | None = None

    def _called(self, function: Any = None) -> None:
        """Take the address of a compiled function or of this object's own, whose owner must live as long."""
        self._function = function or _Function(self._ask)
        address = getattr(self._function, "address", None)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0 if address is None else address

    def _ask(self, address: int) -> int:
        # Compiled code calls this function, so it must not raise.
        try:
            answer = self._answer(ctypes.string_at(address, 8 * self.words))
        except BaseException as error:
            if self._error is None:
                self._error = error
            return FAILED
        return UNKNOWN if answer is None else int(answer)

    @abstractmethod
    def _answer(self, words: bytes) -> bool | None:
        """The function's answer for arguments in the form of kernels."""

    def fail(self, words: Ints) -> None:
        """Raise the exception of the function for these words."""
        if self._error is not None:
            raise self._error
        self._answer(words[: self.words].tobytes())
        raise PredicateError(only_compiled(self.predicate.name), self.predicate.name)

    def forget(self) -> None:
        """Forget that exception."""
        self._error = None


class _ValueTarget(_Target):
    def __init__(self, predicate: Predicate, arguments: tuple[Argument, ...], strings: Strings, unit: str) -> None:
        super().__init__(predicate)
        self._words = Words(arguments, strings, unit)
        self.words = self._words.count
        self._called(compile_predicate(predicate, [argument.kind for argument in arguments]))

    def _answer(self, words: bytes) -> bool | None:
        return ask(self.predicate, self._words.read(words))


class _SetTarget(_Target):
    """A predicate of sets of events: the rows of a collection, and the current event."""

    def __init__(
        self,
        predicate: Predicate,
        arguments: tuple[Argument, ...],
        sets: tuple[int, ...],
        gathered: int,
        here: int,
        strings: Strings,
        unit: str,
    ) -> None:
        super().__init__(predicate)
        self._sets, self._gathered, self._here = sets, gathered, here
        kept = [0 <= number < gathered for number in sets]
        of_event = [argument for argument, is_kept in zip(arguments, kept) if is_kept]
        own = [argument for argument, is_kept in zip(arguments, kept) if here or not is_kept]
        # The position at the beginning of a row is not an argument.
        self._row = Words([Argument((ValueKind.INTEGER,))] * (1 + (gathered > 1)) + of_event, strings, unit)
        self._own = Words(own, strings, unit)
        self.words = 2 + self._own.count
        self._called()

    def _answer(self, words: bytes) -> bool | None:
        address, size = _WHERE.unpack(words[: _WHERE.size])
        kept = ctypes.string_at(address, 8 * size) if size else b""
        rows = (self._row.read(row)[1:] for row in _split(kept, 8 * self._row.count))
        own = self._own.read(words[_WHERE.size :])
        return ask_of_set(self.predicate, arguments_of_sets(self._sets, self._gathered, rows, own, self._here))


def _split(words: bytes, size: int) -> list[bytes]:
    return [words[at : at + size] for at in range(0, len(words), size)]


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
