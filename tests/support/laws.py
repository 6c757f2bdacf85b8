"""Laws: formulas that must mean the same, compared by the semantics on random streams."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Attribute,
    Bracket,
    Comparison,
    Condition,
    In,
    Like,
    Literal,
)
from cerflow.language.formula import (
    Filter,
    Formula,
)
from cerflow.logic.analysis.scopes import labels_of
from cerflow.theory.semantics.formulas import Denotation
from support.generators.queries import Fragment, formulas, stream_of, streams
from support.runners import examples

LABELS = ("x", "y", "A")
CORE = Fragment(depth=2, outer=False, strict=False, windows=False, projection=False, wild=False)
WIDE = Fragment(depth=2, outer=False)
core = formulas(CORE)
wide = formulas(WIDE)
rows = streams(max_size=5)
labels = st.sampled_from(LABELS)


def unary(label: str) -> list[Condition]:
    """Some conditions on one label."""
    return [
        Comparison(Operator.GE, Attribute(label, "v"), Literal(1)),
        Comparison(Operator.NE, Attribute(label, "w"), Literal(0.5)),
        Like(Attribute(label, "s"), "p%"),
        Bracket(label, In(Attribute(None, "v"), (Literal(0), Literal(2)))),
    ]


predicates = st.integers(0, 3)


def filtered(formula: Formula, label: str, predicate: int) -> Formula:
    """The formula filtered, unless it does not assign the label (then every event of that label is as wanted)."""
    known = labels_of(formula)
    if label in known.assigned or known.wildcard:
        return Filter(formula, unary(label)[predicate])
    return formula


def same(left: Formula, right: Formula, stream_rows: list[dict]) -> None:
    stream = stream_of(stream_rows)
    first, second = Denotation(left, stream), Denotation(right, stream)
    for i in range(len(stream)):
        for j in range(i, len(stream)):
            assert first(i, j) == second(i, j)


def law(*strategies: st.SearchStrategy) -> Callable:
    """A test on random formulas (and other things) and a random stream."""

    def decorate(make: Callable[..., tuple[Formula, Formula]]) -> Callable[[], None]:
        @examples(30)
        @given(st.tuples(*strategies), rows)
        def test(drawn, stream_rows):
            same(*make(*drawn), stream_rows)

        test.__name__ = make.__name__
        return test

    return decorate
