"""Formulas of our language that mean the first-order reading of a formula.

Both readings agree where every variable of a filter is one event of what is filtered, or none. So the formula is made
safe where it is not, and the variables of iterations, whose events our labels would all hold at once, are renamed
apart and renamed back around the whole.
"""

from __future__ import annotations

from dataclasses import replace

from cerflow.base.errors import QueryError
from cerflow.language import formula as f
from cerflow.language.condition import Constant
from cerflow.language.node import Node, walk
from cerflow.language.select import CountItem, Select
from cerflow.logic.analysis import first_order
from cerflow.logic.analysis.scopes import handed_down, occurrences, of_operands, relation_names
from cerflow.logic.rewriting.rebuild import FreshNames, refuse_later_choices, transformed, with_own_labels
from cerflow.theory.rewriting.first_order.properties import safe_form


def check_query_of_sets(select: Select) -> None:
    """Whether a query can be read as first-order CEL, whose matches are sets of positions (spec §14).

    Raises `QueryError` as `check_first_order` does, for BY, and for a projection other than ``*``, NONE and COUNT(*).
    """
    first_order.check_first_order(select.formula)
    first_order.refuse_by(select.by)
    for item in select.projection.items:
        if not isinstance(item, CountItem):
            raise QueryError(
                "matches of the first-order reading are sets of positions, so SELECT takes *, NONE or COUNT(*)",
                span=item.span,
                hint='Labels and their values are those of the second-order reading: leave out reading="first-order".',
            )


def query_from_first_order(select: Select) -> Select:
    """The query with `from_first_order` of its formula, all of whose events have one label without a name.

    A formula that is unsatisfiable becomes one that never matches. Raises `UnsupportedQueryError` as `from_first_order`
    does.
    """
    formula = from_first_order(select.formula)
    if formula is None:
        formula = f.Filter(f.AnyEvent(), Constant(False))
    return replace(select, formula=f.positions_alone(formula))


def from_first_order(formula: f.Formula) -> f.Formula | None:
    """A formula of our language with the meaning of ``formula`` in the first-order reading.

    The supports of its complex events are the matches of the first-order formula, the labels are the variables. None
    if the formula cannot match. Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` as
    `safe_form` does, and for NEXT, LAST and MAX after other events.
    """
    first_order.check_first_order(formula)
    refuse_later_choices(formula)
    renamed, back = _renamed_apart(formula)
    plain: f.Formula | None = renamed
    filters = [current for current in walk(renamed) if isinstance(current, f.Filter)]
    if not first_order.is_safe(renamed) or any(map(_reads_partly_bound, filters)):
        plain = safe_form(renamed)
    if plain is None:
        return None
    left = {current.label for current in walk(plain) if isinstance(current, f.As)}
    for name, original in back.items():
        if name in left:
            plain = f.Rename(plain, name, original)
    return plain


def _reads_partly_bound(current: f.Filter) -> bool:
    """Whether a filter reads a variable that only some branches of its operand define."""
    defined = first_order.defined_variables(current.operand, outside_iterations=True)
    return bool(first_order.condition_variables(current) & defined - first_order.bound_variables(current.operand))


def _renamed_apart(formula: f.Formula) -> tuple[f.Formula, dict[str, str]]:
    """The formula with variables renamed so that no label has more events than the variable; and the inverse."""
    nodes = list(walk(formula))
    top = len(nodes)
    # The innermost iteration around each formula; its operand stands right before it.
    around = handed_down(formula, top, lambda k, n, here: k if isinstance(n, f.Iteration) else here, first_only=())
    found = of_operands(occurrences(formula), lambda _, *part: first_order.combine_defined(*part))
    defined = {k: found[k - 1] for k, n in enumerate([*nodes, None]) if n is None or isinstance(n, f.Iteration)}

    relations = relation_names(formula)
    fresh = FreshNames(formula)
    # EVENT and NOT can give any label.
    wild = any(isinstance(current, f.AnyEvent | f.NotEvent) for current in nodes)
    names: dict[tuple[int, str], str] = {}
    back: dict[str, str] = {}
    kept: set[str] = set()
    # Outer variables keep their names; an iteration stands after what it contains.
    for scope in sorted(defined, reverse=True):
        for name in sorted(defined[scope]):
            if wild or name in relations or name in kept:
                names[scope, name] = fresh.like(name)
                back[names[scope, name]] = name
            else:
                names[scope, name] = name
                kept.add(name)

    def meaning(index: int, name: str) -> str:
        scope = around[index]
        while name not in defined[scope]:
            scope = around[scope]
        return names[scope, name]

    def change(index: int, current: Node) -> Node:
        return with_own_labels(current, lambda name: meaning(index, name))

    return transformed(formula, change), back
