"""The model of a predicate: its name, its function, and the form of the function's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class PredicateKind(StrEnum):
    """The events that a predicate is about."""

    SCALAR = "scalar"  # one event of each label, for every choice of them
    VECTORIZED = "vectorized"  # one event, asked about many events at once
    SET = "set"  # all events of a label together


class Form(StrEnum):
    """The form in which a function gets the values of many events."""

    VALUES = "values"  # event by event, as Python values
    NUMPY = "numpy"
    ARROW = "arrow"


@dataclass(frozen=True)
class Fold:
    """A function of a set of events that goes from event to event.

    ``init`` is the state before the first event, or a function that makes it; ``step(state, values…)`` returns the
    state after an event; ``accept(state)`` returns the answer.
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

    ``form`` is the form in which a function of many events gets them; with ``compile`` Numba compiles a function of
    single values. A predicate equals only itself, even if another function has the same name.
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
