"""From a transducer back to a formula (P2 Theorems 5.3 and 6.2, Appendix C.1), also under *-semantics.

A formula that reads one event stands for each transition (ρ of P2 §C.1): its test without types and `Satisfied`. Under
*-semantics a run jumps over all events that it does not label (P2 §5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import ComplexEvent, Event, Stream, StreamGiven, as_stream, support
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import conjuncts, with_atoms
from cerflow.logic.rewriting.rebuild import FreshNames, mentions_set
from cerflow.theory.rewriting.filters import push_down_filters, told
from cerflow.theory.rewriting.regular import Paths, paths_through


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

    def of(self, t: Transition) -> f.Formula | None:
        """The events that a transition reads; None if it reads none."""
        found = [case for name in self._types_of(t) if (case := self._case(t, name)) is not None]
        return reduce(f.Disjunction, found) if found else None

    def project(self, formula: f.Formula) -> f.Formula:
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
        return f.Project(tuple(sorted(self.kept)) or (self._fresh.like("nothing"),), formula)

    def _labels(self, t: Transition) -> set[str]:
        types = self._types_of(t) if TYPE_LABEL in t.labels else ()
        return {*t.labels, *(name for name in types if name is not None)} - {TYPE_LABEL}

    def _types_of(self, t: Transition) -> list[str | None]:
        """The types to distinguish, and None for all others."""
        demanded = [part.type for part in conjuncts(t.test) if isinstance(part, guards.TypeTest)]
        if self.types is not None and t.labels:
            return [name for name in self.types if not demanded or name == demanded[0]]
        return [demanded[0]] if demanded else [*sorted({n.type for n in _type_tests(t)}), None]

    def _case(self, t: Transition, name: str | None) -> f.Formula | None:
        """The events of one type, or (None) of all types that the test does not name."""
        stream, held = _held(t, name)
        condition = assuming(t.test, held)
        if condition == c.Constant(False):
            return None
        if name is None:
            return self._of_other_types(t, condition)
        event = _filtered(f.EventType(name, stream), name, condition)
        labels = {name if label == TYPE_LABEL else label for label in t.labels}
        rest = sorted(labels - {name})
        if rest and name not in labels:
            event = f.Rename(event, name, rest.pop(0))
        elif not labels:
            self.projected = True
            if name in self.kept:
                event = f.Rename(event, name, self._hidden)
        return reduce(f.As, rest, event)

    def _of_other_types(self, t: Transition, condition: c.Condition) -> f.Formula:
        named = sorted({n.type for n in _type_tests(t)})
        event: f.Formula = f.AnyEvent()
        if len(named) == 1:
            event = f.NotEvent(f.EventType(named[0]))
        elif named:
            for name in named:
                event = f.Rename(event, name, self._hidden)
            # Such an event would have to stand before the first one.
            position = c.Function("position", (c.LabelReference(self._hidden),))
            event = f.Filter(event, c.Comparison(Operator.LT, position, c.Literal(0)))
        labels = sorted(t.labels - {TYPE_LABEL})
        if TYPE_LABEL in t.labels:
            self._keeps_types = True
            if not labels and condition != c.Constant(True):
                raise UnsupportedQueryError(
                    f"{show(condition)} needs a label of the event, and none is known",
                    hint="Give all existing types of events: types=(…).",
                )
        else:
            self.projected = True
            for name in sorted(self.kept.difference(named, labels)):
                event = f.Rename(event, name, self._hidden)
            if not labels and condition != c.Constant(True):
                labels = [self._hidden]
        event = reduce(f.As, labels, event)
        return _filtered(event, labels[0], condition) if labels else event


def _type_tests(t: Transition) -> list[guards.TypeTest]:
    return [n for n in walk(t.test) if isinstance(n, guards.TypeTest)]


def _held(t: Transition, name: str | None) -> tuple[str | None, dict[guards.TypeTest, bool]]:
    """The stream that an event of this type must come from, if any, and the tests of the type that then hold."""
    if name is None:
        return None, {}
    held = {guards.TypeTest(name): True}
    streams = {n.stream for n in _type_tests(t) if n.type == name} - {None}
    if not streams:
        return None, held
    demanded = {part.stream for part in conjuncts(t.test) if isinstance(part, guards.TypeTest) and part.type == name}
    if len(streams) > 1 or not streams <= demanded:
        raise UnsupportedQueryError(
            f"{show(t.test)} distinguishes events of one type by their stream",
            hint="A formula can name an event type of one stream, but not of all streams except one.",
        )
    (stream,) = streams
    held[guards.TypeTest(name, stream)] = True
    return stream, held


def _filtered(event: f.Formula, label: str, condition: c.Condition) -> f.Formula:
    if condition == c.Constant(True):
        return event
    return f.Filter(event, c.with_labels(as_language_condition(condition), lambda own: label if own is None else own))


#: Tests that a condition of the language cannot express.
_BEYOND = (
    *(guards.Stored, guards.Of, guards.Measure, guards.InWindow, guards.TypeTest, guards.StreamTest),
    *(guards.LabelAggregate, guards.SetCall, c.TruthValue),
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

    Raises `UnsupportedQueryError` for tests that read more than the current event.
    """
    if mentions_set(test) or any(isinstance(n, _BEYOND) for n in walk(test)):
        raise UnsupportedQueryError(f"{show(test)} is not a condition on one event")
    return told(test)


#: The places where paths begin (at any event, or at the very first) and end.
_ANYWHERE, _AT_ONCE, _END = -1, -2, -3


def formula_of(transducer: Transducer, *, types: Collection[str] | None = None) -> f.Formula:
    """A formula with the complex events of a transducer; see `cerflow.automata.to_formula` for ``types`` and errors."""
    refuse_registers(transducer)
    return _formula(transducer, types, transducer.skipping)


def star_formula_of(transducer: Transducer, *, types: Collection[str] | None = None) -> f.Formula:
    """A formula with the complex events under *-semantics; see `cerflow.automata.star_to_formula`."""
    return _formula(star_automaton(transducer), types, range(transducer.states))


def star_automaton(transducer: Transducer) -> Transducer:
    """The automaton without the transitions that label nothing (Proposition 5.4).

    If the automaton has the *-property (see `star_counterexample`), the result has under *-semantics the complex events
    that the automaton has under ordinary semantics. Raises `UnsupportedQueryError` for registers.
    """
    refuse_registers(transducer)
    return replace(transducer, transitions=tuple(t for t in transducer.transitions if t.labels))


def _formula(transducer: Transducer, types: Collection[str] | None, waiting: Collection[int]) -> f.Formula:
    """The formula of the runs; in the ``waiting`` states they pass over any events."""
    reads = Descriptions(transducer, types)
    edges = [(t.source, t.target, Paths(reads.of(t))) for t in transducer.transitions if not t.skips]
    edges += [(_ANYWHERE if q in waiting else _AT_ONCE, q, Paths(empty=True)) for q in transducer.initial]
    for state in transducer.final:
        edges.append((state, _END, Paths(empty=True)))
        if state in transducer.skipping:
            # Events read after the last event of the match are left out.
            edges.append((state, _END, Paths(reads.of(Transition(state, state)))))
    paths = paths_through(edges, range(transducer.states), lambda q: q not in waiting)
    found = Paths(paths.get((_ANYWHERE, _END), Paths()).formula)
    at_once = paths.get((_AT_ONCE, _END), Paths()).formula
    if at_once is not None:
        found = found.or_(Paths(f.Start(at_once)))
    if found.formula is None:
        return f.Filter(f.AnyEvent(), c.Constant(False))
    whole = reads.project(found.formula)
    return whole if transducer.window is None else f.Within(whole, transducer.window)


def refuse_registers(transducer: Transducer) -> None:
    """Raise `UnsupportedQueryError` if a transducer has registers."""
    if transducer.registers or any(t.atoms or t.writes for t in transducer.transitions):
        raise UnsupportedQueryError(
            "this automaton has registers; only automata without memory have a formula of their own",
            hint="Conditions that relate events need registers. push_down_filters turns choices between conditions "
            "on different events into choices between formulas.",
        )


_SECOND_ORDER = (f.SingleEvent, f.As, f.Rename, f.Filter, f.Disjunction, f.Sequence, f.Iteration)


def _allow(formula: f.Formula, operators: tuple[type[f.Formula], ...], others: str, hint: str | None = None) -> None:
    for current in walk(formula):
        if isinstance(current, f.Formula) and not isinstance(current, operators):
            raise UnsupportedQueryError(f"{others} {type(current).__name__}", span=current.span, hint=hint)


def matches_of_star_runs(transducer: Transducer, events: Sequence[Event]) -> set[tuple[int, ComplexEvent]]:
    """All (n, C) such that some *-run over events with last event n gives the complex event C.

    A *-run takes a transition with labels at each position of some increasing sequence; between these it stays where it
    is.
    Raises `UnsupportedQueryError` for registers.
    """
    star = star_automaton(transducer)
    # Staying is a loop at every state; a run must not end with this loop.
    loops = tuple(Transition(q, q) for q in range(star.states))
    return matches(replace(star, transitions=star.transitions + loops), events, reporting=True)


@of_formula
def compile_star(formula: f.Formula) -> Transducer:
    """The automaton whose complex events under *-semantics are those of a second-order formula (Theorem 5.3).

    Event types, EVENT and NOT are compiled without the loop that skips events before. Raises `QueryError` for labels
    out of scope. Raises `UnsupportedQueryError` for operators other than AS, renaming, FILTER, OR, ``;`` and ``+``,
    and, like `push_down_filters`, for conditions that are not on one label each.
    """
    _allow(
        formula,
        _SECOND_ORDER,
        "*-semantics does not cover",
        "It covers event types, EVENT, NOT, AS, [x -> y], FILTER, OR, ; and +.",
    )
    # Their loops are the only transitions that label nothing.
    return star_automaton(compile_formula(push_down_filters(formula)))


@of_formula
def eliminate_conjunctions(formula: f.Formula, *, types: Collection[str] | None = None) -> f.Formula:
    """The same complex events without AND and ALL (Corollary 5.6).

    The products of automata for these operators have the *-property, and so has the whole. So it can be read under
    *-semantics and turned back into a formula with only event types, AS, renaming, FILTER, OR, ``;`` and ``+``.
    ``types`` are all existing types of events; without it there may be any.

    Raises `UnsupportedQueryError` for other operators, as `push_down_filters` and `star_formula_of` do, and for a too
    large result; `QueryError` for labels out of scope.
    """
    only = "AND and ALL can be eliminated next to AS, [x -> y], FILTER, OR, ; and +, but not next to"
    _allow(formula, (*_SECOND_ORDER, f.Conjunction, f.All), only)
    return star_formula_of(compile_formula(push_down_filters(formula)), types=types)


@dataclass(frozen=True)
class StarCounterexample:
    """A complex event of a stream, and a stream with the same events under the same labels where it is not one."""

    stream: Stream
    complex_event: ComplexEvent
    other_stream: Stream
    other_complex_event: ComplexEvent


def star_counterexample(
    detects: Callable[[Stream], Iterable[tuple[int, ComplexEvent]]], streams: Iterable[StreamGiven]
) -> StarCounterexample | None:
    """Search for a counterexample to the *-property of a function from streams to matches (P2 §5.2, erratum E18).

    The function has the property if complex events depend only on their own events: for every complex event of a
    stream, in every other stream in which the same events stand at other positions, these events with the same labels
    are a complex event. For all matches in the given streams these variations are tried: the stream without all or one
    of the other events, the stream cut after the last event of the match, and the stream with one of its events
    inserted at every place. None means that no counterexample was found.
    """
    for stream in (Stream(as_stream(given)) if not isinstance(given, Stream) else given for given in streams):
        for _, complex_event in sorted(detects(stream), key=lambda match: (match[0], sorted(match[1]))):
            for other, places in _others(stream, sorted(support(complex_event))):
                moved = frozenset((label, places[position]) for label, position in complex_event)
                if not any(found == moved for _, found in detects(other)):
                    return StarCounterexample(stream, complex_event, other, moved)
    return None


def _others(stream: Stream, marked: list[int]) -> Iterator[tuple[Stream, dict[int, int]]]:
    """Streams with the same marked events, and the positions of these in them."""
    kept = set(marked)
    whole = [(p, p in kept) for p in range(marked[-1] + 1 if marked else 0)]
    choices = [[pair for pair in whole if pair[1]]]
    choices += [whole[:p] + whole[p + 1 :] for p, is_kept in whole if not is_kept]
    choices += [[*whole[:p], (more, False), *whole[p:]] for p, _ in whole for more in range(len(stream))]
    for chosen in choices:
        # Times never decrease.
        own = [stream[position] for position, _ in chosen]
        times = accumulate((event.time for event in own), max)
        events = (replace(e, position=place, time=time) for place, (e, time) in enumerate(zip(own, times)))
        places = {position: place for place, (position, is_kept) in enumerate(chosen) if is_kept}
        yield Stream(events, stream.microseconds_per_tick), places
