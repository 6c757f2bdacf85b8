"""Minterms, determinism, subset constructions and complement.

Minterms (004 §2 and Algorithm 7, 003 Algorithm 8; Figure 14): for every event and every content of the registers
exactly one of them holds. Those with a contradiction are left out. The test for contradictions is cheap and never
wrong, but it misses some.

With output, the subsets of states make automata without memory I/O-deterministic (P1 Proposition 1, App. C.1).
Disregarding output they make windowed automata with registers deterministic (004 Algorithm 7, 003 Algorithm 8). A
subset shares its registers, so runs must not overwrite one another's. This holds in a tree, where one transition writes
each register, and if no written register is read. Otherwise a deterministic automaton may not exist at all (004 Theorem
38, Figure 4). A deterministic automaton has one run for a string, so it keeps only the language of the original, not
its matches.

The complement of a deterministic automaton (004 Algorithm 8, Corollary 43) exchanges its final states, once it has been
completed. Erratum 11.11: the dead state is final there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import gathered
from cerflow.language.automaton import State, sorted_states
from cerflow.language.condition import And, Condition, Not, Or
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts, two_valued
from cerflow.logic.conditions.guards import Satisfied
from cerflow.theory.deciding.witnesses import Budget
from cerflow.theory.papers.constructions import normal_forms as forms
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, A, Automaton, Successor, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import not_satisfied, register_selection
from cerflow.theory.papers.model.faults import NotDeterministicError, NotDeterminizableError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, FreeA, RegisterA, defined_for

__all__ = ["Minterm", "construct_minterms"]
__all__ += ["is_deterministic", "is_determinizable", "is_io_deterministic", "overlaps"]
__all__ += ["determinize_windowed", "io_determinize", "subset_construction"]
__all__ += ["complement", "complement_windowed", "complete", "io_complement"]


@dataclass(frozen=True, slots=True)
class Minterm:
    """The conditions that hold, and those that do not."""

    positive: tuple[Condition, ...] = ()
    negative: tuple[Condition, ...] = ()

    @property
    def condition(self) -> Condition:
        """``φ1 ∧ … ∧ ¬ψ1 ∧ …``; ⊤ without conditions."""
        return conjunction([*self.positive, *map(not_satisfied, self.negative)])

    def entails(self, condition: Condition) -> bool:
        """Whether one of the conditions behind the minterm holds wherever the minterm does."""
        return condition == TRUE or condition in self.positive


def construct_minterms(
    conditions: Iterable[Condition], *, satisfiable: bool = True, budget: Budget | None = None
) -> tuple[Minterm, ...]:
    """The minterms of some conditions; ⊤ among them distinguishes nothing.

    With ``satisfiable`` those with a contradiction are left out, otherwise there are all 2ⁿ. Raises
    `UnsupportedQueryError` when the budget is spent.
    """
    found = [Minterm()]
    for condition in dict.fromkeys(c for c in conditions if c != TRUE):
        longer = []
        for m in found:
            for more in (Minterm((*m.positive, condition), m.negative), Minterm(m.positive, (*m.negative, condition))):
                if budget is not None:
                    budget.spend()
                if not (satisfiable and contradictory(more.positive, more.negative)):
                    longer.append(more)
        found = longer
    return tuple(found)


def contradictory(positive: Iterable[Condition], negative: Iterable[Condition] = ()) -> bool:
    """Whether it is certain that some conditions cannot all hold while others all fail, whatever the registers hold."""
    held, failing = set[Condition](), set[Condition]()
    pending = [*((c, True) for c in positive), *((c, False) for c in negative)]
    while pending:
        condition, truth = pending.pop()
        (held if truth else failing).add(condition)
        match condition:
            case And() if truth:
                pending += [(part, True) for part in conjuncts(condition)]
            case Or() if not truth:
                pending += [(condition.left, False), (condition.right, False)]
            case Satisfied(inner):
                pending.append((inner, truth))
            case Not(Satisfied(inner)):
                pending.append((inner, not truth))
    return contradicts([*held, *map(not_satisfied, failing)])


def exhaustive(conditions: Iterable[Condition]) -> bool:
    """Whether it is certain that one of some conditions holds, whatever the event and the registers.

    One must hold in each minterm of the literals that they consist of.
    """
    cases = [frozenset(map(_asked, conjuncts(condition))) for condition in conditions]
    literals = dict.fromkeys(condition for case in cases for condition, _ in case)
    try:
        minterms = construct_minterms(literals, budget=Budget(limits.EXHAUSTIVE_SPLITS))
    except UnsupportedQueryError:
        return False
    truths = ({**dict.fromkeys(m.positive, True), **dict.fromkeys(m.negative, False)} for m in minterms)
    return all(any(case <= truth.items() for case in cases) for truth in truths)


def _asked(condition: Condition) -> tuple[Condition, bool]:
    """The condition that another one asks about, and whether it is to hold or not to hold."""
    match condition:
        case Not(Satisfied(inner)) if register_selection(inner):
            # Neither IS NULL nor IS NOT NULL holds of an empty register.
            return inner, False
    return (condition, True) if register_selection(condition) else two_valued(condition)


def steps_by_minterm(
    automaton: Automaton, states: Iterable[State], budget: Budget, *, satisfiable: bool = True
) -> Iterator[tuple[Condition, list[Any]]]:
    """The minterms of the conditions out of some states, and with each the transitions that it allows."""
    leaving = [t for state in sorted_states(states) for t in automaton.leaving(state) if t.condition is not None]
    for minterm in construct_minterms((t.condition for t in leaving), satisfiable=satisfiable, budget=budget):
        yield minterm.condition, [t for t in leaving if minterm.entails(t.condition)]


@defined_for(CEA, UCEA, SRT, RMA)
def overlaps(automaton: Automaton) -> Iterator[tuple[TransitionLike, TransitionLike]]:
    """Pairs of transitions of one state that have different effects and may not exclude each other.

    Two transitions into the same state are different runs, too, if their writes or outputs differ (erratum 11.13). An
    ε-transition overlaps with everything. Exclusion is decided by a cheap test, so a pair may be harmless after all. An
    automaton with one start state and without such pairs is certain to be deterministic (004 Definition 36, 003
    Definition 10).
    """
    for state in automaton.states:
        for one, other in combinations(automaton.leaving(state), 2):
            same = (one.target, one.writes, one.output) == (other.target, other.writes, other.output)
            if None in (one.condition, other.condition) or (not same and not contradictory((one.guard, other.guard))):
                yield one, other


@defined_for(CEA, UCEA, SRT, RMA)
def is_deterministic(automaton: Automaton) -> bool:
    """Whether it is certain that there is at most one run over every string."""
    return len(automaton.starts) <= 1 and next(overlaps(automaton), None) is None


@defined_for(CEA, UCEA)
def is_io_deterministic(automaton: Automaton) -> bool:
    """Whether it is certain that at most one run gives each complex event.

    There must be one start state, and the conditions of two transitions from one state with the same output must
    exclude each other (P1 §6). Only a cheap test decides this.
    """
    return len(automaton.starts) == 1 and all(
        one.output != other.output or contradictory((one.guard, other.guard))
        for state in automaton.states
        for one, other in combinations(automaton.leaving(state), 2)
    )


@defined_for(SRT, RMA)
def is_determinizable(automaton: Automaton) -> bool:
    """Whether subsets can share the registers: trees with one writer per register, or no written register is read."""
    if not automaton.written & automaton.read:
        return True
    entered = Counter(t.target for t in automaton.transitions)
    writers = Counter(register for t in automaton.transitions for register in t.writes)
    return automaton.starts.isdisjoint(entered) and all(n == 1 for n in (*entered.values(), *writers.values()))


_Taken = list[TransitionLike]


@defined_for(CEA, UCEA)
def io_determinize(automaton: FreeA, *, most: int | None = None) -> FreeA:
    """The reachable subsets of states: at most one run for every stream and every complex event.

    Raises `UnsupportedQueryError` if more than ``most`` minterms would have to be tried.
    """
    return _subsets(automaton, lambda taken: gathered((t.output, t) for t in taken).items(), most)


@defined_for(CEA, UCEA)
def io_complement(
    automaton: FreeA, alphabet: Iterable[frozenset[str]] | None = None, *, most: int | None = None
) -> FreeA:
    """The I/O-deterministic automaton of all other complex events: C is in ``⟦A⟧_n`` iff the given automaton lacks it.

    For a CEA, C ranges over the sets of positions that contain n. For a UCEA it ranges over the complex events in which
    every event has one of the label sets of ``alphabet``, by default those of the transitions and ∅. Raises as
    `io_determinize`.
    """
    outputs = automaton.label_sets if alphabet is None else frozenset(alphabet)
    if isinstance(automaton, CEA):
        outputs = frozenset((SKIPPED, MARKED))

    def together(taken: _Taken) -> list[tuple[frozenset[str], _Taken]]:
        return [(output, [t for t in taken if t.output == output]) for output in sorted(outputs, key=sorted)]

    return _subsets(automaton, together, most, accepting=False)


@defined_for(SRT, RMA)
def determinize_windowed(
    automaton: RegisterA, window: int, *, marking: bool = False, most: int | None = None
) -> RegisterA:
    """The complete deterministic automaton that accepts the strings of at most ``window`` events that ``T`` accepts.

    Eliminates ε-transitions, leaves one register to each transition, unrolls the automaton, and builds the subsets of
    its states; ``marking`` as in `subset_construction`.
    """
    single = forms.to_single_register(forms.eliminate_epsilon(automaton))
    return subset_construction(forms.unroll(single, window, most=most).transducer, marking=marking, most=most)


@defined_for(SRT, RMA)
def subset_construction(
    automaton: RegisterA, *, marking: bool = False, satisfiable: bool = True, most: int | None = None
) -> RegisterA:
    """The reachable subsets of states, including the empty one: a sink, so that the automaton is complete.

    All events are skipped, unless ``marking`` (003) gives them every label that a run would give them; this marks more
    than one match (erratum 11.10). ``satisfiable=False`` also follows minterms that no event satisfies. Raises
    `NotDeterminizableError` for an automaton whose runs could overwrite one another's registers.
    """
    automaton.refuse_epsilon()
    if not is_determinizable(automaton):
        raise NotDeterminizableError(
            "runs would overwrite the registers of one another; unroll the automaton for a window first"
        )
    return unchecked_subsets(automaton, marking=marking, satisfiable=satisfiable, most=most)


def unchecked_subsets(
    automaton: RegisterA, *, marking: bool = False, satisfiable: bool = True, most: int | None = None
) -> RegisterA:
    """The same for an automaton whose runs are known not to overwrite registers that others will read."""

    def together(taken: _Taken) -> list[tuple[frozenset[str], _Taken]]:
        return [(SKIPPED.union(*(t.output for t in taken)) if marking else SKIPPED, taken)]

    return _subsets(automaton, together, most, satisfiable=satisfiable)


def _subsets(
    automaton: A,
    parts: Callable[[_Taken], Iterable[tuple[frozenset[str], _Taken]]],
    most: int | None,
    *,
    accepting: bool = True,
    satisfiable: bool = True,
) -> A:
    """The reachable subsets; ``parts`` divides the transitions that a minterm allows, with an output for each part.

    Those are final that contain a final state; unless ``accepting``, the others.
    """
    budget = forms.steps_allowed(most)

    def successors(subset: frozenset[State]) -> Iterator[Successor[frozenset[State]]]:
        for condition, taken in steps_by_minterm(automaton, subset, budget, satisfiable=satisfiable):
            for output, part in parts(taken):
                writes = frozenset[str]().union(*(t.writes for t in part))
                yield frozenset(t.target for t in part), condition, output, writes

    def is_final(subset: frozenset[State]) -> bool:
        return subset.isdisjoint(automaton.finals) is not accepting

    return automaton.built([automaton.starts], successors, is_final, automaton.registers)


@defined_for(CEA, UCEA, SRT, RMA)
def complete(automaton: AnyA) -> AnyA:
    """The same with a state "dead" for all events that no transition reads; unchanged if there are none."""
    automaton.refuse_epsilon()
    dead: State = "dead" if "dead" not in automaton.states else next(fresh_names(automaton.states, "dead"))
    added = []
    for state in sorted_states(automaton.states):
        conditions = [t.guard for t in automaton.leaving(state)]
        if not exhaustive(conditions):
            left = conjunction([not_satisfied(condition) for condition in conditions])
            added.append(automaton.transition.of(state, dead, left))
    if not added:
        return automaton
    return automaton.with_transitions((*automaton.transitions, *added, automaton.transition.of(dead, dead, TRUE)))


@defined_for(CEA, UCEA, SRT, RMA)
def complement(automaton: AnyA) -> AnyA:
    """The automaton that accepts exactly the other strings, marking nothing; `io_complement` has the other matches.

    Raises `NotDeterministicError` unless the automaton is certain to be deterministic.
    """
    if not is_deterministic(automaton):
        raise NotDeterministicError(
            "only a deterministic automaton can be complemented by exchanging its final states; "
            "io_complement(…) and complement_windowed(…) make it deterministic first"
        )
    whole = complete(automaton).without_output()
    return whole.with_transitions(whole.transitions, finals=whole.states - whole.finals)


@defined_for(SRT, RMA)
def complement_windowed(automaton: RegisterA, window: int) -> RegisterA:
    """The automaton that accepts what ``T`` does not, and every string of more than ``window`` events."""
    return complement(determinize_windowed(automaton, window))
