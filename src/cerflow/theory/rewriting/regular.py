"""Formulas as regular expressions: for the paths through a graph (Kleene, P2 §C.1), and for repetitions (spec §10).

The edges of a graph are formulas. Repetitions and optional parts are written out with ``;``, ``:``, OR and ``+``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from cerflow.base import limits
from cerflow.base.errors import Span, UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.node import Node, rebuild, with_children
from cerflow.logic.rewriting.rebuild import check_tree_size, size

N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True)
class Paths:
    """The readings of a path: a match of the formula, or (``empty``) nothing; None is a formula without match."""

    formula: f.Formula | None = None
    empty: bool = False

    @cached_property
    def nodes(self) -> int:
        """The size of the formula."""
        return 0 if self.formula is None else size(self.formula)

    def or_(self, other: Paths) -> Paths:
        """Either of the two."""
        one, another = self.formula, other.formula
        joined = f.Disjunction(one, another) if one and another and one != another else one or another
        return Paths(joined, self.empty or other.empty)

    def then(self, other: Paths, strict: bool = False) -> Paths:
        """One after the other, with ``:`` if ``strict``."""
        join = f.StrictSequence if strict else f.Sequence
        both = Paths(None, self.empty and other.empty)
        if other.empty:
            both = both.or_(Paths(self.formula))
        if self.empty:
            both = both.or_(Paths(other.formula))
        return both.or_(Paths(join(self.formula, other.formula) if self.formula and other.formula else None))

    def repeated(self, strict: bool = False) -> Paths:
        """Any number of times, also none."""
        repeat = f.StrictIteration if strict else f.Iteration
        return Paths(repeat(self.formula) if self.formula else None, True)


class _Graph(Generic[N]):
    def __init__(self, edges: Iterable[tuple[N, N, Paths]]) -> None:
        self.out: defaultdict[N, dict[N, Paths]] = defaultdict(dict)
        self._into: defaultdict[N, dict[N, Paths]] = defaultdict(dict)
        for edge in edges:
            self.add(*edge)

    def add(self, source: N, target: N, paths: Paths) -> None:
        joined = self.out[source].get(target, Paths()).or_(paths)
        self.out[source][target] = self._into[target][source] = joined

    def around(self, node: N) -> tuple[dict[N, Paths], dict[N, Paths]]:
        """The edges into a node from others, and those to others."""
        into = {source: paths for source, paths in self._into[node].items() if source != node}
        return into, {target: paths for target, paths in self.out[node].items() if target != node}

    def remove(self, node: N) -> None:
        for source in self._into.pop(node):
            del self.out[source][node]
        for target in self.out.pop(node).keys() - {node}:
            del self._into[target][node]

    def growth(self, node: N) -> tuple[int, int]:
        """The growth of the formulas if a node is taken out."""
        into, out = ([paths.nodes for paths in edges.values()] for edges in self.around(node))
        pairs = len(into) * len(out)
        grown = sum(into) * (len(out) - 1) + sum(out) * (len(into) - 1)
        again = self.out[node].get(node)
        if again is not None:
            grown += pairs * (again.nodes + min(max(into, default=0), max(out, default=0)))
        return grown, pairs


def paths_through(
    edges: Iterable[tuple[N, N, Paths]],
    inner: Collection[N],
    strict: Callable[[N], bool] = lambda _: False,
    span: Span | None = None,
) -> dict[tuple[N, N], Paths]:
    """The readings between the other nodes, on paths through the ``inner`` ones; of several edges any may be taken.

    ``strict`` says of an inner node that what comes into it and what goes out are joined by ``:`` rather than ``;``.
    Nodes are taken out one by one, in the order that keeps formulas small. Raises `UnsupportedQueryError` if they
    would grow too large nevertheless.
    """
    graph = _Graph(edges)
    growth = {node: graph.growth(node) for node in inner}
    while growth:
        node = min(growth, key=growth.__getitem__)
        del growth[node]
        into, out = graph.around(node)
        again = graph.out[node].get(node, Paths()).repeated(strict(node))
        graph.remove(node)
        new = [(p, q, _through(x, again, y, strict(node))) for p, x in into.items() for q, y in out.items()]
        check_tree_size(sum(paths.nodes for _, _, paths in new) if len(new) > 1 else 0, span)
        for edge in new:
            graph.add(*edge)
        growth.update({changed: graph.growth(changed) for changed in {*into, *out} & growth.keys()})
    return {(p, q): paths for p, targets in graph.out.items() for q, paths in targets.items()}


def _through(x: Paths, again: Paths, y: Paths, strict: bool) -> Paths:
    """x, then any number of repetitions, then y; the smaller of x and y stands twice."""
    if again.formula is None:
        return x.then(y, strict)
    before, after = _repeating(y, again, last=False), _repeating(x, again, last=True)
    if before is not None:
        return x.then(before, strict)
    if after is not None:
        return after.then(y, strict)
    if y.nodes <= x.nodes:
        return x.then(again.then(y, strict), strict)
    return x.then(again, strict).then(y, strict)


def _repeating(paths: Paths, again: Paths, *, last: bool) -> Paths | None:
    """``φ ; ψ`` OR ``φ+ ; φ ; ψ`` as ``φ+ ; ψ``, if it is the first (or last) step that is repeated."""
    assert isinstance(again.formula, f.Iteration | f.StrictIteration)
    formula = paths.formula
    around: list[f.Sequence | f.StrictSequence] = []
    while isinstance(formula, f.Sequence | f.StrictSequence) and formula != again.formula.operand:
        around.append(formula)
        formula = formula.right if last else formula.left
    if formula != again.formula.operand:
        return None
    found: f.Formula = again.formula
    for step in reversed(around):
        found = with_children(step, (step.left, found) if last else (found, step.right))
    return Paths(found).or_(again) if paths.empty else Paths(found)


def without_repetitions(formula: f.Formula) -> f.Formula:
    """The same formula with all repetitions written out; itself if it has none.

    Raises `UnsupportedQueryError` if it becomes too large.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        rebuilt = with_children(current, below)
        match rebuilt:
            case f.Repetition():
                return _written_out(rebuilt)
            case f.Join():
                assert isinstance(current, f.Join)
                # The copies no longer say whether they can be absent.
                whole: f.Formula = rebuilt
                if f.can_be_absent(current.right):
                    whole = f.Disjunction(whole, rebuilt.left, span=current.span)
                if f.can_be_absent(current.left):
                    whole = f.Disjunction(whole, rebuilt.right, span=current.span)
                return whole
        return rebuilt

    written = rebuild(formula, visit)
    if written is not formula:
        check_tree_size(size(written), formula.span)
    return written


def _written_out(repetition: f.Repetition) -> f.Formula:
    once, least, most = repetition.operand, max(1, repetition.least), repetition.most
    if max(least, most or 0) > limits.REWRITTEN_NODES:
        raise UnsupportedQueryError(
            f"{most or least:,} repetitions would have to be written out",
            span=repetition.span,
            hint="Rewrite a formula with smaller bounds.",
        )
    join = f.StrictSequence if repetition.strict else f.Sequence
    whole = once
    if most is None:
        whole = (f.StrictIteration if repetition.strict else f.Iteration)(once, span=repetition.span)
    for k in range((most or least) - 1, 0, -1):
        whole = join(once, whole, span=repetition.span)
        if most is not None and k >= least:
            whole = f.Disjunction(once, whole, span=repetition.span)
    return whole
