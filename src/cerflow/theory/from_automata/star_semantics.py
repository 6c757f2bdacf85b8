"""The *-semantics of automata, where a run jumps over all events that it does not label (P2 §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import ComplexEvent, Event, Stream, StreamGiven, as_stream, support
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import walk
from cerflow.theory.from_automata.kleene import star_automaton, star_formula_of
from cerflow.theory.rewriting.filters import push_down_filters

_SECOND_ORDER = (
    f.EventType | f.AnyEvent | f.NotEvent | f.As | f.Rename | f.Filter | f.Disjunction | f.Sequence | f.Iteration
)


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
    for current in walk(formula):
        if isinstance(current, f.Formula) and not isinstance(current, _SECOND_ORDER):
            raise UnsupportedQueryError(
                f"*-semantics does not cover {type(current).__name__}",
                span=current.span,
                hint="It covers event types, EVENT, NOT, AS, [x -> y], FILTER, OR, ; and +.",
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
    for current in walk(formula):
        if isinstance(current, f.Formula) and not isinstance(current, _SECOND_ORDER | f.Conjunction | f.All):
            raise UnsupportedQueryError(
                f"AND and ALL can be eliminated next to AS, [x -> y], FILTER, OR, ; and +, but not next to "
                f"{type(current).__name__}",
                span=current.span,
            )
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
        events = _rearranged(stream, [position for position, _ in chosen])
        yield events, {position: place for place, (position, is_kept) in enumerate(chosen) if is_kept}


def _rearranged(stream: Stream, chosen: list[int]) -> Stream:
    """Events of a stream at new positions; times never decrease."""
    found: list[Event] = []
    for place, position in enumerate(chosen):
        time = stream[position].time
        if found and found[-1].time > time:
            time = found[-1].time
        found.append(replace(stream[position], position=place, time=time))
    return Stream(found, stream.microseconds_per_tick)
