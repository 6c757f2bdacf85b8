"""Automata without memory: the papers', written down by hand, and random ones (Hypothesis strategies)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from cerflow.automata import (
    ComplexEventAutomaton,
    ComplexEventTransition,
    UnaryComplexEventAutomaton,
    UnaryComplexEventTransition,
    of_type,
)
from cerflow.base.events import ComplexEvent, Event, support
from cerflow.language.condition import Condition
from support.register_automata import condition

#: What is asked of an event: nothing, its type, or its value, which may be null.
CONDITIONS = (condition("TRUE"), condition("TRUE"), of_type("A"), of_type("B"), condition("v >= 1"), condition("v = 0"))


def read(source: int, mark: str, target: int, asked: str | Condition = "TRUE") -> ComplexEventTransition:
    """A transition of a CEA: ``•`` or ``◦``; a condition, or a type of one letter."""
    return ComplexEventTransition(source=source, target=target, condition=_asked(asked), marks=mark == "•")


def label(
    source: int, labels: Iterable[str], target: int, asked: str | Condition = "TRUE"
) -> UnaryComplexEventTransition:
    """A transition of a UCEA."""
    return UnaryComplexEventTransition(source=source, target=target, condition=_asked(asked), labels=frozenset(labels))


def _asked(asked: str | Condition) -> Condition:
    if isinstance(asked, Condition):
        return asked
    return of_type(asked) if len(asked) == 1 else condition(asked)


#: P1 Figure 2: complex events begin and end with an H, with any of the hot T's between.
HOT = condition("type = 'T' AND value > 40")
FIGURE_2 = ComplexEventAutomaton.of(
    [read(1, "◦", 1), read(1, "•", 2, "H"), read(2, "•", 2, HOT), read(2, "◦", 2), read(2, "•", 3, "H")],
    starts=[1],
    finals=[3],
)
#: P2 Figure 2: an H, and later a T that is read without a label.
FIGURE_2_OF_P2 = UnaryComplexEventAutomaton.of(
    [label(1, "", 1), label(1, "H", 2, "H"), label(2, "", 2), label(2, "", 3, "T")], starts=[1], finals=[3]
)
#: Of errata E4 and E5.
E4 = ComplexEventAutomaton.of(
    [read(1, "•", 1, "B"), read(0, "•", 0, "B"), read(0, "◦", 1, "B")], starts=[0], finals=[1]
)
E5 = ComplexEventAutomaton.of([read(0, "◦", 0), read(0, "•", 1), read(1, "•", 0, "A")], starts=[0], finals=[1])


def by_definition(
    automaton: ComplexEventAutomaton | UnaryComplexEventAutomaton, events: Sequence[Event], holds
) -> set[tuple[int, ComplexEvent]]:
    """Every path of transitions, one for each event; ``holds`` says whether a condition holds of an event."""
    found = set()
    paths = [(q, frozenset()) for q in automaton.starts]
    for n, event in enumerate(events):
        paths = [
            (t.target, c | {(a, n) for a in t.output})
            for q, c in paths
            for t in automaton.transitions
            if t.source == q and holds(t.condition, event, {})
        ]
        unmarked = isinstance(automaton, UnaryComplexEventAutomaton)
        found |= {(n, c) for q, c in paths if q in automaton.finals and (unmarked or n in support(c))}
    return found


_STATES = st.integers(0, 2)
_SOME = st.frozensets(_STATES, min_size=1, max_size=2)


def ceas(least: int = 2, most: int = 6) -> st.SearchStrategy[ComplexEventAutomaton]:
    """Random CEA of up to three states."""
    t = st.builds(read, _STATES, st.sampled_from("•◦"), _STATES, st.sampled_from(CONDITIONS))
    return st.builds(
        lambda ts, starts, finals: ComplexEventAutomaton.of(ts, starts=starts, finals=finals),
        st.lists(t, min_size=least, max_size=most),
        _SOME,
        _SOME,
    )


def uceas(least: int = 2, most: int = 6) -> st.SearchStrategy[UnaryComplexEventAutomaton]:
    """Random UCEA of up to three states."""
    t = st.builds(label, _STATES, st.sampled_from(("", "", "x", "y", "xy")), _STATES, st.sampled_from(CONDITIONS))
    return st.builds(
        lambda ts, starts, finals: UnaryComplexEventAutomaton.of(ts, starts=starts, finals=finals),
        st.lists(t, min_size=least, max_size=most),
        _SOME,
        _SOME,
    )
