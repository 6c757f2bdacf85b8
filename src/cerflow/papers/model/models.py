"""The models for which a construction is defined; an RMA is taken as an SRT, other models are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from cerflow.papers.model.cea import ComplexEventAutomaton, UnaryComplexEventAutomaton
from cerflow.papers.model.drawable import Drawable
from cerflow.papers.model.faults import TransitionKindError
from cerflow.papers.model.rma import RegisterMatchAutomaton, as_register_match_automaton, as_transducer
from cerflow.papers.model.srt import SymbolicRegisterTransducer

__all__ = ["CEA", "SRT", "UCEA", "defined_for"]

CEA, UCEA, SRT = ComplexEventAutomaton, UnaryComplexEventAutomaton, SymbolicRegisterTransducer

F = TypeVar("F", bound=Callable[..., Any])

#: The short name of each model, and what makes an automaton of it.
_NAMES: dict[type, tuple[str, str]] = {
    CEA: ("a CEA", "as_complex_event_automaton"),
    UCEA: ("a UCEA", "as_unary_automaton"),
    SRT: ("an SRT or RMA", "as_transducer"),
    RegisterMatchAutomaton: ("an RMA", "as_register_match_automaton"),
}


def defined_for(*models: type) -> Callable[[F], F]:
    """Decorator of a construction that is defined for automata of these models, all of the same one.

    A construction for SRT takes RMA too, and then gives RMA in place of SRT. What does not fit raises
    `TransitionKindError`.
    """

    def decorated(construction: F) -> F:
        @wraps(construction)
        def called(*arguments: Any, **options: Any) -> Any:
            given = [value for value in arguments if isinstance(value, Drawable)]
            registers = SRT in models and any(isinstance(value, RegisterMatchAutomaton) for value in given)
            if registers:
                arguments = tuple(
                    as_transducer(value) if isinstance(value, RegisterMatchAutomaton) else value for value in arguments
                )
            _check(construction.__name__, models, [value for value in arguments if isinstance(value, Drawable)])
            made = construction(*arguments, **options)
            return as_register_match_automaton(made) if registers and isinstance(made, SRT) else made

        return cast(F, called)

    return decorated


def _check(name: str, models: tuple[type, ...], given: list[Any]) -> None:
    for value in given:
        if not isinstance(value, models):
            wanted = " or ".join(_NAMES[model][0] for model in models)
            ways = " or ".join(f"{_NAMES[model][1]}(…)" for model in models)
            raise TransitionKindError(f"{name} takes {wanted}, not {_name(value)}; {ways} makes one, if it can")
    if len({type(value) for value in given}) > 1:
        raise TransitionKindError(f"{name} takes automata of one model, not {' and '.join(map(_name, given))}")


def _name(value: Any) -> str:
    return _NAMES[type(value)][0] if type(value) is not SRT else "an SRT"
