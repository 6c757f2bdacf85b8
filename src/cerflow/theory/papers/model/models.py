"""The four models: notations of the one automaton that check what each allows, their constructions, and their pictures.

`ComplexEventAutomaton` (CEA; P1 §6) marks events, `UnaryComplexEventAutomaton` (UCEA; P2 §5.1) labels them. Both have
several start states, and conditions on the current event alone. An accepting run of a CEA has marked the last event it
read (so nothing depends on the future), a run of a UCEA need not. `RegisterMatchAutomaton` (RMA; 003 §4, Definitions 4
and 5) and `SymbolicRegisterTransducer` (SRT; 004 Definition 21) have registers.

Pictures are in the notation of the papers. Edges of a transducer read ``φ ↑ o ↓ W`` (004), of a register match
automaton ``f / rs / R / o`` (003). Outputs are • and ⊗; labels other than the one of ``MARK`` follow the •. Edges of a
complex event automaton read ``P | •`` or ``P | ◦`` (P1), with sets of labels ``P | {A, B}`` (P2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

from cerflow.base.errors import expect
from cerflow.language.automaton import HEAD, Model, State, rename_registers, show_state, sorted_states
from cerflow.language.condition import Condition, Not
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Satisfied, Shown
from cerflow.look.pictures.diagram import Arrow, Diagram, Line, Piece, Vertex, plain
from cerflow.look.pictures.diagram import to_dot as dot_of
from cerflow.look.pictures.diagram import to_mermaid as mermaid_of
from cerflow.look.pictures.diagram_svg import to_svg as svg_of
from cerflow.look.pictures.svg import Theme
from cerflow.theory.papers.model import faults
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton, TransitionLike, check_state, fresh_names
from cerflow.theory.papers.model.conditions import as_condition, register_selection

__all__ = ["ComplexEventAutomaton", "ComplexEventTransition"]
__all__ += ["UnaryComplexEventAutomaton", "UnaryComplexEventTransition"]
__all__ += ["MatchTransition", "RegisterMatchAutomaton", "SymbolicRegisterTransducer", "SymbolicTransition"]
__all__ += ["as_register_match_automaton", "as_transducer", "show_edge", "to_dot", "to_mermaid", "to_svg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemorylessTransition(TransitionLike):
    condition: Condition = TRUE
    output: frozenset[str] = field(init=False, repr=False, compare=False)
    writes: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.condition is None:
            raise faults.EpsilonTransitionError("every transition needs a condition here; TRUE always holds")
        TransitionLike.__post_init__(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexEventTransition(_MemorylessTransition):
    """``(source, P, m, target)``: an event that satisfies the condition is marked (•), or only read (◦)."""

    marks: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.marks, bool):
            raise faults.LabelSetError(f"marks is True (•) or False (◦), not {self.marks!r}")
        object.__setattr__(self, "output", MARKED if self.marks else SKIPPED)
        _MemorylessTransition.__post_init__(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryComplexEventTransition(_MemorylessTransition):
    """``(source, P, L, target)``: an event that satisfies the condition gets the labels L, possibly none."""

    labels: frozenset[str] = SKIPPED

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", self.labels)
        _MemorylessTransition.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class MemorylessAutomaton(Automaton):
    """The common part of both automata: ``A = (Q, Δ, I, F)``."""

    registers: tuple[str, ...] = field(default=(), init=False, repr=False)

    @property
    def label_sets(self) -> frozenset[frozenset[str]]:
        """The sets of labels that transitions give, and the empty one."""
        return frozenset((SKIPPED, *(t.output for t in self.transitions)))


@dataclass(frozen=True, kw_only=True)
class ComplexEventAutomaton(MemorylessAutomaton):
    """A complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and marks C, with n in C.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    transitions: tuple[ComplexEventTransition, ...] = ()

    model: ClassVar[Model] = Model.CEA
    transition: ClassVar[type[TransitionLike]] = ComplexEventTransition


@dataclass(frozen=True, kw_only=True)
class UnaryComplexEventAutomaton(MemorylessAutomaton):
    """A unary complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and labels as C does.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    transitions: tuple[UnaryComplexEventTransition, ...] = ()

    model: ClassVar[Model] = Model.UCEA
    transition: ClassVar[type[TransitionLike]] = UnaryComplexEventTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTransition(TransitionLike):
    """``(source, f, rs) → (target, R, o)``: a formula, a register selection, the registers written, an output.

    ``formula`` uses its ``parameters`` as labels, and bare attributes for the current event. ``selection`` gives a
    register or `HEAD` ("~") for each parameter, in their order. The formula may be given as text; None is ε.
    """

    condition: Condition | None = field(init=False, repr=False, compare=False)
    formula: Condition | None = None
    parameters: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.formula is None and (self.parameters or self.selection):
            raise faults.EpsilonTransitionError("an ε-transition reads no event, so it has no register selection")
        if len(self.parameters) != len(self.selection) or len(set(self.parameters)) != len(self.parameters):
            raise faults.RegisterSelectionError(
                f"a register selection ({', '.join(self.selection)}) for the parameters ({', '.join(self.parameters)})"
            )
        formula = condition = None
        if self.formula is not None:
            formula = as_condition(self.formula)
            for parameter in register_selection(formula):
                if parameter not in self.parameters:
                    raise faults.RegisterSelectionError(f"the formula uses {parameter}, which is not a parameter")
            condition = rename_registers(formula, dict(zip(self.parameters, self.selection)))
        object.__setattr__(self, "formula", formula)
        object.__setattr__(self, "condition", condition)
        TransitionLike.__post_init__(self)

    @property
    def reads(self) -> tuple[str, ...]:
        """The registers of the selection, whether the formula uses their parameters or not."""
        return tuple(r for r in self.selection if r != HEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicTransition(TransitionLike):
    """``source, condition ↑ output ↓ writes → target``; the condition, which may be given as text, None is ε."""


class RegisterAutomaton(Automaton):
    """What the automata with registers have: RMA and SRT, which the constructions of 003 and 004 take."""


@dataclass(frozen=True, kw_only=True)
class RegisterMatchAutomaton(RegisterAutomaton):
    """``A = (Q, Qˢ, Qᶠ, RG, Δ)``; raises a subclass of `AutomatonError` for parts that do not fit together."""

    transitions: tuple[MatchTransition, ...] = ()

    model: ClassVar[Model] = Model.RMA
    transition: ClassVar[type[TransitionLike]] = MatchTransition


@dataclass(frozen=True, kw_only=True)
class SymbolicRegisterTransducer(RegisterAutomaton):
    """``T = (Q, q_s, Q_f, R, Δ)``; also the SRA, by ignoring outputs.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    starts: frozenset[State] = field(init=False, repr=False, compare=False)
    start: State
    transitions: tuple[SymbolicTransition, ...] = ()

    model: ClassVar[Model] = Model.SRT
    transition: ClassVar[type[TransitionLike]] = SymbolicTransition

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", frozenset((check_state(self.start),)))
        super().__post_init__()

    @classmethod
    def of(  # type: ignore[override]
        cls,
        transitions: Iterable[SymbolicTransition],
        *,
        start: State,
        finals: Iterable[State],
        registers: Iterable[str] | None = None,
    ) -> Self:
        """The transducer with these transitions (once each), the states they name, and the registers they use."""
        return cls.made(transitions, starts=(start,), finals=finals, registers=registers)

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """The automaton of these parts; unless there is one start, a new one has ε-transitions to them."""
        starts = parts.pop("starts")
        if len(starts) == 1:
            return cls(start=next(iter(starts)), **parts)
        start = next(fresh_names(parts["states"], "start"))
        parts["states"] |= {start}
        parts["transitions"] += tuple(SymbolicTransition(source=start, target=q) for q in sorted_states(starts))
        return cls(start=start, **parts)


def as_transducer(automaton: Automaton) -> SymbolicRegisterTransducer:
    """The SRT with the same runs as an automaton; several start states become one new state with ε to each."""
    return automaton.as_model(SymbolicRegisterTransducer)


def as_register_match_automaton(automaton: Automaton) -> RegisterMatchAutomaton:
    """The RMA with the same runs: the registers that a condition reads are its parameters and its selection."""
    return automaton.as_model(RegisterMatchAutomaton)


CEA = ComplexEventAutomaton
UCEA = UnaryComplexEventAutomaton
RMA = RegisterMatchAutomaton
SRT = SymbolicRegisterTransducer

#: An automaton of one of the four models, of those without memory, of those with registers.
AnyA = TypeVar("AnyA", bound=Automaton)
FreeA = TypeVar("FreeA", bound=MemorylessAutomaton)
RegisterA = TypeVar("RegisterA", bound=RegisterAutomaton)

F = TypeVar("F", bound=Callable[..., Any])

#: What makes an automaton of each model; an RMA is as good as an SRT.
_CONVERSIONS: dict[type, str] = {CEA: "as_complex_event_automaton", UCEA: "as_unary_automaton", SRT: "as_transducer"}


def defined_for(*models: type[Automaton]) -> Callable[[F], F]:
    """Decorator of a construction that is defined for automata of these models, all of the same one.

    An SRT given with an RMA is read as an RMA. What does not fit raises `TransitionKindError`, with a conversion.
    """
    wanted = " or ".join(map(_name, models))
    conversions = " or ".join(f"{_CONVERSIONS[model]}(…)" for model in models if model is not RMA)

    def decorated(construction: F) -> F:
        name = construction.__name__

        @wraps(construction)
        def called(*arguments: Any, **options: Any) -> Any:
            if arguments:
                expect(arguments[0], Automaton, f"{name} takes {wanted}")
            given = [type(value) for value in (*arguments, *options.values()) if isinstance(value, Automaton)]
            for kind in given:
                if kind not in models:
                    raise faults.TransitionKindError(
                        f"{name} takes {wanted}, not {_name(kind)}; {conversions} makes one, if it can"
                    )
            if set(given) == {RMA, SRT}:
                arguments = tuple(_read_as_rma(value) for value in arguments)
                options = {name: _read_as_rma(value) for name, value in options.items()}
            elif len(set(given)) > 1:
                raise faults.TransitionKindError(
                    f"{name} takes automata of one model, not {' and '.join(map(_name, given))}"
                )
            return construction(*arguments, **options)

        return cast(F, called)

    return decorated


def _read_as_rma(value: Any) -> Any:
    return value.as_model(RMA) if isinstance(value, SRT) else value


def _name(model: type[Automaton]) -> str:
    return f"{'an' if model in (RMA, SRT) else 'a'} {model.model}"


def show_edge(t: TransitionLike) -> str:
    """The text on the edge of a transition: ``φ ↑ o ↓ W``, ``f / rs / R / o``, ``P | m``, ``P | L``, or ε."""
    return plain(_pieces(t))


def automaton_diagram(automaton: Automaton) -> Diagram:
    """The automaton as a diagram; start states have an arrow from nowhere, final ones two circles."""
    number = {state: k for k, state in enumerate(sorted_states(automaton.states))}
    return Diagram(
        "automaton",
        "s",
        [Vertex(show_state(state), state in automaton.starts, state in automaton.finals) for state in number],
        [Arrow(number[t.source], number[t.target], (_pieces(t),), bool(t.output)) for t in automaton.transitions],
    )


def to_dot(automaton: Automaton) -> str:
    """The automaton in the language of Graphviz: start states have an arrow from nowhere, final ones two circles."""
    return dot_of(automaton_diagram(automaton))


def to_mermaid(automaton: Automaton) -> str:
    """The automaton as a Mermaid flow chart, which Markdown viewers draw; as in `to_dot`."""
    return mermaid_of(automaton_diagram(automaton))


def to_svg(automaton: Automaton, *, theme: Theme = "auto") -> str:
    """The automaton as SVG; see `cerflow.Query.to_svg` for ``theme`` and errors."""
    return svg_of(automaton_diagram(automaton), title=str(automaton), theme=theme)


def _pieces(t: TransitionLike) -> Line:
    if t.condition is None:
        return (Piece("ε"),)
    if isinstance(t, ComplexEventTransition | UnaryComplexEventTransition):
        output = _set(t.output) if isinstance(t, UnaryComplexEventTransition) else "•" if t.marks else "◦"
        return Piece(_condition(t.condition)), Piece(" | "), Piece(output, "labels")
    output = "⊗" if t.output == SKIPPED else "•" if t.output == MARKED else f"• {', '.join(sorted(t.output))}"
    if isinstance(t, MatchTransition) and t.formula is not None:
        selection = f"({', '.join(t.selection)})" if len(t.selection) > 1 else "".join(t.selection) or "~"
        writes = Piece(f" / {_set(t.writes)}", "write")
        return Piece(f"{_condition(t.formula)} / {selection}"), writes, Piece(" / "), Piece(output, "labels")
    found = Piece(_condition(t.condition)), Piece(" ↑ "), Piece(output, "labels")
    return (*found, Piece(f" ↓ {', '.join(sorted(t.writes))}", "write")) if t.writes else found


def _condition(condition: Condition) -> str:
    if condition == TRUE:
        return "⊤"

    def visit(current: Node) -> Node:
        # Bottom-up: parts below a negation are already `Satisfied`.
        match current:
            case Not(Satisfied(inner)):
                return Shown(f"¬({show(inner)})")
        return current

    return show(transform(condition, visit))


def _set(names: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}" if names else "∅"
