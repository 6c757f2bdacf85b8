"""Union, concatenation and iteration of automata of all models, and strict ones (``:`` and ``:+``).

With registers: 004 Definition 30 and Theorem 31, 003 Theorem 12. Registers of the second that the first has too are
renamed, so that neither sees the other's writes.

Without: P1 Proposition 1, and the operators of CEL on UCEA (P2 App. C.1) and CEA (P1 App. C.2). What a run reads for an
operand is at least one event there. All go through one new state between the end of a run and the beginning of the
next, from which the transitions leave that leave start states; so start states may be final, too, and be entered.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.automata.compile.sremo.terminals import with_empty_registers
from cerflow.language.automaton import Model
from cerflow.theory.papers.constructions.schemas import Schemas
from cerflow.theory.papers.model.automaton import Effect, State, TransitionLike, fresh_names
from cerflow.theory.papers.model.faults import TransitionKindError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for


@defined_for(CEA, UCEA, SRT, RMA)
def union(left: AnyA, right: AnyA) -> AnyA:
    """``Match(T, S) = Match(T1, S) ∪ Match(T2, S)``; the operator OR of formulas."""
    if left.model.anywhere:
        schemas = Schemas()
        right = set_apart(left, right)
        whole = schemas.alternation(schemas.embedded(left), schemas.embedded(right))
        return whole.automaton(type(left), (*left.registers, *right.registers)).renumbered()
    one, other = _side_by_side(left, right)
    return type(left).made(
        (*one.transitions, *other.transitions),
        starts=one.starts | other.starts,
        finals=one.finals | other.finals,
        states=one.states | other.states,
    )


@defined_for(CEA, UCEA, SRT, RMA)
def concatenate(left: AnyA, right: AnyA, *, strict: bool = False) -> AnyA:
    """``Match(T, S)`` is all ``M1 · M2`` with ``M1 ∈ Match(T1, S1)``, ``M2 ∈ Match(T2, S2)``, ``S = S1 · S2``.

    For CEA and UCEA that is the operator ``;`` of formulas, where S1 and S2 have an event at least, and S1 of a CEA
    ends with a mark. With ``strict`` it is ``:``, where S1 ends and S2 begins with an event that has a label. Raises
    `TransitionKindError` for ``strict`` with registers.
    """
    if left.model.anywhere:
        _refuse_strict("concatenate", left, strict)
        schemas = Schemas()
        right = set_apart(left, right)
        whole = schemas.concatenation(schemas.embedded(left), schemas.embedded(right))
        return whole.automaton(type(left), (*left.registers, *right.registers)).renumbered()
    one, other = _side_by_side(left, right)
    return type(left).made(
        (*one.transitions, *other.transitions, *_passing(one, other, strict)),
        starts=one.starts,
        finals=other.finals,
        states=one.states | other.states,
    )


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
        schemas = Schemas()
        once = _with_written_registers(body) if empty_registers else body
        return schemas.star(schemas.embedded(once)).automaton(type(body), body.registers).renumbered()
    return body.with_transitions((*body.transitions, *_passing(body, body, strict)))


def set_apart(left: AnyA, right: AnyA) -> AnyA:
    """The second automaton, with new names for the registers that the first one has, too."""
    names = fresh_names((*left.registers, *right.registers))
    return right.renamed({r: next(names) for r in right.registers if r in left.registers})


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
    ends = [t for t in left.transitions if t.target in left.finals and _may_meet(left, t, strict)]
    begins = [t for t in right.transitions if t.source in right.starts and (t.output or not strict)]
    yield from (t.between(t.source, between) for t in ends)
    yield from (t.between(between, t.target) for t in begins)
    if left is right:
        # A repetition of one event, which the printed construction of :+ forgets (erratum E6).
        yield from (t.between(between, between) for t in begins if t in ends)


def _may_meet(automaton: AnyA, last: TransitionLike, strict: bool) -> bool:
    return bool(last.output) or not (strict or automaton.model is Model.CEA)


def _refuse_strict(name: str, automaton: AnyA, strict: bool) -> None:
    if strict:
        raise TransitionKindError(
            f"{name}(…, strict=True) takes a CEA or a UCEA, not an {automaton.model}; as_complex_event_automaton(…) or "
            "as_unary_automaton(…) makes one, if it can"
        )
