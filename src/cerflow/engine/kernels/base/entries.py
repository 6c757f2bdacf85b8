"""Compiles users' functions, with wrappers through which kernels call them by address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic

from cerflow.engine.kernels.base.calls import FAILED, UNKNOWN
from cerflow.engine.layout import NULL


def entry(function: Any, given: Sequence[types.Type]) -> Any:
    """The C function (see `cerflow.engine.kernels.base.calls`) that calls a function on arguments of these Numba types.

    It returns `UNKNOWN` for a null argument, and `FAILED` if the function raises. Raises Numba's error if the function
    cannot be compiled.
    """
    body = function if hasattr(function, "py_func") else njit(function)
    unpacked, missing = _readers(given)
    failed, unknown, true, false = (types.int32(answer) for answer in (FAILED, UNKNOWN, 1, 0))

    @cfunc(types.int32(types.CPointer(types.int64)))
    def called(words):
        if missing(words):
            return unknown
        try:
            answer = body(*unpacked(words))
        except Exception:
            return failed
        if answer is None:
            return unknown
        return true if answer else false

    return called


def _readers(given):
    """Functions of a pointer to the arguments: the arguments as a tuple, and whether one of them is null."""
    result = types.BaseTuple.from_types(given)
    word = ir.IntType(64)

    def load(builder, pointer, k):
        return builder.load(builder.gep(pointer, [ir.Constant(word, k)]))

    @intrinsic
    def unpacked(_, words):
        def generate(context, builder, signature, arguments):
            values = []
            for k, kind in enumerate(given):
                value = load(builder, arguments[0], k)
                if kind is types.float64:
                    # Functions never see -0.0.
                    zero = ir.Constant(ir.DoubleType(), 0.0)
                    value = builder.fadd(builder.bitcast(value, ir.DoubleType()), zero)
                elif kind is types.boolean:
                    value = builder.trunc(value, ir.IntType(1))
                values.append(value)
            return context.make_tuple(builder, result, values)

        return result(words), generate

    @intrinsic
    def missing(_, words):
        def generate(context, builder, signature, arguments):
            found = ir.Constant(ir.IntType(1), 0)
            for k, kind in enumerate(given):
                value = load(builder, arguments[0], k)
                if kind is types.float64:
                    value = builder.bitcast(value, ir.DoubleType())
                    null = builder.fcmp_unordered("uno", value, value)
                else:
                    null = builder.icmp_signed("==", value, ir.Constant(word, NULL))
                found = builder.or_(found, null)
            return found

        return types.boolean(words), generate

    return unpacked, missing
