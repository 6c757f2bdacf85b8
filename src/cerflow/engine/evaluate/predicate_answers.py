"""Users' predicates on the rows of a batch: compiled by Numba if possible, and with arguments read from words."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Mask
from cerflow.base.decimals import text_decimal
from cerflow.base.errors import PerformanceWarning, PredicateError, warn
from cerflow.base.events import moment_at
from cerflow.base.schema import ValueKind
from cerflow.base.units import PER_SECOND
from cerflow.engine.evaluate.binding import CallOfSet
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.evaluate.vectors import TruthVector, Vector
from cerflow.engine.kernels.base.calls import UNKNOWN
from cerflow.engine.kernels.table import ask_rows
from cerflow.engine.layout import NULL
from cerflow.language.predicates.asking import arguments_of_sets, array_of, ask, ask_of_each, ask_of_set
from cerflow.language.predicates.registry import Predicate, PredicateKind


@dataclass(frozen=True)
class EventArgument:
    """A whole event as an argument at many events: a vector for each attribute."""

    names: tuple[str, ...]
    vectors: tuple[Vector, ...]


def answers(
    predicate: Predicate, arguments: Sequence[Vector | EventArgument], count: int, where: Mask | None, unit: str
) -> TruthVector:
    """The answers of a predicate for ``count`` rows, called only at the rows ``where`` (None: all).

    Raises `PredicateError`.
    """
    if all(isinstance(a, Vector) and a.data.ndim == 0 for a in arguments):
        # Only literals: one answer for all.
        count, where = 1, None
    known = np.ones(count, bool) if where is None else where.copy()
    for argument in arguments:
        if isinstance(argument, Vector):
            known &= ~argument.missing()
    index = np.flatnonzero(known)
    true = np.zeros(count, bool)
    unknown = np.ones(count, bool)
    if len(index):
        if predicate.kind is PredicateKind.SCALAR:
            found = _ask_scalar(predicate, arguments, index, unit)
        else:
            found = ask_of_each(predicate, [_arrow(a, index, unit) for a in arguments], len(index))
        true[index], unknown[index] = found
    return TruthVector(true, unknown)


def answers_about_sets(
    call: CallOfSet, arguments: Sequence[Vector | EventArgument], count: int, where: Mask | None, unit: str
) -> TruthVector:
    """The answers of a predicate of sets of at most one event each, like `answers`.

    The sets hold the current event or nothing. Raises `PredicateError`.
    """
    reads = [call.here >> number & 1 if 0 <= number < call.gathered else number >= 0 for number in call.sets]
    if not any(reads):
        # Without events: one answer for all.
        count, where = 1, None
    index = np.arange(count) if where is None else np.flatnonzero(where)
    own = call.own(arguments)
    rows = zip(*(python_arguments(a, index, unit) for a in own)) if own else ((),) * len(index)
    given = (arguments_of_sets(call.sets, call.gathered, (), row, call.here) for row in rows)
    found = [ask_of_set(call.predicate, some) for some in given]
    true, unknown = np.zeros(count, bool), np.ones(count, bool)
    true[index] = [answer is True for answer in found]
    unknown[index] = [answer is None for answer in found]
    return TruthVector(true, unknown) if any(reads) else TruthVector(true[0], unknown[0])


def _arrow(argument: Vector | EventArgument, index: NDArray[np.intp], unit: str) -> Any:
    """An argument at some rows as Arrow data; a literal as its value."""
    if isinstance(argument, EventArgument):
        arrays = [_arrow(v, index, unit) for v in argument.vectors]
        return pa.RecordBatch.from_arrays(arrays, names=list(argument.names))
    if argument.data.ndim == 0:
        return python_arguments(argument, np.zeros(1, np.intp), unit)[0]
    data = argument.data[index]
    mask = argument.missing()[index]
    if argument.kind is ValueKind.STRING:
        return pa.array(list(argument.dictionary), pa.string()).take(pa.array(data, mask=mask))
    if argument.kind is ValueKind.DECIMAL:
        return array_of([text_decimal(argument.dictionary[k]) for k in data.tolist()])
    found = pa.array(data + 0.0 if argument.kind is ValueKind.FLOAT else data, mask=mask)
    moments, lengths = pa.timestamp(unit, "UTC"), pa.duration("us")
    forms = {ValueKind.BOOLEAN: pa.bool_(), ValueKind.TIMESTAMP: moments, ValueKind.DURATION: lengths}
    return found.cast(forms.get(argument.kind, found.type))


def _ask_scalar(
    predicate: Predicate, arguments: Sequence[Vector | EventArgument], index: NDArray[np.intp], unit: str
) -> tuple[Mask, Mask]:
    function = compile_predicate(predicate, [a.kind if isinstance(a, Vector) else None for a in arguments])
    if function is None:
        found = _ask_in_python(predicate, arguments, index, unit)
        return np.array([answer is True for answer in found]), np.array([answer is None for answer in found])
    words = np.empty((len(index), len(arguments)), np.int64)
    for k, vector in enumerate(arguments):
        assert isinstance(vector, Vector)
        data = _at(vector.data, index)
        words[:, k] = data.astype(np.float64).view(np.int64) if vector.kind is ValueKind.FLOAT else data
    outcome = np.empty(len(index), np.int32)
    failed = ask_rows(function.address, words.ravel(), np.int64(len(arguments)), outcome)
    if failed >= 0:
        # A compiled function cannot report its error; plain Python can.
        ask(predicate, [python_arguments(a, index[failed : failed + 1], unit)[0] for a in arguments])
        raise PredicateError(only_compiled(predicate.name), predicate.name)
    return outcome == 1, outcome == UNKNOWN


def _ask_in_python(
    predicate: Predicate, arguments: Sequence[Vector | EventArgument], index: NDArray[np.intp], unit: str
) -> list[bool | None]:
    varying = [a for a in arguments if not (isinstance(a, Vector) and a.data.ndim == 0)]
    if len(varying) == 1 and isinstance(varying[0], Vector) and varying[0].kind.coded:
        # One call for each distinct string.
        _, first, which = np.unique(varying[0].data[index], return_index=True, return_inverse=True)
        distinct = [ask(predicate, row) for row in zip(*(python_arguments(a, index[first], unit) for a in arguments))]
        return [distinct[k] for k in which.tolist()]
    return [ask(predicate, row) for row in zip(*(python_arguments(a, index, unit) for a in arguments))]


def python_arguments(argument: Vector | EventArgument, index: NDArray[np.intp], unit: str) -> list[Any]:
    """An argument at some rows as Python values, None for null."""
    if isinstance(argument, EventArgument):
        columns = zip(*(python_arguments(v, index, unit) for v in argument.vectors))
        return [MappingProxyType(dict(zip(argument.names, row))) for row in columns]
    dictionary = argument.dictionary
    read = reader(argument.kind, lambda code: dictionary[code], unit)
    data, nulls = _at(argument.data, index), _at(argument.missing(), index)
    return [None if null else read(word) for word, null in zip(data.tolist(), nulls.tolist())]


def _at(array: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """The values at some rows; a literal is the same at each."""
    return array[index] if array.ndim else np.full(len(index), array)


@dataclass(frozen=True)
class Argument:
    """The kinds of the words of an argument: one, or those of the attributes ``names`` of a whole event."""

    kinds: tuple[ValueKind, ...]
    names: tuple[str, ...] | None = None

    @property
    def kind(self) -> ValueKind | None:
        """The kind of a value, None for a whole event."""
        return self.kinds[0] if self.names is None else None


class Words:
    """The decoding of the words of arguments."""

    def __init__(self, arguments: Sequence[Argument], strings: Strings, unit: str) -> None:
        kinds = [kind for argument in arguments for kind in argument.kinds]
        self.count = len(kinds)
        self._arguments = arguments
        # The table of strings may be replaced by another.
        self._readers = [reader(kind, lambda code: strings.texts[code], unit) for kind in kinds]
        self._format = struct.Struct("".join("d" if kind is ValueKind.FLOAT else "q" for kind in kinds))

    def read(self, words: bytes) -> list[Any]:
        """The arguments, None for null."""
        values = [read(word) for read, word in zip(self._readers, self._format.unpack(words))]
        given: list[Any] = []
        for argument in self._arguments:
            count = len(argument.kinds)
            some, values = values[:count], values[count:]
            given.append(some[0] if argument.names is None else MappingProxyType(dict(zip(argument.names, some))))
        return given


def reader(kind: ValueKind, text: Callable[[int], str], unit: str) -> Callable[[Any], Any]:
    """A function from a word of a kind (floats as such) to the value for users."""

    if kind is ValueKind.FLOAT:
        # Registers hold only one zero.
        return lambda word: None if word != word else word + 0.0
    known: dict[ValueKind, Callable[[int], Any]] = {
        ValueKind.BOOLEAN: bool,
        ValueKind.STRING: text,
        ValueKind.DECIMAL: lambda word: text_decimal(text(word)),
        ValueKind.TIMESTAMP: lambda word: moment_at(word * 10**6 // PER_SECOND[unit]),
        ValueKind.DURATION: lambda word: timedelta(microseconds=word),
    }
    read = known.get(kind, int)
    return lambda word: None if word == NULL else read(word)


def only_compiled(name: str) -> str:
    """The message for a predicate that fails as compiled code and works as plain Python."""
    return f"predicate '{name}' failed as compiled by Numba, but not as plain Python (register it with compile=False)"


#: Numba's names of the types of arguments.
_TYPES = {ValueKind.INTEGER: "int64", ValueKind.FLOAT: "float64", ValueKind.BOOLEAN: "boolean"}
#: The compiled function, or why there is none, for each combination of kinds of arguments.
_known: WeakKeyDictionary[Predicate, dict[tuple[ValueKind, ...], Any]] = WeakKeyDictionary()


def compile_predicate(predicate: Predicate, kinds: Sequence[ValueKind | None]) -> Any:
    """The C function (with an ``address``) of a predicate for arguments of these kinds (None: a whole event).

    None if it has to run as plain Python; this gives one `PerformanceWarning`, unless it was requested.
    """
    if not predicate.compile:
        return None
    known = _known.setdefault(predicate, {})
    key = tuple(ValueKind.OTHER if kind is None else kind for kind in kinds)
    if key not in known:
        known[key] = _compile(predicate, kinds)
        if isinstance(known[key], str):
            text = f"predicate '{predicate.name}' runs as plain Python, which is slow: {known[key]} "
            warn(PerformanceWarning(f"{text}(compile=False suppresses this warning)"))
    return None if isinstance(known[key], str) else known[key]


def _compile(predicate: Predicate, kinds: Sequence[ValueKind | None]) -> Any:
    for kind in kinds:
        if kind not in _TYPES:
            return f"it gets {'a whole event' if kind is None else f'a {kind}'}"
    # Import Numba only here, as that takes long.
    try:
        from numba import types
        from numba.core.errors import NumbaWarning
    except ImportError as error:
        return f"Numba cannot be imported ({error}); pip install 'cerflow[compile]' installs it"

    from cerflow.engine.kernels.base.entries import entry

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            given = [getattr(types, _TYPES[kind]) for kind in kinds if kind is not None]
            return entry(_without_nan(predicate.function, given), given)
    except Exception as error:
        # Python can still run a function that Numba rejects for any reason.
        return f"Numba cannot compile it: {_reason(error)}"


def _without_nan(function: Any, given: Sequence[Any]) -> Any:
    """A function compiled by Numba for arguments of some types, which answers None where it would answer NaN."""
    from numba import njit, types

    body = function if hasattr(function, "py_func") else njit(function)
    body.compile(tuple(given))
    answer = body.overloads[tuple(given)].signature.return_type
    if not isinstance(getattr(answer, "type", answer), types.Float):
        return body

    @njit
    def known(*arguments):  # type: ignore[no-untyped-def]
        found = body(*arguments)
        if found is None or found != found:
            return None
        return found != 0

    return known


def _reason(error: Exception) -> str:
    """The line of Numba's message that names the problem."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "During:", "File", "-", "<"))]
    return said[0] if said else type(error).__name__
