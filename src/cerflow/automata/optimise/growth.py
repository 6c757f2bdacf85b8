"""Collections of which partial matches may keep as many different ones as there are choices of events."""

from __future__ import annotations

from functools import cache

from cerflow.automata.model.fragment import reachable_states
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition
from cerflow.conditions.connectives import conjuncts, not_true, two_valued
from cerflow.conditions.contradiction import contradicts
from cerflow.values.operators import Operator

__all__ = ["growing_collections"]


def growing_collections(transducer: Transducer) -> list[int]:
    """The registers with a collection that some runs add an event to and others do not, again and again.

    Then the contents may be as many as the sets of such events. Where all runs add the same, there is one content.
    """
    return [
        number
        for number, register in enumerate(transducer.registers)
        if register.keeps is Accumulation.SET and not _one_suffices(register) and _grows(transducer, number)
    ]


def _one_suffices(register: Register) -> bool:
    return len(register.covering) == 1 and register.covering[0] is not Operator.EQ


def _grows(transducer: Transducer, number: int) -> bool:
    live = transducer.live()
    kept = [t for t in transducer.transitions if _keeps(t, number) and number in live[t.target]]
    edges: list[list[int]] = [[] for _ in range(transducer.states)]
    for t in kept:
        edges[t.source].append(t.target)
    #: The transitions on which a run comes back to their source, by this.
    back: dict[int, list[Transition]] = {}
    reached = cache(lambda state: reachable_states([state], edges))
    for source in {t.source for t in kept if _adds(t, number)}:
        back[source] = [t for t in kept if t.source == source and source in reached(t.target)]
    return any(
        _adds(t, number) and not _adds(other, number) and _compatible(t, other)
        for found in back.values()
        for t in found
        for other in found
    )


def _keeps(t: Transition, register: int) -> bool:
    return not any(w.register == register and w.fresh for w in t.writes)


def _adds(t: Transition, register: int) -> bool:
    return any(w.register == register for w in t.writes)


def _compatible(t: Transition, other: Transition) -> bool:
    """Whether an event may allow both, as far as a cheap test shows."""
    if contradicts([*conjuncts(t.test), *conjuncts(other.test)]):
        return False
    excluded = {two_valued(not_true(atom)) for atom in t.atoms}
    return not any(two_valued(atom) in excluded for atom in other.atoms)
