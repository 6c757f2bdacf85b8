"""Symbolic regular expressions with memory and output (spec §5) as immutable trees.

Conditions are those of `cerflow.language.condition`: a bare attribute is that of the event read, ``r.attr`` that of
the event in register ``r``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from cerflow.language.condition import Attribute, Condition, Constant, LabelReference, PredicateCall
from cerflow.language.formula import Formula, Window
from cerflow.language.node import Node, fold, node, walk, with_children

__all__ = [
    "ANY_EVENT",
    "MARK",
    "Alternation",
    "AnyMatch",
    "Complement",
    "Concatenation",
    "Empty",
    "Epsilon",
    "Intersection",
    "NextMatch",
    "Optional",
    "Plus",
    "Regular",
    "Sremo",
    "Star",
    "Terminal",
    "Unordered",
    "Windowed",
    "names_told_apart",
]

N = TypeVar("N", bound=Node)

#: The label that ``MARK`` gives.
MARK = "event"


class Sremo(Node):
    """An expression of SREMO."""


@node
class Epsilon(Sremo):
    """``EPSILON``: the empty string."""


@node
class Empty(Sremo):
    """``EMPTY``: no string at all."""


@node
class Terminal(Sremo):
    """``[condition] AS label INTO registers``: reads one event; label None reads it without marking it."""

    condition: Condition
    label: str | None = None
    registers: tuple[str, ...] = ()


@node
class Concatenation(Sremo):
    """``e . f``."""

    left: Sremo
    right: Sremo


@node
class Alternation(Sremo):
    """``e | f``."""

    left: Sremo
    right: Sremo


@node
class Intersection(Sremo):
    """``e & f``: the matches of both."""

    left: Sremo
    right: Sremo


@node
class Star(Sremo):
    """``e*``."""

    operand: Sremo


@node
class Plus(Sremo):
    """``e+``."""

    operand: Sremo


@node
class Optional(Sremo):
    """``e?``."""

    operand: Sremo


@node
class Complement(Sremo):
    """``!e``: reads what e does not match, marks nothing."""

    operand: Sremo


@node
class AnyMatch(Sremo):
    """``any(e, …)``: skip-till-any-match between the operands; of one iteration, between its repetitions."""

    parts: tuple[Sremo, ...]


@node
class NextMatch(Sremo):
    """``next(e, …)``: skip-till-next-match between the operands; of one iteration, between its repetitions."""

    parts: tuple[Sremo, ...]


@node
class Unordered(Sremo):
    """``unordered(e, …)``: the operands in any order."""

    parts: tuple[Sremo, ...]


@node
class Windowed(Sremo):
    """``e WITHIN window``."""

    operand: Sremo
    window: Window


#: One event, whatever it is, left out of the output.
ANY_EVENT = Terminal(Constant(True))


@node
class Regular(Formula):
    """An expression as a formula: its complex events at j are its matches on S[m…j], i ≤ m ≤ j, that mark event j."""

    expression: Sremo


def names_told_apart(root: N) -> N:
    """The same tree in which a name alone as an argument of a predicate is the register of that name only where the
    expression writes it, and otherwise the attribute of the event read.

    A register may be written far from where it is read, so this needs the complete expression.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        changed = with_children(current, below)
        return _with_attributes(changed) if isinstance(changed, Regular) else changed

    if isinstance(root, Sremo):
        return cast(N, _with_attributes(Regular(root)).expression)
    if not any(isinstance(current, Regular) for current in walk(root)):
        return root
    return cast(N, fold(root, visit))


def _with_attributes(regular: Regular) -> Regular:
    written = {r for current in walk(regular) if isinstance(current, Terminal) for r in current.registers}

    def argument(value: Node) -> Node:
        if isinstance(value, LabelReference) and value.label is not None and value.label not in written:
            return Attribute(None, value.label, span=value.span)
        return value

    def visit(current: Node, below: Sequence[Node]) -> Node:
        return with_children(current, [*map(argument, below)] if isinstance(current, PredicateCall) else below)

    return cast(Regular, fold(cast(Node, regular), visit))
