"""The meaning of a call of a predicate: nulls, answers and failures.

If an argument is null, the answer is unknown without a call; for a set, events with a null are left out. Whole events
are never null: the function sees which of their attributes are.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Mask
from cerflow.base.errors import PredicateError
from cerflow.base.events import Event
from cerflow.language.predicates.registry import Form, Predicate


@dataclass(frozen=True, slots=True)
class Each:
    """An argument with a value for each event of a set; other arguments are the same for all events.

    ``set`` is the number of the set: values of one set at the same place belong to the same event.
    """

    values: Sequence[Any]
    set: int = 0


def as_argument(argument: Any) -> Any:
    """An argument in the form that predicates get: a whole event as a mapping of its attributes, zero without a sign.

    A timestamp becomes a plain datetime without nanoseconds; a decimal loses trailing zeros.
    """
    if isinstance(argument, Event):
        return MappingProxyType({name: as_argument(value) for name, value in argument.attributes.items()})
    if isinstance(argument, datetime.datetime) and type(argument) is not datetime.datetime:
        return datetime.datetime.combine(argument.date(), argument.time(), argument.tzinfo)
    if isinstance(argument, Decimal):
        written = f"{argument:f}"
        return Decimal(written.rstrip("0").rstrip(".") if "." in written else written) if argument else Decimal(0)
    return argument + 0.0 if isinstance(argument, float) else argument


def failure(predicate: Predicate, arguments: Sequence[Any] | None, error: BaseException) -> PredicateError:
    """The error to raise (from ``error``) when the function of a predicate has failed."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    on = ""
    if arguments is not None:
        shown = ", ".join(repr(dict(a)) if isinstance(a, Mapping) else repr(a) for a in arguments)
        most = limits.ARGUMENT_CHARACTERS
        on = f" on ({shown if len(shown) <= most else shown[: most - 1] + '…'})"
    return PredicateError(f"predicate '{predicate.name}' failed{on}: {what}", predicate.name)


def ask(predicate: Predicate, arguments: Sequence[Any]) -> bool | None:
    """The answer of a function of single values; whole events are mappings. Raises `PredicateError`."""
    if any(argument is None for argument in arguments):
        return None
    try:
        return _truth(predicate.function(*arguments))
    except Exception as error:
        raise failure(predicate, arguments, error) from error


def ask_of_each(predicate: Predicate, arguments: Sequence[Any], count: int) -> tuple[Mask, Mask]:
    """The answers of a vectorised function for ``count`` events: where they are true, and where unknown.

    Arguments are Arrow arrays without nulls, record batches for whole events, or plain values. Raises
    `PredicateError`.
    """
    if count == 0:
        return np.zeros(0, bool), np.zeros(0, bool)
    try:
        return as_answers(predicate.function(*(given_as(predicate.form, a) for a in arguments)), count)
    except Exception as error:
        raise failure(predicate, None, error) from error


def ask_of_set(predicate: Predicate, arguments: Sequence[Any]) -> bool | None:
    """The answer for all events of some labels, whose values are in the `Each` arguments by position.

    Raises `PredicateError`.
    """
    if any(argument is None for argument in arguments):
        return None
    columns: dict[int, list[Sequence[Any]]] = {}
    for argument in arguments:
        if isinstance(argument, Each):
            columns.setdefault(argument.set, []).append(argument.values)
    known = {k: [row for row in zip(*some) if all(value is not None for value in row)] for k, some in columns.items()}
    try:
        if predicate.form is Form.VALUES:
            (rows,) = known.values()
            return _truth(predicate.function(_rows(arguments, rows)))
        # Without events there are no rows that could be turned into columns.
        arrays = {k: iter(list(zip(*rows)) or [()] * len(columns[k])) for k, rows in known.items()}
        given = [
            given_as(predicate.form, array_of(next(arrays[a.set]))) if isinstance(a, Each) else a for a in arguments
        ]
        return _truth(predicate.function(*given))
    except Exception as error:
        raise failure(predicate, None, error) from error


def arguments_of_sets(
    sets: Sequence[int], gathered: int, rows: Iterable[Sequence[Any]], own: Iterable[Any], here: int
) -> list[Any]:
    """The arguments for `ask_of_set` of a call of predicates of sets, as `cerflow.logic.conditions.guards.SetCall` has
    them.

    ``rows`` are those of the collection, without positions. ``own`` are the values of the arguments that are not in
    rows, in their order; if the current event belongs to a set, of all arguments.
    """
    columns: dict[int, list[Any]] = {k: [] for k, number in enumerate(sets) if 0 <= number < gathered}
    for row in rows:
        bits, values = (row[0], row[1:]) if gathered > 1 else (1, row)
        for k, value in zip(columns, values):
            if bits >> sets[k] & 1:
                columns[k].append(value)
    supply = iter(own)
    given: list[Any] = []
    for k, number in enumerate(sets):
        value = next(supply) if here or k not in columns else None
        if k not in columns:
            given.append(value if number < 0 else Each([value], number))
            continue
        if here >> number & 1:
            columns[k].append(value)
        given.append(Each(columns[k], number))
    return given


def _rows(arguments: Sequence[Any], known: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The arguments for each event; arguments that are the same for all events are repeated."""
    found = []
    for row in known:
        supply = iter(row)
        found.append(tuple(next(supply) if isinstance(a, Each) else a for a in arguments))
    return found


def array_of(values: Sequence[Any]) -> Any:
    """Python values of one kind as an Arrow array, whole events as a record batch."""
    if values and isinstance(values[0], Mapping):
        return pa.RecordBatch.from_pylist([dict(value) for value in values])
    return pa.array(values, pa.float64() if not values else None)


def _truth(answer: Any) -> bool | None:
    if answer is None or answer is True or answer is False:
        return answer
    if isinstance(answer, pa.Scalar):
        return _truth(answer.as_py())
    if answer is NotImplemented:
        raise TypeError("it gave NotImplemented, which is no answer")
    # NaN counts as null.
    return None if isinstance(answer, float | np.floating) and answer != answer else bool(answer)


def given_as(form: Form, array: Any) -> Any:
    """An Arrow array without nulls in the form that a function takes; literals and whole events stay as they are.

    In NumPy strings are objects, and timestamps datetime64 without a zone (UTC).
    """
    if form is not Form.NUMPY or not isinstance(array, pa.Array):
        return array
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp(array.type.unit)).to_numpy(zero_copy_only=False)
    return array.to_numpy(zero_copy_only=False)


def as_answers(given: Any, count: int) -> tuple[Mask, Mask]:
    """Where the answers for ``count`` events are true, and where they are unknown.

    Takes boolean arrays of Arrow (null is unknown), of NumPy (also masked), and values that Arrow turns into one.
    Raises ValueError for anything else, and for a wrong number of answers.
    """
    if isinstance(given, np.ma.MaskedArray):
        given = pa.array(given.data, mask=np.ma.getmaskarray(given))
    elif isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    elif not isinstance(given, pa.Array):
        if isinstance(given, str | bool | np.bool_ | None) or np.ndim(given) != 1:
            shape = np.shape(given)
            what = f"an array of shape {shape}" if len(shape) > 1 else repr(given)
            raise ValueError(f"it gave {what} instead of one answer for each of {count} events")
        values = np.asarray(given)
        given = pa.array(list(given)) if values.dtype == object else pa.array(values)
    if not (pa.types.is_boolean(given.type) or pa.types.is_null(given.type)):
        raise ValueError(f"it gave values of type {given.type} instead of booleans")
    if len(given) != count:
        raise ValueError(f"it gave {len(given)} answers for {count} events")
    unknown = np.asarray(given.is_null())
    true = given.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return true, unknown
