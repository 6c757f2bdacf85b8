"""SREMO's ``any``, ``next`` and ``unordered`` by their definitions, before anything is compiled.

- ``any(e, …)``, skip-till-any-match: anything may be left out between the operands (register transducers §1.7).
- ``next(e, …)``, skip-till-next-match: what is left out before an operand holds no match of it (§1.7, §11.7).
- ``unordered(e, …)``: the operands in any order, one after the other (§1.6).

Of one iteration something may be left out between the repetitions. On any other single operand, a disjunction among
them, ``any`` and ``next`` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import sremo as r
from cerflow.language.node import Node, fold_only, rebuild, transform, with_children


def without_strategies(expression: r.Sremo) -> r.Sremo:
    """The same matches without ``any``, ``next`` and ``unordered``: strategies nest and mix, being only rewritings.

    Raises `UnsupportedQueryError` for ``unordered`` of too many operands.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        parts = [part for part in below if isinstance(part, r.Sremo)]
        match current:
            case r.AnyMatch():
                return _skip_between(current, parts, lambda _: r.Star(r.ANY_EVENT))
            case r.NextMatch():
                return _skip_between(current, parts, skipping)
            case r.Unordered():
                if len(parts) > limits.UNORDERED_OPERANDS:
                    raise UnsupportedQueryError(
                        f"unordered() of {len(parts)} operands has too many orders",
                        span=current.span,
                        hint=f"At most {limits.UNORDERED_OPERANDS} operands can be in any order.",
                    )
                return _orders(tuple(parts))
        return with_children(current, below)

    return rebuild(expression, visit)


def expand(expression: r.Sremo) -> r.Sremo:
    """The same with no operators but terminals, EPSILON, EMPTY, ``. | * & !`` and WITHIN; raises as that does."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, r.Plus | r.Optional):
            (part,) = (p for p in below if isinstance(p, r.Sremo))
            return (
                r.Concatenation(part, r.Star(part)) if isinstance(current, r.Plus) else r.Alternation(r.Epsilon(), part)
            )
        return with_children(current, below)

    return rebuild(without_strategies(expression), visit)


def _skip_between(
    written: r.AnyMatch | r.NextMatch, parts: Sequence[r.Sremo], skip: Callable[[r.Sremo], r.Sremo]
) -> r.Sremo:
    """The operands one after the other, each but the first after ``skip`` of it."""
    only = parts[0]
    if len(parts) == 1 and isinstance(written.parts[0], r.Plus | r.Star):
        assert isinstance(only, r.Plus | r.Star)
        body = only.operand
        repeated = r.Concatenation(body, r.Star(r.Concatenation(skip(body), body)))
        return r.Optional(repeated) if isinstance(only, r.Star) else repeated
    return reduce(lambda left, right: r.Concatenation(r.Concatenation(left, skip(right)), right), parts)


def skipping(expression: r.Sremo) -> r.Sremo:
    """Strings in which an expression without strategies has no match that reads an event.

    Where a single event decides, as before a terminal φ, they are ``([TRUE] & !φ)*``, which needs no window: events
    that do not satisfy φ, be it that φ is false of them or unknown. In general they are ``!([TRUE]* . e . [TRUE]*)``,
    the complement of the whole stretch and not repeated, for otherwise a match could lie across two pieces. Matches
    of the empty string do not count: with them nothing could ever be skipped before ``e*``.
    """
    events = _deciding_events(expression)
    if events is not None:
        plain = transform(events, lambda n: replace(n, label=None, registers=()) if isinstance(n, r.Terminal) else n)
        return r.Star(r.Intersection(r.ANY_EVENT, r.Complement(plain)))
    anything = r.Star(r.ANY_EVENT)
    return r.Complement(r.Concatenation(r.Concatenation(anything, without_empty(expression)[0]), anything))


def _deciding_events(expression: r.Sremo) -> r.Sremo | None:
    """Terminals such that one of them matches exactly where the expression has a match that reads an event.

    None if there are none: a match may need several events.
    """
    match expression:
        case r.Terminal():
            return expression
        case r.Alternation():
            left, right = _deciding_events(expression.left), _deciding_events(expression.right)
            return None if left is None or right is None else r.Alternation(left, right)
        case r.Plus() | r.Star() | r.Optional():
            return _deciding_events(expression.operand)
        case r.Concatenation():
            # Where nothing need follow, the whole matches as soon as its beginning does.
            (_, left_empty), (_, right_empty) = without_empty(expression.left), without_empty(expression.right)
            if right_empty and not left_empty:
                return _deciding_events(expression.left)
    return None


def _orders(parts: tuple[r.Sremo, ...]) -> r.Sremo:
    """Each operand followed by the others in any order."""
    if len(parts) == 1:
        return parts[0]
    first: list[r.Sremo] = [r.Concatenation(part, _orders(parts[:k] + parts[k + 1 :])) for k, part in enumerate(parts)]
    return reduce(r.Alternation, first)


def without_empty(expression: r.Sremo) -> tuple[r.Sremo, bool]:
    """The matches of an expression without strategies that read an event, and whether it matches the empty string.

    Registers make no difference.
    """

    def visit(_: int, current: r.Sremo, parts: list[tuple[r.Sremo, bool]]) -> tuple[r.Sremo, bool]:
        reads, empty = [read for read, _ in parts], [empty for _, empty in parts]
        match current:
            case r.Epsilon():
                return r.Empty(), True
            case r.Empty() | r.Terminal():
                return current, False
            case r.Concatenation() if all(empty):
                return r.Alternation(r.Concatenation(reads[0], current.right), reads[1]), True
            case r.Plus() | r.Concatenation() if not all(empty):
                return current, False
            case r.Alternation():
                return r.Alternation(*reads), any(empty)
            case r.Intersection():
                return r.Intersection(*reads), all(empty)
            case r.Star() | r.Plus():
                # A repetition of the empty string changes nothing, so the first may be one that reads an event.
                return r.Concatenation(reads[0], r.Star(current.operand)), True
            case r.Optional():
                return reads[0], True
            case r.Complement():
                return r.Intersection(current, r.Plus(r.ANY_EVENT)), not empty[0]
            case r.Windowed():
                return r.Windowed(reads[0], current.window), empty[0]
        raise TypeError(f"{type(current).__name__} is a strategy")

    return fold_only(expression, r.Sremo, visit)
