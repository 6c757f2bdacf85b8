"""The first-order reading: variables, and the properties of formulas that the papers build on them.

Formulas are read as core-CEL (P1 §3): an event type with AS defines a variable, which stands for one event; a filter
speaks of variables. NEXT, LAST, MAX, STRICT (P1 §4) and WITHIN may stand around formulas too; an event type without
AS defines no variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.base.errors import QueryError, nearest
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import LabelReference, Some
from cerflow.language.node import Node, fold, walk
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels, handed_down, occurrences, of_operands

Names = frozenset[str]
_NONE: Names = frozenset()
_CORE = f.SingleEvent, f.As, f.Filter, f.Disjunction, f.Sequence, f.Iteration, f.Selection, f.Within


@dataclass(frozen=True)
class Property:
    """Whether a formula has a property; if not, a ``subformula`` that lacks it, and the ``reason``."""

    holds: bool = True
    subformula: f.Formula | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        where = "" if self.subformula is None else f" in {show(self.subformula)}"
        return "<Property True>" if self.holds else f"<Property False: {self.reason}{where}>"


def condition_variables(current: f.Formula) -> Names:
    """The variables that a filter, or a NOT with a condition, reads, without NOT's own event type."""
    if isinstance(current, f.Filter):
        return frozenset(condition_labels(current.condition))
    if isinstance(current, f.NotEvent) and current.condition is not None:
        return frozenset(condition_labels(current.condition)) - {current.event.name}
    return _NONE


def variables(formula: f.Formula) -> Names:
    """var(φ): all variables that are mentioned, in conditions too (P1 §3)."""
    found: set[str] = set()
    for current in walk(formula):
        if isinstance(current, f.As):
            found.add(current.label)
        elif isinstance(current, f.Formula):
            found |= condition_variables(current)
    return frozenset(found)


@of_formula
def defined_variables(formula: f.Formula, *, outside_iterations: bool = False) -> Names:
    """vdef(φ), or vdef+(φ): the variables with a clause ``R AS x``, or with one outside every ``+`` (P1 §3)."""
    if outside_iterations:
        return fold(formula, combine_defined)
    return frozenset(current.label for current in walk(formula) if isinstance(current, f.As))


def combine_defined(current: Node, below: Sequence[Names]) -> Names:
    """vdef+ of a formula from vdef+ of its parts."""
    match current:
        case f.As():
            return below[0] | {current.label}
        case f.Iteration():
            return _NONE
    return _NONE.union(*below)


@of_formula
def bound_variables(formula: f.Formula, *, union: bool = False) -> Names:
    """bound(φ): the variables that stand for an event in every match (P1 §5.1); a formula is text, tree or query.

    With ``union`` those of OR are the union, as in the short form of P1 (ICDT), and not the intersection.
    """
    return fold(formula, combine_defined if union else _combine_bound)


def _combine_bound(current: Node, below: Sequence[Names]) -> Names:
    if isinstance(current, f.Disjunction):
        return below[0] & below[1]
    return combine_defined(current, below)


def check_first_order(formula: f.Formula) -> None:
    """Whether a formula can be read as first-order CEL.

    Raises `QueryError` where AS does not stand on an event type, for operators that the first-order language does not
    have, for SOME and BY, and for filters on variables that are not well-formed there: none of the formulas around the
    filter binds the variable. A repetition binds its variables again, so those of a formula around ``+`` that its body
    defines itself do not count (erratum E9).
    """
    for current in walk(formula):
        if isinstance(current, f.As) and not isinstance(current.operand, f.SingleEvent):
            raise QueryError(
                f"in the first-order reading AS labels an event type, but '{current.label}' labels a formula",
                span=current.span,
                hint='Read the query without reading="first-order" to label several events at once.',
            )
        if isinstance(current, f.Formula) and not isinstance(current, _CORE):
            written = current.sign if current.sign[:1].isalpha() else f"'{current.sign}'"
            raise QueryError(
                f"the first-order reading does not support {written}",
                span=current.span,
                hint="It has event types with AS, FILTER, OR, ;, +, the strategies and WITHIN.",
            )
        if isinstance(current, f.Selection):
            refuse_by(current.by)
        if isinstance(current, Some):
            raise QueryError(
                "in the first-order reading a variable is one event, so SOME has nothing to choose",
                span=current.span,
                hint="Write its condition alone.",
            )
    faults = ill_formed(formula, strict=True)
    if faults:
        name, place, _ = faults[0]
        known = defined_variables(formula)
        if name not in known:
            raise QueryError(
                f"unknown variable '{name}'",
                span=place.span,
                suggestion=nearest(name, known),
                hint=f"The variables are {', '.join(sorted(known))}." if known else "AS defines a variable.",
            )
        raise QueryError(
            f"variable '{name}' may have no event here: no formula around the filter binds it",
            span=place.span,
            hint="A variable under + or in one branch of OR is bound only there; move the filter to it.",
        )


def refuse_by(by: Sequence[LabelReference]) -> None:
    """Raise `QueryError` for the labels of ``NEXT BY x``: matches of the first-order reading are sets of positions."""
    if by:
        raise QueryError(
            "in the first-order reading matches have no labels, so BY has nothing to compare",
            span=by[0].span,
            hint='Read the query without reading="first-order".',
        )


def ill_formed(formula: f.Formula, *, strict: bool, union: bool = False) -> list[tuple[str, Node, f.Formula]]:
    """The variables of filters that no formula around them binds (P1 §5.1), with the first node that names each, and
    the filter; ``strict`` and ``union`` are those of `is_well_formed`.
    """
    places = occurrences(formula)
    defined = of_operands(places, lambda _, *part: combine_defined(*part))
    bound = defined if union else of_operands(places, lambda _, *part: _combine_bound(*part))
    faults: list[tuple[int, str, Node, f.Formula]] = []

    def enter(index: int, current: f.Formula, inherited: Names) -> Names:
        here = inherited | bound[index]
        condition = current.condition if isinstance(current, f.Filter | f.NotEvent) else None
        if condition is not None:
            places = condition_labels(condition)
            faults.extend((index, name, places[name], current) for name in condition_variables(current) - here)
        # The operand of a repetition stands right before it.
        return here - defined[index - 1] if strict and isinstance(current, f.Iteration) else here

    handed_down(formula, _NONE, enter, first_only=())
    return [fault[1:] for fault in sorted(faults, key=lambda fault: fault[:2])]


@of_formula
def is_well_formed(formula: f.Formula, *, strict: bool = True, union: bool = False) -> Property:
    """Whether each variable of each filter is bound by a formula around the filter (P1 §5.1).

    ``strict`` (erratum E9) takes away, within ``ρ+``, what is bound around it but defined again in ρ. For ``union`` see
    `bound_variables`.
    """
    for name, _, place in ill_formed(formula, strict=strict, union=union):
        return Property(False, place, f"no formula around the filter binds '{name}'")
    return Property()


@of_formula
def is_safe(formula: f.Formula) -> Property:
    """Whether no ``φ1 ; φ2`` defines a variable on both sides, repetitions aside (P1 §5.1)."""
    found: list[Property] = []

    def visit(current: Node, below: Sequence[Names]) -> Names:
        if isinstance(current, f.Sequence):
            twice = sorted(below[0] & below[1])
            found.extend(Property(False, current, f"both sides of ; define '{name}'") for name in twice)
        return combine_defined(current, below)

    fold(formula, visit)
    return found[0] if found else Property()
