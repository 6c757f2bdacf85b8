"""Conditions of the first-order reading, moved to where their variables are bound.

The engine behind the locally parametrized normal form (P1 Theorem 2) and the translation into second-order formulas
(P2 Theorems 4.3 and 4.5). A formula is turned, bottom-up, into *alternatives* and equals their OR: formulas whose
conditions hold already, each with the conditions that still wait for a variable bound further out. A condition without
bound variables has one truth value wherever it stands, so it may wait outside a repetition. Only that, and a choice
between different conditions, makes formulas grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product

from cerflow.base.errors import Span, UnsupportedQueryError
from cerflow.base.graphs import gathered
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, Condition, Constant, Or
from cerflow.language.node import Node, fold_only, rebuild, with_children
from cerflow.language.printer import show
from cerflow.logic.analysis import first_order
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.connectives import clauses_asked
from cerflow.logic.rewriting import rebuild as trees
from cerflow.logic.rewriting.rebuild import check_tree_size, refuse_to_pass, size
from cerflow.theory.rewriting.filters import told
from cerflow.theory.rewriting.first_order.properties import safe_form

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Waiting:
    """A condition that waits for the variables ``outer``; it reads those found already under ``labels``.

    ``origin`` numbers the conditions of the formula: copies of one have the same labels.
    """

    condition: Condition
    outer: frozenset[str]
    origin: int
    labels: frozenset[str] = _NONE

    @property
    def unary(self) -> bool:
        return len(self.outer) + len(self.labels) == 1


#: What is put on an assignment: a condition, or a label.
_Given = Condition | str


@dataclass(frozen=True)
class _Alternative:
    """A formula, what it binds, and what waits: for all of its variables (`constant`), or for some of them.

    ``given`` is still to be put on the assignments of a variable.
    """

    formula: f.Formula
    bound: frozenset[str]
    size: int
    waiting: frozenset[_Waiting] = frozenset()
    given: Mapping[str, tuple[_Given, ...]] = field(default_factory=dict)

    @property
    def constant(self) -> frozenset[_Waiting]:
        return frozenset(w for w in self.waiting if not w.labels)

    def giving(self, variable: str, what: _Given) -> _Alternative:
        before = self.given.get(variable, ())
        if what in before:
            return self
        more = size(what) + 1 if isinstance(what, Condition) else 1
        return replace(self, given={**self.given, variable: (*before, what)}, size=self.size + more)

    def resolved(self) -> _Alternative:
        return replace(self, formula=_assign(self.formula, self.given), given={}) if self.given else self


class Bringing:
    """Brings conditions on one variable to its assignments, and with ``relate`` also lifts those on several.

    Lifted, a condition stands on the closest formula that binds or contains all of its variables, and reads labels of
    its own, given to the assignments it means; ``labels`` has the variable of each.
    """

    def __init__(self, formula: f.Formula, *, relate: bool) -> None:
        self.formula = formula
        self.relate = relate
        self.labels: dict[str, str] = {}
        self._own: dict[tuple[int, str], str] = {}
        self._fresh = trees.FreshNames(formula)
        self._origins: dict[object, int] = {}

    def run(self) -> f.Formula | None:
        """The rewritten formula, None if it cannot match. The formula must be safe and strictly well-formed."""
        found: list[_Alternative] = fold_only(self.formula, f.Formula, self._visit)
        whole = self._merged(found)
        # Nothing is bound outside of the whole, so nothing waits there.
        assert not any(alternative.waiting for alternative in whole)
        return whole[0].resolved().formula if whole else None

    def _visit(self, _: int, current: f.Formula, parts: list[list[_Alternative]]) -> list[_Alternative]:
        match current:
            case f.Disjunction():
                return self._merged([*parts[0], *parts[1]], current)
            case f.Sequence():
                return self._sequence(current, parts[0], parts[1])
            case f.Iteration():
                return self._iteration(current, parts[0])
            case f.Filter():
                return self._filter(current, parts[0])
            case f.Selection() if _compares(current):
                return self._selection(current, parts[0])
            case f.Selection() | f.Within():
                return [replace(a, formula=replace(current, operand=a.formula)) for a in parts[0]]
            case f.As():
                self._check_event(current.operand)
                return [_Alternative(current, frozenset((current.label,)), size(current))]
        self._check_event(current)
        return [_Alternative(current, _NONE, size(current))]

    def _check_event(self, event: f.Formula) -> None:
        if self.relate and isinstance(event, f.NotEvent) and first_order.condition_variables(event):
            name = min(first_order.condition_variables(event))
            raise UnsupportedQueryError(
                f"NOT reads '{name}', which is bound outside it: no universal condition expresses that",
                span=event.span,
                hint="Only a FILTER can be translated into second-order conditions.",
            )

    # -- operators

    def _merged(self, alternatives: Iterable[_Alternative], around: f.Formula | None = None) -> list[_Alternative]:
        """The alternatives, with those that wait for the same conditions joined by OR."""
        return [_either(members, around) for members in gathered((a.constant, a) for a in alternatives).values()]

    def _sequence(self, current: f.Sequence, left: list[_Alternative], right: list[_Alternative]) -> list[_Alternative]:
        _check(sum(a.size + b.size for a in left for b in right), left, right, current.span)
        found = []
        for a, b in product(left, right):
            both = with_children(current, (a.formula, b.formula))
            joined = _Alternative(both, a.bound | b.bound, a.size + b.size + 1, given={**a.given, **b.given})
            found.append(reduce(self._kept, sorted(a.waiting | b.waiting, key=lambda w: w.origin), joined))
        return found

    def _iteration(self, current: f.Iteration, body: list[_Alternative]) -> list[_Alternative]:
        body = [a.resolved() for a in self._merged(body)]
        for w in (w for a in body for w in a.waiting):
            if len(w.labels) > 1:
                inside = ", ".join(sorted(self.labels[label] for label in w.labels))
                raise UnsupportedQueryError(
                    f"a condition relates {inside} of each repetition with {', '.join(sorted(w.outer))} outside: no "
                    "universal condition says that",
                    span=w.condition.span or current.span,
                    hint="Conditions on two variables can always be translated (P2 Theorem 4.5), those on more need "
                    "not be (Theorem 4.6).",
                )
        # Repetitions choose among the alternatives that wait for the same conditions outside.
        sets: dict[frozenset[_Waiting], None] = {}
        for a in body:
            sets |= dict.fromkeys([*(other | a.constant for other in sets), a.constant])
            _check(len(sets) * sum(a.size for a in body), sets, body, current.span)
        found = []
        for waiting in sets:
            whole = _either([a for a in body if a.constant <= waiting])
            repeated = with_children(current, (whole.formula,))
            found.append(_Alternative(repeated, _NONE, whole.size + 1, waiting | whole.waiting))
        _check(sum(a.size for a in found), found, body, current.span)
        return found

    def _selection(self, current: f.Selection, operand: list[_Alternative]) -> list[_Alternative]:
        operand = [a.resolved() for a in self._merged(operand)]
        own = first_order.defined_variables(current.operand, outside_iterations=True)
        waiting = sorted(frozenset().union(*(a.waiting for a in operand)), key=lambda w: (bool(w.labels), w.origin))
        for w in waiting:
            if w.labels or w.outer & own:
                refuse_to_pass(current, f"a condition on '{min(w.outer)}'")
        # What is read outside is the same for all matches that are compared, so the strategy chooses once for each
        # case. A condition that does not hold takes matches away, and others may be chosen then.
        check_tree_size(sum(a.size for a in operand) << len(waiting) if waiting else 0, current.span)
        opposite = {w: self._waiting(told(w.condition, wanted=False, or_unknown=True)) for w in waiting}
        found = []
        for truth in product((True, False), repeat=len(waiting)):
            true = {w for w, holds in zip(waiting, truth) if holds}
            met = [a for a in operand if a.constant <= true]
            if met:
                whole = _either(met)
                left = frozenset(w if w in true else opposite[w] for w in waiting)
                chosen = with_children(current, (whole.formula,))
                found.append(replace(whole, formula=chosen, size=whole.size + 1, waiting=left))
        return found

    # -- filters

    def _filter(self, current: f.Filter, operand: list[_Alternative]) -> list[_Alternative]:
        found = operand
        for clause in clauses_asked(current.condition):
            choices = self._choices(clause)
            waiting = [self._waiting(c) for c in choices]
            _check(sum(a.size for a in found) * len(choices), choices, found, current.span)
            found = [self._kept(a, w) for a in found for w in waiting]
            if len(choices) != 1:
                found = self._merged(found)
        return found

    def _waiting(self, condition: Condition) -> _Waiting:
        variables = frozenset(condition_labels(condition))
        # On one variable, equal conditions wait as one; on several, each has labels of its own.
        which: object = condition if len(variables) == 1 else len(self._origins)
        return _Waiting(condition, variables, self._origins.setdefault(which, len(self._origins)))

    def _choices(self, clause: Sequence[Condition]) -> list[Condition]:
        """Conditions, joined by variable, one of which must hold; none if none can hold."""
        if clause == (Constant(False),):
            return []
        atoms = [(atom, frozenset(condition_labels(atom))) for atom in clause]
        if not self.relate and any(len(names) > 1 for _, names in atoms):
            return [reduce(Or, clause)]
        groups = gathered((names if len(names) == 1 else k, atom) for k, (atom, names) in enumerate(atoms))
        return [reduce(Or, group) for group in groups.values()]

    def _kept(self, a: _Alternative, w: _Waiting) -> _Alternative:
        """The alternative with a condition on it: brought to its assignment, standing around all, or waiting."""
        here = w.outer & a.bound
        if w.unary and here:
            (variable,) = here
            return a.giving(variable, w.condition)
        stands = not (w.unary or self.relate)
        if not stands:
            own = {variable: self._label(w.origin, variable) for variable in sorted(here)}
            for variable, label in own.items():
                a = a.giving(variable, label)
            condition = trees.relabelled(w.condition, own)
            w = replace(w, condition=condition, outer=w.outer - here, labels=w.labels.union(own.values()))
        if stands or not w.outer:
            return replace(a, formula=f.Filter(a.formula, w.condition), size=a.size + size(w.condition) + 1)
        if w.labels and trees.mentions_set(w.condition):
            raise UnsupportedQueryError(
                f"{show(w.condition)} reads sets of events, and a variable bound further out",
                span=w.condition.span,
                hint="In the second-order reading the set would be that of all repetitions.",
            )
        return replace(a, waiting=a.waiting | {w})

    def _label(self, origin: int, variable: str) -> str:
        if (origin, variable) not in self._own:
            label = self._own[origin, variable] = self._fresh.like(variable)
            self.labels[label] = variable
        return self._own[origin, variable]


def _either(alternatives: Sequence[_Alternative], around: f.Formula | None = None) -> _Alternative:
    if len(alternatives) == 1:
        return alternatives[0]
    members = [a.resolved() for a in alternatives]
    formulas = [a.formula for a in members]
    whole = with_children(around, formulas) if around and len(formulas) == 2 else reduce(f.Disjunction, formulas)
    bound = frozenset.intersection(*(a.bound for a in members))
    waiting = frozenset[_Waiting]().union(*(a.waiting for a in members))
    return _Alternative(whole, bound, sum(a.size + 1 for a in members) - 1, waiting)


def _check(nodes: int, one: Sized, other: Sized, span: Span | None) -> None:
    # A formula that is not multiplied may have any size.
    if len(one) > 1 or len(other) > 1:
        check_tree_size(nodes, span)


def _compares(current: f.Selection) -> bool:
    """Whether some matches may take others away; those of one event end at different events."""
    return current.strategy is not f.Strategy.STRICT and not trees.one_event(current.operand)


def _assign(formula: f.Formula, given: Mapping[str, tuple[_Given, ...]]) -> f.Formula:
    """Put conditions and labels on the assignments ``R AS x`` outside repetitions."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        match current:
            case f.Iteration():
                return current
            case f.As() if current.label in given:
                return _assigned(current, given[current.label])
            case f.Selection() if _compares(current) and below[0] is not current.operand:
                filtered = {x for x, all_ in given.items() if any(isinstance(g, Condition) for g in all_)}
                inside = filtered & first_order.defined_variables(current.operand, outside_iterations=True)
                if inside:
                    refuse_to_pass(current, f"a condition on '{min(inside)}'")
            case f.Filter() if isinstance(below[0], f.Filter) and isinstance(current.operand, f.As):
                inner = below[0]
                if len(condition_labels(current.condition)) <= 1:
                    return f.Filter(inner.operand, And(current.condition, inner.condition), span=current.span)
        return with_children(current, below)

    return rebuild(formula, visit)


def _assigned(event: f.As, given: tuple[_Given, ...]) -> f.Formula:
    found: f.Formula = reduce(f.As, (label for label in given if isinstance(label, str)), event)
    conditions = [g for g in given if isinstance(g, Condition)]
    return f.Filter(found, reduce(And, conditions)) if conditions else found


@of_formula
def lp_normal_form(formula: f.Formula) -> f.Formula | None:
    """An equivalent first-order formula in which conditions on one variable stand on the ``R AS x`` of that variable.

    Conditions on several variables stay where they are. A condition whose variable is bound in what it filters is
    simply pushed down (P1 §8.1); one that speaks of a variable bound further out is popped up first, and only where
    it stands in a branch of OR does that make the formula larger, exponentially at worst. None if the formula cannot
    match; it is made safe where it is not.

    Out of NEXT, LAST and MAX a condition on a variable bound outside is popped up, too: the formula is split into the
    cases that it holds and that it does not, since the strategy chooses other matches then. Into them no condition on
    several events goes, as it would be asked of the matches that are compared.

    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` where a condition would have to go into
    NEXT, LAST or MAX, where `safe_form` does, and where the result would be too large.
    """
    first_order.check_first_order(formula)
    safe = formula if first_order.is_safe(formula) else safe_form(formula)
    return None if safe is None else Bringing(safe, relate=False).run()
