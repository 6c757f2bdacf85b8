"""Determinisation of a windowed automaton, disregarding output (004 Algorithm 7, 003 Algorithm 8).

A subset of states shares its registers, so runs must not overwrite one another's. This holds in a tree, where one
transition writes each register, and if no written register is read. Otherwise a deterministic automaton may not exist
at all (004 Theorem 38, Figure 4). A deterministic automaton has one run for a string, so it keeps only the language of
the original, not its matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from cerflow.base import limits
from cerflow.language.condition import Condition
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.papers.constructions.epsilon import eliminate_epsilon
from cerflow.theory.papers.constructions.minterms import construct_minterms
from cerflow.theory.papers.constructions.single_register import to_single_register
from cerflow.theory.papers.constructions.unroll import unroll
from cerflow.theory.papers.model.automaton import (
    SKIPPED,
    Automaton,
    State,
    Successor,
    check_epsilon_free,
    sorted_states,
)
from cerflow.theory.papers.model.faults import NotDeterminizableError
from cerflow.theory.papers.model.models import RMA, SRT, RegisterA, defined_for


@defined_for(SRT, RMA)
def determinize_windowed(
    automaton: RegisterA, window: int, *, marking: bool = False, most: int | None = None
) -> RegisterA:
    """The complete deterministic automaton that accepts the strings of at most ``window`` events that ``T`` accepts.

    Eliminates ε-transitions, leaves one register to each transition, unrolls the automaton, and builds the subsets of
    its states; ``marking`` as in `subset_construction`.
    """
    single = to_single_register(eliminate_epsilon(automaton))
    return subset_construction(unroll(single, window, most=most).transducer, marking=marking, most=most)


@defined_for(SRT, RMA)
def subset_construction(
    automaton: RegisterA, *, marking: bool = False, satisfiable: bool = True, most: int | None = None
) -> RegisterA:
    """The reachable subsets of states, including the empty one: a sink, so that the automaton is complete.

    All events are skipped, unless ``marking`` (003) gives them every label that a run would give them; this marks more
    than one match (erratum 11.10). ``satisfiable=False`` also follows minterms that no event satisfies. Raises
    `NotDeterminizableError` for an automaton whose runs could overwrite one another's registers.
    """
    check_epsilon_free(automaton)
    if not is_determinizable(automaton):
        raise NotDeterminizableError(
            "runs would overwrite the registers of one another; unroll the automaton for a window first"
        )
    return unchecked_subsets(automaton, marking=marking, satisfiable=satisfiable, most=most)


@defined_for(SRT, RMA)
def is_determinizable(automaton: Automaton) -> bool:
    """Whether subsets can share the registers: trees with one writer per register, or no written register is read."""
    if not automaton.written & automaton.read:
        return True
    entered = Counter(t.target for t in automaton.transitions)
    writers = Counter(register for t in automaton.transitions for register in t.writes)
    return automaton.starts.isdisjoint(entered) and all(n == 1 for n in (*entered.values(), *writers.values()))


def unchecked_subsets(
    automaton: RegisterA, *, marking: bool = False, satisfiable: bool = True, most: int | None = None
) -> RegisterA:
    """The same for an automaton whose runs are known not to overwrite registers that others will read."""
    budget = Budget(limits.PAPER_STEPS if most is None else most)

    def successors(subset: frozenset[State]) -> Iterator[Successor[frozenset[State]]]:
        for condition, taken in steps_by_minterm(automaton, subset, budget, satisfiable=satisfiable):
            output = SKIPPED.union(*(t.output for t in taken)) if marking else SKIPPED
            writes = frozenset[str]().union(*(t.writes for t in taken))
            yield frozenset(t.target for t in taken), condition, output, writes

    return type(automaton).built(
        [automaton.starts], successors, lambda subset: not subset.isdisjoint(automaton.finals), automaton.registers
    )


def steps_by_minterm(
    automaton: Automaton, states: Iterable[State], budget: Budget, *, satisfiable: bool = True
) -> Iterator[tuple[Condition, list[Any]]]:
    """The minterms of the conditions out of some states, and with each the transitions that it allows."""
    leaving = [t for state in sorted_states(states) for t in automaton.leaving(state) if t.condition is not None]
    for minterm in construct_minterms((t.condition for t in leaving), satisfiable=satisfiable, budget=budget):
        yield minterm.condition, [t for t in leaving if minterm.entails(t.condition)]
