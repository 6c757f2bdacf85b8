"""Conditions written short, for expected trees."""

from __future__ import annotations

from cerflow.base.operators import Operator
from cerflow.language import condition as c


def attribute(text: str) -> c.Attribute:
    label, _, name = text.rpartition(".")
    return c.Attribute(label or None, name)


def compare(left: str, sign: str, right: object) -> c.Comparison:
    other = attribute(right) if isinstance(right, str) and "." in right else c.Literal(right)
    return c.Comparison(Operator(sign), attribute(left), other)
