"""Transducers over streams: a match may begin anywhere (004 Definition 32, 003 Algorithm 5)."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.base.events import Event
from cerflow.language.automaton import State, sorted_states
from cerflow.logic.conditions.connectives import TRUE
from cerflow.theory.papers.constructions.closure import Schemas
from cerflow.theory.papers.constructions.determinize import is_deterministic, is_determinizable, unchecked_subsets
from cerflow.theory.papers.constructions.windows import check_window
from cerflow.theory.papers.model.automaton import Automaton, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import holds
from cerflow.theory.papers.model.faults import AutomatonError, NotDeterministicError, NotDeterminizableError
from cerflow.theory.papers.model.models import RMA, SRT, RegisterA, defined_for


@defined_for(SRT, RMA)
def streaming(automaton: RegisterA) -> RegisterA:
    """``⊤* · T``: the matches of ``T`` in S[m…k] for some m are the matches of the result in S[0…k]."""
    schemas = Schemas()
    anything = schemas.star(schemas.terminal(TRUE))
    whole = schemas.concatenation(anything, schemas.embedded(automaton))
    return whole.automaton(type(automaton), automaton.registers).renumbered()


@defined_for(SRT, RMA)
def with_start_loop(automaton: RegisterA) -> RegisterA:
    """The same with a loop on each start state instead of a prefix; no transition may lead to the start.

    Do not apply a subset construction to it: all candidates would share the registers (erratum 11.9), so it refuses.
    """
    if any(t.target in automaton.starts for t in automaton.transitions):
        raise AutomatonError("a transition enters the start state, so a loop there would skip events of a match")
    loops = [automaton.transition.of(q, q, TRUE) for q in sorted_states(automaton.starts)]
    return automaton.with_transitions((*loops, *automaton.transitions))


@defined_for(SRT, RMA)
def staggered(tree: RegisterA, window: int, *, most: int | None = None) -> RegisterA:
    """`StaggeredCopies` as one deterministic automaton: it accepts a string if ``tree`` accepts a suffix of it.

    ``tree`` has no walk of more than ``window`` events, see `unroll`; whether it accepts the empty string does not
    matter. A subset of its states holds the states of each of ``window`` copies, and the copy that begins next. Raises
    `NotDeterminizableError` if ``tree`` is not a tree.
    """
    tree.refuse_epsilon()
    if not is_determinizable(tree):
        raise NotDeterminizableError("the copies have to be trees; unroll the automaton for a window first")
    names = fresh_names(tree.registers)
    transitions: list[TransitionLike] = []
    finals: list[State] = []
    for d in range(window):
        begin: State = ("begin", d)
        transitions.append(tree.transition.of(begin, ("begin", (d + 1) % window), TRUE))
        own = tree.renamed({register: next(names) for register in sorted(tree.written)})
        for t in own.transitions:
            transitions.append(t.between(begin if t.source in tree.starts else (d, t.source), (d, t.target)))
        finals += [(d, state) for state in tree.finals if state not in tree.starts]
    copies = tree.made(transitions, starts=[("begin", 0)], finals=finals)
    # When a copy starts again, its run from ``window`` events ago has ended.
    return unchecked_subsets(copies, most=most)


class StaggeredCopies:
    """Streaming with a deterministic automaton for strings of at most ``window`` events, by that many copies of it.

    Copy d reads the strings that begin at positions d, d + w, d + 2w, …, each with its own registers. A match ends
    where some copy is in a final state. A start loop would make all candidates share the registers instead, and miss
    matches from w = 3 on (erratum 11.9). An event costs the evaluation of at most w states' conditions.
    """

    def __init__(self, transducer: Automaton, window: int) -> None:
        if not is_deterministic(transducer):
            raise NotDeterministicError("a copy follows one run, so the automaton has to be deterministic")
        check_window(window)
        self._transducer = transducer
        #: The copies that are running, by where they began modulo ``window``: their states and registers.
        self._copies: list[tuple[State, dict[str, Event]] | None] = [None] * window
        self._read = 0

    def read(self, event: Event) -> bool:
        """Read one event; whether a match ends with it."""
        self._copies[self._read % len(self._copies)] = next(((q, {}) for q in self._transducer.starts), None)
        self._read += 1
        self._copies = [None if copy is None else self._step(*copy, event) for copy in self._copies]
        return any(copy is not None and copy[0] in self._transducer.finals for copy in self._copies)

    def detections(self, events: Sequence[Event]) -> list[int]:
        """The indices of the events with which a match ends."""
        return [n for n, event in enumerate(events) if self.read(event)]

    def _step(self, state: State, held: dict[str, Event], event: Event) -> tuple[State, dict[str, Event]] | None:
        for t in self._transducer.leaving(state):
            if t.condition is not None and holds(t.condition, event, held):
                return t.target, {**held, **dict.fromkeys(t.writes, event)}
        return None
