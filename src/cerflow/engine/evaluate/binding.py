"""Binds calls of predicates to the registered functions, and whole events to the columns of the input.

The predicates of a query are looked up once, when its tables are made, so a later one of the same name does not affect
running recognisers. A whole event as an argument becomes the values of all its attributes, so a register that remembers
it gets a field for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.graphs import reached_along
from cerflow.base.schema import Schema, ValueKind
from cerflow.language.condition import Attribute, Condition, Expression, LabelReference, PredicateCall
from cerflow.language.node import Node, node, transform, walk
from cerflow.language.predicates.registry import Predicate, PredicateKind, registered
from cerflow.logic.conditions.guards import AllRows, SetCall, Stored, reads_events

A = TypeVar("A")


@node
class Call(Condition):
    """A call of a predicate that does not depend on names."""

    predicate: Predicate
    arguments: tuple[Expression, ...]

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        pieces = [piece for argument in self.arguments for piece in (", ", argument)]
        return (f"{self.predicate.name}(", *pieces[1:], ")")


@node
class CallOfSet(SetCall):
    """The same of a predicate of sets."""

    predicate: Predicate

    def own(self, arguments: Sequence[A]) -> list[A]:
        """Those of the arguments that are read from the current event and from registers with single values."""
        return [a for a, number in zip(arguments, self.sets) if self.here or not 0 <= number < self.gathered]


@node
class WholeEvent(Expression):
    """An event as the values of its attributes ``names``."""

    names: tuple[str, ...]
    values: tuple[Expression, ...]

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        here = isinstance(self.values[0], Attribute)
        return ("EVENT",) if here else ("event from ", self.values[0])


def readable(schema: Schema, without: str | None = None) -> tuple[str, ...]:
    """The attributes of a whole event: those whose types conditions can read, except ``without``."""
    # Names of the engine's own columns cannot occur in the input.
    names = (n for n in schema.known_names if n != without and not n.startswith("\0"))
    return tuple(n for n in names if schema.kind(n) is not ValueKind.OTHER)


def shows_events(tree: Node) -> bool:
    """Whether predicates get whole events."""
    calls = (current for current in walk(tree) if isinstance(current, PredicateCall))
    return any(isinstance(argument, LabelReference) for call in calls for argument in call.arguments)


def words(expressions: Iterable[Expression]) -> list[Expression]:
    """The values that make up arguments or a row; a whole event is many values."""
    return [v for e in expressions for v in (e.values if isinstance(e, WholeEvent) else (e,))]


def calls_in(tree: Node) -> bool:
    """Whether a guard or expression calls a predicate."""
    return any(isinstance(current, Call | CallOfSet) for current in walk(tree))


def bind(transducer: Transducer, attributes: Sequence[str]) -> Transducer:
    """The transducer with bound calls; ``attributes`` are those of whole events.

    Raises `QueryError` if a predicate is no longer registered.
    """
    trees = {tree for t in transducer.transitions for tree in (t.test, *t.trees)}
    if not any(isinstance(current, PredicateCall | SetCall) for tree in trees for current in walk(tree)):
        return transducer
    return _Binding(transducer, tuple(attributes)).bound()


class _Binding:
    """The new places of the fields of registers, as some fields grow to whole events."""

    def __init__(self, transducer: Transducer, names: tuple[str, ...]) -> None:
        self.transducer = transducer
        self.names = names
        self.here = WholeEvent(names, tuple(Attribute(None, name) for name in names))
        self.whole = self._whole_events()
        self.first: list[list[int]] = []
        for k, register in enumerate(transducer.registers):
            places = [0]
            for f in range(register.fields):
                places.append(places[-1] + (len(names) if (k, f) in self.whole else 1))
            self.first.append(places)

    def _whole_events(self) -> frozenset[tuple[int, int]]:
        """The fields (of registers) that hold whole events, and the fields to which these are copied."""
        writes = [write for t in self.transducer.transitions for write in t.writes]
        given = [((write.register, f), e) for write in writes for f, e in enumerate(write.row)]
        copies = (((e.register, e.field), place) for place, e in given if isinstance(e, Stored))
        return frozenset(reached_along(copies, [place for place, e in given if isinstance(e, LabelReference)]))

    def bound(self) -> Transducer:
        return replace(
            self.transducer,
            transitions=tuple(map(self._transition, self.transducer.transitions)),
            registers=tuple(replace(r, fields=places[-1]) for r, places in zip(self.transducer.registers, self.first)),
        )

    def _transition(self, t: Transition) -> Transition:
        told = t.with_trees(self._told)
        writes = tuple(replace(write, row=tuple(words(write.row))) for write in told.writes)
        return replace(told, test=self._told(t.test), writes=writes)

    def _told(self, tree: Any) -> Any:
        return self.here if isinstance(tree, LabelReference) else transform(tree, self._visit)

    def _visit(self, current: Node) -> Node:
        match current:
            case AllRows():
                return current
            case Stored(register, field):
                first = self.first[register][field]
                if (register, field) not in self.whole:
                    return Stored(register, first)
                return WholeEvent(self.names, tuple(Stored(register, first + k) for k in range(len(self.names))))
            case PredicateCall(name, arguments):
                predicate = registered(name)
                if predicate.kind is PredicateKind.SET:
                    # On the current event, the call is about that event alone.
                    sets = tuple(0 if reads_events(argument) else -1 for argument in arguments)
                    return CallOfSet(name, self._given(arguments), sets, 1, None, 1, predicate)
                return Call(predicate, self._given(arguments), span=current.span)
            case SetCall(name, arguments, sets, gathered, rows, here):
                return CallOfSet(name, self._given(arguments), sets, gathered, rows, here, registered(name))
        return current

    def _given(self, arguments: Sequence[Expression]) -> tuple[Expression, ...]:
        return tuple(self.here if isinstance(a, LabelReference) else a for a in arguments)
