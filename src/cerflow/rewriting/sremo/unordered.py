"""``unordered(e, …)``: the operands in any order, one after the other (register transducers §1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from cerflow import limits
from cerflow.errors import UnsupportedQueryError
from cerflow.language.sremo import Alternation, Concatenation, Sremo, Unordered


def rewrite_unordered(written: Unordered, parts: Sequence[Sremo]) -> Sremo:
    """Each operand followed by the others in any order. Raises `UnsupportedQueryError` for too many operands."""
    if len(parts) > limits.UNORDERED_OPERANDS:
        raise UnsupportedQueryError(
            f"unordered() of {len(parts)} operands has too many orders",
            span=written.span,
            hint=f"At most {limits.UNORDERED_OPERANDS} operands can be in any order.",
        )
    return _orders(tuple(parts))


def _orders(parts: tuple[Sremo, ...]) -> Sremo:
    if len(parts) == 1:
        return parts[0]
    first: list[Sremo] = [Concatenation(part, _orders(parts[:k] + parts[k + 1 :])) for k, part in enumerate(parts)]
    return reduce(Alternation, first)
