"""The register match automaton (RMA; 003 §4, Definitions 4 and 5), and the reading of other automata as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from cerflow.language.automaton import Model
from cerflow.language.condition import Condition
from cerflow.theory.papers.model.automaton import SKIPPED, Automaton, Effect, RegisterAutomaton, State, TransitionLike
from cerflow.theory.papers.model.conditions import HEAD, register_selection, rename_registers, settle_condition
from cerflow.theory.papers.model.faults import EpsilonTransitionError, RegisterSelectionError


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTransition(TransitionLike):
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

    @classmethod
    def of_effect(cls, source: State, target: State, effect: Effect) -> Self:
        """A transition of this model; the registers that the condition reads are its parameters and its selection."""
        condition, output, writes = effect
        reads = () if condition is None else register_selection(condition)
        return cls(
            source=source,
            target=target,
            formula=condition,
            parameters=reads,
            selection=reads,
            writes=writes,
            output=output,
        )

    @property
    def condition(self) -> Condition | None:
        """The formula applied to its register selection."""
        if self.formula is None:
            return None
        return rename_registers(self.formula, dict(zip(self.parameters, self.selection)))

    @property
    def reads(self) -> tuple[str, ...]:
        """The registers of the selection, whether the formula uses their parameters or not."""
        return tuple(r for r in self.selection if r != HEAD)


@dataclass(frozen=True, kw_only=True)
class RegisterMatchAutomaton(RegisterAutomaton):
    """``A = (Q, Qˢ, Qᶠ, RG, Δ)``; raises a subclass of `AutomatonError` for parts that do not fit together."""

    transitions: tuple[MatchTransition, ...] = ()

    model: ClassVar[Model] = Model.RMA
    _KIND: ClassVar[type[TransitionLike]] = MatchTransition


def as_register_match_automaton(automaton: Automaton) -> RegisterMatchAutomaton:
    """The RMA with the same runs: the registers that a condition reads are its parameters and its selection."""
    return automaton.as_model(RegisterMatchAutomaton)
