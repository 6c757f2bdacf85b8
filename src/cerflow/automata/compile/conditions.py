"""Filters: conditions over one label as tests, over several labels as registers and atoms.

A condition over labels x1 … xk holds if it holds for every choice of one event for each label (the universal extension,
P2 §4). So whenever an event gets some of these labels, all choices with this event are checked: the event itself for
those labels, and the register contents for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from operator import and_, or_

from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.base.graphs import gathered, settled_values
from cerflow.base.operators import MIRRORED, Operator
from cerflow.language.condition import Comparison, Condition, Expression, Not, Some
from cerflow.logic.conditions.guards import Of, Satisfied, Stored, leaves, substitute

#: The replacements of leaves.
_Values = dict[Expression, Expression]
#: What is kept of many values on one side of a comparison.
_LEFT = {
    **dict.fromkeys((Operator.LT, Operator.LE), Accumulation.MAX),
    **dict.fromkeys((Operator.GT, Operator.GE), Accumulation.MIN),
    Operator.EQ: Accumulation.SAME,
}
_RIGHT = {MIRRORED[operator]: kept for operator, kept in _LEFT.items()}


def accumulation_for(atom: Condition, units: Sequence[Expression]) -> Accumulation:
    """How to keep many rows of some ``units``: a bound or a single value where the atom that reads them allows it.

    ``X.p < Y.p`` for all pairs needs only a maximum and a minimum, equality one value. An atom without the only unit
    alone on one side of a comparison needs all values.
    """
    if len(units) == 1 and isinstance(atom, Comparison):
        if atom.left == units[0]:
            return _LEFT.get(atom.operator, Accumulation.SET)
        if atom.right == units[0]:
            return _RIGHT.get(atom.operator, Accumulation.SET)
    return Accumulation.SET


def several(operand: Fragment, labels: frozenset[str]) -> frozenset[str]:
    """The labels that some run gives to more than one event."""
    if not labels:
        return frozenset()
    given = _given(operand, labels, or_)
    return labels & frozenset().union(*(t.labels & given.get(t.source, frozenset()) for t in operand.transitions))


def given_always(operand: Fragment, labels: frozenset[str]) -> frozenset[str]:
    """The labels that every accepting run gives to some event."""
    given = _given(operand, labels, and_)
    return frozenset.intersection(labels, *(given[q] for q in operand.final if q in given))


def _given(
    operand: Fragment, labels: frozenset[str], joined: Callable[[frozenset[str], frozenset[str]], frozenset[str]]
) -> dict[int, frozenset[str]]:
    """The labels that runs to a state have given, joined over all runs."""
    return settled_values(
        dict.fromkeys(operand.initial, frozenset[str]()),
        ((t.source, t.target, t.labels & labels) for t in operand.transitions),
        or_,
        joined,
    )


def read_on_event(condition: Condition, read: Callable[[Of], bool]) -> Condition:
    """The condition with the expressions of some `Of` leaves, which are then read on the current event."""
    return substitute(condition, {u: u.expression for u in leaves(condition) if isinstance(u, Of) and read(u)})


#: Names of labels that begin so occur in no query.
_HIDDEN = "\0"


def former(label: str) -> str:
    """The label, in conditions alone, of the event before one with a label."""
    return f"{_HIDDEN}prev {label}"


def reads_former(atom: Condition) -> bool:
    """Whether an atom is about every two neighbouring events of a label."""
    return any(isinstance(leaf, Of) and leaf.label.startswith(former("")) for leaf in leaves(atom))


def own_labels(atom: Condition, scope: int) -> list[str]:
    """The labels of an atom that the filtered formula assigns and that stand for one event at a time."""
    found = (leaf.label for leaf in leaves(atom) if isinstance(leaf, Of) and leaf.scope == scope)
    return list(dict.fromkeys(found))


def apply_atoms(
    operand: Fragment, atoms: Sequence[Condition], many: frozenset[str], scope: int, registers: RegisterFile
) -> Fragment:
    """Keep the runs that satisfy all atoms; labels are already resolved to `Of` leaves.

    ``scope`` is the occurrence of the filter: its own labels have that scope, labels of enclosing formulas another.
    ``many`` are the labels that a run may give to several events.
    """
    anywhere: list[Condition] = []
    single: dict[str, list[Condition]] = {}
    relating: list[Relating] = []
    for atom in atoms:
        own = own_labels(atom, scope)
        if reads_former(atom):
            relating.append(_Neighbouring(atom, own, scope, registers))
        elif not own:
            anywhere.append(atom)
        elif len(own) == 1:
            here: dict[Expression, Expression] = {u: u.expression for u in _units(atom, own[0], scope)}
            single.setdefault(own[0], []).append(substitute(atom, here))
        else:
            relating.append(Relating(atom, own, scope, many, registers))

    def changed(t: Transition) -> Transition:
        # An atom that reads nothing of the operand is tested at the operand's first event.
        checks = anywhere if t.source in operand.initial and not t.skips else []
        return t.guarded([*checks, *(c for label in sorted(t.labels & single.keys()) for c in single[label])])

    if anywhere or single:
        operand = operand.with_transitions([changed(t) for t in operand.transitions])
    return _relate(operand, relating) if relating else operand


def apply_some(operand: Fragment, some: Some, many: frozenset[str], scope: int, registers: RegisterFile) -> Fragment:
    """Keep the runs that satisfy the condition of a SOME for some choice of events, resolved as in `apply_atoms`.

    A run guesses the chosen events, and keeps them until the choice is complete. Labels outside ``many`` leave nothing
    to guess. If a condition on one label is decided at its event, the first such event is chosen, so there is one run
    only. Otherwise several runs may give the same complex event.
    """
    atom = some.condition
    own = own_labels(atom, scope)
    relation = Relating(atom, own, scope, frozenset(), registers)
    names = frozenset(own)
    local = len(own) == 1 and all(isinstance(u, Of) and u.scope == scope for u in leaves(atom))

    def step(chosen: frozenset[str], t: Transition) -> list[tuple[frozenset[str], Transition]]:
        given = (t.labels & names) - chosen
        if not given or chosen == names:
            return [(chosen, t)]
        result: list[tuple[frozenset[str], Transition]] = []
        for taken in product(*((True, False) if label in many else (True,) for label in sorted(given))):
            here = frozenset(label for label, is_taken in zip(sorted(given), taken) if is_taken)
            after = chosen | here
            if after == names:
                (values,) = relation.choices(here, chosen)
                result.append((after, t.guarded([substitute(atom, values)])))
            elif local:
                result.append((after, t.guarded([Not(Satisfied(substitute(atom, relation.here[own[0]])))])))
            else:
                result.append((after, t.writing(*relation.writes(here, chosen))))
        return result

    return track(operand, frozenset[str](), step, lambda chosen: chosen == names).trimmed()


def _units(atom: Condition, label: str, scope: int) -> list[Of]:
    return [u for u in leaves(atom) if isinstance(u, Of) and u.label == label and u.scope == scope]


class Relating:
    """An atom over several labels, the values written for each, and its parts as read here or from registers.

    ``many`` are the labels, of those in ``own``, that may have several events.
    """

    def __init__(
        self, atom: Condition, own: Sequence[str], scope: int, many: frozenset[str], registers: RegisterFile
    ) -> None:
        self.atom = atom
        self.labels = own
        self.here: dict[str, _Values] = {}
        self._stored: dict[str, _Values] = {}
        self._memory: dict[str, tuple[int, tuple[Expression, ...]]] = {}
        for label in own:
            units = _units(atom, label, scope)
            row = tuple(u.expression for u in units)
            keeps = accumulation_for(atom, units) if label in many else Accumulation.VALUE
            meaning = ", ".join(f"{label.removeprefix(_HIDDEN)}.{registers.describe(e)}" for e in row)
            number = registers.add(Register(keeps, len(units), meaning))
            self.here[label] = dict(zip(units, row))
            self._stored[label] = {u: Stored(number, k) for k, u in enumerate(units)}
            self._memory[label] = (number, row)

    def choices(self, given: frozenset[str], seen: frozenset[str]) -> Iterator[_Values]:
        """Every choice of events: the current event for the labels ``given``, register contents for those ``seen``."""
        parts = [[self.here[x]] * (x in given) + [self._stored[x]] * (x in seen) for x in self.labels]
        for choice in product(*parts):
            yield {leaf: value for part in choice for leaf, value in part.items()}

    def checks(self, given: frozenset[str], seen: frozenset[str]) -> list[Condition]:
        """The atom for every choice that includes the current event."""
        return [
            substitute(self.atom, values)
            for values in self.choices(given, seen)
            if any(values[leaf] == value for label in self.labels for leaf, value in self.here[label].items())
        ]

    def writes(self, given: frozenset[str], seen: frozenset[str]) -> Iterator[Write]:
        """The writes of the current event for the labels ``given``."""
        return (Write(*self._memory[label], fresh=label not in seen) for label in self.labels if label in given)


class _Neighbouring(Relating):
    """An atom on every two neighbouring events of a label."""

    def __init__(self, atom: Condition, own: Sequence[str], scope: int, registers: RegisterFile) -> None:
        label = own[0].removeprefix(former(""))
        super().__init__(atom, (former(label), label), scope, frozenset(), registers)

    def checks(self, given: frozenset[str], seen: frozenset[str]) -> list[Condition]:
        """The atom for the current event and the one before."""
        before, label = (frozenset((name,)) for name in self.labels)
        return [substitute(self.atom, values) for values in self.choices(label, before)] if label <= seen else []

    def writes(self, given: frozenset[str], seen: frozenset[str]) -> Iterator[Write]:
        """The writes of the current event for the next one."""
        return super().writes(frozenset(self.labels[:1]), frozenset())


def _relate(operand: Fragment, relating: Sequence[Relating]) -> Fragment:
    of_label = gathered((label, k) for k, relation in enumerate(relating) for label in relation.labels)
    names = frozenset(of_label)

    def step(seen: frozenset[str], t: Transition) -> list[tuple[frozenset[str], Transition]]:
        given = t.labels & names
        if not given:
            return [(seen, t)]
        labelled = [relating[k] for k in sorted({k for label in given for k in of_label[label]})]
        checks = [check for relation in labelled for check in relation.checks(given, seen)]
        writes = [write for relation in labelled for write in relation.writes(given, seen)]
        return [(seen | given, t.guarded(checks).writing(*writes))]

    return track(operand, frozenset[str](), step)
