"""Conditions of a FILTER as a conjunction of clauses.

AND and OR between atoms work on the complex event (spec §3), so a condition is a Boolean combination of atoms, and
any normal form of it means the same. Conjunctive form is the one that needs the fewest copies of an automaton: only
a clause with several atoms is a choice.
"""

from __future__ import annotations

from cerflow.analysis.scopes import condition_labels
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import (
    And,
    Bracket,
    Comparison,
    Condition,
    Constant,
    Not,
    Operator,
    Or,
    PredicateCall,
)
from cerflow.language.node import walk
from cerflow.semantics.values import value_of

__all__ = ["MOST_ATOMS", "OPPOSITE", "clauses", "clauses_asked"]

#: A condition whose conjunctive form has more atoms than this is refused.
MOST_ATOMS = 20_000

Clause = tuple[Condition, ...]


def clauses(condition: Condition) -> list[Clause]:
    """The condition as clauses (all must hold), each a choice of atoms (one must hold).

    NOT is pushed inwards through AND and OR; in front of an atom it stays. Raises `UnsupportedQueryError` if the
    form grows beyond `MOST_ATOMS` atoms.
    """
    done: list[list[Clause]] = []
    stack: list[tuple[Condition, bool, bool]] = [(condition, True, False)]
    while stack:
        current, positive, ready = stack.pop()
        if isinstance(current, Not):
            stack.append((current.operand, not positive, False))
        elif isinstance(current, And | Or):
            if not ready:
                stack.append((current, positive, True))
                stack.append((current.right, positive, False))
                stack.append((current.left, positive, False))
                continue
            right, left = done.pop(), done.pop()
            both = isinstance(current, And) == positive
            done.append(left + right if both else _choice(left, right, condition))
        else:
            done.append([(current if positive else _negated(current),)])
    return list(dict.fromkeys(tuple(dict.fromkeys(c)) for c in done[0]))


#: The comparison that is true where another one is false.
def clauses_asked(condition: Condition) -> list[Clause]:
    """The clauses of a condition with what speaks of no event worked out; one that never holds is FALSE alone."""
    found: list[Clause] = []
    for clause in clauses(condition):
        values = [None if _depends(atom) else value_of(atom, {}, lambda _: ()) is True for atom in clause]
        if True not in values:
            found.append(tuple(a for a, value in zip(clause, values) if value is None) or (Constant(False),))
    return found


def _depends(atom: Condition) -> bool:
    return bool(condition_labels(atom)) or any(isinstance(n, PredicateCall) for n in walk(atom))


OPPOSITE = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}


def _negated(atom: Condition) -> Condition:
    # Unknown stays unknown, so the opposite comparison is the negation; it needs smaller registers.
    if isinstance(atom, Comparison):
        return Comparison(OPPOSITE[atom.operator], atom.left, atom.right, span=atom.span)
    # In a bracket NOT is evaluated event by event, as in front of any other atom.
    if isinstance(atom, Bracket):
        return Bracket(atom.label, Not(atom.condition), span=atom.span)
    return Not(atom, span=atom.span)


def _choice(left: list[Clause], right: list[Clause], whole: Condition) -> list[Clause]:
    if sum(len(a) + len(b) for a in left[:1] for b in right[:1]) * len(left) * len(right) > MOST_ATOMS:
        raise UnsupportedQueryError(
            "this condition has too many combinations of AND and OR",
            span=whole.span,
            hint="Write it as a conjunction of smaller choices, or as several FILTERs.",
        )
    return [a + b for a in left for b in right]
