"""Calls users' functions by their address, so that kernels are not compiled for each of them.

Such a function takes a pointer to its arguments, 64 bits each, and returns one of the numbers below.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import intrinsic, ir, kernel, part, types
from cerflow.engine.layout import NULL

#: Answers besides 0 (false) and 1 (true).
UNKNOWN, FAILED = -1, -2


@intrinsic
def _call(typingctx, address, words, at):
    """Call the function at an address with a pointer to ``words[at]``."""

    def generate(context, builder, signature, arguments):
        where, array, first = arguments
        data = context.make_array(signature.args[1])(context, builder, array).data
        first = context.cast(builder, first, signature.args[2], types.intp)
        function = ir.FunctionType(ir.IntType(32), [ir.IntType(64).as_pointer()])
        return builder.call(builder.inttoptr(where, function.as_pointer()), [builder.gep(data, [first])])

    return types.int32(types.int64, words, at), generate


@part
def ask_predicate(tables, at, stack, top):
    """The truth value of the call described by ``tables.constants[at]``, with arguments from ``stack[top]`` on.

    Records the first call that fails, with its arguments.
    """
    answer = _call(tables.constants[at], stack, top)
    if answer >= 0:
        return answer
    if answer == FAILED and tables.failure[0] == 0:
        tables.failure[0] = 1 + tables.constants[at + 2]
        for k in range(tables.constants[at + 1]):
            tables.failure[1 + k] = stack[top + k]
    return NULL


@kernel
def ask_rows(address, words, width, answers):
    """Call a function for each row of ``words`` until it fails; returns the row of the failure, or -1.

    ``words`` are int64, ``width`` for each row, row by row; ``answers`` are int32, one for each row.
    """
    for k in range(answers.shape[0]):
        answers[k] = _call(address, words, k * width)
        if answers[k] == FAILED:
            return k
    return -1
