"""Users' predicates, called on the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Mask
from cerflow.base.decimals import text_decimal
from cerflow.base.errors import PredicateError
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.binding import CallOfSet
from cerflow.engine.evaluate.compiled_predicates import compile_predicate
from cerflow.engine.evaluate.predicate_words import only_compiled, reader
from cerflow.engine.evaluate.vectors import TruthVector, Vector
from cerflow.engine.kernels.base.calls import UNKNOWN
from cerflow.engine.kernels.table import ask_rows
from cerflow.language.predicates.asking import arguments_of_sets, array_of, ask, ask_of_each, ask_of_set
from cerflow.language.predicates.predicate import Predicate, PredicateKind


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
    own = [a for a, number in zip(arguments, call.sets) if call.here or not 0 <= number < call.gathered]
    rows = zip(*(python_arguments(a, index, unit) for a in own)) if own else ((),) * len(index)
    found = [
        ask_of_set(call.predicate, arguments_of_sets(call.sets, call.gathered, (), row, call.here)) for row in rows
    ]
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
    if argument.kind is ValueKind.BOOLEAN:
        return pa.array(data != 0, mask=mask)
    if argument.kind is ValueKind.TIMESTAMP:
        return pa.array(data, pa.timestamp(unit, "UTC"), mask=mask)
    if argument.kind is ValueKind.DURATION:
        return pa.array(data, pa.duration("us"), mask=mask)
    return pa.array(data + 0.0 if argument.kind is ValueKind.FLOAT else data, mask=mask)


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
