"""Hypothesis strategies for random syntax trees: anything the grammars allow, whether or not it makes sense.

``names`` arguments are strategies or collections of names; the defaults are few, so that names meet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language import sremo as r

Names: TypeAlias = SearchStrategy[str] | Collection[str]

TYPES = ("A", "B", "C")
LABELS = ("x", "y", "z")
ATTRIBUTES = ("v", "w", "id")
PREDICATES = ("p", "q")
STREAMS = ("s", "t")


def odd_names() -> SearchStrategy[str]:
    """Names of every kind: plain, reserved, the names of functions, with quotes, blanks, signs and other scripts."""
    chosen = (
        "x",
        "epsilon",
        "Größe",
        "filter",
        "AND",
        "max",
        "case",
        "END",
        "distinct",
        "count",
        "EVENT",
        "events",
        "_",
        "a b",
        'say "hi"',
        "it's",
        "1a",
        "--",
    )
    return st.one_of(
        st.sampled_from(chosen), st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4)
    )


def _some(names: Names) -> SearchStrategy[str]:
    return names if isinstance(names, SearchStrategy) else st.sampled_from(sorted(names))


def literals() -> SearchStrategy[c.Literal]:
    """Numbers of 64 bits, finite floats, strings, durations, TRUE, FALSE and NULL."""
    values: SearchStrategy[int | float | str | bool | timedelta | None] = st.one_of(
        st.integers(-10, 10),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from((0.1, 1e300, 5e-324, -0.5, "it's", "''", '"', "--", "/*", "a\nb", "\\")),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
        st.sampled_from((timedelta(minutes=5), timedelta(microseconds=-1), timedelta(0))),
        st.integers(-(2**62), 2**62).map(lambda size: timedelta(microseconds=size)),
        st.booleans(),
        st.none(),
    )
    return values.map(c.Literal)


def expressions(
    labels: Names = LABELS,
    attributes: Names = ATTRIBUTES,
    *,
    bare: bool = False,
    aggregates: bool = True,
    leaves: int = 4,
) -> SearchStrategy[c.Expression]:
    """Values; with ``bare`` also attributes without a label and ``EVENT``."""
    label, attribute = _some(labels), _some(attributes)
    owner = st.one_of(label, st.none()) if bare else label
    reference = st.builds(c.LabelReference, owner)
    base: SearchStrategy[c.Expression] = st.one_of(
        literals(),
        st.builds(c.Attribute, owner, attribute),
        st.builds(c.Function, st.sampled_from(("position", "time")), st.tuples(reference)),
    )
    if aggregates:
        base = base | st.builds(c.Aggregate, st.just("count"), reference)

    def larger(inner: SearchStrategy[c.Expression]) -> SearchStrategy[c.Expression]:
        test = st.builds(c.Comparison, st.sampled_from(Operator), inner, inner)
        test = st.one_of(test, st.builds(c.Constant, st.booleans()), st.builds(c.Or, test, st.builds(c.IsNull, inner)))
        made: SearchStrategy[c.Expression] = st.one_of(
            st.builds(c.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
            st.builds(c.Negative, inner),
            st.builds(c.Function, st.sampled_from(c.FUNCTIONS), st.tuples(inner)),
            st.builds(c.If, test, inner, inner),
        )
        if aggregates:
            # What count takes is a label if it is but a name, so an attribute must have its label there.
            others = [name for name in c.AGGREGATES if name != "count"]
            made |= st.builds(c.Aggregate, st.sampled_from((*others, c.COUNT_DISTINCT)), inner)
            made |= st.builds(c.Aggregate, st.just("count"), st.builds(c.Attribute, label, attribute))
        return made

    return st.recursive(base, larger, max_leaves=leaves)


def conditions(
    labels: Names = LABELS,
    attributes: Names = ATTRIBUTES,
    predicates: Names = PREDICATES,
    *,
    bare: bool = False,
    brackets: bool = True,
    leaves: int = 5,
) -> SearchStrategy[c.Condition]:
    """Conditions as after FILTER; with ``bare`` as inside a bracket (then without brackets)."""
    label, attribute, predicate = _some(labels), _some(attributes), _some(predicates)
    value = expressions(label, attribute, bare=bare, leaves=3)
    end = st.one_of(value, st.none())
    reference = st.builds(c.LabelReference, st.one_of(label, st.none()) if bare else label)
    pattern = st.text("ab%_'\\.", max_size=4)
    atoms: list[SearchStrategy[c.Condition]] = [
        st.builds(c.Comparison, st.sampled_from(Operator), value, value),
        st.builds(c.Constant, st.booleans()),
        st.builds(c.Like, value, pattern, st.booleans()),
        st.builds(c.Regexp, value, st.sampled_from(("a.*", "^it's$", "", "[ab]+")), st.booleans()),
        st.builds(c.In, value, st.lists(literals(), max_size=3).map(tuple), st.booleans()),
        st.builds(c.Between, value, end, end, st.booleans()),
        st.builds(c.IsNull, value, st.booleans()),
        st.builds(c.PredicateCall, predicate, st.lists(reference | value, max_size=3).map(tuple)),
        st.builds(c.SetTest, st.sampled_from(c.SET_TESTS), value),
    ]
    if brackets and not bare:
        inside = st.deferred(lambda: conditions(label, attribute, predicate, bare=True, leaves=3))
        atoms.append(st.builds(c.Bracket, label, inside))

    def larger(inner: SearchStrategy[c.Condition]) -> SearchStrategy[c.Condition]:
        return st.one_of(st.builds(c.And, inner, inner), st.builds(c.Or, inner, inner), st.builds(c.Not, inner))

    if brackets and not bare:
        chosen = st.lists(label, min_size=1, max_size=3).map(tuple)
        atoms.append(st.builds(c.Some, chosen, st.recursive(st.one_of(*atoms), larger, max_leaves=3)))
    return st.recursive(st.one_of(atoms), larger, max_leaves=leaves)


def windows(attributes: Names = ATTRIBUTES) -> SearchStrategy[f.Window]:
    """Windows of all three kinds."""
    sizes = st.one_of(st.integers(1, 2**63 - 1), st.floats(1e-9, 1e300))
    return st.one_of(
        st.builds(f.CountWindow, st.integers(1, 10)),
        st.builds(f.DurationWindow, st.one_of(st.integers(1, 10**12), st.integers(1, 2**63 - 1))),
        st.builds(f.AttributeWindow, sizes, _some(attributes)),
    )


def formulas(
    types: Names = TYPES,
    labels: Names = LABELS,
    attributes: Names = ATTRIBUTES,
    predicates: Names = PREDICATES,
    *,
    streams: Names = STREAMS,
    leaves: int = 6,
) -> SearchStrategy[f.Formula]:
    """Formulas with every operator of the language."""
    label = _some(labels)
    event = st.builds(f.EventType, _some(types), st.one_of(st.none(), _some(streams)))
    condition = conditions(label, attributes, predicates, leaves=3)
    base: SearchStrategy[f.Formula] = st.one_of(
        event,
        st.builds(f.AnyEvent, st.one_of(st.none(), _some(streams))),
        st.builds(f.NotEvent, event, st.one_of(st.none(), condition)),
        st.builds(r.Regular, sremos(label, label, attributes, predicates, leaves=3)),
    )
    strategies = st.sampled_from([s for s in f.Strategy if s is not f.Strategy.ALL])

    def larger(inner: SearchStrategy[f.Formula]) -> SearchStrategy[f.Formula]:
        binary = (f.Disjunction, f.Sequence, f.StrictSequence, f.Conjunction, f.All, f.Unless, f.Without)
        return st.one_of(
            *(st.builds(operator, inner, inner) for operator in binary),
            *(st.builds(operator, inner) for operator in (f.Iteration, f.StrictIteration, f.Start)),
            st.integers(0, 3).flatmap(
                lambda least: st.builds(
                    f.Repetition, inner, st.just(least), st.none() | st.integers(max(least, 1), 9), st.booleans()
                )
            ),
            st.builds(f.As, inner, label),
            st.builds(f.Rename, inner, label, label),
            st.builds(f.Filter, inner, condition),
            st.builds(f.Project, st.lists(label, min_size=1, max_size=3).map(tuple), inner),
            st.builds(f.Selection, strategies, inner),
            st.builds(f.Selection, st.sampled_from([s for s in f.Strategy if s.compares]), inner, compared(label)),
            st.builds(f.Within, inner, windows(attributes)),
            st.builds(f.NotFollowedBy, inner, inner, windows(attributes)),
        )

    return st.recursive(base, larger, max_leaves=leaves)


def compared(label: SearchStrategy[str]) -> SearchStrategy[tuple[c.LabelReference, ...]]:
    """Labels after BY."""
    return st.lists(st.builds(c.LabelReference, label), min_size=1, max_size=3).map(tuple)


def _is_no_literal(condition: c.Condition) -> bool:
    # TRUE and FALSE alone are values.
    return not isinstance(condition, c.Constant)


def projections(labels: Names = LABELS, attributes: Names = ATTRIBUTES) -> SearchStrategy[s.Projection]:
    """``*``, NONE, and lists of items."""
    label, attribute = _some(labels), _some(attributes)
    chosen = st.one_of(st.none(), st.lists(attribute, min_size=1, max_size=3).map(tuple))
    truths = st.builds(c.TruthValue, conditions(label, attribute, brackets=False, leaves=2).filter(_is_no_literal))
    computed = st.builds(s.ExpressionItem, expressions(label, attribute) | truths, label)
    item = st.one_of(st.builds(s.LabelItem, label, chosen), computed, st.builds(s.CountItem, label))
    listed = st.builds(s.Projection, st.just(s.ProjectionKind.ITEMS), st.lists(item, min_size=1, max_size=3).map(tuple))
    columns = st.lists(computed, max_size=2).map(tuple)
    everything = st.builds(s.Projection, st.just(s.ProjectionKind.ALL), columns)
    return st.one_of(st.just(s.Projection(s.ProjectionKind.NONE)), everything, listed)


def selects(
    types: Names = TYPES,
    labels: Names = LABELS,
    attributes: Names = ATTRIBUTES,
    predicates: Names = PREDICATES,
    *,
    streams: Names = STREAMS,
    leaves: int = 4,
) -> SearchStrategy[s.Select]:
    """Whole queries."""
    keys = st.lists(st.lists(_some(attributes), min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
    chosen = st.sampled_from([s for s in f.Strategy if s.compares])
    choices = st.one_of(
        st.builds(lambda strategy: {"strategy": strategy}, st.sampled_from(f.Strategy)),
        st.fixed_dictionaries({"strategy": chosen, "by": compared(_some(labels))}),
    )
    plain = st.builds(
        s.Select,
        formula=formulas(types, labels, attributes, predicates, streams=streams, leaves=leaves),
        projection=projections(labels, attributes),
        streams=st.lists(_some(streams), max_size=2).map(tuple),
        partition=keys,
        window=st.one_of(st.none(), windows(attributes)),
        consume=st.sampled_from(s.Consumption),
        limit=st.one_of(st.none(), st.integers(1, 100)),
    )
    return st.builds(lambda select, choice: replace(select, **choice), plain, choices)


def sremos(
    labels: Names = LABELS,
    registers: Names = ("r", "q"),
    attributes: Names = ATTRIBUTES,
    predicates: Names = PREDICATES,
    *,
    leaves: int = 6,
) -> SearchStrategy[r.Sremo]:
    """Expressions of SREMO with every operator, as they are when complete: names that nothing writes are attributes."""
    register = _some(registers)
    terminal = st.builds(
        r.Terminal,
        conditions(register, attributes, predicates, bare=True, leaves=2),
        st.one_of(st.none(), st.just(r.MARK), _some(labels)),
        st.lists(register, max_size=2).map(tuple),
    )
    base: SearchStrategy[r.Sremo] = st.one_of(terminal, st.builds(r.Epsilon), st.builds(r.Empty))

    def larger(inner: SearchStrategy[r.Sremo]) -> SearchStrategy[r.Sremo]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return st.one_of(
            *(st.builds(operator, inner, inner) for operator in (r.Concatenation, r.Alternation, r.Intersection)),
            *(st.builds(operator, inner) for operator in (r.Star, r.Plus, r.Optional, r.Complement)),
            *(st.builds(operator, several) for operator in (r.AnyMatch, r.NextMatch, r.Unordered)),
            st.builds(r.Windowed, inner, windows(attributes)),
        )

    return st.recursive(base, larger, max_leaves=leaves).map(r.names_told_apart)
