"""Which tests on one event can hold together: contradictions, and the cases that guards distinguish.

Contradictions are found where that is cheap: the answer "contradictory" is certain, "not contradictory" only means that
none was found. Cases are found by a decision tree that tests only what is still unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import is_moment
from cerflow.base.graphs import gathered
from cerflow.base.operators import Operator
from cerflow.language.condition import And, Attribute, Comparison, Condition, Constant, In, IsNull, Literal, Not
from cerflow.logic.conditions.connectives import conjunction, conjuncts, negated, not_true, two_valued
from cerflow.logic.conditions.guards import Satisfied, TypeTest, is_local

_NEVER = frozenset({Constant(False), Not(Constant(True))})
#: A number that an attribute is compared with, and whether it is excluded itself.
_Bound = tuple[int | float, bool]


def contradicts(tests: Iterable[Condition]) -> bool:
    """Whether no event can satisfy all of these tests."""
    held = dict.fromkeys(tests)
    refused: set[Condition] = set()
    types: set[str] = set()
    nulls: dict[tuple[str | None, str], set[bool]] = {}
    values: dict[str, set[Literal]] = {}
    low: dict[str, _Bound] = {}
    high: dict[str, _Bound] = {}
    for test in held:
        if test in _NEVER:
            return True
        match test:
            case Not(operand):
                refused |= {operand, operand.condition} if isinstance(operand, Satisfied) else {operand}
                continue
            case TypeTest(name):
                types.add(name)
            case IsNull(Attribute(label, name), is_not):
                nulls.setdefault((label, name), set()).add(not is_not)
            case Comparison(operator, left, right):
                refused.add(negated(test))
                for side in (left, right):
                    if isinstance(side, Attribute):
                        nulls.setdefault((side.label, side.name), set()).add(False)
                if isinstance(left, Attribute) and left.label is None and isinstance(right, Literal):
                    _tighten(left.name, operator, right.value, low, high)
        name, literals = _allowed(test)
        if literals and all(isinstance(one.value, str) and not is_moment(one.value) for one in literals):
            # Two strings may stand for the same moment; any others are different.
            words = {Literal(one.value) for one in literals}
            values[name] = values.get(name, words) & words
    if not refused.isdisjoint(held) or len(types) > 1 or any(len(found) > 1 for found in nulls.values()):
        return True
    if any(isinstance(one, And) and held.keys() >= set(conjuncts(one)) for one in refused):
        return True
    # A refused test on the whole type contradicts a test for that type.
    if any(isinstance(one, TypeTest) and one.stream is None and one.type in types for one in refused):
        return True
    return not all(values.values()) or any(_empty(low[name], high[name]) for name in low.keys() & high.keys())


def _allowed(test: Condition) -> tuple[str, tuple[Literal, ...]]:
    """The attribute that a test restricts to some values, and these; none for other tests."""
    match test:
        case Comparison(Operator.EQ, Attribute(None, name), Literal() as literal):
            return name, (literal,)
        case Comparison(Operator.EQ, Literal() as literal, Attribute(None, name)):
            return name, (literal,)
        case In(Attribute(None, name), items, False):
            return name, items
    return "", ()


def _tighten(name: str, operator: Operator, value: object, low: dict[str, _Bound], high: dict[str, _Bound]) -> None:
    """Tighten the bounds of an attribute that is compared with a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if operator in (Operator.GT, Operator.GE, Operator.EQ):
        bound = (value, operator is Operator.GT)
        low[name] = max(low.get(name, bound), bound)
    if operator in (Operator.LT, Operator.LE, Operator.EQ):
        bound = (value, operator is Operator.LT)
        high[name] = min(high.get(name, bound), bound, key=lambda b: (b[0], not b[1]))


def _empty(low: _Bound, high: _Bound) -> bool:
    # Integers are rounded when they are compared with floats, so bounds must differ after rounding.
    if float(low[0]) > float(high[0]):
        return True
    return type(low[0]) is type(high[0]) and low[0] == high[0] and (low[1] or high[1])


@dataclass(frozen=True)
class Case:
    """A conjunction of ``literals`` (conditions as they stand in guards), and what holds in it, by number."""

    literals: tuple[Condition, ...]
    held: frozenset[int]


#: A condition, and whether it is to be true or not true.
GuardLiteral = tuple[Condition, bool]


def _written(literal: GuardLiteral) -> Condition:
    """The literal as it stands in guards."""
    condition, positive = literal
    return condition if positive else not_true(condition)


@lru_cache(maxsize=4096)
def _contradict(literals: frozenset[GuardLiteral]) -> bool:
    return contradicts(map(_written, literals))


@lru_cache(maxsize=4096)
def _broken(literals: frozenset[GuardLiteral]) -> Condition:
    """That not all of the literals hold."""
    return Not(Satisfied(conjunction(sorted(map(_written, literals), key=repr))))


def event_cases(required: Iterable[Condition], guards: Mapping[int, tuple[GuardLiteral, ...]]) -> Iterator[Case]:
    """All cases in which the required conditions hold, with the guards that hold in each.

    The cases exclude one another. Raises `UnsupportedQueryError` if there are more than `limits.GUARD_CASES`.
    """
    # Many guards are the same.
    places = gathered((guard, k) for k, guard in guards.items())
    missing = _Branch().open(map(two_valued, required))
    pending = [None if missing is None else _Branch().with_all(missing)]
    count = 0
    while pending:
        branch = pending.pop()
        if branch is None:
            continue
        question = _question(places, branch)
        if question:
            pending += [branch.without(question), branch.with_all(question)]
            continue
        count += 1
        if count > limits.GUARD_CASES:
            raise UnsupportedQueryError(
                f"this formula divides events into more than {limits.GUARD_CASES:,} cases",
                hint="Use fewer different conditions below UNLESS, WITHOUT, NEXT, LAST or MAX.",
            )
        held = [k for guard, among in places.items() if branch.open(guard) == [] for k in among]
        yield Case(branch.conditions(), frozenset(held))


def _question(guards: Iterable[Sequence[GuardLiteral]], branch: _Branch) -> list[GuardLiteral]:
    """The literals to decide next: on the type of the event, then on the event, then on other events."""
    for guard in guards:
        missing = branch.open(guard)
        if missing:
            typed = [literal for literal in missing if isinstance(literal[0], TypeTest)]
            return typed[:1] or [literal for literal in missing if is_local(literal[0])] or missing
    return []


class _Branch:
    """The decisions on a branch of the tree: literals that hold, and sets of literals that do not all hold."""

    def __init__(
        self, decided: Mapping[Condition, bool] | None = None, excluded: tuple[frozenset[GuardLiteral], ...] = ()
    ) -> None:
        self._decided = decided or {}
        self._excluded = excluded
        self._type = next(
            (test.type for test, held in self._decided.items() if held and isinstance(test, TypeTest)), None
        )

    def conditions(self) -> tuple[Condition, ...]:
        return (*map(_written, self._decided.items()), *map(_broken, self._excluded))

    def open(self, guard: Iterable[GuardLiteral]) -> list[GuardLiteral] | None:
        """The literals of a guard that are undecided; None if the guard cannot hold."""
        found: list[GuardLiteral] = []
        for literal in guard:
            value = self._value(literal)
            if value is False:
                return None
            if value is None:
                found.append(literal)
        return None if any(missing.issubset(found) for missing in self._open_sets) else found

    @cached_property
    def _open_sets(self) -> list[set[GuardLiteral]]:
        """What each excluded set of literals lacks."""
        return [self._missing(literals) for literals in self._excluded]

    def _missing(self, literals: Iterable[GuardLiteral]) -> set[GuardLiteral]:
        return {literal for literal in literals if self._value(literal) is not True}

    def _value(self, literal: GuardLiteral) -> bool | None:
        condition, positive = literal
        truth = self._decided.get(condition)
        if truth is None and isinstance(condition, Constant):
            truth = condition.value
        if truth is None and isinstance(condition, TypeTest) and self._type not in (None, condition.type):
            truth = False
        return None if truth is None else truth == positive

    def with_all(self, literals: Sequence[GuardLiteral]) -> _Branch | None:
        """The branch in which all of these hold, None if no event satisfies them."""
        decided = dict(self._decided)
        types = {test.type for test, positive in literals if positive and isinstance(test, TypeTest)}
        if types:
            # An event of one type has no other, so that need not be said.
            decided = {c: held for c, held in decided.items() if held or not isinstance(c, TypeTest) or c.type in types}
        if any(decided.setdefault(condition, positive) is not positive for condition, positive in literals):
            return None
        extended = _Branch(decided, self._excluded)
        local = frozenset(literal for literal in decided.items() if is_local(literal[0]))
        return extended if all(extended._open_sets) and not _contradict(local) else None

    def without(self, literals: Sequence[GuardLiteral]) -> _Branch | None:
        """The branch in which not all of these hold."""
        if len(literals) == 1:
            ((condition, positive),) = literals
            return self.with_all([(condition, not positive)])
        return _Branch(self._decided, (*self._excluded, frozenset(literals)))


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
    return [tuple(map(_written, sorted(case, key=repr))) for case in dict.fromkeys(found)]


def _completes(case: frozenset[GuardLiteral], literal: GuardLiteral, rest: frozenset[GuardLiteral]) -> bool:
    """Whether a case is the one that satisfies ``rest`` but not the literal."""
    condition, positive = literal
    # All parts of a conjunction are satisfied, or it is not.
    if not positive and case == rest.union(map(two_valued, conjuncts(condition))):
        return True
    opposite = (condition, not positive)
    if opposite not in case or not case - {opposite} <= rest:
        return False
    # An event of one type has no other.
    typed = isinstance(condition, TypeTest) and not positive
    return all(typed and isinstance(c, TypeTest) and not holds for c, holds in rest - case)
