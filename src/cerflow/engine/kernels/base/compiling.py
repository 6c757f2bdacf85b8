"""Kernels as object code that needs neither Numba nor its libraries.

Around a kernel comes a function in C's convention for Python (``METH_FASTCALL``): it takes numbers out of Python's
objects and the places of elements out of NumPy's arrays, lets go of Python's lock, and makes objects of the results.
It reads objects and arrays as every compiled extension does, whose code contains the same offsets.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import cfunc, typeof, types
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype

from cerflow.engine.kernels.base.array_groups import array_value
from cerflow.engine.kernels.base.jit import OPTIONS
from cerflow.engine.kernels.base.pipeline import Pipeline, TextLibrary
from cerflow.engine.machine_code import API, SYMBOL, target_machine

__all__ = ["code_for_python", "code_of_integers"]

_WORD, _INT, _BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
#: What lies before the fields of an object: the count of references and, last, its type.
_HEAD = object.__basicsize__
#: The fields of ``PyArrayObject``, and of ``PyArray_Descr`` from its kind on, where eight bytes tell types apart.
_DATA, _AXES, _SHAPE, _TYPE, _FLAGS = (_HEAD + k for k in (0, 8, 16, 40, 48))
_DESCRIPTION = _HEAD + 8
#: Bits of these flags: without gaps, and aligned.
_USABLE = 0x0101
#: The first function of Numba that is called where a kernel has failed.
_REPORTING = r'(?m)^declare (void @"?numba_gil_ensure"?\([^)]*\)).*$'
_TRAP = r"define internal \1 {\n call void @llvm.trap()\n unreachable\n}\ndeclare void @llvm.trap()"
#: The fourth of the eight bytes are flags.
_NAMED = ~(0xFF << 24) & (2**64 - 1)


def code_of_integers(function: Callable[..., Any], arguments: int) -> bytes:
    """The object code of a plain function whose arguments and result are 64-bit integers."""
    return _object_code(function, arguments)


def code_for_python(kernel: Any, arguments: Sequence[Any]) -> bytes:
    """The object code of a kernel as a function of Python, for the types of these arguments."""
    given = [_type_of(argument) for argument in arguments]
    fits, unpacked = _fits(given), _unpacked(given)
    refuse, failed, leave = map(_asking, ("PyErr_BadArgument", "PyErr_Occurred", "PyEval_SaveThread"))

    def called(arrays, objects, count):
        if not fits(arrays, objects, count):
            refuse()
            return 0
        values = unpacked(objects)
        if failed():
            return 0
        thread = leave()
        result = kernel(*values)
        _enter(thread)
        return _boxed(result)

    return _object_code(called, 3)


def _object_code(function: Callable[..., Any], arguments: int) -> bytes:
    """The object code of a function of 64-bit integers, together with all that it calls.

    Kernels raise no errors, so reporting one with Numba's help is a trap.
    """
    signature = types.int64(*[types.int64] * arguments)
    with _without_collector():
        compiled: Any = cfunc(signature, pipeline_class=Pipeline, **OPTIONS)(function)
    module = llvm.parse_assembly("")
    for library in compiled._library.with_called():
        for part in _modules(library):
            module.link_in(part, preserve=True)
    module.get_function(compiled.native_name).name = SYMBOL
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != SYMBOL:
            value.linkage = "internal"
    machine = target_machine()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization, tuning.slp_vectorization = True, False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    for value in (*module.functions, *module.global_variables):
        # LLVM ends the process where it finds no such name.
        known = value.name.startswith("llvm.") or value.name in API or llvm.address_of_symbol(value.name)
        if value.is_declaration and (not known or value.name.startswith(("numba_", "NRT_"))):
            raise NotImplementedError(f"the kernel {function.__qualname__} calls {value.name}")
    code: bytes = machine.emit_object(module)
    return code


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let Python not look for garbage: a compilation makes millions of objects that are needed to its end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def _modules(library: Any) -> list[Any]:
    """The modules of a library; Numba's own functions, such as `max`, come as machine code and text."""
    texts = library.texts if isinstance(library, TextLibrary) else [library.get_llvm_str()]
    return [llvm.parse_assembly(re.sub(_REPORTING, _TRAP, text)) for text in texts]


def _type_of(argument: Any) -> types.Type:
    """The type of an argument; integers have 64 bits, and all arrays can be written."""
    if isinstance(argument, tuple):
        values = [_type_of(value) for value in argument]
        if hasattr(argument, "_fields"):
            return types.NamedTuple(values, type(argument))
        return types.Tuple(values)
    if isinstance(argument, np.ndarray):
        return types.Array(typeof(argument).dtype, argument.ndim, "C")
    if isinstance(argument, bool | np.bool_):
        return types.boolean
    return types.int64 if isinstance(argument, int | np.integer) else types.float64


# -- in LLVM
# ---------------------------------------------------------------------------------------------


def _call(builder, name, result, *arguments):
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


def _asking(name: str) -> Any:
    """A function of Python without arguments; its result as a word."""

    @intrinsic
    def ask(_):
        def generate(context, builder, signature, arguments):
            return _call(builder, name, _WORD)

        return types.int64(), generate

    return ask


@intrinsic
def _enter(_, thread):
    """Take Python's lock again."""

    def generate(context, builder, signature, arguments):
        _call(builder, "PyEval_RestoreThread", ir.VoidType(), *arguments)
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _field(builder, address, offset, kind=_WORD):
    """The field of an object."""
    place = builder.add(address, ir.Constant(_WORD, offset))
    return builder.load(builder.inttoptr(place, kind.as_pointer()), align=1)


def _fits(given: Sequence[types.Type]) -> Any:
    """Whether the objects are as many as the types, and those for arrays are arrays of these types."""

    def within(builder, condition, test):
        """Whether a condition holds, and then a test."""
        block = builder.block
        with builder.if_then(condition):
            found = test()
            inner = builder.block
        result = builder.phi(_BIT)
        result.add_incoming(ir.Constant(_BIT, 0), block)
        result.add_incoming(found, inner)
        return result

    def array_fits(builder, kind, at):
        dtype = as_dtype(kind.dtype)
        alike = [np.dtype(letter) for letter in "?bBhHiIlLqQfd" if np.dtype(letter) == dtype]
        names = [ord(d.kind) | ord(d.char) << 8 | ord(d.byteorder) << 16 | d.num << 32 for d in alike]
        named = builder.and_(_field(builder, _field(builder, at, _TYPE), _DESCRIPTION), ir.Constant(_WORD, _NAMED))
        found = ir.Constant(_BIT, 0)
        for name in names:
            found = builder.or_(found, builder.icmp_unsigned("==", named, ir.Constant(_WORD, name & _NAMED)))
        axes = builder.icmp_signed("==", _field(builder, at, _AXES, _INT), ir.Constant(_INT, kind.ndim))
        flags = builder.and_(_field(builder, at, _FLAGS, _INT), ir.Constant(_INT, _USABLE))
        usable = builder.icmp_signed("==", flags, ir.Constant(_INT, _USABLE))
        return builder.and_(found, builder.and_(axes, usable))

    def all_fit(builder, arrays, first):
        found = ir.Constant(_BIT, 1)
        for k, kind in enumerate(given):
            if isinstance(kind, types.Array):
                at = _field(builder, first, 8 * k)
                there = builder.icmp_unsigned("==", _field(builder, at, _HEAD - 8), arrays)
                found = builder.and_(found, within(builder, there, partial(array_fits, builder, kind, at)))
        return found

    @intrinsic
    def fits(_, arrays, objects, count):
        def generate(context, builder, signature, arguments):
            arrays, first, count = arguments
            as_many = builder.icmp_signed("==", count, ir.Constant(_WORD, len(given)))
            return within(builder, as_many, partial(all_fit, builder, arrays, first))

        return types.boolean(arrays, objects, count), generate

    return fits


def _unpacked(given: Sequence[types.Type]) -> Any:
    """The values in the objects."""

    def value(context, builder, kind, at):
        if isinstance(kind, types.BaseTuple):
            parts = [_call(builder, "PyTuple_GetItem", _WORD, at, _WORD(k)) for k in range(len(kind))]
            return context.make_tuple(builder, kind, [value(context, builder, *pair) for pair in zip(kind, parts)])
        if isinstance(kind, types.Array):
            element = context.get_data_type(kind.dtype).as_pointer()
            data = builder.inttoptr(_field(builder, at, _DATA), element)
            lengths = _field(builder, at, _SHAPE)
            shape = [_field(builder, lengths, 8 * k) for k in range(kind.ndim)]
            return array_value(context, builder, kind, data, shape)
        if kind is types.float64:
            return _call(builder, "PyFloat_AsDouble", ir.DoubleType(), at)
        word = _call(builder, "PyLong_AsLongLong", _WORD, at)
        return builder.icmp_signed("!=", word, _WORD(0)) if kind is types.boolean else word

    result = types.Tuple(list(given))

    @intrinsic
    def unpacked(_, objects):
        def generate(context, builder, signature, arguments):
            objects = [_field(builder, arguments[0], 8 * k) for k in range(len(given))]
            values = [value(context, builder, *pair) for pair in zip(given, objects)]
            return context.make_tuple(builder, result, values)

        return result(objects), generate

    return unpacked


@intrinsic
def _boxed(_, result):
    """The object for a result."""

    def box(context, builder, kind, value):
        if isinstance(kind, types.BaseTuple):
            made = _call(builder, "PyTuple_New", _WORD, _WORD(len(kind)))
            for k, part in enumerate(kind):
                item = box(context, builder, part, builder.extract_value(value, k))
                _call(builder, "PyTuple_SetItem", _INT, made, _WORD(k), item)
            return made
        if kind is types.none:
            return _call(builder, "PyLong_FromLongLong", _WORD, _WORD(0))
        word = context.cast(builder, value, kind, types.int64)
        return _call(builder, "PyBool_FromLong" if kind is types.boolean else "PyLong_FromLongLong", _WORD, word)

    def generate(context, builder, signature, arguments):
        return box(context, builder, signature.args[0], arguments[0])

    return types.int64(result), generate
