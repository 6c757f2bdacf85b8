"""What partial matches keep without bound: many different collections, and values of all events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from cerflow.automata.model.clock import has_ticks, never_reads_tick
from cerflow.automata.model.run_windows import reach_of_runs, windows_needed
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition, registers_read
from cerflow.base.graphs import gathered, grouped, reached
from cerflow.base.operators import Operator
from cerflow.language.condition import Attribute, Comparison, Function, LabelReference
from cerflow.language.node import walk
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjuncts, not_true, two_valued
from cerflow.logic.conditions.guards import Measure, Stored

_ORDERS = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)


def growing_collections(transducer: Transducer) -> list[int]:
    """The registers with a collection that some runs add an event to and others do not, again and again.

    Then the contents may be as many as the sets of such events. Where all runs add the same, there is one content.
    """
    asked = [
        number
        for number, register in enumerate(transducer.registers)
        # Of rows that cover one another one suffices.
        if register.keeps is Accumulation.SET and (len(register.covering) != 1 or register.covering[0] is Operator.EQ)
    ]
    live = transducer.live() if asked else ()
    return [number for number in asked if _grows(transducer, number, live)]


def _grows(transducer: Transducer, number: int, live: Sequence[frozenset[int]]) -> bool:
    kept = [t for t in transducer.transitions if _keeps(t, number) and number in live[t.target]]
    before = grouped(transducer.states, ((t.target, t.source) for t in kept))
    for state, leaving in gathered((t.source, t) for t in kept).items():
        adds = [any(w.register == number for w in t.writes) for t in leaving]
        if len(set(adds)) == 2:
            # The transitions on which a run may come back, without and with an event added; those with equal guards
            # count once.
            back = reached((state,), before.__getitem__)
            sides: tuple[dict[object, Transition], dict[object, Transition]] = ({}, {})
            for t, side in zip(leaving, adds):
                if t.target in back:
                    sides[side][t.test, t.atoms] = t
            if any(_compatible(t, other) for other, t in product(*(side.values() for side in sides))):
                return True
    return False


def _keeps(t: Transition, register: int) -> bool:
    return not any(w.register == register and w.fresh for w in t.writes)


def _compatible(t: Transition, other: Transition) -> bool:
    """Whether an event may allow both, as far as a cheap test shows."""
    if contradicts([*conjuncts(t.test), *conjuncts(other.test)]):
        return False
    excluded = {two_valued(not_true(atom)) for atom in t.atoms}
    return not any(two_valued(atom) in excluded for atom in other.atoms)


def kept_values(transducer: Transducer, *, detecting: bool = False) -> Register | None:
    """A register whose values are remembered for good; None if there is none, or a window drops them.

    Runs may wait in a state with its content, and no window need be open on every path from there to a match. So a
    partition has one configuration more for each different value of the events, however long the stream is. With
    ``detecting`` the best value stands for all where conditions only ask for less or greater.
    """
    if transducer.window is not None or reach_of_runs(transducer) is not None:
        return None
    live, windows = transducer.live(), windows_needed(transducer)
    for number, register in enumerate(transducer.registers):
        written = [w for t in transducer.transitions for w in t.writes if w.register == number]
        # Counters take few values; of the starts of a window only the latest is kept.
        leaves = [leaf for w in written for value in w.row for leaf in walk(value)]
        others = any(isinstance(leaf, Stored) and leaf.register != number for leaf in leaves)
        of_events = others or any(isinstance(leaf, Attribute | Measure | Function | LabelReference) for leaf in leaves)
        tests = [atom for t in transducer.transitions for atom in t.atoms if number in registers_read([atom])]
        one_suffices = detecting and all(isinstance(a, Comparison) and a.operator in _ORDERS for a in tests)
        if register.window is not None or not of_events or one_suffices:
            continue
        kept = (t for t in transducer.transitions if _keeps(t, number) and number in live[t.target])
        edges = grouped(transducer.states, ((t.source, t.target) for t in kept))
        for state, leaving in enumerate(transducer.leaving()):
            # A deadline takes runs on, when it passes.
            waits = has_ticks(transducer) and not all(map(never_reads_tick, leaving))
            bounded = waits or windows[state] or number not in live[state]
            if not bounded and state in reached(edges[state], edges.__getitem__):
                return register
    return None
