"""Which tests on one event can hold together: contradictions, and the cases that guards distinguish.

Contradictions are found where that is cheap: the answer "contradictory" is certain, "not contradictory" only means that
none was found. Cases are found by a decision tree that tests only what is still unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    nulls: dict[str, set[bool]] = {}
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
            case IsNull(Attribute(_, name), is_not):
                nulls.setdefault(name, set()).add(not is_not)
            case Comparison(operator, left, right):
                refused.add(negated(test))
                for side in (left, right):
                    if isinstance(side, Attribute):
                        nulls.setdefault(side.name, set()).add(False)
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
_Literal = tuple[Condition, bool]


#: A literal by number; that of the opposite differs in the last bit.
_Number = int


class CaseTree:
    """Finds the cases that guards distinguish, and remembers what it has found out about their literals."""

    def __init__(self) -> None:
        self._numbers: dict[Condition, int] = {}
        #: The conditions of the literals, as they stand in guards
        self.conditions: list[Condition] = []
        self.local: list[bool] = []
        #: The types that literals ask for, and the values of constants
        self.types: list[str | None] = []
        self.constants: dict[_Number, bool] = {}
        self._contradicting: dict[frozenset[_Number], bool] = {}
        self._broken: dict[frozenset[_Number], Condition] = {}

    def _number(self, test: Condition) -> _Number:
        """The literal of a test."""
        condition, positive = two_valued(test)
        if condition not in self._numbers:
            first = self._numbers[condition] = len(self.conditions)
            self.conditions += [condition, not_true(condition)]
            self.local += [is_local(condition)] * 2
            self.types += [condition.type if isinstance(condition, TypeTest) else None] * 2
            if isinstance(condition, Constant):
                self.constants |= {first: condition.value, first + 1: not condition.value}
        return self._numbers[condition] + (not positive)

    def contradict(self, literals: Iterable[_Number]) -> bool:
        """Whether no event satisfies those of the literals that depend on it alone."""
        key = frozenset([p for p in literals if self.local[p]])
        if key not in self._contradicting:
            self._contradicting[key] = contradicts([self.conditions[p] for p in sorted(key)])
        return self._contradicting[key]

    def broken(self, literals: frozenset[_Number]) -> Condition:
        """That not all of the literals hold."""
        if literals not in self._broken:
            inner = conjunction(sorted([self.conditions[p] for p in literals], key=repr))
            self._broken[literals] = Not(Satisfied(inner))
        return self._broken[literals]

    def literals(self, guard: Iterable[Condition]) -> tuple[_Number, ...]:
        """The literals of a guard (a conjunction), for `cases`."""
        return tuple(map(self._number, guard))

    def cases(self, required: Iterable[Condition], guards: Sequence[tuple[_Number, ...]]) -> Iterator[Case]:
        """All cases in which the required conditions hold, with the guards that hold in each.

        The cases exclude one another. Raises `UnsupportedQueryError` if there are more than `limits.GUARD_CASES`.
        """
        needed = self.literals(required)
        # Many guards are the same.
        places = gathered((guard, k) for k, guard in enumerate(guards))
        asked = list(places)
        missing = _Branch(self).open(needed)
        root = None if missing is None else _Branch(self).with_all(missing)
        pending = [] if root is None else [root]
        count = 0
        while pending:
            branch = pending.pop()
            question = self._question(asked, branch)
            if question:
                pending += [b for b in (branch.without(question), branch.with_all(question)) if b is not None]
                continue
            count += 1
            if count > limits.GUARD_CASES:
                raise UnsupportedQueryError(
                    f"this formula divides events into more than {limits.GUARD_CASES:,} cases",
                    hint="Use fewer different conditions below UNLESS, WITHOUT, NEXT, LAST or MAX.",
                )
            held = [k for guard, among in places.items() if branch.open(guard) == [] for k in among]
            yield Case(branch.conditions(), frozenset(held))

    def _question(self, guards: Sequence[Sequence[_Number]], branch: _Branch) -> list[_Number]:
        """The literals to decide next: on the type of the event, then on the event, then on other events."""
        for guard in guards:
            missing = branch.open(guard)
            if not missing:
                continue
            typed = [p for p in missing if self.types[p] is not None]
            local = [p for p in missing if self.local[p]]
            return typed[:1] or local or missing
        return []


class _Branch:
    """The decisions on a branch of the tree: literals that hold, and sets of literals that do not all hold."""

    def __init__(
        self, of: CaseTree, holding: tuple[_Number, ...] = (), excluded: tuple[frozenset[_Number], ...] = ()
    ) -> None:
        self._of = of
        self._holding = holding
        self._excluded = excluded
        self._known = dict(of.constants)
        for p in holding:
            self._known[p], self._known[p ^ 1] = True, False
        self._type = next((of.types[p] for p in holding if of.types[p] is not None and not p & 1), None)

    def conditions(self) -> tuple[Condition, ...]:
        of = self._of
        return (*[of.conditions[p] for p in self._holding], *map(of.broken, self._excluded))

    def open(self, guard: Iterable[_Number]) -> list[_Number] | None:
        """The literals of a guard that are undecided; None if the guard cannot hold."""
        found: list[_Number] = []
        for p in guard:
            value = self._value(p)
            if value is False:
                return None
            if value is None:
                found.append(p)
        if self._excluded:
            missing = set(found)
            if any(self._missing(e) <= missing for e in self._excluded):
                return None
        return found

    def _missing(self, literals: Iterable[_Number]) -> set[_Number]:
        return {p for p in literals if self._value(p) is not True}

    def _value(self, p: _Number) -> bool | None:
        value = self._known.get(p)
        if value is None and self._type is not None:
            type_ = self._of.types[p]
            if type_ is not None and type_ != self._type:
                return bool(p & 1)
        return value

    def with_all(self, literals: Sequence[_Number]) -> _Branch | None:
        """The branch in which all of these hold, None if no event satisfies them."""
        holding, type_of = self._holding, self._of.types
        types = {type_of[p] for p in literals if not p & 1} - {None}
        if types:
            # An event of one type has no other, so that need not be said.
            holding = tuple(p for p in holding if not p & 1 or type_of[p] is None or type_of[p] in types)
        extended = _Branch(self._of, (*holding, *literals), self._excluded)
        if any(not extended._missing(e) for e in self._excluded):
            return None
        return None if self._of.contradict(extended._holding) else extended

    def without(self, literals: Sequence[_Number]) -> _Branch | None:
        """The branch in which not all of these hold."""
        if len(literals) == 1:
            return self.with_all([literals[0] ^ 1])
        return _Branch(self._of, self._holding, (*self._excluded, frozenset(literals)))


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
    return [
        tuple(condition if positive else not_true(condition) for condition, positive in sorted(case, key=repr))
        for case in dict.fromkeys(found)
    ]


def _completes(case: frozenset[_Literal], literal: _Literal, rest: frozenset[_Literal]) -> bool:
    """Whether a case is the one that satisfies ``rest`` but not the literal."""
    condition, positive = literal
    opposite = (condition, not positive)
    if opposite not in case or not case - {opposite} <= rest:
        return False
    # An event of one type has no other.
    typed = isinstance(condition, TypeTest) and not positive
    return all(typed and isinstance(c, TypeTest) and not holds for c, holds in rest - case)
