"""FILTER: splits its condition into tests of one event and choices, and makes the choices.

AND and OR are about the complex event (spec §3). If every label in a condition has one event, this equals a condition
on the events, which is evaluated as it stands. The rest are choices about labels with several events. Each needs a copy
of the automaton per alternative, or registers that remember which alternatives have held so far.

A bracket with ``prev`` (spec §10) is a condition on every two neighbouring events of a label. It is checked as soon as
the second one is read; a register keeps the values of the first one that the condition needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from functools import reduce

from cerflow.automata.compile import conditions
from cerflow.automata.compile.set_conditions import apply_set_atoms
from cerflow.automata.model.fragment import Fragment, RegisterFile, check_fragment_size, union
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, fold, transform, walk
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import TRUE, clauses, split
from cerflow.logic.rewriting.rebuild import mentions_set


def apply_filter(
    operand: Fragment,
    condition: c.Condition,
    resolve: Callable[[c.Condition], c.Condition],
    scopes: dict[str, int],
    scope: int,
    registers: RegisterFile,
    nested: int = 0,
) -> Fragment:
    """Keep the runs that satisfy the condition.

    ``resolve`` returns a part of it with `Of` leaves for its labels; a SOME stays around its resolved condition.
    ``scope`` is the occurrence of the filter: its own labels have that scope in ``scopes``, labels of enclosing
    formulas another.
    """
    own = frozenset(label for label, where in scopes.items() if where == scope)
    outer = scopes.keys() - own
    many = conditions.several(operand, own)
    once = (conditions.given_always(operand, own) - many) | outer
    of_one_event = _of_one_event(condition, scopes.keys() - many)
    atoms: list[c.Condition] = []
    choices: list[list[c.Condition]] = []
    mixed: list[c.Condition] = []
    for part in split(condition, c.And):
        try:
            found = clauses(part, lambda choice: id(choice) in of_one_event, limits.FILTER_CLAUSE_ATOMS)
        except UnsupportedQueryError:
            if condition_labels(part).keys() <= once and not mentions_set(part):
                atoms.append(resolve(part))
            else:
                mixed.append(part)
            continue
        for alternatives in found:
            resolved = [resolve(atom) for atom in alternatives]
            if len(resolved) > 1 and any(
                _is_of_several(atom) or any(label in many for label in conditions.own_labels(atom, scope))
                for atom in resolved
            ):
                choices.append(resolved)
            else:
                # If a label has no event, the alternative on it holds vacuously, and so does the whole.
                atoms.append(reduce(c.Or, resolved))
    if math.prod(map(len, choices)) > limits.FILTER_COPIES:
        copied: list[list[c.Condition]] = []
        for clause in choices:
            if sum(_label(atom, scope) is None for atom in clause) > 1 or any(map(_is_of_several, clause)):
                copied.append(clause)
            else:
                atoms.append(reduce(c.Or, [_held(atom, scope) for atom in clause]))
        if sum(map(len, choices)) - sum(map(len, copied)) > limits.FILTER_REMEMBERED:
            raise UnsupportedQueryError(
                f"more than {limits.FILTER_REMEMBERED} conditions are in choices (OR) on labels with several events",
                span=condition.span,
                hint="In a bracket, x[… OR …], every event chooses for itself, among any number of conditions.",
            )
        choices = copied
    operand = _apply(operand, atoms, many, scope, registers)
    for clause in choices:
        operand = _union([_apply(operand.copy(), [atom], many, scope, registers) for atom in clause])
    for part in mixed:
        if nested == limits.FILTER_DEPTH:
            raise UnsupportedQueryError(
                "AND and OR are nested too deeply here",
                span=part.span,
                hint=f"At most {limits.FILTER_DEPTH} choices on labels with several events may be nested.",
            )
        operand = _union(
            [
                apply_filter(operand.copy(), branch, resolve, scopes, scope, registers, nested + 1)
                for branch in split(part, c.Or)
            ]
        )
    return operand


def _of_one_event(condition: c.Condition, single: frozenset[str] | set[str]) -> set[int]:
    """The parts (by identity) whose atoms are all about the one event of one label, at most."""
    found: set[int] = set()

    def visit(current: Node, below: Sequence[str | None]) -> str | None:
        if not isinstance(current, c.Condition):
            return None
        if isinstance(current, c.And | c.Or | c.Not):
            label = below[0] if below.count(below[0]) == len(below) else None
            if label is not None:
                found.add(id(current))
            return label
        labels = condition_labels(current)
        label = next(iter(labels), None)
        return label if len(labels) == 1 and label in single and not mentions_set(current) else None

    fold(condition, visit)
    return found


def _union(branches: Sequence[Fragment]) -> Fragment:
    whole = branches[0]
    for branch in branches[1:]:
        whole = union(whole, branch)
        check_fragment_size(whole)
    return whole


def _is_of_several(atom: c.Condition) -> bool:
    """Whether an atom is about some choice of events, or about every two neighbouring ones."""
    return isinstance(atom, c.Some) or conditions.reads_former(atom)


def _label(atom: c.Condition, scope: int) -> str | None:
    """The label of the filtered formula that an atom is about, if it is about each of its events separately."""
    parts = [n for n in walk(atom) if isinstance(n, guards.Of | guards.LabelAggregate | guards.Asked)]
    labels = {n.label if isinstance(n, guards.Of) and n.scope == scope else None for n in parts}
    return next(iter(labels)) if len(labels) == 1 else None


def _held(atom: c.Condition, scope: int) -> c.Condition:
    """That all events of a label satisfy an atom, as a condition on an aggregate; other atoms as they are."""
    label = _label(atom, scope)
    if label is None:
        return atom
    held = c.TruthValue(guards.Satisfied(conditions.read_on_event(atom, lambda _: True)))
    all_held = guards.LabelAggregate("min", label, held, held)
    return c.Or(c.IsNull(all_held), c.Comparison(Operator.EQ, all_held, c.Literal(True)))


def _apply(
    operand: Fragment, atoms: Sequence[c.Condition], many: frozenset[str], scope: int, registers: RegisterFile
) -> Fragment:
    on_events: list[c.Condition] = []
    on_sets: list[c.Condition] = []
    existential: list[c.Some] = []
    for atom in atoms:
        if isinstance(atom, c.Some):
            existential.append(atom)
        elif atom != TRUE:
            of_sets = any(isinstance(n, guards.LabelAggregate | guards.Asked) for n in walk(atom))
            (on_sets if of_sets else on_events).append(atom)
    operand = conditions.apply_atoms(operand, on_events, many, scope, registers)
    for some in existential:
        operand = conditions.apply_some(operand, some, many, scope, registers)
    return apply_set_atoms(operand, on_sets, many, scope, registers) if on_sets else operand


def neighbours(part: c.Condition, scopes: dict[str, int], scope: int, one: Container[str]) -> c.Condition | None:
    """A bracket with ``prev``, perhaps under NOT, on its label and the `former` event; else None.

    It is TRUE if its label has one event. ``scopes`` are the occurrences that bind the labels, ``scope`` is that of the
    filter. Raises `UnsupportedQueryError` for another label that the filtered formula itself gives.
    """
    negated, bracket = False, part
    while isinstance(bracket, c.Not):
        negated, bracket = not negated, bracket.operand
    if not isinstance(bracket, c.Bracket) or not c.calls(bracket, "prev"):
        return None
    label = bracket.label
    if label in one:
        return TRUE
    before = conditions.former(label)

    def visit(current: Node) -> Node:
        if isinstance(current, c.Function) and current.name == "prev":
            return c.with_labels(current.arguments[0], lambda _: before)
        return current

    inner = c.with_labels(transform(bracket.condition, visit), lambda own: own or label)
    condition = guards.separate(inner, {**scopes, before: scope})
    for own in conditions.own_labels(condition, scope):
        if own not in (label, before):
            raise UnsupportedQueryError(
                f"a bracket with prev cannot read '{own}', which the filtered formula gives itself",
                span=bracket.span,
                hint=f"Put FILTER on the part that gives '{label}' alone: ({own} ; ({label} FILTER …)).",
            )
    return c.Not(condition) if negated else condition
