"""Bounded CEPL to register match automata, by the algorithms of 003 (Theorem 9, Algorithms 1, 3 and 4).

Two maps are built besides the automaton: δx gives the labels of the event that a transition reads (none for ε and for
loops that skip), and rx the register for the event of each label. A filter changes transitions in place.

Three things differ from the printed algorithms, because these are wrong there. A filter is checked where all *other*
labels appear on every trail (erratum 11.8). Registers made for one transition are known to the next (the same). A
register that already exists is also written by the transitions of its label that do not write it yet. Otherwise in
``((A AS x ; B AS y) FILTER x.v = y.v OR D AS x) ; C AS z FILTER x.v = z.v`` the second filter finds a register for x
that a D does not write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.automaton import HEAD
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import Condition
from cerflow.language.node import fold_only, walk
from cerflow.language.predicates.registry import is_about_set
from cerflow.logic.analysis.scopes import resolve
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.logic.conditions.guards import event_test, without_brackets
from cerflow.theory.papers.constructions.operators import anchor
from cerflow.theory.papers.constructions.registers import on_every_trail
from cerflow.theory.papers.constructions.streaming import with_start_loop
from cerflow.theory.papers.constructions.windows import eliminate_epsilon, unroll
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.models import RMA, MatchTransition


@dataclass(slots=True)
class _Edge:
    """A transition under construction: ε if ``formula`` is None; ``labels`` is its δx."""

    source: int
    target: int
    formula: Condition | None = None
    labels: frozenset[str] = frozenset()
    #: The register, or the head, of each parameter of the formula.
    selection: dict[str, str] = field(default_factory=dict)
    writes: set[str] = field(default_factory=set)

    def transition(self) -> MatchTransition:
        """The finished transition."""
        return MatchTransition(
            source=self.source,
            target=self.target,
            formula=self.formula,
            parameters=tuple(self.selection),
            selection=tuple(self.selection.values()),
            writes=frozenset(self.writes),
            output=self.labels,
        )


@dataclass(slots=True)
class _Draft:
    """An automaton under construction with one start and one final state, and the inverse of rx."""

    start: int
    final: int
    edges: list[_Edge]
    register_of: dict[str, str]


@of_formula
def compile_cepl(formula: f.Formula, *, most: int | None = None) -> RMA:
    """The automaton with ``M ∈ ⟦A⟧_n`` iff M is a match of the formula that ends at n.

    The operators are those of core-CEPL: an event type, AS, FILTER, OR, ``;`` and ``+``. Labels go into the output, so
    ``T AS x`` outputs T and x. Raises `QueryError` for a label that no part gives, and `UnsupportedQueryError` for
    other operators, for conditions on sets of events, and for a formula that is not bounded: a filter has a label that
    its operand does not give to exactly one event.

    ``(…) WITHIN n EVENTS`` gives the windowed automaton (Theorem 14, Algorithm 5): without ε, unrolled from the first
    event with a label to the n-th, so that only its start state has a loop. Then `UnsupportedQueryError` is also raised
    for more than ``most`` states.
    """
    tree, sizes = formula, []
    while isinstance(tree, f.Within):
        if not isinstance(tree.window, f.CountWindow):
            raise UnsupportedQueryError(
                "these automata have only windows of events", span=tree.span, hint="Write WITHIN n EVENTS."
            )
        sizes.append(tree.window.events)
        tree = tree.operand
    whole = _CeplCompiler(tree).run()
    if not sizes:
        return whole
    walks = unroll(anchor(eliminate_epsilon(whole)), min(sizes), most=most)
    return with_start_loop(walks.transducer)


class _CeplCompiler:
    """The fold over one formula; occurrences are numbered as in `resolve`."""

    def __init__(self, formula: f.Formula) -> None:
        self._formula = formula
        self._labels = resolve(formula).labels
        self._states = count()
        self._registers = (f"r{number}" for number in count(1))

    def run(self) -> RMA:
        """The automaton of the whole formula."""

        # The occurrence of each formula, for the labels of filters.
        def visit(index: int, current: f.Formula, parts: list[tuple[_Draft, int]]) -> tuple[_Draft, int]:
            if isinstance(current, f.Filter):
                self._check_bounded(current, parts[0][1])
            return self._build(current, [part for part, _ in parts]), index

        part = fold_only(self._formula, f.Formula, visit)[0]
        return RMA.of((edge.transition() for edge in part.edges), starts=(part.start,), finals=(part.final,))

    def _build(self, current: f.Formula, below: list[_Draft]) -> _Draft:
        match current:
            case f.EventType():
                # Skip any events, then read one of the type.
                start, final = next(self._states), next(self._states)
                read = _Edge(start, final, event_test(current), frozenset((current.name,)))
                return _Draft(start, final, [_Edge(start, start, TRUE), read], {})
            case f.As(operand, label) if isinstance(operand, f.EventType | f.As):
                for edge in below[0].edges:
                    edge.labels = edge.labels | {label} if edge.labels else edge.labels
                return below[0]
            case f.Disjunction():
                start, final = next(self._states), next(self._states)
                edges = [edge for part in below for edge in part.edges]
                edges += [_Edge(start, part.start) for part in below] + [_Edge(part.final, final) for part in below]
                return _Draft(start, final, edges, {**below[1].register_of, **below[0].register_of})
            case f.Sequence():
                left, right = below
                edges = [*left.edges, _Edge(left.final, right.start), *right.edges]
                return _Draft(left.start, right.final, edges, {**right.register_of, **left.register_of})
            case f.Iteration():
                below[0].edges.append(_Edge(below[0].final, below[0].start))
                return below[0]
            case f.Filter():
                return self._filter(below[0], without_brackets(current.condition))
        if isinstance(current, f.Within):
            raise UnsupportedQueryError("WITHIN is allowed only around the whole formula here", span=current.span)
        raise UnsupportedQueryError(
            f"{type(current).__name__} does not belong to core-CEPL, which has types, AS, FILTER, OR, ';' and '+'",
            span=current.span,
        )

    def _check_bounded(self, current: f.Filter, operand: int) -> None:
        if any(map(is_about_set, walk(current.condition))):
            raise UnsupportedQueryError("registers hold one event, so nothing is aggregated", span=current.span)
        bound = self._labels[operand].bound
        for label in register_selection(current.condition):
            if label not in bound:
                raise UnsupportedQueryError(
                    f"the formula is not bounded: its filtered part does not give label '{label}' to exactly one event",
                    span=current.span,
                )

    def _filter(self, part: _Draft, condition: Condition) -> _Draft:
        """Algorithm 3; a condition without labels is checked at every event that gets a label."""
        labels = register_selection(condition)
        appeared = on_every_trail((part.start,), part.edges, lambda edge: edge.labels)
        for edge in part.edges:
            assigned = edge.labels.intersection(labels)
            if edge.formula is None or not (assigned or (edge.labels and not labels)):
                continue
            if not set(labels) - assigned <= appeared.get(edge.source, frozenset()):
                continue
            edge.formula = conjunction([*conjuncts(edge.formula), *conjuncts(condition)])
            self._select(part, edge, labels)
        return part

    def _select(self, part: _Draft, edge: _Edge, labels: tuple[str, ...]) -> None:
        """Algorithm 4 (``CreateNewRs``): the argument list of a filter, in order, with registers where needed."""
        for label in labels:
            if label in edge.selection:
                continue
            register = HEAD
            if label not in edge.labels:
                register = part.register_of.get(label) or next(self._registers)
                part.register_of[label] = register
                for other in part.edges:
                    if label in other.labels:
                        other.writes.add(register)
            edge.selection[label] = register
