"""The properties of first-order formulas that the papers define, each with the part of a formula that lacks it."""

from __future__ import annotations

from dataclasses import dataclass

from cerflow.language.builder.given import FormulaGiven, formula_tree
from cerflow.language.condition import And, operands
from cerflow.language.formula import As, Disjunction, EventType, Filter, Formula, Iteration, Sequence
from cerflow.language.node import fold_only, walk
from cerflow.language.printer import show
from cerflow.logic.analysis import first_order
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.clauses import clauses

_Pair = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True)
class Property:
    """Whether a formula has a property; if not, a ``subformula`` that lacks it, and the ``reason``."""

    holds: bool = True
    subformula: Formula | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        where = "" if self.subformula is None else f" in {show(self.subformula)}"
        return "<Property True>" if self.holds else f"<Property False: {self.reason}{where}>"


def bound_of(formula: FormulaGiven, *, union: bool = False) -> frozenset[str]:
    """bound(φ): the variables that stand for an event in every match (P1 §5.1); a formula is text, tree or query.

    With ``union`` those of OR are the union, as in the short form of P1 (ICDT), and not the intersection.
    """
    return first_order.bound_variables(formula_tree(formula), union=union)


def defined_of(formula: FormulaGiven, *, outside_iterations: bool = False) -> frozenset[str]:
    """vdef(φ), or vdef+(φ): the variables with a clause ``R AS x``, or with one outside every ``+`` (P1 §3)."""
    tree = formula_tree(formula)
    return first_order.defined_outside_iterations(tree) if outside_iterations else first_order.defined_variables(tree)


def well_formed(formula: FormulaGiven, *, strict: bool = True, union: bool = False) -> Property:
    """Whether each variable of each filter is bound by a formula around the filter (P1 §5.1).

    ``strict`` (erratum E9) takes away, within ``ρ+``, what is bound around it but defined again in ρ. For ``union`` see
    `bound_of`.
    """
    for name, _, place in first_order.ill_formed(formula_tree(formula), strict=strict, union=union):
        return Property(False, place, f"no formula around the filter binds '{name}'")
    return Property()


def safe(formula: FormulaGiven) -> Property:
    """Whether no ``φ1 ; φ2`` defines a variable on both sides, repetitions aside (P1 §5.1)."""
    found = first_order.unsafe_sequence(formula_tree(formula))
    return Property() if found is None else Property(False, found[0], f"both sides of ; define '{found[1]}'")


def locally_parametrized(formula: FormulaGiven) -> Property:
    """Whether every condition on one variable stands on the assignment of that variable (P1 §5.2)."""
    for current in walk(formula_tree(formula)):
        if not isinstance(current, Filter):
            continue
        for part in operands(current.condition, And):
            names = condition_labels(part).keys()
            stands_on_it = isinstance(current.operand, As) and names <= {current.operand.label}
            if not stands_on_it and all(len(condition_labels(atom)) <= 1 for c in clauses(part) for atom in c):
                return Property(False, current, f"{show(part)} is not on the assignment of its variable")
    return Property()


def bounded(formula: FormulaGiven) -> Property:
    """Whether a CEPL formula is bounded (003 Definition 3), so that registers for one event each suffice.

    It is well-formed, filters read only variables that their own operand binds, and the sides of ``;`` mention
    different variables.
    """
    tree = formula_tree(formula)
    found = well_formed(tree, strict=False)
    if not found:
        return found
    faults: list[Property] = []

    def visit(_: int, current: Formula, parts: list[_Pair]) -> _Pair:
        """bound(φ) and var(φ)."""
        bound = frozenset[str]().union(*(part[0] for part in parts))
        mentioned = frozenset[str]().union(*(part[1] for part in parts))
        match current:
            case As():
                return bound | {current.label}, mentioned | {current.label}
            case Filter():
                read = first_order.condition_variables(current)
                for name in sorted(read - bound):
                    faults.append(Property(False, current, f"the filtered formula does not bind '{name}'"))
                mentioned |= read
            case Disjunction():
                bound = parts[0][0] & parts[1][0]
            case Iteration():
                bound = frozenset()
            case Sequence():
                for name in sorted(parts[0][1] & parts[1][1]):
                    faults.append(Property(False, current, f"both sides of ; mention '{name}'"))
            case EventType():
                pass
            case _:
                faults.append(Property(False, current, f"CEPL has no {type(current).__name__}"))
        return bound, mentioned

    fold_only(tree, Formula, visit)
    return faults[0] if faults else Property()
