"""Expressions of SREMO without derived strategies: whether they match the empty string, and their other matches."""

from __future__ import annotations

from cerflow.language import sremo as r
from cerflow.language.node import fold_only

#: An expression, its matches that read an event, and whether it matches the empty string.
_Parts = tuple[r.Sremo, r.Sremo, bool]


def matches_empty(expression: r.Sremo) -> bool:
    """Whether an expression without strategies matches the empty string; registers make no difference."""
    return _parts(expression)[2]


def not_empty(expression: r.Sremo) -> r.Sremo:
    """The matches of an expression without strategies that read at least one event."""
    return _parts(expression)[1]


def _parts(expression: r.Sremo) -> _Parts:
    def visit(occurrence: int, current: r.Sremo, parts: list[_Parts]) -> _Parts:
        match current:
            case r.Epsilon():
                return current, r.Empty(), True
            case r.Empty() | r.Terminal():
                return current, current, False
            case r.Concatenation():
                (_, first, first_empty), (second, second_read, second_empty) = parts
                if not (first_empty and second_empty):
                    return current, current, False
                return current, r.Alternation(r.Concatenation(first, second), second_read), True
            case r.Alternation():
                return current, r.Alternation(parts[0][1], parts[1][1]), parts[0][2] or parts[1][2]
            case r.Intersection():
                return current, r.Intersection(parts[0][1], parts[1][1]), parts[0][2] and parts[1][2]
            case r.Star() | r.Plus():
                # A repetition of the empty string changes nothing, so the first may be one that reads an event.
                (body, read, body_empty) = parts[0]
                if isinstance(current, r.Plus) and not body_empty:
                    return current, current, False
                return current, r.Concatenation(read, r.Star(body)), True
            case r.Optional():
                return current, parts[0][1], True
            case r.Complement():
                some = r.Plus(r.ANY_EVENT)
                return current, r.Intersection(current, some), not parts[0][2]
            case r.Windowed():
                return current, r.Windowed(parts[0][1], current.window), parts[0][2]
        raise TypeError(f"{type(current).__name__} is a strategy")

    return fold_only(expression, r.Sremo, visit)
