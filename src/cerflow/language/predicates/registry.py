"""The predicates that queries may call: what each is, and under which name it is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cerflow.base.errors import QueryError, nearest
from cerflow.language.condition import Aggregate, Function, PredicateCall, SetTest, Some
from cerflow.language.node import Node, walk


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


_registered: dict[str, Predicate] = {}


def register_predicate(predicate: Predicate) -> None:
    """Register a predicate for queries; it replaces an earlier one with the same name."""
    _registered[predicate.name] = predicate


def unregister_predicate(name: str) -> None:
    """Remove a predicate; raises KeyError if there is none with that name.

    Recognisers that already run keep it.
    """
    del _registered[name]


def registered_predicates() -> tuple[Predicate, ...]:
    """All predicates that queries may call, by name."""
    return tuple(_registered[name] for name in sorted(_registered))


def find_predicate(name: str) -> Predicate | None:
    """The predicate registered under a name, or None."""
    return _registered.get(name)


def registered(name: str) -> Predicate:
    """The predicate registered under a name; raises `QueryError` if there is none."""
    found = _registered.get(name)
    if found is None:
        raise QueryError(f"predicate '{name}' is not registered", suggestion=nearest(name, _registered))
    return found


def predicates_in(tree: Node) -> tuple[Predicate, ...]:
    """The registered predicates that a tree calls, each once, in the order of the text."""
    names = dict.fromkeys(current.name for current in walk(tree) if isinstance(current, PredicateCall))
    return tuple(_registered[name] for name in names if name in _registered)


def calls_of_sets() -> frozenset[str]:
    """The names of predicates that are about all events of a label together."""
    return frozenset(name for name, predicate in _registered.items() if predicate.kind is PredicateKind.SET)


def is_about_set(current: Node) -> bool:
    """Whether a node is about several events of a label: an aggregate, SOME, prev, a test or a predicate of a set."""
    match current:
        case Aggregate() | SetTest() | Some() | Function(name="prev"):
            return True
        case PredicateCall(name):
            return name in _registered and _registered[name].kind is PredicateKind.SET
    return False


@contextmanager
def using(predicates: Iterable[Predicate]) -> Iterator[None]:
    """Within this context these predicates are registered too, and hide others with their names."""
    before = dict(_registered)
    for predicate in predicates:
        register_predicate(predicate)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)
