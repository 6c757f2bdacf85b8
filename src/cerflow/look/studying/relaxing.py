"""The parts of a query that can refuse events, and the query without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from cerflow.base.graphs import gathered
from cerflow.language import formula as f
from cerflow.language.automaton import AutomatonStep
from cerflow.language.condition import Condition
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.language.sremo import Complement, Terminal, Windowed
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.rewriting.rebuild import size, transformed

RelaxedKind = Literal[
    "condition", "type", "window", "contiguity", "repetition", "start", "exclusion", "both", "preference",
    "partition", "consumption", "limit",
]  # fmt: skip


@dataclass(frozen=True)
class Constraint:
    """A part of a query that can refuse a complex event.

    ``occurrence`` counts nodes of the query as `walk` does, ``part`` the constraints of a node. ``node`` is what
    refuses, ``text`` how it is written. ``leave_out`` gives the node at the occurrence without it.
    """

    kind: RelaxedKind
    occurrence: int
    part: int
    node: Node
    text: str
    leave_out: Callable[[Any], Node]


def constraints(select: Select) -> list[Constraint]:
    """All parts that can refuse, but for those below an excluded formula, which refuse by matching."""
    nodes = list(walk(select))
    hidden: set[int] = set()
    for k, current in enumerate(nodes):
        # What stands below a node comes just before it, its left operand first.
        first = k + 1 - size(current)
        if isinstance(current, f.Exclusion):
            hidden.update(range(first + size(current.left), k))
        elif isinstance(current, f.NotEvent | Complement):
            hidden.update(range(first, k))
    return [
        Constraint(kind, k, part, node, text, leave_out)
        for k, current in enumerate(nodes)
        if k not in hidden
        for part, (kind, node, text, leave_out) in enumerate(_of_node(current))
    ]


def relaxed(select: Select, left_out: Iterable[Constraint]) -> Select:
    """The query without some of its `constraints`; it may be one that cannot be evaluated."""
    gone = gathered((c.occurrence, c) for c in left_out)

    def change(k: int, current: Node) -> Node:
        # The last first, so that others keep their places.
        parts = sorted(gone.get(k, ()), key=lambda c: -c.part)
        if parts and parts[0].kind == "both":
            # Without both sides the formula is the first one, whose own parts may be left out, too.
            del parts[1:]
        for constraint in parts:
            current = constraint.leave_out(current)
        return current

    return transformed(select, change)


def _of_node(current: Node) -> Iterator[tuple[RelaxedKind, Node, str, Callable[[Any], Node]]]:
    """The kind of each constraint of a node, what refuses, its text, and what makes the node one without it."""
    match current:
        case f.Filter() | Terminal() | AutomatonStep(condition=Condition()):
            assert current.condition is not None
            for number, part in enumerate(conjuncts(current.condition)):
                yield "condition", part, show(part), partial(_without_part, number)
        case f.EventType():
            kind = show(current, kinds=False)
            yield "type", current, kind, lambda n: f.As(f.AnyEvent(n.stream, span=n.span), n.name, span=n.span)
        case f.NotEvent():
            yield "type", current, show(current, kinds=False), lambda n: f.AnyEvent(n.event.stream, span=n.span)
        case f.StrictSequence():
            yield "contiguity", current, ":", lambda n: f.Sequence(n.left, n.right, span=n.span)
        case f.StrictIteration():
            yield "contiguity", current, ":+", _with_gaps
        case f.Repetition():
            if current.strict:
                yield "contiguity", current, ":{…}", _with_gaps
            if current.least > 1 or current.most is not None:
                yield "repetition", current, current.sign.removeprefix(":"), _any_number
        case f.Exclusion():
            end = f" FOR {show(current.window)}" if isinstance(current, f.NotFollowedBy) else ""
            text = f"{current.sign} {show(current.right, kinds=False)}{end}"
            yield "exclusion", current, text, attrgetter("left")
        case f.Conjunction():
            for operand, other in ((current.left, "right"), (current.right, "left")):
                yield "both", operand, f"AND {show(operand, kinds=False)}", attrgetter(other)
        case f.Start():
            yield "start", current, "START", attrgetter("operand")
        case f.Selection():
            strict = current.strategy is f.Strategy.STRICT
            yield "contiguity" if strict else "preference", current, str(current.strategy), attrgetter("operand")
        case f.Within() | Windowed():
            yield "window", current.window, f"WITHIN {show(current.window)}", attrgetter("operand")
        case Select():
            yield from _of_clauses(current)


def _of_clauses(select: Select) -> Iterator[tuple[RelaxedKind, Node, str, Callable[[Any], Node]]]:
    if select.partition:
        keys = ", ".join(names[0] if len(names) == 1 else f"[{', '.join(names)}]" for names in select.partition)
        yield "partition", select, f"PARTITION BY {keys}", lambda n: replace(n, partition=())
    if select.window is not None:
        yield "window", select.window, f"WITHIN {show(select.window)}", lambda n: replace(n, window=None)
    if select.strategy not in (f.Strategy.ALL, f.Strategy.ANY):
        strict = select.strategy is f.Strategy.STRICT
        kind: RelaxedKind = "contiguity" if strict else "preference"
        yield kind, select, f"SELECT {select.strategy}", lambda n: replace(n, strategy=f.Strategy.ALL, by=())
    if select.consume is not Consumption.NONE:
        yield "consumption", select, f"CONSUME BY {select.consume}", lambda n: replace(n, consume=Consumption.NONE)
    if select.strategy is f.Strategy.ANY:
        text = f"LIMIT {select.limit}" if select.limit is not None else "SELECT ANY"
        yield "limit", select, text, lambda n: replace(n, limit=None, strategy=f.Strategy.ALL)
    elif select.limit is not None:
        yield "limit", select, f"LIMIT {select.limit}", lambda n: replace(n, limit=None)


def _without_part(number: int, current: f.Filter | Terminal | AutomatonStep) -> Node:
    """The node without one of the conditions that must all hold."""
    assert current.condition is not None
    rest = [part for k, part in enumerate(conjuncts(current.condition)) if k != number]
    if isinstance(current, f.Filter) and not rest:
        return current.operand
    return replace(current, condition=conjunction(rest))


def _with_gaps(current: f.StrictIteration | f.Repetition) -> Node:
    if isinstance(current, f.Repetition):
        return replace(current, strict=False)
    return f.Iteration(current.operand, span=current.span)


def _any_number(current: f.Repetition) -> Node:
    if current.least == 0:
        return replace(current, most=None)
    return (f.StrictIteration if current.strict else f.Iteration)(current.operand, span=current.span)
