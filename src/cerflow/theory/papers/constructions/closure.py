"""Union, concatenation, iteration and intersection of automata of all models, and transducers over streams.

With registers: 004 Definition 30 and Theorems 31 and 34, 003 Theorem 12, by the six schemas of 004 (Theorem 27, App.
A.2, Figure 11), which combine automata with one start and one final state. Registers of the second that the first has
too are renamed, so that neither sees the other's writes.

Without: P1 Proposition 1, and the operators of CEL on UCEA (P2 App. C.1) and CEA (P1 App. C.2). What a run reads for an
operand is at least one event there. All go through one new state between the end of a run and the beginning of the
next, from which the transitions leave that leave start states; so start states may be final, too, and be entered.

Over a stream a match may begin anywhere (004 Definition 32, 003 Algorithm 5).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from itertools import product as pairs

from cerflow.automata.compile.sremo.terminals import with_empty_registers
from cerflow.base.events import Event
from cerflow.language.automaton import Model, State, sorted_states
from cerflow.language.condition import Condition
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.theory.papers.constructions import determinize
from cerflow.theory.papers.constructions.normal_forms import check_window
from cerflow.theory.papers.model import faults
from cerflow.theory.papers.model.automaton import SKIPPED, A, Automaton, Effect, Successor, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import holds, in_units_of
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, RegisterA, defined_for

__all__ = ["concatenate", "intersect", "iterate", "set_apart", "union"]
__all__ += ["StaggeredCopies", "staggered", "streaming", "with_start_loop"]


@dataclass(frozen=True, slots=True)
class SingleEnded:
    """An automaton with one start and one final state."""

    start: int
    final: int
    transitions: tuple[TransitionLike, ...]

    def automaton(self, model: type[A], registers: Iterable[str]) -> A:
        """The same in the model of its transitions; its registers are those used and ``registers``."""
        whole = model.made(self.transitions, starts=(self.start,), finals=(self.final,))
        return whole.with_transitions(whole.transitions, registers=sorted({*whole.registers, *registers}))


class Schemas:
    """The schemas, over states that have not been used yet: numbers. Combined automata share their registers.

    ``kind`` is the class of the transitions that they add.
    """

    def __init__(self, kind: type[TransitionLike]) -> None:
        self.edge = kind.of
        self._numbers = count()

    def terminal(
        self, condition: Condition | None, output: frozenset[str] = SKIPPED, writes: Iterable[str] = ()
    ) -> SingleEnded:
        """``φ ↑ o ↓ W`` (Figures 11b and 11c); ``ε`` for None (Figure 11a)."""
        start, final = self._ends()
        return SingleEnded(start, final, (self.edge(start, final, condition, output, frozenset(writes)),))

    def concatenation(self, left: SingleEnded, right: SingleEnded) -> SingleEnded:
        """``e · f`` (Figure 11d): no new states."""
        joined = self.edge(left.final, right.start, None)
        return SingleEnded(left.start, right.final, (*left.transitions, joined, *right.transitions))

    def star(self, body: SingleEnded) -> SingleEnded:
        """``e*`` (Figure 11f); registers are not reset between repetitions."""
        once = self.between(body)
        back = self.edge(once.start, once.final, None), self.edge(body.final, body.start, None)
        return SingleEnded(once.start, once.final, (*once.transitions, *back))

    def embedded(self, automaton: Automaton) -> SingleEnded:
        """An automaton over new states; several start or final states get a common new one."""
        number: dict[State, int] = defaultdict(self._numbers.__next__)
        starts = [number[state] for state in sorted_states(automaton.starts)]
        transitions = [t.between(number[t.source], number[t.target]) for t in automaton.transitions]
        finals = [number[state] for state in sorted_states(automaton.finals)]
        start = starts[0] if len(starts) == 1 else next(self._numbers)
        final = finals[0] if len(finals) == 1 else next(self._numbers)
        transitions += [self.edge(start, q, None) for q in starts if q != start]
        transitions += [self.edge(q, final, None) for q in finals if q != final]
        return SingleEnded(start, final, tuple(transitions))

    def between(self, *parts: SingleEnded) -> SingleEnded:
        """``e + f`` (Figure 11e), ``∅`` without parts: in parallel between a new start and a new final state."""
        start, final = self._ends()
        found: list[TransitionLike] = []
        for part in parts:
            found += (self.edge(start, part.start, None), *part.transitions, self.edge(part.final, final, None))
        return SingleEnded(start, final, tuple(found))

    def _ends(self) -> tuple[int, int]:
        return next(self._numbers), next(self._numbers)


@defined_for(CEA, UCEA, SRT, RMA)
def union(left: AnyA, right: AnyA) -> AnyA:
    """``Match(T, S) = Match(T1, S) ∪ Match(T2, S)``; the operator OR of formulas."""
    if left.model.anywhere:
        return _by_schema(Schemas.between, left, set_apart(left, right))
    one, other = _side_by_side(left, right)
    whole, starts, finals = (*one.transitions, *other.transitions), one.starts | other.starts, one.finals | other.finals
    return left.made(whole, starts=starts, finals=finals, states=one.states | other.states)


@defined_for(CEA, UCEA, SRT, RMA)
def concatenate(left: AnyA, right: AnyA, *, strict: bool = False) -> AnyA:
    """``Match(T, S)`` is all ``M1 · M2`` with ``M1 ∈ Match(T1, S1)``, ``M2 ∈ Match(T2, S2)``, ``S = S1 · S2``.

    For CEA and UCEA that is the operator ``;`` of formulas, where S1 and S2 have an event at least, and S1 of a CEA
    ends with a mark. With ``strict`` it is ``:``, where S1 ends and S2 begins with an event that has a label. Raises
    `TransitionKindError` for ``strict`` with registers.
    """
    if left.model.anywhere:
        _refuse_strict("concatenate", left, strict)
        return _by_schema(Schemas.concatenation, left, set_apart(left, right))
    one, other = _side_by_side(left, right)
    whole = (*one.transitions, *other.transitions, *_passing(one, other, strict))
    return one.with_transitions(whole, finals=other.finals, states=one.states | other.states)


@defined_for(CEA, UCEA, SRT, RMA)
def iterate(body: AnyA, *, strict: bool = False, empty_registers: bool = False) -> AnyA:
    """Any number of repetitions, one after the other: star for SRT and RMA, the operator ``+`` for CEA and UCEA.

    With ``strict`` it is ``:+`` of formulas, as ``:`` in `concatenate`. Registers keep their contents from one
    repetition to the next, as in SREMO (Definition 17). With ``empty_registers`` every repetition begins with empty
    ones, as Definition 30 says; the two differ if a repetition may read a register before it writes it (erratum 11.5).
    States then say which registers the repetition has written, and atoms on the others are false. Raises
    `TransitionKindError` for ``strict`` with registers.
    """
    if body.model.anywhere:
        _refuse_strict("iterate", body, strict)
        return _by_schema(Schemas.star, _with_written_registers(body) if empty_registers else body)
    return body.with_transitions((*body.transitions, *_passing(body, body, strict)))


@defined_for(CEA, UCEA, SRT, RMA)
def intersect(left: AnyA, right: AnyA) -> AnyA:
    """``Match(T, S) = Match(T1, S) ∩ Match(T2, S)``; states are the reachable pairs of states.

    004 App. A.4, P1 Proposition 1, and AND of P2 §5.2. Only transitions with the same output are combined (erratum
    11.4): with the printed product, an event that one side marks and the other skips would be skipped, and the result
    would not be a match of the first side. Registers of the second that the first has too are renamed. Raises
    `EpsilonFreeError` for automata with ε-transitions.
    """
    return product(left, set_apart(left, right))


def product(left: AnyA, right: AnyA) -> AnyA:
    """The same with registers that both may read; raises `SharedRegistersError` if one writes what the other uses."""
    left.refuse_epsilon()
    right.refuse_epsilon()
    shared = (left.written & (right.written | right.read)) | (right.written & left.read)
    if shared:
        raise faults.SharedRegistersError(f"one side writes register {min(shared)}, which the other one uses")

    def successors(place: tuple[State, State]) -> Iterator[Successor[tuple[State, State]]]:
        for one, other in pairs(left.leaving(place[0]), right.leaving(place[1])):
            conditions = [*conjuncts(one.guard), *conjuncts(other.guard)]
            if one.output == other.output and not determinize.contradictory(conditions):
                yield (one.target, other.target), conjunction(conditions), one.output, one.writes | other.writes

    return left.built(
        pairs(sorted_states(left.starts), sorted_states(right.starts)),
        successors,
        lambda place: place[0] in left.finals and place[1] in right.finals,
        dict.fromkeys((*left.registers, *right.registers)),
    )


def set_apart(left: AnyA, right: AnyA) -> AnyA:
    """The second automaton, with new names for the registers that the first one has, too."""
    names = fresh_names((*left.registers, *right.registers))
    return right.renamed({r: next(names) for r in right.registers if r in left.registers})


def _by_schema(schema: Callable[..., SingleEnded], *parts: AnyA) -> AnyA:
    schemas = Schemas(parts[0].transition)
    whole = schema(schemas, *map(schemas.embedded, parts))
    return whole.automaton(type(parts[0]), [r for part in parts for r in part.registers]).renumbered()


def _with_written_registers(automaton: AnyA) -> AnyA:
    """The same with states that record which registers have been written; atoms on the others are FALSE."""

    def step(written: frozenset[str], t: TransitionLike) -> Iterator[tuple[frozenset[str], Effect]]:
        condition = None if t.condition is None else with_empty_registers(t.condition, written)
        yield written | t.writes, (condition, t.output, t.writes)

    return automaton.tracked(frozenset[str](), step, registers=automaton.registers)


def _side_by_side(left: AnyA, right: AnyA) -> tuple[AnyA, AnyA]:
    return left.relocated({q: (0, q) for q in left.states}), right.relocated({q: (1, q) for q in right.states})


def _passing(left: AnyA, right: AnyA, strict: bool) -> Iterator[TransitionLike]:
    """The transitions from the runs of one automaton to those of another, or of the same again."""
    between: State = next(fresh_names(left.states | right.states, "between"))
    marked = strict or left.model is Model.CEA
    ends = [t for t in left.transitions if t.target in left.finals and (t.output or not marked)]
    begins = [t for t in right.transitions if t.source in right.starts and (t.output or not strict)]
    yield from (t.between(t.source, between) for t in ends)
    yield from (t.between(between, t.target) for t in begins)
    if left is right:
        # A repetition of one event, which the printed construction of :+ forgets (erratum E6).
        yield from (t.between(between, between) for t in begins if t in ends)


def _refuse_strict(name: str, automaton: AnyA, strict: bool) -> None:
    if strict:
        raise faults.TransitionKindError(
            f"{name}(…, strict=True) takes a CEA or a UCEA, not an {automaton.model}; as_complex_event_automaton(…) or "
            "as_unary_automaton(…) makes one, if it can"
        )


@defined_for(SRT, RMA)
def streaming(automaton: RegisterA) -> RegisterA:
    """``⊤* · T``: the matches of ``T`` in S[m…k] for some m are the matches of the result in S[0…k]."""
    return _by_schema(lambda s, own: s.concatenation(s.star(s.terminal(TRUE)), own), automaton)


@defined_for(SRT, RMA)
def with_start_loop(automaton: RegisterA) -> RegisterA:
    """The same with a loop on each start state instead of a prefix; no transition may lead to the start.

    Do not apply a subset construction to it: all candidates would share the registers (erratum 11.9), so it refuses.
    """
    if any(t.target in automaton.starts for t in automaton.transitions):
        raise faults.AutomatonError("a transition enters the start state, so a loop there would skip events of a match")
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
    if not determinize.is_determinizable(tree):
        raise faults.NotDeterminizableError("the copies have to be trees; unroll the automaton for a window first")
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
    return determinize.unchecked_subsets(copies, most=most)


class StaggeredCopies:
    """Streaming with a deterministic automaton for strings of at most ``window`` events, by that many copies of it.

    Copy d reads the strings that begin at positions d, d + w, d + 2w, …, each with its own registers. A match ends
    where some copy is in a final state. A start loop would make all candidates share the registers instead, and miss
    matches from w = 3 on (erratum 11.9). An event costs the evaluation of at most w states' conditions.
    """

    def __init__(self, transducer: Automaton, window: int) -> None:
        if not determinize.is_deterministic(transducer):
            raise faults.NotDeterministicError("a copy follows one run, so the automaton has to be deterministic")
        check_window(window)
        self._transducer = transducer
        #: The states and registers of the copies that are running, the one that began first in front.
        self._copies = deque[tuple[State, dict[str, Event]] | None]([None] * window, window)

    def read(self, event: Event) -> bool:
        """Read one event; whether a match ends with it. Raises `QueryError` for durations if times are numbers."""
        return self._read(event, [event])

    def detections(self, events: Sequence[Event]) -> list[int]:
        """The indices of the events with which a match ends."""
        return [n for n, event in enumerate(events) if self._read(event, events)]

    def _read(self, event: Event, stream: Sequence[Event]) -> bool:
        # The copy that began a window ago makes room.
        self._copies.append(next(((q, {}) for q in self._transducer.starts), None))
        for k, copy in enumerate(self._copies):
            if copy is not None:
                self._copies[k] = self._step(*copy, event, stream)
        return any(copy is not None and copy[0] in self._transducer.finals for copy in self._copies)

    def _step(
        self, state: State, held: dict[str, Event], event: Event, stream: Sequence[Event]
    ) -> tuple[State, dict[str, Event]] | None:
        for t in self._transducer.leaving(state):
            if t.condition is not None and holds(in_units_of(stream, t.condition), event, held):
                return t.target, {**held, **dict.fromkeys(t.writes, event)}
        return None
