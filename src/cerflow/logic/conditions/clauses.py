"""Conditions of a FILTER as a conjunction of clauses.

AND and OR between atoms work on the complex event (spec §3), so a condition is a Boolean combination of atoms, and
every normal form of it means the same. The conjunctive form needs the fewest copies of an automaton, because only a
clause with several atoms is a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import NEGATED
from cerflow.language.condition import And, Bracket, Comparison, Condition, Constant, Not, Or, PredicateCall, combined
from cerflow.language.node import walk
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.evaluate import constant_value

Clause = tuple[Condition, ...]


def clauses(
    condition: Condition, whole: Callable[[Condition], bool] = lambda _: False, most: int | None = None
) -> list[Clause]:
    """The condition as clauses (all must hold), each a choice of atoms (one must hold).

    NOT is pushed inwards to the atoms. A choice for which ``whole`` is true is an atom itself. Raises
    `UnsupportedQueryError` if the form grows beyond ``most`` atoms (``limits.CLAUSE_ATOMS`` unless given).
    """

    def join(sign: type[And | Or], parts: list[list[Clause]]) -> list[Clause]:
        if sign is And:
            return [*chain(*parts)]
        return reduce(lambda left, right: _choice(left, right, condition, most), parts)

    def leaf(atom: Condition, positive: bool) -> list[Clause]:
        return [(_said(atom, positive),)]

    def atomic(current: Condition, positive: bool) -> bool:
        choice = isinstance(current, Or if positive else And) and whole(current)
        return choice or not isinstance(current, And | Or | Not)

    found = combined(condition, leaf, join, atomic)
    return list(dict.fromkeys(tuple(dict.fromkeys(c)) for c in found))


def conjuncts_of(condition: Condition) -> list[Condition]:
    """Conditions without AND that must all hold; NOT is pushed inwards as far as necessary."""
    return _operands(condition, And, Or)


def alternatives_of(condition: Condition) -> list[Condition]:
    """Conditions without OR, one of which must hold; NOT is pushed inwards as far as necessary."""
    return _operands(condition, Or, And)


def _operands(condition: Condition, sign: type[And | Or], below_not: type[And | Or]) -> list[Condition]:
    return combined(
        condition,
        lambda atom, positive: [_said(atom, positive)],
        lambda _, parts: [*chain(*parts)],
        lambda current, positive: not isinstance(current, Not | (sign if positive else below_not)),
    )


def _said(atom: Condition, positive: bool) -> Condition:
    return atom if positive else negated(atom)


def clauses_asked(condition: Condition) -> list[Clause]:
    """The clauses of a condition, without atoms that read no event; a clause that never holds is FALSE alone."""
    found: list[Clause] = []
    for clause in clauses(condition):
        values = [
            None
            if condition_labels(atom) or any(isinstance(n, PredicateCall) for n in walk(atom))
            else constant_value(atom) is True
            for atom in clause
        ]
        if True not in values:
            found.append(tuple(a for a, value in zip(clause, values) if value is None) or (Constant(False),))
    return found


def negated(atom: Condition) -> Condition:
    """The condition that is true where this one is false, and false where it is true."""
    # Unknown stays unknown, so the opposite comparison is the negation; it needs smaller registers.
    if isinstance(atom, Comparison):
        return Comparison(NEGATED[atom.operator], atom.left, atom.right, span=atom.span)
    # In a bracket NOT is evaluated event by event, as in front of any other atom.
    if isinstance(atom, Bracket):
        return Bracket(atom.label, Not(atom.condition), span=atom.span)
    return Not(atom, span=atom.span)


def _choice(left: list[Clause], right: list[Clause], whole: Condition, most: int | None) -> list[Clause]:
    atoms = sum(map(len, left)) * len(right) + sum(map(len, right)) * len(left)
    if atoms > (limits.CLAUSE_ATOMS if most is None else most):
        raise UnsupportedQueryError(
            "this condition has too many combinations of AND and OR",
            span=whole.span,
            hint="Write it as a conjunction of smaller choices, or as several FILTERs.",
        )
    return [a + b for a in left for b in right]
