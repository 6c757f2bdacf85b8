"""Collections of which partial matches may keep as many different ones as there are choices of events."""

from __future__ import annotations

from cerflow.automata.model.fragment import reachable_states
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition
from cerflow.conditions.connectives import conjuncts, not_true, two_valued
from cerflow.conditions.contradiction import contradicts
from cerflow.values.operators import Operator

__all__ = ["growing_collection"]


def growing_collection(transducer: Transducer) -> Register | None:
    """A collection that some runs add an event to and others do not, again and again; None if there is none.

    Then the contents may be as many as the sets of such events. Where all runs add the same, there is one content.
    """
    live = transducer.live()
    for number, register in enumerate(transducer.registers):
        one_suffices = len(register.covering) == 1 and register.covering[0] is not Operator.EQ
        if register.keeps is not Accumulation.SET or one_suffices:
            continue
        kept = [t for t in transducer.transitions if _keeps(t, number) and number in live[t.target]]
        edges: list[list[int]] = [[] for _ in range(transducer.states)]
        for t in kept:
            edges[t.source].append(t.target)
        for t in kept:
            if not _adds(t, number) or t.source not in reachable_states([t.target], edges):
                continue
            for other in kept:
                if (
                    other.source == t.source
                    and not _adds(other, number)
                    and t.source in reachable_states([other.target], edges)
                    and _compatible(t, other)
                ):
                    return register
    return None


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
