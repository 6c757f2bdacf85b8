"""FILTER: its condition as clauses, each a choice of atoms, and how such a choice is made."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.automata.conditions import apply_atoms, own_labels, several
from cerflow.automata.fragment import Fragment, union
from cerflow.automata.guards import Gathered
from cerflow.automata.registers import RegisterFile
from cerflow.automata.set_conditions import apply_set_atoms
from cerflow.language.condition import Condition, Or
from cerflow.language.node import walk

__all__ = ["apply_clauses"]


def apply_clauses(
    operand: Fragment, clauses: Sequence[Sequence[Condition]], scope: int, registers: RegisterFile
) -> Fragment:
    """Keep the runs that satisfy some condition of every clause; labels are already resolved to `Of` leaves.

    ``scope`` is the occurrence of the filter: its own labels have that scope, those of enclosing formulas another.
    """
    own = [frozenset(label for atom in clause for label in own_labels(atom, scope)) for clause in clauses]
    many = several(operand, frozenset().union(*own))
    atoms: list[Condition] = []
    choices: list[Sequence[Condition]] = []
    for clause, labels in zip(clauses, own):
        if len(clause) > 1 and labels & many:
            choices.append(clause)
            continue
        # One event per label at most: the choice is made event by event, in one automaton. Should a label have no
        # event, the disjunct that names it holds vacuously, and so does the whole.
        merged = clause[0]
        for atom in clause[1:]:
            merged = Or(merged, atom)
        atoms.append(merged)
    operand = _apply(operand, atoms, many, scope, registers)
    for clause in choices:
        branches = [_apply(operand.copy(), [atom], many, scope, registers) for atom in clause]
        operand = branches[0]
        for branch in branches[1:]:
            operand = union(operand, branch)
    return operand


def _apply(
    operand: Fragment, atoms: Sequence[Condition], many: frozenset[str], scope: int, registers: RegisterFile
) -> Fragment:
    """Keep the runs that satisfy all atoms."""
    on_sets = [atom for atom in atoms if any(isinstance(n, Gathered) for n in walk(atom))]
    on_events = [atom for atom in atoms if atom not in on_sets]
    operand = apply_atoms(operand, on_events, many, scope, registers)
    return apply_set_atoms(operand, on_sets, many, scope, registers) if on_sets else operand
