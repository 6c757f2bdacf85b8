"""First-order references: a label that an enclosing formula binds to one event (spec §3).

If that event comes first, a register keeps its values for the conditions that read them. If it comes later, the values
to be compared with it are kept, and the condition is checked when the event arrives.
"""

from __future__ import annotations

from dataclasses import replace

from cerflow.automata.compile.conditions import several
from cerflow.automata.compile.waiting import Deferred, Template, defer, references, waiting_repeatedly, waiting_rows
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transition, Write
from cerflow.base.graphs import reached_along
from cerflow.language.condition import Condition, Expression
from cerflow.logic.conditions.guards import Of, Stored, leaves, substitute

#: The conditions with values kept for the event; None once it has been read.
_Aside = frozenset[Template] | None


def resolve_reference(operand: Fragment, label: str, scope: int, registers: RegisterFile) -> Fragment:
    """Resolve the `Of` leaves of ``label`` that the formula at occurrence ``scope`` (this operand) binds."""
    units = list(dict.fromkeys(u for t in operand.transitions for u in _units(t, label, scope)))
    if not units:
        # No condition is left, but the label still stands for one event, even where EVENT may give it to another.
        return _with_one(operand, label) if several(operand, frozenset((label,))) else operand
    memory = registers.value(len(units), ", ".join(f"{label}.{registers.describe(u.expression)}" for u in units))
    stored: dict[Expression, Expression] = {u: Stored(memory, k) for k, u in enumerate(units)}
    here: dict[Expression, Expression] = {u: u.expression for u in units}
    keep = Write(memory, tuple(u.expression for u in units), fresh=True)
    simple = _resolve_in_place(operand, label, scope, keep, stored, here)
    if simple is not None:
        return simple
    repeated = waiting_repeatedly(
        operand, lambda atom: _mentions(atom, label, scope), lambda t: label in t.labels, registers
    )
    aside: dict[Template, int] = {}

    def register_for(deferred: Deferred) -> int:
        if deferred.form not in aside:
            aside[deferred.form] = deferred.register(deferred.form in repeated, (label, scope), registers)
        return aside[deferred.form]

    def step(waiting: _Aside, t: Transition) -> list[tuple[_Aside, Transition]]:
        if label in t.labels:
            if waiting is None:
                return []  # a second event under a label that stands for one
            t = _with_values(t, here)
            kept = [substitute(form.filled(aside[form]), here) for form in sorted(waiting, key=repr)]
            return [(None, replace(t, atoms=()).guarded([*t.atoms, *kept]).writing(keep))]
        if waiting is None:
            return [(None, _with_values(t, stored))]
        if any(_mentions(condition, label, scope) for write in t.writes for condition in write.where):
            # Rows of a collection cannot wait for an event that decides whether they belong to it.
            raise waiting_rows(label)
        rest, writes, forms = [], [], set(waiting)
        for atom in t.atoms:
            if not any(u in stored for u in leaves(atom)):
                rest.append(atom)
                continue
            deferred = defer(atom, label, registers)
            writes.append(Write(register_for(deferred), deferred.row, deferred.form not in forms, deferred.where))
            forms.add(deferred.form)
        return [(frozenset(forms), replace(t, atoms=tuple(rest)).writing(*writes))]

    nothing: _Aside = frozenset()
    return track(operand, nothing, step, lambda waiting: waiting is None)


def _with_one(operand: Fragment, label: str) -> Fragment:
    """The runs that give a label to exactly one event."""

    def step(seen: bool, t: Transition) -> list[tuple[bool, Transition]]:
        if label not in t.labels:
            return [(seen, t)]
        return [] if seen else [(True, t)]

    return track(operand, False, step, lambda seen: seen)


def _with_values(t: Transition, values: dict[Expression, Expression]) -> Transition:
    """The transition with some `Of` leaves replaced in its atoms and in the conditions of its writes."""
    if not any(u in values for tree in t.trees for u in leaves(tree)):
        return t
    told = t.with_trees(lambda tree: substitute(tree, values))
    return replace(told, atoms=()).guarded(told.atoms)


def _resolve_in_place(
    operand: Fragment,
    label: str,
    scope: int,
    keep: Write,
    stored: dict[Expression, Expression],
    here: dict[Expression, Expression],
) -> Fragment | None:
    """The common case, without copying states; None in other cases.

    Every state must lie before or after the event, and every condition on the event be checked with it or after it.
    """
    others = ((t.source, t.target) for t in operand.transitions if label not in t.labels)
    after = reached_along(others, (t.target for t in operand.transitions if label in t.labels)).keys()
    if not after.isdisjoint(operand.initial):
        return None
    changed: list[Transition] = []
    for t in operand.transitions:
        if t.source in after:
            if label not in t.labels:
                changed.append(_with_values(t, stored) if t.atoms or t.writes else t)
        elif label in t.labels:
            read = _with_values(t, here)
            changed.append(read.writing(keep))
        elif t.target in after or _units(t, label, scope):
            return None
        else:
            changed.append(t)
    return Fragment(operand.states, operand.initial, operand.final & after, changed)


def _units(t: Transition, label: str, scope: int) -> list[Of]:
    conditions = [*t.atoms, *(c for write in t.writes for c in write.where)]
    return [u for c in conditions for u in leaves(c) if isinstance(u, Of) and (u.label, u.scope) == (label, scope)]


def _mentions(atom: Condition, label: str, scope: int) -> bool:
    return (label, scope) in references(atom)
