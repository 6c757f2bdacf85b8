"""Values of expressions on given events, and the satisfaction of a condition by a complex event (spec §3).

Values know no complex events: every label stands for one event, in aggregates for a sequence of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

from cerflow.base.events import Event, Value, as_value
from cerflow.language import condition as c
from cerflow.language.formula import AnyEvent, EventKind, EventType, Filter, NotEvent
from cerflow.language.node import Node, transform, walk, walk_into
from cerflow.language.predicates.asking import Each, as_argument, ask_of_set
from cerflow.language.predicates.registry import calls_of_sets, is_about_set, registered
from cerflow.language.sremo import Terminal
from cerflow.logic.analysis.condition_checks import check_expression
from cerflow.theory.semantics.operators import aggregate, applied, in_order, labels_read

#: The events of a label, in the order of their positions.
EventsOf = Callable[[str], Sequence[Event]]


def check_conditions(tree: Node) -> None:
    """Raise `QueryError` for conditions in a formula or an expression of SREMO that have no value on its events."""
    for current in walk(tree):
        if isinstance(current, Filter | NotEvent | Terminal) and current.condition is not None:
            check_expression(current.condition, bare=isinstance(current, Terminal))


@lru_cache(maxsize=4096)
def _steps(root: Node, calls: frozenset[str]) -> tuple[Node, ...]:
    """The nodes in the order of evaluation, from right to left, operands first; in ``x[…]`` an attribute is one of x.

    Aggregates and tests on sets are single steps: their operands are evaluated for each event of a label. ``calls`` are
    the names of predicates of sets, on which the steps depend.
    """

    def opened(current: Node) -> Node:
        if isinstance(current, c.Bracket):
            return c.with_labels(current.condition, lambda own: own or current.label)
        return current

    return tuple(walk_into(transform(root, opened), lambda current: not is_about_set(current)))[::-1]


def labels_outside_aggregates(root: Node) -> tuple[str, ...]:
    """The labels that stand for one event each in a condition or expression, in the order of the text."""
    return _labels_outside(root, calls_of_sets())


@lru_cache(maxsize=4096)
def _labels_outside(root: Node, calls: frozenset[str]) -> tuple[str, ...]:
    read = (n.label for n in reversed(_steps(root, calls)) if isinstance(n, c.Attribute | c.LabelReference))
    found = dict.fromkeys(label for label in read if label is not None)
    for current in walk(root):
        # A bracket that reads nothing of its label is still about every event of the label.
        if isinstance(current, c.Bracket) and not any(
            isinstance(n, c.Attribute | c.LabelReference) and n.label in (None, current.label)
            for n in walk(current.condition)
        ):
            found[current.label] = None
    return tuple(found)


def value_of(
    root: Node, single: Mapping[str | None, Event | None], events_of: EventsOf, former: Event | None = None
) -> Value:
    """The value of an expression, or the truth value of a condition (True, False, None for unknown).

    ``single`` gives the event of each label outside aggregates (key None: the current event); a label without event
    reads as null. ``events_of`` gives the events of a label inside an aggregate; ``prev`` reads ``former``.
    """
    stack: list[Any] = []
    calls = calls_of_sets()
    for current in _steps(root, calls):
        match current:
            case c.Literal() | c.Constant():
                stack.append(as_value(current.value))
            case c.Attribute():
                event = single.get(current.label)
                stack.append(None if event is None else event.attribute(current.name))
            case c.LabelReference():
                stack.append(single.get(current.label))
            case c.Aggregate():
                stack.append(aggregate(current.name, _values(current.argument, events_of)))
            case c.Function(name="prev"):
                owners = dict.fromkeys(labels_read(current), former)
                stack.append(value_of(current.arguments[0], owners, events_of))
            case c.SetTest():
                stack.append(in_order(current.name, _values(current.argument, events_of)))
            case c.PredicateCall() if current.name in calls:
                stack.append(_call_of_set(current, single, events_of))
            case _:
                stack.append(applied(current, [stack.pop() for _ in current.children]))
    result: Value = stack[-1]
    return result


def _values(argument: Node, events_of: EventsOf) -> list[Value]:
    """The argument of an aggregate for each event of its label; for a bare label, the positions."""
    if isinstance(argument, c.LabelReference):
        assert argument.label is not None
        return [event.position for event in events_of(argument.label)]
    (label,) = labels_outside_aggregates(argument)
    return [value_of(argument, {label: event, None: event}, events_of) for event in events_of(label)]


def _call_of_set(call: c.PredicateCall, single: Mapping[str | None, Event | None], events_of: EventsOf) -> bool | None:
    """A predicate of sets, on all events of each label in its arguments; without a label, on the current event."""
    read = [*map(labels_read, call.arguments)]
    numbers = {label: k for k, label in enumerate(dict.fromkeys(label for labels in read for label in labels))}

    def argument(current: Node, labels: frozenset[str | None]) -> Any:
        if not labels:
            return value_of(current, {}, events_of)
        (label,) = labels
        events = [single[None]] if label is None else events_of(label)
        values = [as_argument(value_of(current, {label: event, None: event}, events_of)) for event in events]
        return Each(values, numbers[label])

    return ask_of_set(registered(call.name), list(map(argument, call.arguments, read)))


def satisfies(condition: c.Condition, events_of: EventsOf) -> bool:
    """Whether a complex event satisfies a condition.

    ``events_of`` gives the events of each label by position: those of the complex event, or the one event of a label
    that is bound further out. AND and OR are about the whole complex event. An atom (a bracket is one) must hold for
    every choice of one event for each label outside its aggregates. NOT negates atoms.

    ``SOME x1, …, xn: c`` is the existential extension (P2 §4): c is true for some x1 ∈ S1, …, xn ∈ Sn, where Si are the
    events of xi, so it does not hold without events. All other labels of c have one event each.
    ``NOT SOME x1, …, xn: c`` is the atom NOT c: for every choice c is false, and not unknown.
    """
    return c.combined(condition, lambda atom, positive: _holds(atom, not positive, events_of), _all_or_any)


def satisfies_with_registers(condition: c.Condition, current: Event, registers: Mapping[str, Event]) -> bool:
    """``(u, v) ⊨ φ`` (register transducers §2, Definition 13): bare attributes belong to the current event.

    An atom on an empty register is false, and its negation true. If an atom is unknown, neither holds.
    """

    def holds(atom: c.Condition, positive: bool) -> bool:
        read = labels_outside_aggregates(atom)
        single: dict[str | None, Event | None] = {r: registers[r] for r in read if r in registers}
        single[None] = current
        value = value_of(atom, single, lambda _: ()) if all(r in registers for r in read) else False
        return value is not None and bool(value) == positive

    return c.combined(condition, holds, _all_or_any)


def names_event(wanted: EventType | AnyEvent, event: Event) -> bool:
    """Whether an event is of a type or kind (of any for EVENT), and of a stream where streams are distinguished."""
    if isinstance(wanted, EventKind):
        asked = satisfies_with_registers(wanted.condition, event, {})
    else:
        asked = isinstance(wanted, AnyEvent) or event.type == wanted.name
    return asked and (wanted.stream is None or event.stream in (None, wanted.stream))


def _all_or_any(join: type[c.And | c.Or], truths: list[bool]) -> bool:
    return all(truths) if join is c.And else any(truths)


def _holds(atom: c.Condition, negated: bool, events_of: EventsOf) -> bool:
    values = _values_for_choices(atom.condition if isinstance(atom, c.Some) else atom, events_of)
    if isinstance(atom, c.Some) and not negated:
        return any(value is True for value in values)
    return all(value is not None and bool(value) != negated for value in values)


def _values_for_choices(atom: c.Condition, events_of: EventsOf) -> Iterator[Value]:
    """The values of an atom for every choice of events; of a bracket with ``prev`` for neighbouring ones (spec §10)."""
    own = atom.label if isinstance(atom, c.Bracket) and c.calls(atom, "prev") else None
    labels = [label for label in labels_outside_aggregates(atom) if label != own]
    pairs: Iterable[tuple[Event | None, Event | None]] = [(None, None)] if own is None else pairwise(events_of(own))
    for former, latter in pairs:
        for choice in product(*map(events_of, labels)):
            yield value_of(atom, {**dict(zip(labels, choice)), own: latter}, events_of, former)
