"""``any(e, …)``, skip-till-any-match: anything may be left out between the operands (register transducers §1.7).

Of one iteration it may be left out between the repetitions. On any other single operand, a disjunction among them,
a strategy has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from cerflow.language.sremo import ANY_EVENT, AnyMatch, Concatenation, NextMatch, Optional, Plus, Sremo, Star


def rewrite_any(written: AnyMatch, parts: Sequence[Sremo]) -> Sremo:
    """The definition of ``any``; ``parts`` are its operands, rewritten themselves."""
    return skip_between(written, parts, lambda _: Star(ANY_EVENT))


def skip_between(written: AnyMatch | NextMatch, parts: Sequence[Sremo], skip: Callable[[Sremo], Sremo]) -> Sremo:
    """The operands one after the other, each but the first after ``skip`` of it."""
    only = parts[0]
    if len(parts) == 1 and isinstance(written.parts[0], Plus | Star):
        assert isinstance(only, Plus | Star)
        body = only.operand
        repeated = Concatenation(body, Star(Concatenation(skip(body), body)))
        return Optional(repeated) if isinstance(only, Star) else repeated
    return reduce(lambda left, right: Concatenation(Concatenation(left, skip(right)), right), parts)
