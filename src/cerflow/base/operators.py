"""Comparison operators, and how they are mirrored, negated and applied."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import StrEnum
from typing import Any


class Operator(StrEnum):
    """Comparison operators (``<>`` is read as ``!=``)."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


#: ``a < b`` is ``b > a``: the operator with its sides exchanged.
MIRRORED = {sign: Operator(sign.translate(str.maketrans("<>", "><"))) for sign in Operator}
#: The operator that is true where another one is false; both are unknown of the same values.
NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
#: The functions of Python for operators, on whatever has them: values, arrays, columns.
RELATIONS: dict[Operator, Callable[[Any, Any], Any]] = {o: getattr(operator, o.name.lower()) for o in Operator}
#: The operator that holds between neighbouring values which pass a test on a set.
ORDERS = {
    "increasing": Operator.LT,
    "decreasing": Operator.GT,
    "nondecreasing": Operator.LE,
    "nonincreasing": Operator.GE,
}
