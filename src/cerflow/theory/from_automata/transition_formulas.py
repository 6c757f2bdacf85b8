"""One transition as a formula that reads one event (ρ of P2 §C.1)."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language.condition import Comparison, Condition, Constant, Function, LabelReference, Literal, with_labels
from cerflow.language.formula import AnyEvent, As, Disjunction, EventType, Filter, Formula, NotEvent, Project, Rename
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.rewriting.rebuild import FreshNames
from cerflow.theory.from_automata.plain_conditions import as_language_condition, assuming


class Descriptions:
    """Formulas for the transitions of a transducer without registers.

    ``types`` are all existing types of events; None if there may be others than the transducer names. A formula gives
    its event the labels of the transition. If that is impossible (an event that is left out has its type as a label),
    ``projected`` is set: then the labels ``kept`` are right, and others must be projected away.
    """

    def __init__(self, transducer: Transducer, types: Collection[str] | None) -> None:
        self.types = None if types is None else sorted(types)
        self.kept = {label for t in transducer.transitions for label in self._labels(t)}
        tested = {n.type for t in transducer.transitions for n in _type_tests(t)}
        self._fresh = FreshNames(taken={*self.kept, *tested, *(types or ()), *transducer.mentioned})
        self._hidden = self._fresh.like("hidden")
        self.projected = False
        self._keeps_types = False

    def of(self, t: Transition) -> Formula | None:
        """The events that a transition reads; None if it reads none."""
        found = [case for name in self._types_of(t) if (case := self._case(t, name)) is not None]
        return reduce(Disjunction, found) if found else None

    def project(self, formula: Formula) -> Formula:
        """The formula with only the labels of the transitions.

        Raises `UnsupportedQueryError` if these cannot be listed.
        """
        if not self.projected:
            return formula
        if self._keeps_types:
            raise UnsupportedQueryError(
                "some events are left out, and others are reported under their types, which are not all known; no "
                "PROJECT can list them",
                hint="Give all existing types of events: types=(…).",
            )
        return Project(tuple(sorted(self.kept)) or (self._fresh.like("nothing"),), formula)

    def _labels(self, t: Transition) -> set[str]:
        found = {label for label in t.labels if label != TYPE_LABEL}
        if TYPE_LABEL in t.labels:
            found.update(name for name in self._types_of(t) if name is not None)
        return found

    def _types_of(self, t: Transition) -> list[str | None]:
        """The types to distinguish, and None for all others."""
        demanded = [c.type for c in conjuncts(t.test) if isinstance(c, TypeTest)]
        if self.types is not None and t.labels:
            return [name for name in self.types if not demanded or name == demanded[0]]
        return [demanded[0]] if demanded else [*sorted({n.type for n in _type_tests(t)}), None]

    def _case(self, t: Transition, name: str | None) -> Formula | None:
        """The events of one type, or (None) of all types that the test does not name."""
        stream, held = _held(t, name)
        condition = assuming(t.test, held)
        if condition == Constant(False):
            return None
        if name is None:
            return self._of_other_types(t, condition)
        event = _filtered(EventType(name, stream), name, condition)
        labels = {name if label == TYPE_LABEL else label for label in t.labels}
        rest = sorted(labels - {name})
        if rest and name not in labels:
            event = Rename(event, name, rest.pop(0))
        elif not labels:
            self.projected = True
            if name in self.kept:
                event = Rename(event, name, self._hidden)
        return _labelled(event, rest)

    def _of_other_types(self, t: Transition, condition: Condition) -> Formula:
        named = sorted({n.type for n in _type_tests(t)})
        event: Formula = AnyEvent()
        if len(named) == 1:
            event = NotEvent(EventType(named[0]))
        elif named:
            for name in named:
                event = Rename(event, name, self._hidden)
            # Such an event would have to stand before the first one.
            position = Function("position", (LabelReference(self._hidden),))
            event = Filter(event, Comparison(Operator.LT, position, Literal(0)))
        labels = sorted(t.labels - {TYPE_LABEL})
        if TYPE_LABEL in t.labels:
            self._keeps_types = True
            if not labels and condition != Constant(True):
                raise UnsupportedQueryError(
                    f"{show(condition)} needs a label of the event, and none is known",
                    hint="Give all existing types of events: types=(…).",
                )
        else:
            self.projected = True
            for name in sorted(self.kept.difference(named, labels)):
                event = Rename(event, name, self._hidden)
            if not labels and condition != Constant(True):
                labels = [self._hidden]
        event = _labelled(event, labels)
        return _filtered(event, labels[0], condition) if labels else event


def _type_tests(t: Transition) -> list[TypeTest]:
    return [n for n in walk(t.test) if isinstance(n, TypeTest)]


def _held(t: Transition, name: str | None) -> tuple[str | None, dict[TypeTest, bool]]:
    """The stream that an event of this type must come from, if any, and the tests of the type that then hold."""
    if name is None:
        return None, {}
    held = {TypeTest(name): True}
    streams = {n.stream for n in _type_tests(t) if n.type == name} - {None}
    if not streams:
        return None, held
    demanded = {c.stream for c in conjuncts(t.test) if isinstance(c, TypeTest) and c.type == name}
    if len(streams) > 1 or not streams <= demanded:
        raise UnsupportedQueryError(
            f"{show(t.test)} distinguishes events of one type by their stream",
            hint="A formula can name an event type of one stream, but not of all streams except one.",
        )
    (stream,) = streams
    held[TypeTest(name, stream)] = True
    return stream, held


def _labelled(event: Formula, labels: Collection[str]) -> Formula:
    for label in labels:
        event = As(event, label)
    return event


def _filtered(event: Formula, label: str, condition: Condition) -> Formula:
    if condition == Constant(True):
        return event
    return Filter(event, with_labels(as_language_condition(condition), lambda own: label if own is None else own))
