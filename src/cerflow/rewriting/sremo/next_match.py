"""``next(e, …)``, skip-till-next-match: what is left out before an operand holds no match of it (§1.7, §11.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cerflow.language import sremo as r
from cerflow.language.node import transform
from cerflow.rewriting.sremo.any_match import skip_between
from cerflow.rewriting.sremo.empty_string import matches_empty, not_empty


def rewrite_next(written: r.NextMatch, parts: Sequence[r.Sremo]) -> r.Sremo:
    """The definition of ``next``; ``parts`` are its operands, rewritten themselves."""
    return skip_between(written, parts, skipping)


def skipping(expression: r.Sremo) -> r.Sremo:
    """Strings in which an expression without strategies has no match that reads an event.

    Where a single event decides, as before a terminal φ, they are ``([TRUE] & !φ)*``, which needs no window: events
    that do not satisfy φ, be it that φ is false of them or unknown. In general they are ``!([TRUE]* . e . [TRUE]*)``,
    the complement of the whole stretch and not repeated, for otherwise a match could lie across two pieces. Matches
    of the empty string do not count: with them nothing could ever be skipped before ``e*``.
    """
    events = _deciding_events(expression)
    if events is not None:
        return r.Star(r.Intersection(r.ANY_EVENT, r.Complement(_unmarked(events))))
    anything = r.Star(r.ANY_EVENT)
    return r.Complement(r.Concatenation(r.Concatenation(anything, not_empty(expression)), anything))


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
            if matches_empty(expression.right) and not matches_empty(expression.left):
                return _deciding_events(expression.left)
    return None


def _unmarked(events: r.Sremo) -> r.Sremo:
    whole = transform(events, lambda n: replace(n, label=None, registers=()) if isinstance(n, r.Terminal) else n)
    assert isinstance(whole, r.Sremo)
    return whole
