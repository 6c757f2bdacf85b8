"""What is probably not meant in a formula: parts that can never match, branches of OR that add nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from cerflow.analysis.scopes import Scopes, resolve
from cerflow.automata.budget import Budget
from cerflow.automata.compile import compile_formula
from cerflow.automata.equivalence import compare, shortest_match
from cerflow.errors import QueryError, Span, UnsupportedQueryError
from cerflow.language.formula import (
    Conjunction,
    Disjunction,
    Filter,
    Formula,
    Selection,
    Start,
    StrictIteration,
    StrictSequence,
    Unless,
    Window,
    Within,
    Without,
)
from cerflow.language.node import Node, walk
from cerflow.rewriting.rebuild import transformed
from cerflow.schema import Schema

__all__ = ["Remark", "remarks"]

#: Steps that all questions about one formula may take together: a fraction of a second.
STEPS = 50_000
#: Larger formulas and automata are not looked into.
MOST_NODES = 1_500
MOST_TRANSITIONS = 1_000
#: At most so many parts and branches are asked about.
MOST_QUESTIONS = 40

#: Operators that can take all matches away, or that bring together what does not go together.
_RESTRICTING = (
    Filter,
    Conjunction,
    Selection,
    Start,
    StrictIteration,
    StrictSequence,
    Unless,
    Within,
    Without,
)


@dataclass(frozen=True)
class Remark:
    """A sentence about a place in the text of a formula (None: about the whole)."""

    text: str
    span: Span | None


def remarks(
    formula: Formula, *, window: Window | None = None, branches: bool = True, schema: Schema | None = None
) -> list[Remark]:
    """What is certain and can be found out quickly; ``window`` is that of the query, ``branches`` asks about OR.

    Raises `QueryError` for labels out of scope.
    """
    nodes = list(walk(formula))
    if len(nodes) > MOST_NODES:
        return []
    scopes = resolve(formula)
    inquiry = _Inquiry(schema)
    try:
        if len(compile_formula(formula).transitions) > MOST_TRANSITIONS:
            return []
    except UnsupportedQueryError:
        return []
    whole = formula if window is None else Within(formula, window)
    dead = list(_dead_parts(nodes, scopes, inquiry))
    if inquiry.never_matches(whole):
        place = _place(nodes[dead[0]]) if dead else None
        return [Remark("this query can never match", place or formula.span)]
    found = [Remark("this part can never match", _place(nodes[k])) for k in dead]
    if branches:
        found += [
            Remark("this branch of OR is redundant: all that it adds is found by the rest of the query", branch.span)
            for branch in _redundant_branches(formula, nodes, inquiry)
        ]
    return found


class _Inquiry:
    """Questions whose answer may be that it is not known; all together may take a certain number of steps."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._budget = Budget(STEPS)
        self._left = MOST_QUESTIONS

    def never_matches(self, formula: Formula) -> bool:
        """Whether it is certain that a formula has no match."""
        return self._certainly_not(lambda: shortest_match(formula, schema=self._schema, budget=self._budget).exists)

    def same(self, first: Formula, second: Formula) -> bool:
        """Whether it is certain that two formulas have the same matches."""
        return self._certainly_not(lambda: compare(first, second, schema=self._schema, budget=self._budget).exists)

    def _certainly_not(self, ask: Callable[[], bool | None]) -> bool:
        self._left -= 1
        if self._left < 0 or self._budget.exhausted:
            return False
        try:
            return ask() is False
        except (QueryError, UnsupportedQueryError):
            return False


def _dead_parts(nodes: list[Node], scopes: Scopes, inquiry: _Inquiry) -> Iterator[int]:
    """The occurrences of the innermost parts that can never match."""
    first: list[int] = []  # where the occurrences below each one begin
    open_: list[int] = []
    branches = {id(b) for n in nodes if isinstance(n, Disjunction) for b in n.children}
    dead: list[int] = []
    for k, current in enumerate(nodes):
        count = len(current.children)
        first.append(first[open_[-count]] if count else k)
        del open_[len(open_) - count :]
        open_.append(k)
        if not isinstance(current, Formula) or not (isinstance(current, _RESTRICTING) or id(current) in branches):
            continue
        if any(first[k] <= other for other in dead) or not _stands_alone(first[k], k, scopes):
            continue
        if inquiry.never_matches(current):
            dead.append(k)
            yield k


def _stands_alone(start: int, end: int, scopes: Scopes) -> bool:
    """Whether no condition in a part speaks of labels that are bound outside of it."""
    return all(
        start <= binder <= end
        for k, bindings in scopes.outer.items()
        if start <= k <= end
        for binder in bindings.values()
    )


def _place(part: Node) -> Span | None:
    return (part.condition.span if isinstance(part, Filter) else None) or part.span


def _redundant_branches(formula: Formula, nodes: list[Node], inquiry: _Inquiry) -> Iterator[Formula]:
    """Branches without which the formula has the same matches; of several that stand for one another all but one."""
    inner = {id(child) for n in nodes if isinstance(n, Disjunction) for child in n.children}
    for k, current in enumerate(nodes):
        if not isinstance(current, Disjunction) or id(current) in inner:
            continue
        left = _branches(current)
        for branch in reversed(left):
            rest = [other for other in left if other is not branch]
            # Of a branch that never matches more is said elsewhere.
            if inquiry.same(formula, _with(formula, k, reduce(Disjunction, rest))) and not inquiry.never_matches(
                branch
            ):
                left = rest
                yield branch
            if len(left) == 1:
                break


def _branches(choice: Disjunction) -> list[Formula]:
    found: list[Formula] = []
    stack: list[Formula] = [choice]
    while stack:
        current = stack.pop()
        if isinstance(current, Disjunction):
            stack += [current.right, current.left]
        else:
            found.append(current)
    return found


def _with(formula: Formula, occurrence: int, part: Formula) -> Formula:
    """The formula with another part at one place."""
    return transformed(formula, lambda k, current: part if k == occurrence else current)
