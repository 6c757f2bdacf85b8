"""Determinisation of a windowed automaton, disregarding output (004 Algorithm 7, 003 Algorithm 8).

A subset of states shares its registers, so runs must not overwrite one another's. This holds in a tree, where one
transition writes each register, and if no written register is read. Otherwise there may be no deterministic automaton
at all (004 Theorem 38, Figure 4). A deterministic automaton has one run for a string, so it keeps only the language of
the original, not its matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from cerflow import limits
from cerflow.deciding.budget import Budget
from cerflow.papers.constructions.epsilon import eliminate_epsilon
from cerflow.papers.constructions.minterms import Minterm, construct_minterms
from cerflow.papers.constructions.single_register import to_single_register
from cerflow.papers.constructions.unroll import unroll
from cerflow.papers.model.faults import NotDeterminizableError
from cerflow.papers.model.models import SRT, defined_for
from cerflow.papers.model.srt import (
    SKIPPED,
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    TransitionLike,
    check_epsilon_free,
    explored,
    sorted_states,
)

__all__ = [
    "determinize_windowed",
    "is_determinizable",
    "subset_construction",
    "transitions_by_minterm",
    "unchecked_subsets",
]

T = TypeVar("T", bound=TransitionLike)


@defined_for(SRT)
def determinize_windowed(
    transducer: SymbolicRegisterTransducer, window: int, *, marking: bool = False, most: int | None = None
) -> SymbolicRegisterTransducer:
    """The complete deterministic automaton that accepts the strings of at most ``window`` events that ``T`` accepts.

    Eliminates ε-transitions, leaves one register to each transition, unrolls the transducer, and builds the subsets of
    its states; ``marking`` as in `subset_construction`.
    """
    single = to_single_register(eliminate_epsilon(transducer))
    return subset_construction(unroll(single, window, most=most).transducer, marking=marking, most=most)


@defined_for(SRT)
def subset_construction(
    transducer: SymbolicRegisterTransducer,
    *,
    marking: bool = False,
    satisfiable: bool = True,
    most: int | None = None,
) -> SymbolicRegisterTransducer:
    """The reachable subsets of states, including the empty one: a sink, so that the automaton is complete.

    All events are skipped, unless ``marking`` (003) gives them every label that a run would give them; this marks more
    than one match (erratum 11.10). ``satisfiable=False`` also follows minterms that no event satisfies. Raises
    `NotDeterminizableError` for an automaton whose runs could overwrite one another's registers.
    """
    check_epsilon_free(transducer)
    if not is_determinizable(transducer):
        raise NotDeterminizableError(
            "runs would overwrite the registers of one another; unroll the automaton for a window first"
        )
    return unchecked_subsets(transducer, marking=marking, satisfiable=satisfiable, most=most)


@defined_for(SRT)
def is_determinizable(transducer: SymbolicRegisterTransducer) -> bool:
    """Whether subsets can share the registers: a tree with one writer per register, or no written register is read."""
    if not transducer.written & transducer.read:
        return True
    entered = Counter(t.target for t in transducer.transitions)
    writers = Counter(register for t in transducer.transitions for register in t.writes)
    is_tree = transducer.start not in entered and all(n == 1 for n in entered.values())
    return is_tree and all(n == 1 for n in writers.values())


def unchecked_subsets(
    transducer: SymbolicRegisterTransducer,
    *,
    marking: bool = False,
    satisfiable: bool = True,
    most: int | None = None,
) -> SymbolicRegisterTransducer:
    """The same for an automaton whose runs are known not to overwrite registers that others will read."""
    budget = Budget(limits.PAPER_STEPS if most is None else most)

    def leaving(subset: frozenset[State]) -> Iterator[SymbolicTransition]:
        ways = [t for state in sorted_states(subset) for t in transducer.leaving(state)]
        for minterm, taken in transitions_by_minterm(ways, budget, satisfiable=satisfiable):
            yield SymbolicTransition(
                source=subset,
                target=frozenset(t.target for t in taken),
                condition=minterm.condition,
                output=SKIPPED.union(*(t.output for t in taken)) if marking else SKIPPED,
                writes=frozenset().union(*(t.writes for t in taken)),
            )

    start: frozenset[State] = transducer.starts
    found, transitions = explored([start], leaving)
    return SymbolicRegisterTransducer(
        states=found,
        start=start,
        finals=frozenset(subset for subset in found if subset & transducer.finals),
        transitions=transitions,
        registers=transducer.registers,
    )


def transitions_by_minterm(
    transitions: Iterable[T], budget: Budget, *, satisfiable: bool = True
) -> Iterator[tuple[Minterm, list[T]]]:
    """The minterms of the conditions of some transitions, and with each the transitions that it allows."""
    ways = [(t, t.condition) for t in transitions if t.condition is not None]
    for minterm in construct_minterms((c for _, c in ways), satisfiable=satisfiable, budget=budget):
        yield minterm, [t for t, condition in ways if minterm.entails(condition)]
