"""First-order references: a label that an enclosing formula binds to one event (spec §3).

If that event comes first, a register keeps its values for the conditions that read them. If it comes later, the values
to be compared with it are kept, and the condition is checked when the event arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cerflow.automata.compile.conditions import guarded, several
from cerflow.automata.model.fragment import Fragment, track
from cerflow.automata.model.registers import RegisterFile, reduced
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.conditions.guards import AllRows, InWindow, Of, Stored, leaves, substitute
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import (
    Comparison,
    Condition,
    Expression,
    Literal,
    PredicateCall,
    TruthValue,
)
from cerflow.language.node import Node, fold, walk, with_children
from cerflow.values.operators import Operator

__all__ = ["resolve_reference"]


@dataclass(frozen=True)
class _Template:
    """A condition with numbered gaps; conditions of one form share a register for the fillings of the gaps.

    Predicates take values of any kind, so for them ``fillings`` distinguishes values of different kinds.
    """

    condition: Condition
    fillings: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class _Seen:
    """Whether the event has been read, and the conditions with values kept for it."""

    event: bool = False
    aside: frozenset[_Template] = frozenset()


@dataclass(frozen=True)
class _Deferred:
    """A condition that waits for the event: its form, and the fillings of its gaps at a transition."""

    form: _Template
    row: tuple[Expression, ...]


def _gap(index: int) -> Stored:
    return Stored(-1, index)


def _defer(atom: Condition, label: str, registers: RegisterFile) -> _Deferred:
    """Cut out of an atom all that will be gone when the event of ``label`` arrives."""
    if any(isinstance(n, InWindow) and _ranges(n.start, registers) for n in walk(atom)):
        # The window of a row is tested at the current event, which will be gone.
        raise _waiting_rows(label)
    # Leaves of other references stay as they are; their contents are not searched.
    veils: dict[Expression, Expression] = {
        leaf: Of("", -1 - k, Literal(None)) for k, leaf in enumerate(leaves(atom)) if isinstance(leaf, Of)
    }
    veiled = substitute(atom, veils)
    parts = _greatest_known(veiled, registers)
    gaps: dict[Node, Stored] = {part: _gap(k) for k, part in enumerate(parts)}

    def cut(current: Node, children: Sequence[Node]) -> Node:
        gap = gaps.get(current)
        if gap is None:
            return with_children(current, children)
        return Comparison(Operator.EQ, gap, Literal(True)) if isinstance(current, Condition) else gap

    form = fold(veiled, cut)
    assert isinstance(form, Condition)
    row = tuple(TruthValue(part) if isinstance(part, Condition) else part for part in parts)
    asks = any(isinstance(current, PredicateCall) for current in walk(form))
    condition = substitute(form, {veil: leaf for leaf, veil in veils.items()})
    return _Deferred(_Template(condition, row if asks else ()), row)


def _greatest_known(atom: Condition, registers: RegisterFile) -> list[Condition | Expression]:
    """The greatest parts that read only the current event and registers with one value each, in their order.

    A register with a collection is a part of its own: the atom holds for each of its rows. Bare literals stay in place.
    """
    found: dict[Condition | Expression, None] = {}
    stack: list[Node] = [atom]
    while stack:
        current = stack.pop()
        if isinstance(current, Of | Literal):
            continue
        if isinstance(current, Stored) or not any(isinstance(u, Of) or _ranges(u, registers) for u in leaves(current)):
            assert isinstance(current, Condition | Expression)
            found[current] = None
        else:
            stack.extend(reversed(current.children))
    return list(found)


def _ranges(leaf: Expression, registers: RegisterFile) -> bool:
    """Whether a leaf stands for all rows of a collection."""
    if isinstance(leaf, AllRows):
        return False
    return isinstance(leaf, Stored) and registers.registers[leaf.register].keeps is Accumulation.SET


def resolve_reference(operand: Fragment, label: str, scope: int, registers: RegisterFile) -> Fragment:
    """Resolve the `Of` leaves of ``label`` that the formula at occurrence ``scope`` (this operand) binds."""
    units = list(dict.fromkeys(u for t in operand.transitions for u in _units(t, label, scope)))
    if not units:
        # No condition is left, but the label still stands for one event, even where EVENT may give it to another.
        return _with_one(operand, label) if several(operand, frozenset((label,))) else operand
    memory = registers.add(
        Register(
            Accumulation.VALUE, len(units), ", ".join(f"{label}.{registers.describe(u.expression)}" for u in units)
        )
    )
    stored: dict[Expression, Expression] = {u: Stored(memory, k) for k, u in enumerate(units)}
    here: dict[Expression, Expression] = {u: u.expression for u in units}
    keep = Write(memory, tuple(u.expression for u in units), fresh=True)
    simple = _resolve_in_place(operand, label, scope, keep, stored, here)
    if simple is not None:
        return simple
    repeated = _put_aside_repeatedly(operand, label, scope, registers)
    aside: dict[_Template, int] = {}

    def register_for(deferred: _Deferred) -> int:
        if deferred.form not in aside:
            keeps = Accumulation.VALUE
            if deferred.form in repeated:
                keeps = _accumulation(deferred, registers)
            aside[deferred.form] = registers.add(
                Register(keeps, len(deferred.row), ", ".join(registers.describe(e) for e in deferred.row))
            )
        return aside[deferred.form]

    def step(seen: _Seen, t: Transition) -> list[tuple[_Seen, Transition]]:
        if label in t.labels:
            if seen.event:
                return []  # a second event under a label that stands for one
            t = _with_values(t, here)
            checks = list(t.atoms)
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
        _refuse_waiting_rows(t, label, scope)
        waiting = [atom for atom in t.atoms if any(u in stored for u in leaves(atom))]
        if not waiting:
            return [(seen, t)]
        writes = list(t.writes)
        forms = set(seen.aside)
        fresh_now: set[_Template] = set()
        for atom in waiting:
            deferred = _defer(atom, label, registers)
            fresh = deferred.form not in seen.aside and deferred.form not in fresh_now
            writes.append(Write(register_for(deferred), deferred.row, fresh))
            fresh_now.add(deferred.form)
            forms.add(deferred.form)
        rest = tuple(atom for atom in t.atoms if atom not in waiting)
        return [(_Seen(False, frozenset(forms)), replace(t, atoms=rest, writes=tuple(writes)))]

    return track(operand, _Seen(), step, lambda seen: seen.event)


def _with_one(operand: Fragment, label: str) -> Fragment:
    """The runs that give a label to exactly one event."""

    def step(seen: bool, t: Transition) -> list[tuple[bool, Transition]]:
        if label not in t.labels:
            return [(seen, t)]
        return [] if seen else [(True, t)]

    return track(operand, False, step, lambda seen: seen)


def _with_values(t: Transition, values: dict[Expression, Expression]) -> Transition:
    """The transition with some `Of` leaves replaced in its atoms and in the conditions of its writes."""
    if any(u in values for write in t.writes for c in write.where for u in leaves(c)):
        t = replace(t, writes=tuple(_write_with_values(w, values) for w in t.writes))
    if not any(u in values for atom in t.atoms for u in leaves(atom)):
        return t
    return guarded(replace(t, atoms=()), [substitute(atom, values) for atom in t.atoms])


def _write_with_values(write: Write, values: dict[Expression, Expression]) -> Write:
    return replace(write, where=tuple(substitute(c, values) for c in write.where))


def _refuse_waiting_rows(t: Transition, label: str, scope: int) -> None:
    """Rows of a collection cannot wait for an event that decides whether they belong to it."""
    for write in t.writes:
        for condition in write.where:
            if _mentions(condition, label, scope):
                raise _waiting_rows(label)


def _waiting_rows(label: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(
        f"the event of '{label}' comes later than events below UNLESS, WITHOUT, NEXT, LAST or MAX that are "
        "compared with it and with each other",
        hint=f"Compare with '{label}' in a FILTER outside of that operator, or let '{label}' come first.",
    )


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
                changed.append(_with_values(t, stored) if t.atoms or t.writes else t)
        elif label in t.labels:
            read = _with_values(t, here)
            changed.append(replace(read, writes=(*read.writes, keep)))
        elif t.target in after or _units(t, label, scope):
            return None
        else:
            changed.append(t)
    return Fragment(operand.states, operand.initial, operand.final & after, changed)


def _units(t: Transition, label: str, scope: int) -> list[Of]:
    conditions = [*t.atoms, *(c for write in t.writes for c in write.where)]
    return [u for c in conditions for u in leaves(c) if isinstance(u, Of) and (u.label, u.scope) == (label, scope)]


def _put_aside_repeatedly(operand: Fragment, label: str, scope: int, registers: RegisterFile) -> frozenset[_Template]:
    """The forms of conditions that may have several instances waiting at the same time."""
    found: set[_Template] = set()

    def step(aside: frozenset[_Template], t: Transition) -> list[tuple[frozenset[_Template], Transition]]:
        if label in t.labels:
            return []
        forms = [_defer(atom, label, registers) for atom in t.atoms if _mentions(atom, label, scope)]
        new: set[_Template] = set()
        for deferred in forms:
            if deferred.form in aside or deferred.form in new or _collects(deferred, registers):
                found.add(deferred.form)
            new.add(deferred.form)
        return [(aside | new, t)]

    track(operand, frozenset[_Template](), step)
    return frozenset(found)


def _mentions(atom: Condition, label: str, scope: int) -> bool:
    return any(isinstance(u, Of) and (u.label, u.scope) == (label, scope) for u in leaves(atom))


def _collects(deferred: _Deferred, registers: RegisterFile) -> bool:
    """Whether the rows of a collection have to wait."""
    return any(_ranges(leaf, registers) for part in deferred.row for leaf in leaves(part))


def _accumulation(deferred: _Deferred, registers: RegisterFile) -> Accumulation:
    form = deferred.form.condition
    if len(deferred.row) == 1 and isinstance(form, Comparison) and not _collects(deferred, registers):
        if form.left == _gap(0):
            return reduced(form.operator, left=True)
        if form.right == _gap(0):
            return reduced(form.operator, left=False)
    return Accumulation.SET
