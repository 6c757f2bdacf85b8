"""FO-CEL by definition (P2 §4): ``⟦φ⟧(S, i, j, ν)`` is a set of sets of positions, ν gives every variable a position.

It enumerates valuations, so it is for small streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from cerflow.base.events import Event, StreamGiven, as_stream
from cerflow.language import formula as f
from cerflow.language.builder.given import FormulaGiven, formula_tree
from cerflow.language.condition import Condition
from cerflow.logic.analysis.first_order import defined_variables, refuse_by, variables
from cerflow.logic.analysis.scopes import occurrences
from cerflow.theory.semantics.complex_events import kept_by, within
from cerflow.theory.semantics.conditions import check_conditions, names_event, satisfies

Positions = frozenset[int]
#: The positions of the variables in a formula, sorted by name.
Valuation = tuple[tuple[str, int], ...]
_NOTHING: frozenset[Positions] = frozenset()


def first_order_denotation(formula: f.Formula, events: Sequence[Event], n: int) -> frozenset[Positions]:
    """``⟦φ⟧_n(S)``: the sets of positions M with ``M ∈ ⟦φ⟧(S, 0, n, ν)`` for some ν.

    A variable may stand for any event of ``events``, even one after n. So formulas that are not well-formed depend on
    the future.
    """
    denotation = _FirstOrder(formula, events)
    root = max(denotation.mentioned)
    return frozenset(m for v in denotation.valuations(denotation.mentioned[root]) for m in denotation.of(root, 0, n, v))


def first_order_matches(formula: FormulaGiven, events: StreamGiven) -> frozenset[tuple[int, Positions]]:
    """All (n, M) with ``M ∈ ⟦φ⟧_n(S)`` (P1 §3 and §4, P2 §4); see `first_order_denotation`."""
    tree, stream = formula_tree(formula), as_stream(events)
    check_conditions(tree)
    return frozenset((n, m) for n in range(len(stream)) for m in first_order_denotation(tree, stream, n))


class _FirstOrder:
    def __init__(self, formula: f.Formula, events: Sequence[Event]) -> None:
        self._events = events
        self._answer = cache(self._evaluate)
        self._places = occurrences(formula)
        self.mentioned = {k: variables(p.formula) for k, p in self._places.items()}
        self._defined = {k: defined_variables(p.formula, outside_iterations=True) for k, p in self._places.items()}

    def valuations(self, names: frozenset[str]) -> Iterator[Valuation]:
        """All valuations of some variables."""
        ordered = sorted(names)
        for positions in product(range(len(self._events)), repeat=len(ordered)):
            yield tuple(zip(ordered, positions))

    def of(self, k: int, i: int, j: int, valuation: Valuation) -> frozenset[Positions]:
        """``⟦φ⟧(S, i, j, ν)`` of the k-th formula."""
        own = tuple(pair for pair in valuation if pair[0] in self.mentioned[k])
        return _NOTHING if i > j else self._answer(k, i, j, own)

    def _evaluate(self, k: int, i: int, j: int, v: Valuation) -> frozenset[Positions]:
        formula, parts = self._places[k].formula, self._places[k].operands
        match formula:
            case f.EventType() | f.AnyEvent() | f.NotEvent():
                return frozenset((frozenset((j,)),)) if self._is(formula, j, v) else _NOTHING
            case f.As():
                return self.of(parts[0], i, j, v) if dict(v)[formula.label] == j else _NOTHING
            case f.Filter():
                return self.of(parts[0], i, j, v) if self._satisfied(formula.condition, dict(v)) else _NOTHING
            case f.Disjunction():
                return self.of(parts[0], i, j, v) | self.of(parts[1], i, j, v)
            case f.Sequence():
                return frozenset(
                    m1 | m2
                    for n in range(i, j)
                    for m1 in self.of(parts[0], i, n, v)
                    for m2 in self.of(parts[1], n + 1, j, v)
                )
            case f.Iteration():
                once: set[Positions] = set()
                for changed in self._changed(v, self._defined[parts[0]]):
                    once |= self.of(parts[0], i, j, changed)
                    for n in range(i, j):
                        first = self.of(parts[0], i, n, changed)
                        # Later repetitions read ν', but give the variables in U new values themselves.
                        once |= {m1 | m2 for m1 in first for m2 in self.of(k, n + 1, j, changed)}
                return frozenset(once)
            case f.Selection():
                refuse_by(formula.by)
                # The comparison is with all matches in the whole stream that end here (P1 §4), and, by erratum E3, for
                # all values of the variables that the formula defines itself.
                found = frozenset(
                    m for changed in self._changed(v, self._defined[parts[0]]) for m in self.of(parts[0], 0, j, changed)
                )
                labelled = kept_by(formula.strategy, (frozenset(("", p) for p in m) for m in found))
                best = {frozenset(p for _, p in m) for m in labelled}
                return frozenset(m for m in self.of(parts[0], i, j, v) if m in best)
            case f.Within():
                found, window = self.of(parts[0], i, j, v), formula.window
                return frozenset(m for m in found if within(frozenset(("", p) for p in m), window, self._events))
        raise TypeError(f"{type(formula).__name__} has no first-order reading")

    def _changed(self, v: Valuation, names: frozenset[str]) -> Iterator[Valuation]:
        """ν[ν'/U] for every ν'."""
        kept = tuple(pair for pair in v if pair[0] not in names)
        for new in self.valuations(names):
            yield tuple(sorted((*kept, *new)))

    def _is(self, wanted: f.EventType | f.AnyEvent | f.NotEvent, j: int, v: Valuation) -> bool:
        if isinstance(wanted, f.NotEvent):
            matched = names_event(wanted.event, self._events[j])
            if matched and wanted.condition is not None:
                matched = self._satisfied(wanted.condition, {**dict(v), wanted.event.name: j})
            return not matched
        return names_event(wanted, self._events[j])

    def _satisfied(self, condition: Condition, valuation: dict[str, int]) -> bool:
        return satisfies(condition, lambda name: [self._events[valuation[name]]])
