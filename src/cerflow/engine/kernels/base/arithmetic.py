"""Arithmetic on signed 64-bit integers at their limits.

Numba compiles ``+``, ``-`` and ``*`` on signed integers without defined overflow (``nsw``), so LLVM removes a test of
a wrapped result. Kernels use these functions wherever a result may leave 64 bits.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import intrinsic, ir, types
from cerflow.engine.layout import NULL


def _checked(operation):
    """An operation whose result is `NULL` beyond 64 bits; so is `NULL` itself, the smallest integer."""

    def generate(context, builder, signature, arguments):
        found = getattr(builder, f"s{operation}_with_overflow")(*arguments)
        value, beyond = (builder.extract_value(found, k) for k in range(2))
        return builder.select(beyond, ir.Constant(ir.IntType(64), NULL), value)

    return _of_integers(generate)


def _wrapped(operation):
    """An operation modulo 2⁶⁴, for hashes and bits."""

    def generate(context, builder, signature, arguments):
        return getattr(builder, operation)(*arguments)

    return _of_integers(generate)


def _of_integers(generate):
    @intrinsic
    def operation(_, a, b):
        def written(context, builder, signature, arguments):
            words = [context.cast(builder, *pair, types.int64) for pair in zip(arguments, signature.args)]
            return generate(context, builder, signature, words)

        return types.int64(a, b), written

    return operation


#: ``a + b``, ``a - b`` and ``a * b``, `NULL` beyond 64 bits
checked_sum, checked_difference, checked_product = map(_checked, ("add", "sub", "mul"))
#: ``a + b``, ``a - b`` and ``a * b`` modulo 2⁶⁴
wrapped_sum, wrapped_difference, wrapped_product = map(_wrapped, ("add", "sub", "mul"))
