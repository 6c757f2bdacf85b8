"""All arrays that kernels share, behind one address.

Unpacking fifty arrays for a call, and passing them from kernel to kernel, costs more than an event. So a row of 64-bit
words holds the address and the lengths of each array of `cerflow.engine.layout`; it changes only when an array is
replaced. Kernels get the address of this row, and read ``state.config`` as if ``state`` were the tuple itself.

The caller of a kernel must hold the `SharedArrays`, which holds the arrays.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import array_types
from cerflow.engine.kernels.base.parts import arrayobj, inlined, intrinsic, ir, types
from cerflow.engine.layout import EventArrays, Ranking, Scratch, State, TableArrays

#: A named tuple of arrays.
G = TypeVar("G", bound=Any)

_GROUPS: tuple[Any, ...] = (State, TableArrays, Scratch, Ranking, EventArrays)
#: Words for an array: its address and the lengths of up to two axes.
WORDS = 3
#: The words before the arrays: how much a call may do (negative: stop at once), and how much it has done.
_MAY, _DONE, _FIRST = range(3)

FIELDS = {group.__name__: array_types(group) for group in _GROUPS}
*_BEGINS, _END = np.cumsum([_FIRST, *(WORDS * len(fields) for fields in FIELDS.values())]).tolist()


def _places(name: str, begin: int) -> dict[str, int]:
    return {field: begin + WORDS * k for k, field in enumerate(FIELDS[name])}


#: Where the words of each array of a group are.
_PLACES = {name: _places(name, begin) for name, begin in zip(FIELDS, _BEGINS)}
#: Room for the arrays of one more group, which only some kernels read.
_MORE = 80
#: No limit on the work of a call.
WITHOUT_END = 2**58
#: A call stops amid an event only when the event has cost this many times the budget of a call.
_PATIENCE = 16


class SharedArrays:
    """The words for the arrays of one recogniser, at ``address``; at first they are those of another one, if given."""

    def __init__(self, like: SharedArrays | None = None) -> None:
        own: Any = np.zeros(_END + WORDS * _MORE, np.int64) if like is None else np.array(like._words)
        self.address = int(own.ctypes.data)
        self._words: memoryview = memoryview(own)
        self.allow(WITHOUT_END)
        self._held: dict[str, Any] = {} if like is None else {**like._held}

    def allow(self, work: int) -> None:
        """Set how much work calls may do; a negative number, also from another thread, soon ends the running call."""
        self._words[_MAY] = work

    def hold(self, group: Any) -> None:
        """Make the arrays of a tuple of `cerflow.engine.layout` visible to kernels."""
        name = _known(type(group))
        if self._held.get(name) is group:
            return
        # If this is interrupted, some words belong to the new arrays, so none may count as held.
        before = self._held.pop(name, None) or (None,) * len(group)
        for array, held, field in zip(group, before, FIELDS[name]):
            if array is not held:
                self._show(name, field, array)
        self._held[name] = group

    def replace(self, group: G, **arrays: Any) -> G:
        """Make a tuple that is visible with some other arrays visible in its place, and return it."""
        name = _known(type(group))
        made: G = group._replace(**arrays)
        if self._held.pop(name, None) is group:
            for field, array in arrays.items():
                self._show(name, field, array)
            self._held[name] = made
        else:
            # This was interrupted before.
            self.hold(made)
        return made

    def _show(self, name: str, field: str, array: Any) -> None:
        (dtype, axes), at = FIELDS[name][field], _PLACES[name][field]
        shape, flags = array.shape, array.flags
        if array.dtype != dtype or len(shape) != axes or not flags.c_contiguous:
            raise TypeError(f"kernels cannot use {name}: {array.dtype} of shape {shape}, {array.strides}")
        # NumPy itself takes six times as long to tell the address.
        self._words[at], self._words[at + 1] = pa.py_buffer(array).address, shape[0]
        self._words[at + 2] = shape[1] if axes == 2 else 1


def _known(group: type) -> str:
    """The name of a group, with its place among the words."""
    name = group.__name__
    if name not in FIELDS:
        FIELDS[name] = array_types(group)
        _PLACES[name] = _places(name, _END)
    return name


def group_at(group: type) -> Any:
    """The function by which kernels get the arrays of a group from an address."""
    name = _known(group)
    start = next(iter(_PLACES[name].values()))

    @intrinsic
    def at(_, address):
        from cerflow.engine.kernels.base.array_groups import ArrayGroup

        def generate(context, builder, signature, arguments):
            words = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
            return builder.gep(words, [ir.Constant(ir.IntType(64), start)])

        return ArrayGroup(name)(types.int64), generate

    return at


state_at, tables_at, scratch_at, ranking_at, events_at = map(group_at, _GROUPS)


# -- other uses of addresses ------------------------------------------------------------------------------------------


@intrinsic
def pointer_to(_, array, first):
    """A pointer to ``array[first]``, a word or a row of words."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        made = arrayobj.make_array(kind)(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        if kind.ndim == 2:
            at = builder.mul(at, builder.extract_value(made.shape, 1))
        return builder.gep(made.data, [at])

    return types.CPointer(array.dtype)(array, first), generate


@intrinsic
def beyond(_, pointer, count):
    """A pointer ``count`` elements beyond another pointer."""

    def generate(context, builder, signature, arguments):
        return builder.gep(arguments[0], [context.cast(builder, arguments[1], signature.args[1], types.intp)])

    return pointer(pointer, count), generate


@intrinsic
def address_of(_, pointer):
    """The address that a pointer holds."""

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return types.int64(pointer), generate


@intrinsic
def prefetch(_, pointer):
    """Ask the processor for the words at a pointer, which are needed soon; the pointer may point anywhere."""

    def generate(context, builder, signature, arguments):
        byte, small = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, small, small, small])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # They are read, then written, and stay in all caches for data.
        builder.call(fetch, [builder.bitcast(arguments[0], byte), *(small(word) for word in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(pointer), generate


@intrinsic
def words_at(_, address):
    """A pointer to the words at an address."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@inlined
def begin_work(address):
    """Begin to count the work of a call."""
    words_at(address)[_DONE] = 0


@inlined
def enough_work(address):
    """Between two events: whether a call has used up its budget."""
    words = words_at(address)
    return words[_DONE] > words[_MAY]


@inlined
def too_much_work(address, amount):
    """Count an ``amount`` of work; whether the call must end amid an event."""
    words = words_at(address)
    words[_DONE] += amount
    return words[_DONE] > _PATIENCE * words[_MAY]


@inlined
def is_stopped(address):
    """Whether another thread has stopped the call; then its work may stay unfinished."""
    return words_at(address)[_MAY] < 0


@intrinsic
def halves(_, words):
    """Rows of words as rows of int32."""
    from cerflow.engine.kernels.base.array_groups import array_value

    result = types.Array(types.int32, 2, "C")

    def generate(context, builder, signature, arguments):
        made = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
        rows, width = (builder.extract_value(made.shape, k) for k in range(2))
        data = builder.bitcast(made.data, ir.IntType(32).as_pointer())
        return array_value(context, builder, result, data, [rows, builder.shl(width, ir.Constant(ir.IntType(64), 1))])

    return result(words), generate


@intrinsic
def as_float(_, bits):
    """The float that has these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def bits_of(_, value):
    """The bits of a float."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def call(_, address, arguments):
    """Call the kernel at an address; all its arguments and its result are 64-bit integers."""

    def generate(context, builder, signature, values):
        where, given = values
        function = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * signature.args[1].count)
        words = [
            context.cast(builder, builder.extract_value(given, k), kind, types.int64)
            for k, kind in enumerate(signature.args[1].types)
        ]
        return builder.call(builder.inttoptr(where, function.as_pointer()), words)

    return types.int64(types.int64, arguments), generate
