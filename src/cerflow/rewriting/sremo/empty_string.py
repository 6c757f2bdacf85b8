"""Expressions of SREMO without derived strategies: whether they match the empty string, and their other matches."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.language.node import Node, fold
from cerflow.language.sremo import (
    ANY_EVENT,
    Alternation,
    Complement,
    Concatenation,
    Empty,
    Epsilon,
    Intersection,
    Optional,
    Plus,
    Sremo,
    Star,
    Terminal,
    Windowed,
)

__all__ = ["matches_empty", "not_empty"]


def matches_empty(expression: Sremo) -> bool:
    """Whether an expression without strategies matches the empty string; registers make no difference."""

    def visit(current: Node, below: Sequence[bool]) -> bool:
        match current:
            case Epsilon() | Star() | Optional():
                return True
            case Concatenation() | Intersection():
                return below[0] and below[1]
            case Alternation():
                return below[0] or below[1]
            case Complement():
                return not below[0]
            case Plus() | Windowed():
                return below[0]
        return False

    return fold(expression, visit)


def not_empty(expression: Sremo) -> Sremo:
    """The matches of an expression without strategies that read at least one event."""

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
                if not (first_empty and second_empty):
                    return current, current, False
                return current, Alternation(Concatenation(first, second), second_read), True
            case Alternation():
                return current, Alternation(parts[0][1], parts[1][1]), parts[0][2] or parts[1][2]
            case Intersection():
                return current, Intersection(parts[0][1], parts[1][1]), parts[0][2] and parts[1][2]
            case Star() | Plus():
                # A repetition of the empty string changes nothing, so the first may be one that reads an event.
                (body, read, body_empty) = parts[0]
                if isinstance(current, Plus) and not body_empty:
                    return current, current, False
                return current, Concatenation(read, Star(body)), True
            case Optional():
                return current, parts[0][1], True
            case Complement():
                some = Plus(ANY_EVENT)
                return current, Intersection(current, some), not parts[0][2]
            case Windowed():
                return current, Windowed(parts[0][1], current.window), parts[0][2]
        return None

    found = fold(expression, visit)
    assert found is not None
    return found[1]
