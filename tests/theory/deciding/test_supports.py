"""Differences of formulas by positions alone, in both readings, against the definitions on short streams."""

from importlib.util import find_spec

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import UnsupportedQueryError
from cerflow.definitions import first_order_matches, formula_matches
from cerflow.language import formula as f
from cerflow.language.condition import Constant
from cerflow.rewritings import lp_normal_form, safe_form
from support.generators.first_order import first_order_formulas, small_streams
from support.generators.queries import Fragment, formulas
from support.runners import examples

UNARY = Fragment(depth=2, relating=False, outer=False, windows=False)
NEVER = f.Filter(f.AnyEvent(), Constant(False))


def supports(formula, events, reading):
    if reading == "first-order":
        return first_order_matches(formula, events)
    return {(n, frozenset(p for _, p in found)) for n, found in formula_matches(formula, events)}


def asked(ask, first, second, reading):
    """The verdict, None where it is refused."""
    try:
        return ask(first, second, output="positions", reading=reading, steps=300_000)
    except UnsupportedQueryError as error:
        event(str(error.reason)[:40])
        return None


def check(first, second, reading, streams):
    """Whatever is said of two formulas is so by definition."""
    verdict = asked(cerflow.difference, first, second, reading)
    sides = [asked(cerflow.contained, a, b, reading) for a, b in ((first, second), (second, first))]
    event(f"differ: {None if verdict is None else verdict.verdict}")
    if verdict is None or verdict.verdict is None:
        return
    if verdict:
        match = verdict.detected_at, frozenset(p for _, p in verdict.complex_event)
        has = [match in supports(formula, verdict.stream, reading) for formula in (first, second)]
        assert has == [verdict.detected_by == "first", verdict.detected_by == "second"]
    else:
        for events in streams:
            assert supports(first, events, reading) == supports(second, events, reading)
    if None not in sides and None not in [side.verdict for side in sides]:
        assert verdict.verdict is not all(side.verdict for side in sides)


@st.composite
def first_order_pairs(draw):
    """Two formulas of the first-order reading that are often equal."""
    first = draw(first_order_formulas(depth=2))
    match draw(st.integers(0, 3)):
        case 0:
            return first, safe_form(first) or NEVER
        case 1:
            return first, f.Disjunction(draw(first_order_formulas(depth=1)), first)
        case 2:
            try:
                return lp_normal_form(first) or NEVER, first
            except UnsupportedQueryError:
                pass
    return first, draw(first_order_formulas(depth=2))


@examples(150)
@given(first_order_pairs(), st.lists(small_streams(), min_size=5, max_size=5))
def test_first_order_formulas(pair, streams):
    check(*pair, "first-order", streams)


@st.composite
def labelled_pairs(draw):
    """Two formulas of the second-order reading that often differ by their labels alone."""
    first = draw(formulas(UNARY))
    match draw(st.integers(0, 2)):
        case 0:
            return first, f.As(first, "more")
        case 1:
            return f.Project((), first) if draw(st.booleans()) else f.Project(("x",), first), first
    return first, f.As(draw(formulas(UNARY)), "more")


@examples(100)
@given(labelled_pairs(), st.lists(small_streams(), min_size=5, max_size=5))
def test_second_order_formulas(pair, streams):
    check(*pair, "second-order", [[{"k": None, "s": None, **e} for e in events] for events in streams])


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        # P2 Example 4.1 (first-order) and 4.2 (second-order), without the conditions on single events.
        pytest.param(
            "H AS x ; (T AS y FILTER y.v > x.v)+",
            "(H AS x ; T+ AS y) FILTER y.v > x.v",
            False,
            marks=pytest.mark.skipif(find_spec("z3") is None, reason="the extra 'decide' is not installed"),
        ),
        ("A AS x ; A AS x", "A FILTER FALSE", False),
        ("A AS x OR A AS y", "A", False),
        ("A AS x ; A AS y", "A ; A AS z", False),
        ("A AS x ; B AS y", "A : B", True),
    ],
)
def test_the_readings_are_compared_by_positions(first, second, differ):
    query = cerflow.parse(f"SELECT * WHERE {first}", reading="first-order")
    for one, other in ((query, second), (second, query)):
        assert cerflow.difference(one, other).verdict is differ
        assert cerflow.equivalent(one, other).verdict is not differ


def test_a_match_by_positions_has_one_mark():
    verdict = cerflow.difference("A AS x ; B AS y", "A", reading="first-order")
    assert verdict.complex_event == {("•", 0)}
    assert verdict.detected_by == "second"
    assert repr(verdict).startswith("<Verdict True: {•@0} detected at 0 only by the second in")
    assert cerflow.satisfiable("A AS x ; B AS x", reading="first-order").verdict is False
    with pytest.raises(cerflow.ArgumentError, match="reading must be"):
        cerflow.difference("A", "B", reading="both")
    with pytest.raises(cerflow.QueryError, match="line 1, column 26: unknown variable 'z'"):
        cerflow.difference("A", "A AS x OR (B AS y FILTER z.v > 3)", reading="first-order")
