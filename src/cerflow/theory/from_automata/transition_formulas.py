"""One transition as a formula that reads one event (ρ of P2 §C.1): its test without types and `Satisfied`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.condition import Condition, Constant, Function, LabelReference, Literal, with_labels
from cerflow.language.formula import AnyEvent, As, Disjunction, EventType, Filter, Formula, NotEvent, Project, Rename
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import asked, conjuncts, spelled_out, with_atoms
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.rewriting.rebuild import FreshNames, mentions_set


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
        demanded = [part.type for part in conjuncts(t.test) if isinstance(part, TypeTest)]
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
            event = Filter(event, c.Comparison(Operator.LT, position, Literal(0)))
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
    demanded = {part.stream for part in conjuncts(t.test) if isinstance(part, TypeTest) and part.type == name}
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


# -- tests as conditions -------------------------------------------------------------------------------------------

#: Tests that a condition of the language cannot express.
_BEYOND = (
    guards.Stored
    | guards.Of
    | guards.Measure
    | guards.InWindow
    | c.TruthValue
    | guards.TypeTest
    | guards.StreamTest
    | guards.LabelAggregate
    | guards.SetCall
)


def assuming(test: c.Condition, types: Mapping[guards.TypeTest, bool]) -> c.Condition:
    """The test, given the tests of the type that hold (all others do not), with constants simplified."""

    def known(atom: c.Condition) -> c.Condition:
        match atom:
            case guards.TypeTest():
                return c.Constant(types.get(atom, False))
            case c.Comparison(Operator.EQ, c.TruthValue(condition), c.Literal(True)):
                return condition
        return atom

    return with_atoms(test, known)


def as_language_condition(test: c.Condition) -> c.Condition:
    """A condition of the language, with bare attributes, that is true for exactly the events that satisfy the test.

    Raises `UnsupportedQueryError` for tests that read more than the current event, and for a registered predicate that
    is tested for not being true, as opposed to being false.
    """
    if mentions_set(test) or any(isinstance(n, _BEYOND) for n in walk(test)):
        raise UnsupportedQueryError(f"{show(test)} is not a condition on one event")
    return asked(test, _said, _join)


def _join(sign: type[c.And | c.Or], left: c.Condition, right: c.Condition) -> c.Condition:
    return sign(left, right)


def _said(atom: c.Condition, wanted: bool, or_unknown: bool) -> c.Condition:
    if or_unknown and isinstance(atom, c.In | c.Between):
        return asked(spelled_out(atom), _said, _join, wanted, or_unknown)
    said = atom if wanted else c.Not(atom)
    unknown = _unknown(atom) if or_unknown else None
    return said if unknown is None else c.Or(said, unknown)


def _unknown(atom: c.Condition) -> c.Condition | None:
    """When an atom is neither true nor false; None if never."""
    sides: tuple[c.Expression, ...]
    match atom:
        case c.Comparison():
            sides = (atom.left, atom.right)
        case c.Like() | c.Regexp():
            sides = (atom.operand,)
        case c.PredicateCall():
            raise UnsupportedQueryError(
                f"the language cannot express that {show(atom)} is unknown",
                hint="A registered predicate under NOT cannot be translated back.",
            )
        case _:
            sides = ()
    nulls: list[c.Condition] = [c.IsNull(s) for s in sides if not (isinstance(s, c.Literal) and s.value is not None)]
    return reduce(c.Or, nulls) if nulls else None
