"""Selection strategies on sets of complex events (spec §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cerflow.base.complex_events import ComplexEvent, last_at_most, next_at_most, support
from cerflow.language.formula import Strategy


def kept_by(strategy: Strategy, matches: Iterable[ComplexEvent], by: Collection[str] = ()) -> frozenset[ComplexEvent]:
    """The complex events that a selection strategy keeps (spec §2, P1 §4 with errata E1 and E2).

    NEXT, LAST and MAX compare supports. With labels ``by`` they compare the positions that carry one of these labels,
    so complex events that agree on those positions stay or go together.
    """
    kept = frozenset(matches)
    if not kept:
        return kept
    supports = {c: frozenset(p for label, p in c if label in by) if by else support(c) for c in kept}
    match strategy:
        case Strategy.ALL:
            return kept
        case Strategy.ANY:
            return frozenset((min(kept, key=sorted),))
        case Strategy.STRICT:
            return frozenset(c for c in kept if not (s := supports[c]) or len(s) == max(s) - min(s) + 1)
        case Strategy.NEXT:
            return frozenset(c for c in kept if all(next_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.LAST:
            return frozenset(c for c in kept if all(last_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.MAX:
            return frozenset(c for c in kept if not any(supports[c] < s for s in supports.values()))
