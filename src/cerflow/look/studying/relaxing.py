"""The parts of a query that can refuse events, and the query without some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cerflow.base.errors import Span
from cerflow.language import formula as f
from cerflow.language.automaton import AutomatonStep
from cerflow.language.condition import Condition
from cerflow.language.node import Node, fold, walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.language.sremo import Complement, Terminal, Windowed
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.rewriting.rebuild import transformed

RelaxedKind = Literal[
    "condition", "type", "window", "contiguity", "repetition", "start", "exclusion", "both", "preference",
    "partition", "consumption", "limit",
]  # fmt: skip


@dataclass(frozen=True)
class Constraint:
    """A part of a query that can refuse a complex event.

    ``occurrence`` counts nodes of the query as `walk` does (None: a clause of the query itself), ``part`` numbers the
    conditions of one filter and the sides of AND. ``node`` is what refuses, ``text`` how it is written.
    """

    kind: RelaxedKind
    occurrence: int | None
    part: int
    node: Node
    text: str

    @property
    def span(self) -> Span | None:
        """Where it stands in the text of the query."""
        return self.node.span


def constraints(select: Select) -> list[Constraint]:
    """All parts that can refuse, but for those below an excluded formula, which refuse by matching."""
    nodes = list(walk(select))
    below: list[list[int]] = []

    def visit(_: Node, operands: Sequence[int]) -> int:
        below.append([*operands])
        return len(below) - 1

    fold(select, visit)
    hidden: set[int] = set()
    for k in reversed(range(len(nodes))):
        current = nodes[k]
        if k in hidden:
            hidden.update(below[k])
        elif isinstance(current, f.Exclusion):
            hidden.update(below[k][1:])
        elif isinstance(current, f.NotEvent | Complement):
            hidden.update(below[k])
    found = [c for k, current in enumerate(nodes) if k not in hidden for c in _of_node(k, current)]
    return [*found, *_of_clauses(select)]


def _of_node(k: int, current: Node) -> Iterator[Constraint]:
    match current:
        case f.Filter() | Terminal() | AutomatonStep(condition=Condition()):
            assert current.condition is not None
            for number, part in enumerate(conjuncts(current.condition)):
                yield Constraint("condition", k, number, part, show(part))
        case f.EventType():
            yield Constraint("type", k, 0, current, show(current, kinds=False))
        case f.NotEvent():
            yield Constraint("type", k, 0, current, show(current, kinds=False))
        case f.StrictSequence() | f.StrictIteration():
            yield Constraint("contiguity", k, 0, current, ":" if isinstance(current, f.StrictSequence) else ":+")
        case f.Repetition():
            if current.strict:
                yield Constraint("contiguity", k, 0, current, ":{…}")
            if current.least > 1 or current.most is not None:
                most = "" if current.most is None else current.most
                yield Constraint("repetition", k, 1, current, f"{{{current.least},{most}}}")
        case f.Exclusion():
            end = f" FOR {show(current.window)}" if isinstance(current, f.NotFollowedBy) else ""
            text = f"{current.sign} {show(current.right, kinds=False)}{end}"
            yield Constraint("exclusion", k, 0, current, text)
        case f.Conjunction():
            for side, operand in enumerate((current.left, current.right)):
                yield Constraint("both", k, side, operand, f"AND {show(operand, kinds=False)}")
        case f.Start():
            yield Constraint("start", k, 0, current, "START")
        case f.Selection():
            kind: RelaxedKind = "contiguity" if current.strategy is f.Strategy.STRICT else "preference"
            yield Constraint(kind, k, 0, current, str(current.strategy))
        case f.Within() | Windowed():
            yield Constraint("window", k, 0, current.window, f"WITHIN {show(current.window)}")


def _of_clauses(select: Select) -> Iterator[Constraint]:
    if select.partition:
        keys = ", ".join(names[0] if len(names) == 1 else f"[{', '.join(names)}]" for names in select.partition)
        yield Constraint("partition", None, 0, select, f"PARTITION BY {keys}")
    if select.window is not None:
        yield Constraint("window", None, 0, select.window, f"WITHIN {show(select.window)}")
    if select.strategy is f.Strategy.STRICT:
        yield Constraint("contiguity", None, 1, select, "SELECT STRICT")
    elif select.strategy not in (f.Strategy.ALL, f.Strategy.ANY):
        yield Constraint("preference", None, 1, select, f"SELECT {select.strategy}")
    if select.consume is not Consumption.NONE:
        yield Constraint("consumption", None, 0, select, f"CONSUME BY {select.consume}")
    if select.limit is not None or select.strategy is f.Strategy.ANY:
        text = f"LIMIT {select.limit}" if select.limit is not None else "SELECT ANY"
        yield Constraint("limit", None, 0, select, text)


def relaxed(select: Select, left_out: Collection[Constraint]) -> Select:
    """The query without some of its `constraints`; it may be one that cannot be evaluated."""
    gone = {(c.occurrence, c.part) for c in left_out if c.occurrence is not None}
    touched = {k for k, _ in gone}

    def change(k: int, current: Node) -> Node:
        return _relaxed(current, {part for occurrence, part in gone if occurrence == k}) if k in touched else current

    smaller = transformed(select, change)
    for constraint in left_out:
        if constraint.occurrence is None:
            smaller = _without_clause(smaller, constraint.kind)
    return smaller


def _relaxed(current: Node, gone: set[int]) -> Node:
    match current:
        case f.Filter() | Terminal() | AutomatonStep(condition=Condition()):
            assert current.condition is not None
            rest = [part for number, part in enumerate(conjuncts(current.condition)) if number not in gone]
            if isinstance(current, f.Filter) and not rest:
                return current.operand
            return replace(current, condition=conjunction(rest))
        case f.EventType(name, stream):
            return f.As(f.AnyEvent(stream, span=current.span), name, span=current.span)
        case f.NotEvent():
            return f.AnyEvent(current.event.stream, span=current.span)
        case f.StrictSequence():
            return f.Sequence(current.left, current.right, span=current.span)
        case f.StrictIteration():
            return f.Iteration(current.operand, span=current.span)
        case f.Repetition():
            strict = current.strict and 0 not in gone
            if 1 not in gone:
                return replace(current, strict=strict)
            if current.least == 0:
                return replace(current, strict=strict, most=None)
            iteration = f.StrictIteration if strict else f.Iteration
            return iteration(current.operand, span=current.span)
        case f.Conjunction():
            # Without both sides the formula is the first one, whose own parts may be left out, too.
            return current.right if gone == {0} else current.left
        case f.Exclusion():
            return current.left
        case f.Start() | f.Selection() | f.Within() | Windowed():
            return current.operand
    raise TypeError(f"{type(current).__name__} refuses nothing")


def _without_clause(select: Select, kind: RelaxedKind) -> Select:
    match kind:
        case "partition":
            return replace(select, partition=())
        case "window":
            return replace(select, window=None)
        case "contiguity" | "preference":
            return replace(select, strategy=f.Strategy.ALL, by=())
        case "consumption":
            return replace(select, consume=Consumption.NONE)
        case "limit":
            strategy = f.Strategy.ALL if select.strategy is f.Strategy.ANY else select.strategy
            return replace(select, limit=None, strategy=strategy)
    raise ValueError(f"{kind} is not a clause")
