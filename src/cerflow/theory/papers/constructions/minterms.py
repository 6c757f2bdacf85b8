"""Minterms of conditions (004 §2 and Algorithm 7, 003 Algorithm 8; Figure 14).

For every event and every content of the registers exactly one of them holds. Minterms with a contradiction are left
out. The test for contradictions is cheap and never wrong, but it misses some.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cerflow.base import limits
from cerflow.language.condition import And, Condition, Not, Or
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts, two_valued
from cerflow.logic.conditions.contradiction import contradicts
from cerflow.logic.conditions.guards import Satisfied
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.papers.model.conditions import not_satisfied, register_selection


@dataclass(frozen=True, slots=True)
class Minterm:
    """The conditions that hold, and those that do not."""

    positive: tuple[Condition, ...] = ()
    negative: tuple[Condition, ...] = ()

    @property
    def condition(self) -> Condition:
        """``φ1 ∧ … ∧ ¬ψ1 ∧ …``; ⊤ without conditions."""
        return conjunction([*self.positive, *map(not_satisfied, self.negative)])

    def entails(self, condition: Condition) -> bool:
        """Whether one of the conditions behind the minterm holds wherever the minterm does."""
        return condition == TRUE or condition in self.positive


def construct_minterms(
    conditions: Iterable[Condition], *, satisfiable: bool = True, budget: Budget | None = None
) -> tuple[Minterm, ...]:
    """The minterms of some conditions; ⊤ among them distinguishes nothing.

    With ``satisfiable`` those with a contradiction are left out, otherwise there are all 2ⁿ. Raises
    `UnsupportedQueryError` when the budget is spent.
    """
    found = [Minterm()]
    for condition in dict.fromkeys(c for c in conditions if c != TRUE):
        longer = []
        for m in found:
            for more in (Minterm((*m.positive, condition), m.negative), Minterm(m.positive, (*m.negative, condition))):
                if budget is not None:
                    budget.spend()
                if not (satisfiable and contradictory(more.positive, more.negative)):
                    longer.append(more)
        found = longer
    return tuple(found)


def contradictory(positive: Iterable[Condition], negative: Iterable[Condition] = ()) -> bool:
    """Whether it is certain that some conditions cannot all hold while others all fail, whatever the registers hold."""
    held: set[Condition] = set()
    failing: set[Condition] = set()
    pending = [*((c, True) for c in positive), *((c, False) for c in negative)]
    while pending:
        condition, truth = pending.pop()
        (held if truth else failing).add(condition)
        match condition:
            case And() if truth:
                pending += [(part, True) for part in conjuncts(condition)]
            case Or() if not truth:
                pending += [(condition.left, False), (condition.right, False)]
            case Satisfied(inner):
                pending.append((inner, truth))
            case Not(Satisfied(inner)):
                pending.append((inner, not truth))
    if any(held.issuperset(conjuncts(condition)) for condition in failing):
        return True
    if any(isinstance(condition, Not) and condition.operand in held for condition in held):
        return True
    # Facts about single attributes are about the current event only.
    local = [c for c in held if not register_selection(c)]
    return contradicts([*local, *(not_satisfied(c) for c in failing if not register_selection(c))])


def exhaustive(conditions: Iterable[Condition]) -> bool:
    """Whether it is certain that one of some conditions holds, whatever the event and the registers.

    Literals are decided one by one until no condition has an undecided literal, or the decisions are contradictory. For
    minterms this takes as many steps as there are minterms.
    """
    cases = [frozenset(two_valued(part) for part in conjuncts(condition)) for condition in conditions]
    splits = 0
    pending: list[tuple[list[frozenset[tuple[Condition, bool]]], frozenset[tuple[Condition, bool]]]]
    pending = [(cases, frozenset())]
    while pending:
        open_, decided = pending.pop()
        if frozenset() in open_ or contradictory(
            [c for c, truth in decided if truth], [c for c, truth in decided if not truth]
        ):
            continue
        splits += 1
        if not open_ or splits > limits.EXHAUSTIVE_SPLITS:
            return False
        chosen = next(iter(open_[0]))[0]
        for truth in (True, False):
            refuted = (chosen, not truth)
            left = [case - {(chosen, truth)} for case in open_ if refuted not in case]
            pending.append((left, decided | {(chosen, truth)}))
    return True
