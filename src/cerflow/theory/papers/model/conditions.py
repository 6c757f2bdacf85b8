"""Conditions over the current event and registers (004 §3.2): reading, satisfaction, renaming.

These are conditions of `cerflow.language.condition`. A bare attribute belongs to the current event ``~``, ``r.attr`` to
the event in register ``r``. `Satisfied` makes a condition two-valued, so that a negation holds wherever the condition
does not, nulls included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache

from cerflow.automata.compile.sremo.terminals import with_empty_registers
from cerflow.base.errors import QueryError
from cerflow.base.events import Event, Stream
from cerflow.language import condition as c
from cerflow.language.node import Node, transform, walk
from cerflow.language.parser import parse_condition
from cerflow.language.predicates.registry import is_about_set
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.evaluate import value_on
from cerflow.logic.conditions.guards import Satisfied, without_brackets
from cerflow.theory.papers.model.faults import ConditionError


def as_condition(given: str | c.Condition) -> c.Condition:
    """The condition in a text, as in ``x[…]``, where registers stand in front of a dot; a tree as it is.

    Raises `QuerySyntaxError` for text that is not a condition, and `ConditionError` for what is neither and for a
    condition that is not about the event read and one event for each register.
    """
    if isinstance(given, str):
        given = parse_condition(given, bare_attributes=True)
    if not isinstance(given, c.Condition):
        raise ConditionError(f"a condition is text or a tree, not {type(given).__name__}")
    reason = _fault(given)
    if reason is not None:
        raise ConditionError(reason)
    return given


@lru_cache(maxsize=4_096)  # constructions make many transitions of the same conditions
def _fault(condition: c.Condition) -> str | None:
    """Why a transition cannot have the condition; None if it can."""
    for current in walk(condition):
        match current:
            case c.Bracket(label):
                return f"registers stand in front of a dot, as in {label}.price, not of a bracket: {show(current)}"
            case c.Some():
                return f"an event is read and registers hold one each, so SOME has nothing to choose: {show(current)}"
            case c.Function("prev" | c.MATCH_NUMBER as name):
                return f"{name} is not about the event read or a register: {show(current)}"
            case c.Aggregate() | c.SetTest() | c.PredicateCall() if is_about_set(current):
                return f"{current.name} aggregates several events, but a register holds one event: {show(current)}"
    return None


def in_units_of(events: Sequence[Event], condition: c.Condition) -> c.Condition:
    """The condition with durations in the unit of the times, where these are numbers and it compares them.

    Raises `QueryError` for events without times.
    """

    def in_ticks(current: Node) -> Node:
        if not isinstance(current, c.Literal) or not isinstance(current.value, timedelta):
            return current
        if not isinstance(events, Stream) or events.microseconds_per_tick is None:
            raise QueryError("a duration needs events with times", span=current.span, hint="Name them: time='t'.")
        ticks = events.ticks(current.value // timedelta(microseconds=1))
        return c.Literal(int(ticks) if ticks == int(ticks) else float(ticks))

    def visit(current: Node) -> Node:
        compares = isinstance(current, c.Comparison | c.Between) and any(
            isinstance(n, c.Function) and n.name == "time" for n in walk(current)
        )
        return transform(current, in_ticks) if compares else current

    if not len(events) or events[0].moment is not None:
        return condition
    return transform(condition, visit)


@lru_cache(maxsize=4_096)  # runs ask at every event
def register_selection(condition: c.Condition) -> tuple[str, ...]:
    """``φ.rs``: the registers that a condition reads, in the order of the text."""
    return tuple(condition_labels(condition))


def not_satisfied(condition: c.Condition) -> c.Condition:
    """``¬φ``: holds exactly where φ does not, including where φ is unknown."""
    match condition:
        case c.Constant(value):
            return c.Constant(not value)
        case c.Not(Satisfied(inner)):
            return inner
    return c.Not(Satisfied(condition))


def holds(condition: c.Condition, event: Event, registers: Mapping[str, Event]) -> bool:
    """``(u, v) ⊨ φ`` (004 Definition 13): an atom on an empty register is false, and its negation true."""
    if condition == TRUE:
        return True
    # Unknown stays unknown below AND, OR and NOT, so neither an atom nor its negation holds.
    events: dict[str | None, Event | None] = {None: event}
    events.update(registers)
    return value_on(without_brackets(with_empty_registers(condition, registers)), events) is True
