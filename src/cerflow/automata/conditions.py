"""Filters: conditions over one label as tests, over several as registers and atoms.

A condition over labels x1 … xk holds if it holds for every choice of one event from each (the universal extension,
P2 §4). So whenever an event gets some of these labels, every choice in which it takes part is checked: the event
itself for those labels, what a register remembers for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from cerflow.automata.fragment import Fragment, track
from cerflow.automata.guards import Of, Stored, conjunction, conjuncts, is_local, leaves, substitute
from cerflow.automata.registers import RegisterFile, accumulation_for
from cerflow.automata.transducer import Accumulation, Register, Transition, Write
from cerflow.language.condition import Condition, Expression, Or

__all__ = ["apply_clause", "guarded", "several"]


def guarded(t: Transition, more: Sequence[Condition]) -> Transition:
    """The transition with further guards: local ones join the test, the others the atoms."""
    if not more:
        return t
    test = conjunction(conjuncts(t.test) + [c for c in more if is_local(c)])
    atoms = dict.fromkeys((*t.atoms, *(c for c in more if not is_local(c))))
    return replace(t, test=test, atoms=tuple(atoms))


def several(operand: Fragment, labels: frozenset[str]) -> frozenset[str]:
    """The labels that some run gives to more than one event."""
    found: set[str] = set()

    def step(seen: frozenset[str], t: Transition) -> list[tuple[frozenset[str], Transition]]:
        given = t.labels & labels
        found.update(given & seen)
        return [(seen | given, t)]

    if labels:
        track(operand, frozenset[str](), step)
    return frozenset(found)


def apply_clause(operand: Fragment, clause: Sequence[Condition], scope: int, registers: RegisterFile) -> Fragment:
    """Keep the runs that satisfy some condition of the clause; its labels are already resolved to `Of` leaves.

    ``scope`` is the occurrence of the filter: its own labels have that scope, those of enclosing formulas another.
    """
    if len(clause) == 1:
        return _apply(operand, clause[0], scope, registers)
    own = frozenset(label for atom in clause for label in _own(atom, scope))
    if not several(operand, own):
        # One event per label at most: the choice is made event by event, in one automaton. Should a label have no
        # event, the disjunct that names it holds vacuously, and so does the whole.
        merged = clause[0]
        for atom in clause[1:]:
            merged = Or(merged, atom)
        return _apply(operand, merged, scope, registers)
    result = Fragment()
    for atom in clause:
        branch = _apply(operand.copy(), atom, scope, registers)
        shift = result.absorb(branch)
        result.initial |= {q + shift for q in branch.initial}
        result.final |= {q + shift for q in branch.final}
    return result


def _own(atom: Condition, scope: int) -> list[str]:
    found = (leaf.label for leaf in leaves(atom) if isinstance(leaf, Of) and leaf.scope == scope)
    return list(dict.fromkeys(found))


def _apply(operand: Fragment, atom: Condition, scope: int, registers: RegisterFile) -> Fragment:
    own = _own(atom, scope)
    units = {
        label: [u for u in leaves(atom) if isinstance(u, Of) and u.label == label and u.scope == scope] for label in own
    }
    if not own:
        # Nothing of the operand is asked for: ask when the operand's first event is read.
        first = operand.initial
        operand.transitions = [
            guarded(t, [atom]) if t.source in first and not t.skips else t for t in operand.transitions
        ]
        return operand
    if len(own) == 1:
        here: dict[Expression, Expression] = {u: u.expression for u in units[own[0]]}
        check = substitute(atom, here)
        operand.transitions = [guarded(t, [check]) if own[0] in t.labels else t for t in operand.transitions]
        return operand
    return _relate(operand, atom, own, units, registers)


def _relate(
    operand: Fragment, atom: Condition, own: list[str], units: dict[str, list[Of]], registers: RegisterFile
) -> Fragment:
    names = frozenset(own)
    many = several(operand, names)
    memory = {
        label: registers.add(
            Register(
                accumulation_for(atom, units[label]) if label in many else Accumulation.VALUE,
                len(units[label]),
                ", ".join(f"{label}.{registers.describe(u.expression)}" for u in units[label]),
            )
        )
        for label in own
    }
    stored: dict[str, dict[Expression, Expression]] = {
        label: {u: Stored(memory[label], k) for k, u in enumerate(units[label])} for label in own
    }
    here: dict[str, dict[Expression, Expression]] = {label: {u: u.expression for u in units[label]} for label in own}

    def step(seen: frozenset[str], t: Transition) -> list[tuple[frozenset[str], Transition]]:
        given = t.labels & names
        if not given:
            return [(seen, t)]
        choices = [[here[label]] * (label in given) + [stored[label]] * (label in seen) for label in own]
        checks = [
            substitute(atom, {leaf: value for part in choice for leaf, value in part.items()})
            for choice in product(*choices)
            if any(part is here[label] for label, part in zip(own, choice))
        ]
        writes = tuple(
            Write(memory[label], tuple(u.expression for u in units[label]), fresh=label not in seen)
            for label in own
            if label in given
        )
        return [(seen | given, replace(guarded(t, checks), writes=t.writes + writes))]

    return track(operand, frozenset[str](), step)[0]
