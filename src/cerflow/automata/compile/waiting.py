"""First-order references (spec §3), and conditions that wait for an event: the values to keep for them.

A reference is a label that an enclosing formula binds to one event. If that event comes first, a register keeps its
values for the conditions that read them. If it comes later, the values to be compared with it are kept, and the
condition is checked when the event arrives.

A run of an excluded part (UNLESS, WITHOUT, NOT FOLLOWED BY) may have to be compared with an event that comes after it.
Guessing for each condition how it will turn out would multiply the runs that it accompanies. So the run continues and
keeps the values, as fields of its row, and all its conditions are asked together: as soon as the event is read, or else
where the run ends. The rows of runs that have ended then wait in one collection for which no row may satisfy all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from cerflow.automata.compile.conditions import accumulation_for, several
from cerflow.automata.model.fragment import Fragment, RegisterFile, explored, track
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.automata.optimise.covering import AwaitedEvent, is_instant, relations_in
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import gathered
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, rebuild, walk, walk_into, with_children
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.conditions.guards import InWindow, NoRow, Of, Satisfied, SetCall, Stored, leaves, substitute

#: A label, and the occurrence of the formula that binds it to one event.
Reference = tuple[str, int]


def references(root: Node) -> frozenset[Reference]:
    """The events that a condition or expression still has to be told."""
    return frozenset((leaf.label, leaf.scope) for leaf in leaves(root) if isinstance(leaf, Of))


@dataclass(frozen=True)
class Template:
    """A condition with numbered gaps; conditions of one form share a register for the fillings of the gaps.

    Predicates take values of any kind, so for them ``fillings`` distinguishes values of different kinds.
    """

    condition: c.Condition
    fillings: tuple[c.Expression, ...] = ()

    def filled(self, register: int) -> c.Condition:
        """The condition on the fillings in a register."""
        return substitute(self.condition, {gap: Stored(register, gap.field) for gap in self._gaps()})

    def covering(self, instants: Mapping[int, c.Expression], awaited: Reference) -> tuple[Operator | None, ...]:
        """How the fields of a row compare with those of another that it makes unnecessary; empty if all must be kept.

        If no row may satisfy a condition, a row counts for all that satisfy less. ``instants`` are the gaps with the
        time or the position of an event.
        """
        match self.condition:
            case c.Not(Satisfied(violated)):
                fields = {(-1, gap): expression for gap, expression in instants.items()}
                waiting = AwaitedEvent(fields, lambda leaf: (leaf.label, leaf.scope) == awaited)
                return relations_in(violated, sorted(self._gaps(), key=lambda gap: gap.field), waiting)
        return ()

    def _gaps(self) -> list[Stored]:
        return [leaf for leaf in leaves(self.condition) if isinstance(leaf, Stored) and leaf.register == -1]


@dataclass(frozen=True)
class Deferred:
    """A condition that waits for an event: its form, and the fillings of its gaps at a transition.

    It waits only for the rows that satisfy ``where``; the condition holds for all others.
    """

    form: Template
    row: tuple[c.Expression, ...]
    where: tuple[c.Condition, ...] = ()

    def register(self, repeated: bool, awaited: Reference, registers: RegisterFile) -> int:
        """A new register for conditions of this form; ``repeated`` says that several may wait at the same time."""
        instants: dict[int, c.Expression] = {}
        for k, e in enumerate(self.row):
            if is_instant(e):
                instants[k] = e
            elif isinstance(e, Stored) and (e.register, e.field) in registers.instants:
                instants[k] = registers.instants[e.register, e.field]
        keeps = self.accumulation(registers) if repeated else Accumulation.VALUE
        covering: tuple[Operator | None, ...] = ()
        if self.where or keeps is Accumulation.SET:
            keeps, covering = Accumulation.SET, self.form.covering(instants, awaited)
        meaning = ", ".join(registers.describe(e) for e in self.row)
        number = registers.add(Register(keeps, len(self.row), meaning, covering=covering))
        registers.instants.update({(number, k): expression for k, expression in instants.items()})
        return number

    def accumulation(self, registers: RegisterFile) -> Accumulation:
        """The least part of several rows that the condition needs, to be tested for all of them."""
        if self.collects(registers):
            return Accumulation.SET
        return accumulation_for(self.form.condition, [_gap(k) for k in range(len(self.row))])

    def collects(self, registers: RegisterFile) -> bool:
        """Whether the rows of a collection have to wait."""
        return any(_ranges(leaf, registers) for part in (*self.row, *self.where) for leaf in leaves(part))


def _gap(index: int) -> Stored:
    return Stored(-1, index)


def defer(atom: c.Condition, label: str, registers: RegisterFile) -> Deferred:
    """Cut out of an atom all that will be gone when the event of ``label`` arrives.

    Of several conditions that must not all hold, those that are known by now decide whether the others have to wait.
    """
    where: list[c.Condition] = []
    match atom:
        case c.Not(Satisfied(all_of)):
            parts = conjuncts(all_of)
            where = [part for part in parts if not references(part)]
            if where:
                atom = c.Not(Satisfied(conjunction([part for part in parts if references(part)])))
    if any(isinstance(n, InWindow) and _ranges(n.start, registers) for n in walk(atom)):
        # The window of a row is tested at the current event, which will be gone.
        raise waiting_rows(label)
    # Leaves of other references stay as they are; their contents are not searched.
    veils: dict[c.Expression, c.Expression] = {
        leaf: Of("", -1 - k, c.Literal(None)) for k, leaf in enumerate(leaves(atom)) if isinstance(leaf, Of)
    }
    veiled = substitute(atom, veils)
    known = _greatest_known(veiled, registers)
    gaps: dict[Node, Stored] = {part: _gap(k) for k, part in enumerate(known)}

    def cut(current: Node, children: Sequence[Node]) -> Node:
        gap = gaps.get(current)
        if gap is None:
            return with_children(current, children)
        return c.Comparison(Operator.EQ, gap, c.Literal(True)) if isinstance(current, c.Condition) else gap

    form = rebuild(veiled, cut)
    row = tuple(c.TruthValue(part) if isinstance(part, c.Condition) else part for part in known)
    if where and not row:
        # All that counts is whether there is a row.
        assert isinstance(form, c.Not)
        assert isinstance(form.operand, Satisfied)
        present = c.Not(NoRow(_gap(0)))
        form, row = c.Not(Satisfied(conjunction([form.operand.condition, present]))), (c.Literal(0),)
    asks = any(isinstance(current, c.PredicateCall | SetCall) for current in walk(form))
    condition = substitute(form, {veil: leaf for leaf, veil in veils.items()})
    return Deferred(Template(condition, row if asks else ()), row, tuple(where))


def _greatest_known(atom: c.Condition, registers: RegisterFile) -> list[c.Condition | c.Expression]:
    """The greatest parts that read only the current event and registers with one value each, in their order.

    A register with a collection is a part of its own: the atom holds for each of its rows. Bare literals stay in place.
    """

    def known(current: Node) -> bool:
        ranging = (isinstance(leaf, Of) or _ranges(leaf, registers) for leaf in leaves(current))
        return isinstance(current, Stored) or not any(ranging)

    parts = walk_into(atom, lambda current: not (known(current) or isinstance(current, Of)))
    found = (part for part in parts if known(part) and not isinstance(part, c.Literal))
    return list(dict.fromkeys(cast(c.Condition | c.Expression, part) for part in found))


def _ranges(leaf: c.Expression, registers: RegisterFile) -> bool:
    """Whether a leaf stands for all rows of a collection."""
    return type(leaf) is Stored and registers.registers[leaf.register].keeps is Accumulation.SET


def waiting_rows(label: str) -> UnsupportedQueryError:
    """The error for rows of a collection that would have to wait for an event."""
    return UnsupportedQueryError(
        f"the event of '{label}' comes later than events below UNLESS, WITHOUT, NEXT, LAST or MAX that are "
        "compared with it and with each other",
        hint=f"Compare with '{label}' in a FILTER outside of that operator, or let '{label}' come first.",
    )


def waiting_repeatedly(
    operand: Fragment,
    waits: Callable[[c.Condition], bool],
    arrives: Callable[[Transition], bool],
    registers: RegisterFile,
) -> frozenset[Template]:
    """The forms of conditions of which several may wait at the same time, until a transition at which all is known."""
    found: set[Template] = set()

    def step(aside: frozenset[Template], t: Transition) -> list[tuple[frozenset[Template], Transition]]:
        if arrives(t):
            return []
        new: set[Template] = set()
        for deferred in (defer(atom, "", registers) for atom in t.atoms if waits(atom)):
            if deferred.form in aside or deferred.form in new or deferred.collects(registers):
                found.add(deferred.form)
            new.add(deferred.form)
        return [(aside | new, t)]

    track(operand, frozenset[Template](), step)
    return frozenset(found)


#: A state, the conditions that wait there, and whether any has waited before: then the run has a row.
_State = tuple[int, frozenset[Template], bool]
#: Where runs end.
_DONE: _State = (-1, frozenset(), False)


def postponed(
    excluded: Fragment, moments: Iterable[frozenset[Reference]], registers: RegisterFile
) -> tuple[Fragment, dict[Transition, set[frozenset[Reference]]]]:
    """The runs of an excluded part, where conditions on events wait until these are read or the run ends.

    Also, for each transition, with which events read it may be taken, those of the same moment included.

    ``moments`` are the sets of events that may have been read. Conditions that would have to keep any number of values
    for one run do not wait.
    """
    excluded = excluded.with_own_beginning()

    def can_wait(atom: c.Condition) -> bool:
        return bool(references(atom)) and not any(_ranges(leaf, registers) for leaf in leaves(atom))

    repeated = waiting_repeatedly(excluded, can_wait, lambda _: False, registers)
    moments = list(moments)
    aside: dict[Template, int] = {}
    leaving = excluded.leaving()
    taken: list[frozenset[Reference]] = []

    def following(here: _State) -> Iterator[tuple[_State, Transition]]:
        for t in leaving[here[0]] if here != _DONE else ():
            for moment in moments:
                for step in steps(here, t, moment):
                    taken.append(moment)
                    yield step

    def steps(here: _State, t: Transition, moment: frozenset[Reference]) -> Iterator[tuple[_State, Transition]]:
        _, waiting, has_row = here
        deferred = [(a, defer(a, "", registers)) for a in t.atoms if can_wait(a) and not references(a) <= moment]
        later = {
            a: d for a, d in deferred if d.form not in repeated or d.accumulation(registers) is not Accumulation.SET
        }
        now = [a for a in t.atoms if a not in later]
        if t.target in excluded.final:
            asked = [*now, *(form.filled(aside[form]) for form in sorted(waiting, key=repr)), *later]
            yield _DONE, replace(t, atoms=(), writes=()).guarded(asked)
        if leaving[t.target]:
            known = {form for form in waiting if references(form.condition) <= moment}
            writes, after = [], set(waiting - known)
            for d in later.values():
                if d.form not in aside:
                    aside[d.form] = d.register(d.form in repeated, ("", -1), registers)
                writes.append(Write(aside[d.form], d.row, d.form not in after))
                after.add(d.form)
            asked = [*now, *(form.filled(aside[form]) for form in sorted(known, key=repr))]
            read = replace(t, atoms=()).guarded(asked).writing(*writes)
            yield (t.target, frozenset(after), has_row or bool(after)), read

    starts = [_DONE, *((q, frozenset[Template](), False) for q in sorted(excluded.initial))]
    result = explored(starts, following, _DONE.__eq__)
    result.initial -= result.final
    when = gathered(zip(result.transitions, taken))
    return result.with_transitions(list(when)), {t: set(found) for t, found in when.items()}


#: The conditions with values kept for the event; None once it has been read.
_Aside = frozenset[Template] | None


def resolve_reference(operand: Fragment, label: str, scope: int, registers: RegisterFile) -> Fragment:
    """Resolve the `Of` leaves of ``label`` that the formula at occurrence ``scope`` (this operand) binds."""
    units = list(dict.fromkeys(u for t in operand.transitions for u in _units(t, label, scope)))
    if not units and not several(operand, frozenset((label,))):
        return operand
    # Without conditions the label still stands for one event, even where EVENT may give it to another.
    stored: dict[c.Expression, c.Expression] = {}
    here: dict[c.Expression, c.Expression] = {u: u.expression for u in units}
    keep: list[Write] = []
    if units:
        memory = registers.value(len(units), ", ".join(f"{label}.{registers.describe(u.expression)}" for u in units))
        stored = {u: Stored(memory, k) for k, u in enumerate(units)}
        keep = [Write(memory, tuple(u.expression for u in units), fresh=True)]
    own = (label, scope)
    repeated = waiting_repeatedly(operand, lambda atom: own in references(atom), lambda t: label in t.labels, registers)
    aside: dict[Template, int] = {}

    def step(waiting: _Aside, t: Transition) -> list[tuple[_Aside, Transition]]:
        if label in t.labels:
            if waiting is None:
                return []  # a second event under a label that stands for one
            t = _with_values(t, here)
            kept = [substitute(form.filled(aside[form]), here) for form in sorted(waiting, key=repr)]
            return [(None, replace(t, atoms=()).guarded([*t.atoms, *kept]).writing(*keep))]
        if waiting is None:
            return [(None, _with_values(t, stored))]
        if any(own in references(condition) for write in t.writes for condition in write.where):
            # Rows of a collection cannot wait for an event that decides whether they belong to it.
            raise waiting_rows(label)
        rest, writes, forms = [], [], set(waiting)
        for atom in t.atoms:
            if own not in references(atom):
                rest.append(atom)
                continue
            deferred = defer(atom, label, registers)
            form = deferred.form
            if form not in aside:
                aside[form] = deferred.register(form in repeated, own, registers)
            writes.append(Write(aside[form], deferred.row, form not in forms, deferred.where))
            forms.add(form)
        return [(frozenset(forms), replace(t, atoms=tuple(rest)).writing(*writes))]

    nothing: _Aside = frozenset()
    return track(operand, nothing, step, lambda waiting: waiting is None)


def _with_values(t: Transition, values: dict[c.Expression, c.Expression]) -> Transition:
    """The transition with some `Of` leaves replaced in its atoms and in the conditions of its writes."""
    if not any(u in values for tree in t.trees for u in leaves(tree)):
        return t
    told = t.with_trees(lambda tree: substitute(tree, values))
    return replace(told, atoms=()).guarded(told.atoms)


def _units(t: Transition, label: str, scope: int) -> list[Of]:
    conditions = [*t.atoms, *(c for write in t.writes for c in write.where)]
    return [u for c in conditions for u in leaves(c) if isinstance(u, Of) and (u.label, u.scope) == (label, scope)]
