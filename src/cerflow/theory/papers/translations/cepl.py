"""Bounded CEPL to register match automata, by the algorithms of 003 (Theorem 9, Algorithms 1, 3 and 4).

Two maps are built besides the automaton: δx gives the labels of the event that a transition reads (none for ε and for
loops that skip), and rx the register for the event of each label.

Three things differ from the printed algorithms, because these are wrong there. A filter is checked where all *other*
labels appear on every trail (erratum 11.8). Registers made for one transition are known to the next (the same). A
register that already exists is also written by the transitions of its label that do not write it yet. Otherwise in
``((A AS x ; B AS y) FILTER x.v = y.v OR D AS x) ; C AS z FILTER x.v = z.v`` the second filter finds a register for x
that a D does not write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.automaton import HEAD
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import Condition
from cerflow.language.node import fold_only, walk
from cerflow.language.predicates.registry import is_about_set
from cerflow.logic.analysis.scopes import labels_of, resolve
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.logic.conditions.guards import event_test, without_brackets
from cerflow.theory.papers.constructions.closure import with_start_loop
from cerflow.theory.papers.constructions.normal_forms import eliminate_epsilon, on_every_trail, unroll
from cerflow.theory.papers.constructions.operators import anchor
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.models import RMA, MatchTransition


@dataclass(frozen=True, slots=True)
class _Draft:
    """An automaton under construction with one start and one final state, and the inverse of rx."""

    start: int
    final: int
    transitions: list[MatchTransition]
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
    resolve(tree)
    part = fold_only(tree, f.Formula, _CeplCompiler().build)
    whole = RMA.of(part.transitions, starts=(part.start,), finals=(part.final,))
    if not sizes:
        return whole
    walks = unroll(anchor(eliminate_epsilon(whole)), min(sizes), most=most)
    return with_start_loop(walks.transducer)


class _CeplCompiler:
    """The fold over one formula. The output of a transition is its δx."""

    def __init__(self) -> None:
        self._states = count()
        self._registers = (f"r{number}" for number in count(1))

    def build(self, _: int, current: f.Formula, below: list[_Draft]) -> _Draft:
        """The automaton of a formula, made of those of its operands."""
        edge = MatchTransition.of
        match current:
            case f.EventType():
                # Skip any events, then read one of the type.
                start, final = next(self._states), next(self._states)
                read = edge(start, final, event_test(current), frozenset((current.name,)))
                return _Draft(start, final, [edge(start, start, TRUE), read], {})
            case f.As(operand, label) if isinstance(operand, f.EventType | f.As):
                labelled = [replace(t, output=t.output | {label}) if t.output else t for t in below[0].transitions]
                return replace(below[0], transitions=labelled)
            case f.Disjunction():
                start, final = next(self._states), next(self._states)
                edges = [t for part in below for t in part.transitions]
                edges += [edge(start, part.start, None) for part in below]
                edges += [edge(part.final, final, None) for part in below]
                return _Draft(start, final, edges, {**below[1].register_of, **below[0].register_of})
            case f.Sequence():
                left, right = below
                edges = [*left.transitions, edge(left.final, right.start, None), *right.transitions]
                return _Draft(left.start, right.final, edges, {**right.register_of, **left.register_of})
            case f.Iteration():
                (body,) = below
                return replace(body, transitions=[*body.transitions, edge(body.final, body.start, None)])
            case f.Filter():
                _check_bounded(current)
                return self._filter(below[0], without_brackets(current.condition))
        if isinstance(current, f.Within):
            raise UnsupportedQueryError("WITHIN is allowed only around the whole formula here", span=current.span)
        raise UnsupportedQueryError(
            f"{type(current).__name__} does not belong to core-CEPL, which has types, AS, FILTER, OR, ';' and '+'",
            span=current.span,
        )

    def _filter(self, part: _Draft, condition: Condition) -> _Draft:
        """Algorithm 3; a condition without labels is checked at every event that gets a label."""
        labels = register_selection(condition)
        appeared = on_every_trail((part.start,), part.transitions, lambda t: t.output)
        kept: dict[str, str] = {}
        found = []
        for t in part.transitions:
            given = t.output.intersection(labels)
            asked = bool(given or (t.output and not labels))
            if t.formula is not None and asked and set(labels) - given <= appeared.get(t.source, frozenset()):
                # Algorithm 4 (``CreateNewRs``): the arguments, in order, with registers where needed.
                arguments = dict(zip(t.parameters, t.selection))
                for label in (x for x in labels if x not in arguments):
                    if label not in given:
                        kept[label] = part.register_of.get(label) or kept.get(label) or next(self._registers)
                    arguments[label] = HEAD if label in given else kept[label]
                formula = conjunction([*conjuncts(t.formula), *conjuncts(condition)])
                t = replace(t, formula=formula, parameters=tuple(arguments), selection=tuple(arguments.values()))
            found.append(t)
        writing = [replace(t, writes=t.writes.union(kept[x] for x in t.output.intersection(kept))) for t in found]
        return replace(part, transitions=writing, register_of={**part.register_of, **kept})


def _check_bounded(current: f.Filter) -> None:
    if any(map(is_about_set, walk(current.condition))):
        raise UnsupportedQueryError("registers hold one event, so nothing is aggregated", span=current.span)
    bound = labels_of(current.operand).bound
    for label in register_selection(current.condition):
        if label not in bound:
            raise UnsupportedQueryError(
                f"the formula is not bounded: its filtered part does not give label '{label}' to exactly one event",
                span=current.span,
            )
