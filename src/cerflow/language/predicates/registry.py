"""The predicates that queries may call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cerflow.base.errors import QueryError, nearest
from cerflow.language.condition import Aggregate, Function, PredicateCall, SetTest, Some
from cerflow.language.node import Node, walk
from cerflow.language.predicates.predicate import Predicate, PredicateKind

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


def predicate_names() -> tuple[str, ...]:
    """The names of all registered predicates, sorted."""
    return tuple(sorted(_registered))


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
