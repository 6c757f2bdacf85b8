"""First-order formulas as second-order ones (P2 Theorems 4.3 and 4.5, Appendix A.3)."""

from __future__ import annotations

from collections.abc import Sequence as Many

from cerflow.language.builder.given import of_formula
from cerflow.language.formula import AnyEvent, As, Filter, Formula, NotEvent, Rename
from cerflow.language.node import Node, fold, walk
from cerflow.logic.analysis.first_order import check_first_order, is_safe
from cerflow.logic.analysis.scopes import relation_names
from cerflow.logic.rewriting.rebuild import refuse_any, refuse_later_choices, relabelled, transformed
from cerflow.theory.rewriting.first_order.safe import to_safe
from cerflow.theory.rewriting.first_order.waiting import Bringing


@of_formula
def first_order_to_second_order(formula: Formula) -> Formula | None:
    """A second-order formula with the same matches: its complex events have their supports.

    Every condition speaks of labels that the formula it filters assigns, and holds if it holds of all their events.
    Conditions on one variable stand on its event (Theorem 4.3), those on two on the closest formula that has both
    (Theorem 4.5). Labels are the variables; where the events of a variable must be distinguished, by the assignments
    that a condition means, they get labels of their own, which are renamed back around the whole. None if the formula
    cannot match.

    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` for a condition that relates two
    variables of each repetition with a third one outside (not expressible by Theorem 4.6), for one that would have to
    pass NEXT, LAST or MAX, for these after other events, for ANY, for a NOT that speaks of other events, and for a
    result that would be too large.
    """
    check_first_order(formula)
    refuse_later_choices(formula)
    for current in walk(formula):
        refuse_any(current)
    safe = formula if is_safe(formula) else to_safe(formula)
    if safe is None:
        return None
    bringing = Bringing(safe, relate=True)
    whole = bringing.run()
    return None if whole is None else _with_few_labels(whole, bringing.labels)


def _with_few_labels(formula: Formula, own: dict[str, str]) -> Formula:
    """The formula without labels that stand for a variable alone, the others with their old names."""
    events = _labels_of_events(formula)
    relations = relation_names(formula)
    # EVENT and NOT can give any label.
    wild = any(isinstance(n, AnyEvent | NotEvent) for n in walk(formula))
    needless: dict[str, str] = {}
    for label, variable in own.items():
        if not wild and variable not in relations and all((label in e) == (variable in e) for e in events):
            needless[label] = variable

    def change(_: int, current: Node) -> Node:
        match current:
            case As() if current.label in needless:
                return current.operand
            case Filter():
                return Filter(current.operand, relabelled(current.condition, needless), span=current.span)
        return current

    whole = transformed(formula, change)
    used = frozenset().union(*events)
    for label, variable in own.items():
        if label in used and label not in needless:
            whole = Rename(whole, label, variable)
    return whole


def _labels_of_events(formula: Formula) -> set[frozenset[str]]:
    """The labels that AS gives to each single event."""
    found: set[frozenset[str]] = set()

    def visit(current: Node, below: Many[frozenset[str] | None]) -> frozenset[str] | None:
        if isinstance(current, As):
            return (below[0] or frozenset()) | {current.label}
        found.update(labels for labels in below if labels is not None)
        return None

    top = fold(formula, visit)
    if top is not None:
        found.add(top)
    return found
