"""``any``, ``next``, ``unordered``, ``+`` and ``?`` of SREMO by their definitions (register transducers §1.6, §1.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import permutations

from cerflow.language.condition import Constant
from cerflow.language.node import Node, fold
from cerflow.language.sremo import (
    Alternation,
    AnyMatch,
    Complement,
    Concatenation,
    Empty,
    Epsilon,
    Intersection,
    NextMatch,
    Optional,
    Plus,
    Sremo,
    Star,
    Terminal,
    Unordered,
    Windowed,
)

__all__ = ["ANY_EVENT", "expand", "matches_empty", "not_empty", "skipping"]

#: One event, whatever it is, left out of the output.
ANY_EVENT = Terminal(Constant(True))


def expand(expression: Sremo) -> Sremo:
    """The same with no operators but terminals, EPSILON, EMPTY, ``. | * & !`` and WITHIN."""

    def visit(current: Node, below: Sequence[Sremo | None]) -> Sremo | None:
        parts = [part for part in below if part is not None]
        match current:
            case Epsilon() | Empty() | Terminal():
                return current
            case Concatenation() | Alternation() | Intersection():
                return type(current)(parts[0], parts[1], span=current.span)
            case Star() | Complement():
                return type(current)(parts[0], span=current.span)
            case Windowed():
                return Windowed(parts[0], current.window, span=current.span)
            case Plus():
                return Concatenation(parts[0], Star(parts[0]))
            case Optional():
                return Alternation(Epsilon(), parts[0])
            case AnyMatch():
                return _selecting(current.parts, parts, lambda _: Star(ANY_EVENT))
            case NextMatch():
                return _selecting(current.parts, parts, skipping)
            case Unordered():
                orders = (reduce(Concatenation, order) for order in permutations(parts))
                return reduce(Alternation, orders)
        return None

    expanded = fold(expression, visit)
    assert expanded is not None
    return expanded


def _selecting(written: Sequence[Sremo], parts: Sequence[Sremo], skip: Callable[[Sremo], Sremo]) -> Sremo:
    """Skip between the operands; with one operand that is an iteration, between its repetitions."""
    if len(parts) == 1 and isinstance(written[0], Plus | Star):
        repeated = parts[0]
        # Plus has been expanded to e . e*, Star is still there: both hold the expanded body.
        body = repeated.operand if isinstance(repeated, Star) else _body_of_plus(repeated)
        once_or_more = Concatenation(body, Star(Concatenation(skip(body), body)))
        return Alternation(Epsilon(), once_or_more) if isinstance(written[0], Star) else once_or_more
    return reduce(lambda left, right: Concatenation(Concatenation(left, skip(right)), right), parts)


def _body_of_plus(expanded: Sremo) -> Sremo:
    assert isinstance(expanded, Concatenation)
    return expanded.left


def skipping(expression: Sremo) -> Sremo:
    """Strings in which the (expanded) expression has no match that reads an event; of a terminal, ``(¬φ)*``.

    This is the corrected rule of §11.7: the complement once, not repeated. Matches of the empty string do not count,
    for otherwise nothing, not even nothing, could be skipped before ``e*``.
    """
    return Complement(Concatenation(Concatenation(Star(ANY_EVENT), not_empty(expression)), Star(ANY_EVENT)))


def matches_empty(expression: Sremo) -> bool:
    """Whether an expanded expression matches the empty string; registers have no say in it."""

    def visit(current: Node, below: Sequence[bool]) -> bool:
        match current:
            case Epsilon() | Star():
                return True
            case Concatenation() | Intersection():
                return below[0] and below[1]
            case Alternation():
                return below[0] or below[1]
            case Complement():
                return not below[0]
            case Windowed():
                return below[0]
        return False

    return fold(expression, visit)


def not_empty(expression: Sremo) -> Sremo:
    """The matches of an expanded expression that read at least one event."""

    def visit(current: Node, below: Sequence[tuple[Sremo, Sremo, bool] | None]) -> tuple[Sremo, Sremo, bool] | None:
        # Each value: the expression itself, its matches that read an event, whether it matches the empty string.
        parts = [part for part in below if part is not None]
        match current:
            case Epsilon():
                return current, Empty(), True
            case Empty() | Terminal():
                return current, current, False
            case Concatenation():
                (_, first, first_empty), (second, second_read, second_empty) = parts
                read: Sremo = Concatenation(first, second)
                if first_empty:
                    read = Alternation(read, second_read)
                return current, read, first_empty and second_empty
            case Alternation():
                return current, Alternation(parts[0][1], parts[1][1]), parts[0][2] or parts[1][2]
            case Intersection():
                return current, Intersection(parts[0][1], parts[1][1]), parts[0][2] and parts[1][2]
            case Star():
                return current, Concatenation(parts[0][1], current), True
            case Complement():
                some = Concatenation(ANY_EVENT, Star(ANY_EVENT))
                return current, Intersection(current, some), not parts[0][2]
            case Windowed():
                return current, Windowed(parts[0][1], current.window), parts[0][2]
        return None

    found = fold(expression, visit)
    assert found is not None
    return found[1]
