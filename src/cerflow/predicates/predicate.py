"""What a predicate is: a name, a function, and what the function is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Fold", "Form", "Predicate", "PredicateKind"]


class PredicateKind(StrEnum):
    """What a predicate speaks of."""

    SCALAR = "scalar"  # one event of each label: asked for every choice of them
    VECTORIZED = "vectorized"  # one event, but of many events at once
    SET = "set"  # all events of a label together


class Form(StrEnum):
    """How the values of many events come to a function."""

    VALUES = "values"  # event by event, as Python values
    NUMPY = "numpy"
    ARROW = "arrow"


@dataclass(frozen=True)
class Fold:
    """A function of a set of events, from one event to the next.

    ``init`` is the state before the first event, or a function that makes it; ``step(state, values…)`` gives the
    state after an event; ``accept(state)`` answers.
    """

    init: Any
    step: Callable[..., Any]
    accept: Callable[[Any], Any]

    def __call__(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        """The answer for events with these values, in the order of their positions."""
        state = self.init() if callable(self.init) else self.init
        for row in rows:
            state = self.step(state, *row)
        return self.accept(state)


@dataclass(frozen=True, eq=False)
class Predicate:
    """A predicate of ``fewest`` to ``most`` arguments, which answers True, False, or None for unknown.

    ``form`` says how a function over many events gets them, ``compile`` whether a function of single values is to be
    compiled by Numba. A predicate equals only itself: another function of the same name is another predicate.
    """

    name: str
    kind: PredicateKind
    function: Callable[..., Any]
    fewest: int
    most: int
    form: Form = Form.VALUES
    compile: bool = True

    @property
    def arity(self) -> str:
        """The number of arguments in words: ``2 arguments``, ``2 to 3 arguments``."""
        if self.fewest < self.most:
            return f"{self.fewest} to {self.most} arguments"
        return "1 argument" if self.most == 1 else f"{self.most} arguments"
