"""The register match automaton (RMA; 003 §4, Definitions 4 and 5), and its reading as a transducer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cerflow.language.condition import Condition
from cerflow.papers.model.conditions import HEAD, register_selection, rename_registers, settle_condition
from cerflow.papers.model.drawable import Drawable
from cerflow.papers.model.faults import EpsilonTransitionError, MissingRegisterError, RegisterSelectionError
from cerflow.papers.model.srt import (
    SKIPPED,
    Automaton,
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    check_parts,
    fresh_names,
    sorted_states,
)

__all__ = ["MatchTransition", "RegisterMatchAutomaton", "as_register_match_automaton", "as_transducer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTransition:
    """``(source, f, rs) → (target, R, o)``: a formula, a register selection, the registers written, an output.

    ``formula`` uses its ``parameters`` as labels, and bare attributes for the current event. ``selection`` gives a
    register or `HEAD` ("~") for each parameter, in their order. The formula may be given as text; None is ε.
    """

    source: State
    target: State
    formula: Condition | None = None
    parameters: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    writes: frozenset[str] = frozenset()
    output: frozenset[str] = SKIPPED

    def __post_init__(self) -> None:
        settle_condition(self, "formula")
        if self.formula is None and (self.parameters or self.selection):
            raise EpsilonTransitionError("an ε-transition reads no event, so it has no register selection")
        if len(self.parameters) != len(self.selection) or len(set(self.parameters)) != len(self.parameters):
            raise RegisterSelectionError(
                f"a register selection ({', '.join(self.selection)}) for the parameters ({', '.join(self.parameters)})"
            )
        if self.formula is not None:
            for parameter in register_selection(self.formula):
                if parameter not in self.parameters:
                    raise RegisterSelectionError(f"the formula uses {parameter}, which is not a parameter")

    @property
    def condition(self) -> Condition | None:
        """The formula applied to its register selection."""
        if self.formula is None:
            return None
        return rename_registers(self.formula, dict(zip(self.parameters, self.selection)))


@dataclass(frozen=True, kw_only=True)
class RegisterMatchAutomaton(Drawable):
    """``A = (Q, Qˢ, Qᶠ, RG, Δ)``; raises a subclass of `AutomatonError` for parts that do not fit together."""

    states: frozenset[State]
    starts: frozenset[State]
    finals: frozenset[State]
    transitions: tuple[MatchTransition, ...] = ()
    registers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self)
        for t in self.transitions:
            for register in t.selection:
                if register != HEAD and register not in self.registers:
                    raise MissingRegisterError(f"there is no register {register}")

    @classmethod
    def of(
        cls, transitions: Iterable[MatchTransition], *, starts: Iterable[State], finals: Iterable[State]
    ) -> RegisterMatchAutomaton:
        """The automaton with these transitions, the states they name, and the registers they use."""
        made = tuple(transitions)
        first, last = frozenset(starts), frozenset(finals)
        registers = {r for t in made for r in (*t.selection, *t.writes)} - {HEAD}
        return cls(
            states=first | last | {q for t in made for q in (t.source, t.target)},
            starts=first,
            finals=last,
            transitions=made,
            registers=tuple(sorted(registers)),
        )

    def __str__(self) -> str:
        return f"RMA: {len(self.states)} states, {len(self.transitions)} transitions, {len(self.registers)} registers"


def as_transducer(automaton: Automaton) -> SymbolicRegisterTransducer:
    """The SRT with the same runs as an automaton; several start states become one new state with ε to each."""
    transitions = [
        SymbolicTransition(source=t.source, target=t.target, condition=t.condition, output=t.output, writes=t.writes)
        for t in automaton.transitions
    ]
    states = set(automaton.states)
    if len(automaton.starts) == 1:
        (start,) = automaton.starts
    else:
        start = next(fresh_names((q for q in states if isinstance(q, str)), "start"))
        states.add(start)
        transitions += [SymbolicTransition(source=start, target=q) for q in sorted_states(automaton.starts)]
    return SymbolicRegisterTransducer(
        states=frozenset(states),
        start=start,
        finals=automaton.finals,
        transitions=tuple(transitions),
        registers=automaton.registers,
    )


def as_register_match_automaton(transducer: SymbolicRegisterTransducer) -> RegisterMatchAutomaton:
    """The RMA with the same runs: the registers that a condition reads are its parameters and its selection."""
    return RegisterMatchAutomaton(
        states=transducer.states,
        starts=transducer.starts,
        finals=transducer.finals,
        registers=transducer.registers,
        transitions=tuple(
            MatchTransition(
                source=t.source,
                target=t.target,
                formula=t.condition,
                parameters=t.reads,
                selection=t.reads,
                writes=t.writes,
                output=t.output,
            )
            for t in transducer.transitions
        ),
    )
