"""AND, OR and NOT: conditions joined, taken apart, negated, with truth values worked in, and in normal forms.

AND and OR between atoms of a FILTER work on the complex event (spec §3), so a condition is a Boolean combination of
atoms, and every normal form of it means the same. The conjunctive form, `clauses`, needs the fewest copies of an
automaton, because only a clause with several atoms is a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import chain
from typing import TypeVar

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import MIRRORED, NEGATED, Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, rebuild, transform, walk, with_children
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.evaluate import constant_value
from cerflow.logic.conditions.guards import Satisfied, TypeTest, without_brackets

R = TypeVar("R")

Clause = tuple[c.Condition, ...]
#: The comparisons that are written as the negation of another one.
_NEGATIONS = (Operator.NE, Operator.GT, Operator.GE)
TRUE = c.Constant(True)
FALSE = c.Constant(False)
#: A condition that is neither true nor false of any event.
UNKNOWN = c.Comparison(Operator.EQ, c.Literal(None), c.Literal(None))


def constant(truth: object) -> c.Condition:
    """The condition that has this truth value of every event."""
    return UNKNOWN if truth is None else c.Constant(bool(truth))


def conjuncts(condition: c.Condition) -> list[c.Condition]:
    """The distinct operands of nested ANDs; none for TRUE."""
    return [part for part in c.operands(condition, c.And) if part != TRUE]


def conjuncts_opened(condition: c.Condition) -> list[c.Condition]:
    """The operands of nested ANDs, those in brackets with their labels: what holds there holds of every event of one.

    A bracket with ``prev`` stays closed: it asks nothing of the first event of its label.
    """
    parts = ([part] if c.calls(part, "prev") else conjuncts(without_brackets(part)) for part in conjuncts(condition))
    return [*chain.from_iterable(parts)]


def conjunction(parts: Iterable[c.Condition]) -> c.Condition:
    """The AND of distinct conditions, in order; TRUE for none."""
    return reduce(c.And, dict.fromkeys(parts) or (TRUE,))


def folded(current: Node) -> Node:
    """AND, OR, NOT and `Satisfied` without operands that are constants; other nodes as they are."""
    match current:
        case c.And(left, right) | c.Or(left, right):
            neutral, absorbing = (TRUE, FALSE) if isinstance(current, c.And) else (FALSE, TRUE)
            if absorbing in (left, right):
                return absorbing
            if left in (neutral, right):
                return right
            return left if right == neutral else current
        case c.Not(c.Constant(value)):
            return c.Constant(not value)
        case c.Not(c.Not(operand)):
            return operand
        case c.Not(operand) if operand == UNKNOWN:
            return UNKNOWN
        case Satisfied(c.Constant() as truth):
            return truth
    return current


def with_atoms(condition: c.Condition, change: Callable[[c.Condition], c.Condition]) -> c.Condition:
    """The condition with other conditions for what AND, OR, NOT and `Satisfied` combine, and constants worked in."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, c.And | c.Or | c.Not | Satisfied):
            return folded(with_children(current, below))
        # Conditions inside a value, as in CASE, stay as they are.
        return change(current) if isinstance(current, c.Condition) else current

    return rebuild(condition, visit)


def asked(
    condition: c.Condition,
    atom: Callable[[c.Condition, bool, bool], R],
    join: Callable[[type[c.And | c.Or], list[R]], R],
    wanted: bool = True,
    or_unknown: bool = False,
) -> R:
    """Ask whether a condition is ``wanted`` (true or false), ``or_unknown``, by asking what AND, OR and NOT combine.

    ``atom`` gets what is asked of an atomic condition as well; what `Satisfied` is about is asked in its place.
    """

    def of_part(part: c.Condition, wanted: bool) -> R:
        if isinstance(part, Satisfied):
            # It is false where its condition is false or unknown.
            return asked(part.condition, atom, join, wanted, not wanted)
        return atom(part, wanted, or_unknown)

    return c.combined(condition if wanted else c.Not(condition), of_part, join)


def spelled_out(condition: c.In | c.Between) -> c.Condition:
    """IN or BETWEEN as comparisons."""
    join: type[c.And | c.Or] = c.Or if isinstance(condition, c.In) else c.And
    parts: list[c.Condition] = [*c.comparisons(condition)]
    whole = reduce(join, parts) if parts else c.Constant(join is c.And)
    return c.Not(whole) if condition.negated else whole


def not_true(condition: c.Condition) -> c.Condition:
    """The condition that is true of an event where another one is false or unknown."""
    match condition:
        case c.Constant(value):
            return c.Constant(not value)
        case c.Not(Satisfied(inner)) | c.Not(TypeTest() as inner):
            return inner
        case c.IsNull(_, negated):
            return replace(condition, negated=not negated)
        case TypeTest():
            return c.Not(condition)
    return c.Not(Satisfied(condition))


def two_valued(condition: c.Condition) -> tuple[c.Condition, bool]:
    """The condition that a test asks about, and whether it is to be true or not true (false or unknown)."""
    positive = True
    current = condition
    while True:
        match current:
            case Satisfied(inner):
                current = inner
            case c.Not(Satisfied() | TypeTest() as inner):
                # NOT before anything else asks for false, which is more than not true.
                current, positive = inner, not positive
            case c.IsNull(operand, True):
                current, positive = c.IsNull(operand), not positive
            case _:
                return current, positive


# -- clauses


def clauses(
    condition: c.Condition, whole: Callable[[c.Condition], bool] = lambda _: False, most: int | None = None
) -> list[Clause]:
    """The condition as clauses (all must hold), each a choice of atoms (one must hold).

    NOT is pushed inwards to the atoms. A choice for which ``whole`` is true is an atom itself. Raises
    `UnsupportedQueryError` if the form grows beyond ``most`` atoms (``limits.CLAUSE_ATOMS`` unless given).
    """

    def join(sign: type[c.And | c.Or], parts: list[list[Clause]]) -> list[Clause]:
        if sign is c.And:
            return [*chain(*parts)]
        return reduce(lambda left, right: _choice(left, right, condition, most), parts)

    def leaf(atom: c.Condition, positive: bool) -> list[Clause]:
        return [(_said(atom, positive),)]

    def atomic(current: c.Condition, positive: bool) -> bool:
        choice = isinstance(current, c.Or if positive else c.And) and whole(current)
        return choice or not isinstance(current, c.And | c.Or | c.Not)

    found = c.combined(condition, leaf, join, atomic)
    return list(dict.fromkeys(tuple(dict.fromkeys(c)) for c in found))


def split(condition: c.Condition, sign: type[c.And | c.Or]) -> list[c.Condition]:
    """Conditions without AND that must all hold, or conditions without OR, one of which must hold.

    NOT is pushed inwards as far as necessary.
    """
    below_not = c.Or if sign is c.And else c.And
    return c.combined(
        condition,
        lambda atom, positive: [_said(atom, positive)],
        lambda _, parts: [*chain(*parts)],
        lambda current, positive: not isinstance(current, c.Not | (sign if positive else below_not)),
    )


def _said(atom: c.Condition, positive: bool) -> c.Condition:
    return atom if positive else negated(atom)


def clauses_asked(condition: c.Condition) -> list[Clause]:
    """The clauses of a condition, without atoms that read no event; a clause that never holds is FALSE alone."""
    found: list[Clause] = []
    for clause in clauses(condition):
        left = [a for a in clause if condition_labels(a) or any(isinstance(n, c.PredicateCall) for n in walk(a))]
        if not any(constant_value(atom) is True for atom in clause if atom not in left):
            found.append(tuple(left) or (FALSE,))
    return found


def negated(atom: c.Condition) -> c.Condition:
    """The condition that is true where this one is false, and false where it is true."""
    # Unknown stays unknown, so the opposite comparison is the negation; it needs smaller registers.
    if isinstance(atom, c.Comparison):
        return c.Comparison(NEGATED[atom.operator], atom.left, atom.right, span=atom.span)
    # In a bracket NOT is evaluated event by event, as in front of any other atom.
    if isinstance(atom, c.Bracket):
        return c.Bracket(atom.label, c.Not(atom.condition), span=atom.span)
    return c.Not(atom, span=atom.span)


def _choice(left: list[Clause], right: list[Clause], whole: c.Condition, most: int | None) -> list[Clause]:
    atoms = sum(map(len, left)) * len(right) + sum(map(len, right)) * len(left)
    if atoms > (limits.CLAUSE_ATOMS if most is None else most):
        raise UnsupportedQueryError(
            "this condition has too many combinations of AND and OR",
            span=whole.span,
            hint="Write it as a conjunction of smaller choices, or as several FILTERs.",
        )
    return [a + b for a in left for b in right]


# -- tests on one event, each part of which is true, false or unknown of it


@lru_cache(maxsize=4096)
def normal(test: c.Condition) -> c.Condition:
    """The test, with equal atomic conditions written alike and constant parts evaluated."""
    return _of_test(transform(test, _simpler))


def settled(test: c.Condition, truths: Mapping[c.Condition, bool | None]) -> c.Condition:
    """A normal test in which the truth values of some atomic conditions are known."""

    def visit(current: Node) -> Node:
        if isinstance(current, c.Condition) and current in truths:
            return constant(truths[current])
        return _simpler(current)

    return _of_test(transform(test, visit))


def atomic_conditions(test: c.Condition) -> list[c.Condition]:
    """The atomic conditions of a normal test, in order of appearance."""
    parts = c.operands(test, c.And | c.Or | c.Not | Satisfied)
    return [part for part in parts if not (isinstance(part, c.Constant) or part == UNKNOWN)]


def _of_test(condition: Node) -> c.Condition:
    """The condition as a test, which only asks whether it is true: FALSE if it cannot be."""
    assert isinstance(condition, c.Condition)
    return FALSE if any(part in (UNKNOWN, FALSE) for part in conjuncts(condition)) else condition


def _simpler(current: Node) -> Node:
    match current:
        case c.Arithmetic() | c.Negative() | c.Function() if all(isinstance(n, c.Literal) for n in current.children):
            return c.Literal(constant_value(current), span=current.span)  # type: ignore[arg-type]
        case c.Comparison():
            return _comparison(current)
        case c.Between() | c.In(_, (_,)):
            return transform(spelled_out(current), _simpler)
        case c.If(condition, then, otherwise) if isinstance(condition, c.Constant) or condition == UNKNOWN:
            return then if condition == TRUE else otherwise
        case c.PatternTest() | c.In() | c.IsNull():
            positive = _positive(replace(current, negated=False))
            return _negation(positive) if current.negated else positive
        case Satisfied():
            inner = _of_test(current.condition)
            # These conditions are never unknown.
            return inner if isinstance(inner, c.Constant | TypeTest | Satisfied | c.IsNull) else Satisfied(inner)
        case c.Or(left, right):
            return _negation(folded(c.And(_negation(left), _negation(right))))
    return folded(current)


def _negation(condition: Node) -> c.Condition:
    negated = folded(c.Not(condition))  # type: ignore[arg-type]
    assert isinstance(negated, c.Condition)
    return negated


def _comparison(current: c.Comparison) -> c.Condition:
    operator, left, right = current.operator, current.left, current.right
    if isinstance(left, c.TruthValue) and operator is Operator.EQ and right == c.Literal(True):
        return left.condition
    if isinstance(left, c.Literal):
        if isinstance(right, c.Literal):
            return constant(constant_value(current))
        operator, left, right = MIRRORED[operator], right, left
    if right == c.Literal(None):
        return UNKNOWN
    if operator in _NEGATIONS:
        return c.Not(c.Comparison(NEGATED[operator], left, right, span=current.span))
    return c.Comparison(operator, left, right, span=current.span)


def _positive(current: c.PatternTest | c.In | c.IsNull) -> c.Condition:
    match current:
        case c.PatternTest(c.Literal()) | c.In(c.Literal()) | c.IsNull(c.Literal()):
            return constant(constant_value(current))
        case c.IsNull(c.Function(_, (c.LabelReference(),))):
            return FALSE  # every event has a position and a time
    return current
