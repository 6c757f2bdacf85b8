"""The models for which a construction is defined; other models are refused, and the error names a conversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from cerflow.base.errors import expect
from cerflow.theory.papers.model.automaton import Automaton, RegisterAutomaton
from cerflow.theory.papers.model.cea import ComplexEventAutomaton, MemorylessAutomaton, UnaryComplexEventAutomaton
from cerflow.theory.papers.model.faults import TransitionKindError
from cerflow.theory.papers.model.rma import RegisterMatchAutomaton
from cerflow.theory.papers.model.srt import SymbolicRegisterTransducer

CEA, UCEA, RMA, SRT = (
    ComplexEventAutomaton,
    UnaryComplexEventAutomaton,
    RegisterMatchAutomaton,
    SymbolicRegisterTransducer,
)

#: An automaton of one of the four models, of those without memory, of those with registers.
AnyA = TypeVar("AnyA", bound=Automaton)
FreeA = TypeVar("FreeA", bound=MemorylessAutomaton)
RegisterA = TypeVar("RegisterA", bound=RegisterAutomaton)

F = TypeVar("F", bound=Callable[..., Any])

#: What makes an automaton of each model; an RMA is as good as an SRT.
_CONVERSIONS: dict[type, str] = {CEA: "as_complex_event_automaton", UCEA: "as_unary_automaton", SRT: "as_transducer"}


def defined_for(*models: type[Automaton]) -> Callable[[F], F]:
    """Decorator of a construction that is defined for automata of these models, all of the same one.

    An SRT given with an RMA is read as an RMA. What does not fit raises `TransitionKindError`.
    """

    def decorated(construction: F) -> F:
        @wraps(construction)
        def called(*arguments: Any, **options: Any) -> Any:
            if arguments:
                expect(arguments[0], Automaton, f"{construction.__name__} takes {' or '.join(map(_name, models))}")
            given = [value for value in (*arguments, *options.values()) if isinstance(value, Automaton)]
            _check(construction.__name__, models, given)
            if {type(value) for value in given} == {RMA, SRT}:
                arguments = tuple(_read_as_rma(value) for value in arguments)
                options = {name: _read_as_rma(value) for name, value in options.items()}
            return construction(*arguments, **options)

        return cast(F, called)

    return decorated


def _read_as_rma(value: Any) -> Any:
    return value.as_model(RMA) if isinstance(value, SRT) else value


def _check(name: str, models: tuple[type[Automaton], ...], given: list[Automaton]) -> None:
    for value in given:
        if not isinstance(value, models):
            wanted = " or ".join(map(_name, models))
            conversions = " or ".join(f"{_CONVERSIONS[model]}(…)" for model in models if model is not RMA)
            raise TransitionKindError(
                f"{name} takes {wanted}, not {_name(type(value))}; {conversions} makes one, if it can"
            )
    if {type(value) for value in given} not in ({RMA, SRT}, *({model} for model in models), set()):
        kinds = " and ".join(_name(type(value)) for value in given)
        raise TransitionKindError(f"{name} takes automata of one model, not {kinds}")


def _name(model: type[Automaton]) -> str:
    return f"{'an' if model in (RMA, SRT) else 'a'} {model.model}"
