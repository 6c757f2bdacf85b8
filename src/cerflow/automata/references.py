"""First-order references: a label that an enclosing formula binds to one event (spec §3).

Where that event comes first, its values wait in a register for the conditions that ask for them. Where it comes
later, it is the other way round: what a condition would compare with it is put aside, and checked when it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cerflow.automata.conditions import guarded
from cerflow.automata.fragment import Fragment, track
from cerflow.automata.guards import Of, Stored, Truth, leaves, substitute
from cerflow.automata.registers import RegisterFile, reduced
from cerflow.automata.transducer import Accumulation, Register, Transition, Write
from cerflow.language.condition import Comparison, Condition, Expression, Literal, Operator, PredicateCall
from cerflow.language.node import Node, transform, walk

__all__ = ["resolve_reference"]


@dataclass(frozen=True)
class _Form:
    """A condition with numbered gaps; conditions of one form share a register for what fills the gaps.

    Values of any kind may go into a predicate, so there ``fillings`` tells apart what is of different kinds.
    """

    condition: Condition
    fillings: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class _Seen:
    """Whether the event has been read, and for which conditions something has been put aside."""

    event: bool = False
    aside: frozenset[_Form] = frozenset()


@dataclass(frozen=True)
class _Deferred:
    """A condition that waits for the event: its form, and what fills the gaps at a transition."""

    form: _Form
    row: tuple[Expression, ...]


def _gap(index: int) -> Stored:
    return Stored(-1, index)


def _defer(atom: Condition, label: str, scope: int) -> _Deferred:
    """Cut out of an atom all that will be gone when the event of ``label`` arrives."""
    row: dict[Expression, Stored] = {}

    def gap(value: Expression) -> Stored:
        return row.setdefault(value, _gap(len(row)))

    local = _greatest_local(atom)

    def cut(current: Node) -> Node:
        if isinstance(current, Stored):
            return gap(current)
        if current in local:
            if isinstance(current, Condition):
                return Comparison(Operator.EQ, gap(Truth(current)), Literal(True))
            assert isinstance(current, Expression)
            return gap(current)
        return current

    # Leaves of other references stay as they are, and what they hold is not looked into.
    veils: dict[Expression, Expression] = {
        leaf: Of("", -1 - k, Literal(None)) for k, leaf in enumerate(leaves(atom)) if isinstance(leaf, Of)
    }
    form = transform(substitute(atom, veils), cut)
    assert isinstance(form, Condition)
    asks = any(isinstance(current, PredicateCall) for current in walk(form))
    condition = substitute(form, {veil: leaf for leaf, veil in veils.items()})
    return _Deferred(_Form(condition, tuple(row) if asks else ()), tuple(row))


def _greatest_local(atom: Condition) -> frozenset[Node]:
    """The greatest parts that read nothing but the event at hand (literals alone are left in place)."""
    found: set[Node] = set()
    stack: list[Node] = [atom]
    while stack:
        current = stack.pop()
        if isinstance(current, Of | Stored | Literal):
            continue
        if leaves(current):
            stack.extend(current.children)
        else:
            found.add(current)
    return frozenset(found)


def resolve_reference(operand: Fragment, label: str, scope: int, registers: RegisterFile) -> Fragment:
    """Resolve the `Of` leaves of ``label`` that the formula at occurrence ``scope`` (this operand) binds."""
    units = list(dict.fromkeys(u for t in operand.transitions for u in _units(t, label, scope)))
    if not units:
        return operand
    memory = registers.add(
        Register(
            Accumulation.VALUE, len(units), ", ".join(f"{label}.{registers.describe(u.expression)}" for u in units)
        )
    )
    stored: dict[Expression, Expression] = {u: Stored(memory, k) for k, u in enumerate(units)}
    here: dict[Expression, Expression] = {u: u.expression for u in units}
    keep = Write(memory, tuple(u.expression for u in units), fresh=True)
    simple = _resolve_in_place(operand, label, keep, stored, here)
    if simple is not None:
        return simple
    repeated = _put_aside_repeatedly(operand, label, scope)
    aside: dict[_Form, int] = {}

    def register_for(deferred: _Deferred) -> int:
        if deferred.form not in aside:
            keeps = Accumulation.VALUE
            if deferred.form in repeated:
                keeps = _accumulation(deferred)
            aside[deferred.form] = registers.add(
                Register(keeps, len(deferred.row), ", ".join(registers.describe(e) for e in deferred.row))
            )
        return aside[deferred.form]

    def step(seen: _Seen, t: Transition) -> list[tuple[_Seen, Transition]]:
        if label in t.labels:
            if seen.event:
                return []  # a second event under a label that is bound to one
            checks = [substitute(atom, here) for atom in t.atoms]
            for form in sorted(seen.aside, key=repr):
                gaps: dict[Expression, Expression] = {
                    leaf: Stored(aside[form], leaf.field)
                    for leaf in leaves(form.condition)
                    if isinstance(leaf, Stored) and leaf.register == -1
                }
                checks.append(substitute(form.condition, {**gaps, **here}))
            read = guarded(replace(t, atoms=()), checks)
            return [(_Seen(True), replace(read, writes=(*t.writes, keep)))]
        if seen.event:
            return [(seen, _with_values(t, stored))]
        waiting = [atom for atom in t.atoms if any(u in stored for u in leaves(atom))]
        if not waiting:
            return [(seen, t)]
        writes = list(t.writes)
        forms = set(seen.aside)
        fresh_now: set[_Form] = set()
        for atom in waiting:
            deferred = _defer(atom, label, scope)
            fresh = deferred.form not in seen.aside and deferred.form not in fresh_now
            writes.append(Write(register_for(deferred), deferred.row, fresh))
            fresh_now.add(deferred.form)
            forms.add(deferred.form)
        rest = tuple(atom for atom in t.atoms if atom not in waiting)
        return [(_Seen(False, frozenset(forms)), replace(t, atoms=rest, writes=tuple(writes)))]

    return track(operand, _Seen(), step, lambda seen: seen.event)


def _with_values(t: Transition, values: dict[Expression, Expression]) -> Transition:
    """The transition with some `Of` leaves of its atoms replaced."""
    if not any(u in values for atom in t.atoms for u in leaves(atom)):
        return t
    return guarded(replace(t, atoms=()), [substitute(atom, values) for atom in t.atoms])


def _resolve_in_place(
    operand: Fragment, label: str, keep: Write, stored: dict[Expression, Expression], here: dict[Expression, Expression]
) -> Fragment | None:
    """The common case, without copying states: every state lies either before or after the event, and all that ask
    for it come with it or after it. None if that is not so."""
    leaving: dict[int, list[Transition]] = {}
    for t in operand.transitions:
        leaving.setdefault(t.source, []).append(t)
    after = {t.target for t in operand.transitions if label in t.labels}
    pending = list(after)
    while pending:
        for t in leaving.get(pending.pop(), ()):
            if t.target not in after and label not in t.labels:
                after.add(t.target)
                pending.append(t.target)
    if not after.isdisjoint(operand.initial):
        return None
    changed: list[Transition] = []
    for t in operand.transitions:
        if t.source in after:
            if label not in t.labels:
                changed.append(_with_values(t, stored) if t.atoms else t)
        elif label in t.labels:
            read = _with_values(t, here)
            changed.append(replace(read, writes=(*read.writes, keep)))
        elif t.target in after or any(u in stored for atom in t.atoms for u in leaves(atom)):
            return None
        else:
            changed.append(t)
    return Fragment(operand.states, operand.initial, operand.final & after, changed)


def _units(t: Transition, label: str, scope: int) -> list[Of]:
    return [u for atom in t.atoms for u in leaves(atom) if isinstance(u, Of) and (u.label, u.scope) == (label, scope)]


def _put_aside_repeatedly(operand: Fragment, label: str, scope: int) -> frozenset[_Form]:
    """The forms of conditions of which several instances may have to wait at the same time."""
    found: set[_Form] = set()

    def step(aside: frozenset[_Form], t: Transition) -> list[tuple[frozenset[_Form], Transition]]:
        if label in t.labels:
            return []
        forms = [_defer(atom, label, scope) for atom in t.atoms if _mentions(atom, label, scope)]
        new: set[_Form] = set()
        for deferred in forms:
            if deferred.form in aside or deferred.form in new or _ranges(deferred):
                found.add(deferred.form)
            new.add(deferred.form)
        return [(aside | new, t)]

    track(operand, frozenset[_Form](), step)
    return frozenset(found)


def _mentions(atom: Condition, label: str, scope: int) -> bool:
    return any(isinstance(u, Of) and (u.label, u.scope) == (label, scope) for u in leaves(atom))


def _ranges(deferred: _Deferred) -> bool:
    # A stored leaf may be a collection, whose rows all have to wait.
    return any(isinstance(e, Stored) for e in deferred.row)


def _accumulation(deferred: _Deferred) -> Accumulation:
    form = deferred.form.condition
    if len(deferred.row) == 1 and isinstance(form, Comparison) and not _ranges(deferred):
        if form.left == _gap(0):
            return reduced(form.operator, left=True)
        if form.right == _gap(0):
            return reduced(form.operator, left=False)
    return Accumulation.SET
