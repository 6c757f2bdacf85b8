"""Predicates that a user adds to the language: ``FILTER near(x, y)`` calls the function registered as ``near``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Predicate",
    "call_predicate",
    "find_predicate",
    "predicate_names",
    "register_predicate",
    "unregister_predicate",
]


@dataclass(frozen=True)
class Predicate:
    """A registered predicate of ``arity`` arguments.

    ``function`` gets a read-only mapping from attribute names to values for a label, the value itself for any other
    argument; it answers True, False, or None for unknown.
    """

    name: str
    function: Callable[..., bool | None]
    arity: int


_registered: dict[str, Predicate] = {}


def register_predicate(name: str, function: Callable[..., bool | None], *, arity: int | None = None) -> Predicate:
    """Make ``function`` known to queries as ``name``; a second registration of a name takes the place of the first.

    ``arity`` is the number of arguments, read from the function's signature if not given. Raises ValueError when it
    cannot be read there, or when the name is not an identifier.
    """
    if not name.isidentifier():
        raise ValueError(f"'{name}' cannot be the name of a predicate: it is not an identifier")
    if arity is None:
        parameters = inspect.signature(function).parameters.values()
        if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
            raise ValueError(f"the number of arguments of predicate '{name}' is not clear; give arity=…")
        arity = len(parameters)
    predicate = Predicate(name, function, arity)
    _registered[name] = predicate
    return predicate


def unregister_predicate(name: str) -> None:
    """Forget a predicate; raises KeyError if there is none of that name."""
    del _registered[name]


def find_predicate(name: str) -> Predicate | None:
    """The predicate registered under a name, or None."""
    return _registered.get(name)


def predicate_names() -> tuple[str, ...]:
    """The names of all registered predicates, sorted."""
    return tuple(sorted(_registered))


def call_predicate(name: str, arguments: tuple[Any, ...]) -> bool | None:
    """Call a registered predicate; raises KeyError if there is none of that name."""
    answer = _registered[name].function(*arguments)
    return None if answer is None else bool(answer)
