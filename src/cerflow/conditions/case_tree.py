"""The cases that guards distinguish, found by a decision tree that asks only what is still open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cerflow import limits
from cerflow.conditions.connectives import conjunction, not_true, two_valued
from cerflow.conditions.contradiction import contradicts
from cerflow.conditions.guards import Satisfied, TypeTest, is_local
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Condition, Constant, Not

__all__ = ["Case", "cases", "merged_cases"]


@dataclass(frozen=True)
class Case:
    """A conjunction of ``literals`` (conditions as they stand in guards), and what holds in it, by number."""

    literals: tuple[Condition, ...]
    held: frozenset[int]


#: A condition, and whether it is to be true or not true.
_Literal = tuple[Condition, bool]


def _condition(literal: _Literal) -> Condition:
    condition, positive = literal
    return condition if positive else not_true(condition)


@dataclass(frozen=True)
class _Branch:
    """The decisions on a branch of the tree: literals that hold, and sets of literals that do not all hold."""

    holding: tuple[_Literal, ...] = ()
    excluded: tuple[frozenset[_Literal], ...] = ()

    def conditions(self) -> tuple[Condition, ...]:
        broken = (Not(Satisfied(conjunction([_condition(p) for p in sorted(e, key=repr)]))) for e in self.excluded)
        return (*map(_condition, self.holding), *broken)

    def open(self, guard: Sequence[_Literal]) -> list[_Literal] | None:
        """The literals of a guard that are undecided; None if the guard cannot hold."""
        found: list[_Literal] = []
        for literal in guard:
            value = self._value(literal)
            if value is False:
                return None
            if value is None:
                found.append(literal)
        missing = set(found)
        return None if any(self._missing(e) <= missing for e in self.excluded) else found

    def _missing(self, literals: Iterable[_Literal]) -> set[_Literal]:
        return {p for p in literals if self._value(p) is not True}

    def _value(self, literal: _Literal) -> bool | None:
        condition, positive = literal
        if isinstance(condition, Constant):
            return condition.value == positive
        for known, holds in self.holding:
            if known == condition:
                return holds == positive
            both = isinstance(known, TypeTest) and isinstance(condition, TypeTest)
            if holds and both and known.type != condition.type:  # type: ignore[attr-defined]
                return not positive
        return None

    def with_all(self, literals: Sequence[_Literal]) -> _Branch | None:
        """The branch in which all of these hold, None if no event satisfies them."""
        holding = self.holding
        types = {c.type for c, holds in literals if holds and isinstance(c, TypeTest)}
        if types:
            # An event of one type has no other, so that need not be said.
            holding = tuple(
                (c, holds) for c, holds in holding if holds or not isinstance(c, TypeTest) or c.type in types
            )
        extended = _Branch((*holding, *literals), self.excluded)
        if any(not extended._missing(e) for e in self.excluded):
            return None
        return None if contradicts([_condition(p) for p in extended.holding if is_local(p[0])]) else extended

    def without(self, literals: Sequence[_Literal]) -> _Branch | None:
        """The branch in which not all of these hold."""
        if len(literals) == 1:
            condition, positive = literals[0]
            return self.with_all([(condition, not positive)])
        return _Branch(self.holding, (*self.excluded, frozenset(literals)))


def cases(required: Iterable[Condition], guards: Sequence[Sequence[Condition]]) -> Iterator[Case]:
    """All cases in which the required conditions hold, with the guards (conjunctions) that hold in each.

    The cases exclude one another. Raises `UnsupportedQueryError` if there are more than `limits.GUARD_CASES`.
    """
    asked = [[two_valued(c) for c in guard] for guard in guards]
    missing = _Branch().open([two_valued(c) for c in required])
    root = None if missing is None else _Branch().with_all(missing)
    pending = [] if root is None else [root]
    count = 0
    while pending:
        branch = pending.pop()
        question = _question(asked, branch)
        if question:
            pending += [b for b in (branch.without(question), branch.with_all(question)) if b is not None]
            continue
        count += 1
        if count > limits.GUARD_CASES:
            raise UnsupportedQueryError(
                f"this formula divides events into more than {limits.GUARD_CASES:,} cases",
                hint="Use fewer different conditions below UNLESS, WITHOUT, NEXT, LAST or MAX.",
            )
        held = (k for k, guard in enumerate(asked) if branch.open(guard) == [])
        yield Case(branch.conditions(), frozenset(held))


def _question(guards: Sequence[Sequence[_Literal]], branch: _Branch) -> list[_Literal]:
    """The literals to decide next: on the type of the event, then on the event, then on other events."""
    for guard in guards:
        missing = branch.open(guard)
        if not missing:
            continue
        typed = [p for p in missing if isinstance(p[0], TypeTest)]
        local = [p for p in missing if is_local(p[0])]
        return typed[:1] or local or missing
    return []


def merged_cases(tests: Iterable[Sequence[Condition]]) -> list[tuple[Condition, ...]]:
    """The cases (conjunctions that exclude one another), two of them merged wherever they differ in one literal."""
    found = [frozenset(map(two_valued, test)) for test in tests]
    k = 0
    # This ends, because every merger leaves one case less.
    while k < len(found):
        case = found[k]
        for literal in sorted(case, key=repr):
            rest = case - {literal}
            other = next((o for o in found if _completes(o, literal, rest)), None)
            if other is not None:
                found[k] = rest
                found.remove(other)
                k = -1
                break
        k += 1
    return [tuple(map(_condition, sorted(case, key=repr))) for case in dict.fromkeys(found)]


def _completes(case: frozenset[_Literal], literal: _Literal, rest: frozenset[_Literal]) -> bool:
    """Whether a case is the one that satisfies ``rest`` but not the literal."""
    condition, positive = literal
    opposite = (condition, not positive)
    if opposite not in case or not case - {opposite} <= rest:
        return False
    # An event of one type has no other.
    typed = isinstance(condition, TypeTest) and not positive
    return all(typed and isinstance(c, TypeTest) and not holds for c, holds in rest - case)
