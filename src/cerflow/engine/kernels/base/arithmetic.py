"""Arithmetic on signed 64-bit integers at their limits.

Numba compiles ``+``, ``-`` and ``*`` on signed integers without defined overflow (``nsw``), so LLVM removes a test of
a wrapped result. Where a result may leave 64 bits, kernels use these functions.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.jit import intrinsic, ir, types
from cerflow.engine.layout import NULL

__all__ = ["difference", "product", "total"]


def _checked(operation):
    """An operation whose result is `NULL` beyond 64 bits; `NULL` itself, the smallest integer, is no value either."""

    @intrinsic
    def checked(_, a, b):
        def generate(context, builder, signature, arguments):
            found = getattr(builder, f"{operation}_with_overflow")(*arguments)
            value, beyond = (builder.extract_value(found, k) for k in range(2))
            return builder.select(beyond, ir.Constant(ir.IntType(64), NULL), value)

        return types.int64(types.int64, types.int64), generate

    return checked


#: ``a + b``, ``a - b`` and ``a * b``
total, difference, product = (_checked(operation) for operation in ("sadd", "ssub", "smul"))
