"""Predicates of users asked by the engine: from inside kernels, and for the rows of a batch."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.compiled import compiled
from cerflow.engine.kernels.calls import FAILED, UNKNOWN, ask_rows
from cerflow.engine.layout import NULL
from cerflow.engine.strings import Strings
from cerflow.engine.vectors import Truth, Vector
from cerflow.errors import PredicateError
from cerflow.predicates.asking import ask, ask_of_each
from cerflow.predicates.predicate import Predicate, PredicateKind
from cerflow.schema import Kind

__all__ = ["Argument", "Calls", "Columns", "answers"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Argument:
    """The kinds of the words that make an argument: one, or those of the attributes ``names`` of a whole event."""

    kinds: tuple[Kind, ...]
    names: tuple[str, ...] | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind of a value, None for a whole event."""
        return self.kinds[0] if self.names is None else None


@dataclass(frozen=True)
class Columns:
    """A whole event as an argument at many events: a vector for each attribute."""

    names: tuple[str, ...]
    vectors: tuple[Vector, ...]


# -- from inside kernels ---------------------------------------------------------------------------------------------


class Calls:
    """The calls that kernels make, by number. ``failure`` is where they note the first that fails."""

    def __init__(self, strings: Strings, unit: str) -> None:
        self._strings = strings
        self._unit = unit
        self._targets: list[_Target] = []
        self._numbers: dict[tuple[Predicate, tuple[Argument, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._targets)

    def constants(self, predicate: Predicate, arguments: tuple[Argument, ...]) -> tuple[int, int, int]:
        """What a kernel has to know: the address to call, the words of the arguments, the number of the call."""
        key = (predicate, arguments)
        if key not in self._numbers:
            self._numbers[key] = len(self._targets)
            self._targets.append(_Target(predicate, arguments, self._strings, self._unit))
        number = self._numbers[key]
        return self._targets[number].address, self._targets[number].words, number

    def failure(self) -> NDArray[np.int64]:
        """Room for the note of a failure: one more than the number of the call, and its arguments."""
        return np.zeros(1 + max((target.words for target in self._targets), default=0), np.int64)

    def raise_failure(self, failure: NDArray[np.int64]) -> None:
        """Raise the error behind a note, and clear it."""
        number = int(failure[0]) - 1
        failure[0] = 0
        self._targets[number].fail(failure[1:])


class _Target:
    """A predicate as a C function of words that come from registers and event columns."""

    def __init__(self, predicate: Predicate, arguments: tuple[Argument, ...], strings: Strings, unit: str) -> None:
        self.predicate = predicate
        self._arguments = arguments
        self._readers = [_reader(kind, lambda code: strings.texts[code], unit) for a in arguments for kind in a.kinds]
        self._format = struct.Struct("".join("d" if k is Kind.FLOAT else "q" for a in arguments for k in a.kinds))
        self._error: BaseException | None = None
        self.words = sum(len(argument.kinds) for argument in arguments)
        #: What holds the address must live as long as this.
        self._function = compiled(predicate, [argument.kind for argument in arguments]) or _Function(self._ask)
        address = getattr(self._function, "address", None)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0 if address is None else address

    def _ask(self, address: int) -> int:
        # Nothing may leave this function but a number: it is called from compiled code.
        try:
            answer = ask(self.predicate, self._read(ctypes.string_at(address, 8 * self.words)))
        except BaseException as error:
            if self._error is None:
                self._error = error
            return FAILED
        return UNKNOWN if answer is None else int(answer)

    def _read(self, words: bytes) -> list[Any]:
        values = [read(word) for read, word in zip(self._readers, self._format.unpack(words))]
        given: list[Any] = []
        for argument in self._arguments:
            count = len(argument.kinds)
            some, values = values[:count], values[count:]
            given.append(some[0] if argument.names is None else MappingProxyType(dict(zip(argument.names, some))))
        return given

    def fail(self, words: NDArray[np.int64]) -> None:
        """Raise what the function has raised."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        _ask_again(self.predicate, self._read(words[: self.words].tobytes()))


def _ask_again(predicate: Predicate, arguments: Sequence[Any]) -> None:
    """A compiled function cannot say what went wrong; as plain Python it can."""
    ask(predicate, arguments)
    raise PredicateError(
        f"predicate '{predicate.name}' failed on {tuple(arguments)!r} as compiled by Numba, but not as plain Python "
        "(register it with compile=False)",
        predicate.name,
    )


def _reader(kind: Kind, text: Callable[[int], str], unit: str) -> Callable[[Any], Any]:
    """A function from a word of a kind (floats as such) to the value for users."""

    def number(word: int) -> int | None:
        return None if word == NULL else word

    def fraction(word: float) -> float | None:
        return None if word != word else word

    def boolean(word: int) -> bool | None:
        return None if word == NULL else word != 0

    def string(word: int) -> str | None:
        return None if word == NULL else text(word)

    def timestamp(word: int) -> datetime | None:
        return None if word == NULL else _moment(word, unit)

    return {Kind.FLOAT: fraction, Kind.BOOLEAN: boolean, Kind.STRING: string, Kind.TIMESTAMP: timestamp}.get(
        kind, number
    )


def _moment(ticks: int, unit: str) -> datetime:
    return _EPOCH + timedelta(microseconds=ticks * 10**6 // _PER_SECOND[unit])


# -- for the rows of a batch -----------------------------------------------------------------------------------------


def answers(
    predicate: Predicate, arguments: Sequence[Vector | Columns], count: int, where: Mask | None, unit: str
) -> Truth:
    """The answers of a predicate for ``count`` rows, asked only ``where`` somebody wants to know (None: everywhere).

    Raises `PredicateError`.
    """
    if all(isinstance(a, Vector) and a.data.ndim == 0 for a in arguments):
        # Literals alone: one answer for all.
        count, where = 1, None
    known = np.ones(count, bool) if where is None else where.copy()
    for argument in arguments:
        if isinstance(argument, Vector):
            known &= ~argument.missing()
    index = np.flatnonzero(known)
    true = np.zeros(count, bool)
    unknown = np.ones(count, bool)
    if len(index):
        asking = _ask_vectorized if predicate.kind is PredicateKind.VECTORIZED else _ask_scalar
        true[index], unknown[index] = asking(predicate, arguments, index, unit)
    return Truth(true, unknown)


def _ask_vectorized(
    predicate: Predicate, arguments: Sequence[Vector | Columns], index: NDArray[np.intp], unit: str
) -> tuple[Mask, Mask]:
    return ask_of_each(predicate, [_arrow(a, index, unit) for a in arguments], len(index))


def _arrow(argument: Vector | Columns, index: NDArray[np.intp], unit: str) -> Any:
    """An argument at some rows as Arrow data; a literal as its value."""
    if isinstance(argument, Columns):
        arrays = [_arrow(v, index, unit) for v in argument.vectors]
        return pa.RecordBatch.from_arrays(arrays, names=list(argument.names))
    if argument.data.ndim == 0:
        return _values(argument, np.zeros(1, np.intp), unit)[0]
    data = argument.data[index]
    mask = argument.missing()[index]
    if argument.kind is Kind.STRING:
        return pa.array(list(argument.dictionary), pa.string()).take(pa.array(data, mask=mask))
    if argument.kind is Kind.BOOLEAN:
        return pa.array(data != 0, mask=mask)
    if argument.kind is Kind.TIMESTAMP:
        return pa.array(data, pa.timestamp(unit, "UTC"), mask=mask)
    return pa.array(data, mask=mask)


def _ask_scalar(
    predicate: Predicate, arguments: Sequence[Vector | Columns], index: NDArray[np.intp], unit: str
) -> tuple[Mask, Mask]:
    function = compiled(predicate, [a.kind if isinstance(a, Vector) else None for a in arguments])
    if function is None:
        found = _ask_in_python(predicate, arguments, index, unit)
        return np.array([answer is True for answer in found]), np.array([answer is None for answer in found])
    words = np.empty((len(index), len(arguments)), np.int64)
    for k, vector in enumerate(arguments):
        assert isinstance(vector, Vector)
        data = _at(vector.data, index)
        words[:, k] = data.astype(np.float64).view(np.int64) if vector.kind is Kind.FLOAT else data
    outcome = np.empty(len(index), np.int32)
    failed = ask_rows(function.address, words.ravel(), np.int64(len(arguments)), outcome)
    if failed >= 0:
        at = index[failed : failed + 1]
        _ask_again(predicate, [_values(a, at, unit)[0] for a in arguments])
    return outcome == 1, outcome == UNKNOWN


def _ask_in_python(
    predicate: Predicate, arguments: Sequence[Vector | Columns], index: NDArray[np.intp], unit: str
) -> list[bool | None]:
    varying = [a for a in arguments if not (isinstance(a, Vector) and a.data.ndim == 0)]
    if len(varying) == 1 and isinstance(varying[0], Vector) and varying[0].kind is Kind.STRING:
        # One question for each distinct string.
        _, first, which = np.unique(varying[0].data[index], return_index=True, return_inverse=True)
        distinct = [ask(predicate, row) for row in zip(*(_values(a, index[first], unit) for a in arguments))]
        return [distinct[k] for k in which.tolist()]
    return [ask(predicate, row) for row in zip(*(_values(a, index, unit) for a in arguments))]


def _values(argument: Vector | Columns, index: NDArray[np.intp], unit: str) -> list[Any]:
    """An argument at some rows as Python values, None for null."""
    if isinstance(argument, Columns):
        columns = zip(*(_values(v, index, unit) for v in argument.vectors))
        return [MappingProxyType(dict(zip(argument.names, row))) for row in columns]
    dictionary = argument.dictionary
    read = _reader(argument.kind, lambda code: dictionary[code], unit)
    data, nulls = _at(argument.data, index), _at(argument.missing(), index)
    return [None if null else read(word) for word, null in zip(data.tolist(), nulls.tolist())]


def _at(array: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """The values at some rows; that of a literal is the same at each."""
    return array[index] if array.ndim else np.full(len(index), array)
