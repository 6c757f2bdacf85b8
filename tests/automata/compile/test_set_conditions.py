"""What conditions on sets of events become: small registers where they can be small, and one run per match."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import Accumulation
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.base.events import Stream
from cerflow.language.parser import parse_formula
from cerflow.language.printer import show
from cerflow.theory.semantics.formulas import Denotation
from support.golden import rows
from support.runners import examples

AGGREGATES = [f"{name}(x.v)" for name in ("count", "sum", "avg", "min", "max", "first", "last", "stddev")]
TESTS = [f"{name}(x.v)" for name in ("increasing", "decreasing", "nondecreasing", "nonincreasing")]


def compiled(text):
    return compile_formula(parse_formula(text))


def collects(text):
    return any(r.keeps is Accumulation.SET for r in compiled(text).registers)


@pytest.mark.parametrize(
    "condition",
    [
        *(f"{a} > 3" for a in AGGREGATES),
        *TESTS,
        *(f"NOT {t}" for t in TESTS),
        *(f"y.v > {a}" for a in AGGREGATES),
        *(f"NOT (y.v <= {a} + 1)" for a in AGGREGATES),
        "max(x.s) LIKE 'p%' AND upper(min(x.s)) = 'P'",
        "sum(x.v) > count(y) OR increasing(x.v)",
        "sum(x.v) = sum(y.v)",
    ],
)
def test_bounded_registers(condition):
    assert not collects(f"(A+ AS x ; B+ AS y) FILTER {condition}")
    assert not ambiguous(compiled(f"(A+ AS x ; B+ AS y) FILTER {condition}"))


@pytest.mark.parametrize(
    "text",
    [
        "(A+ AS x FILTER sum(x.v) < z.v) ; C AS z",
        "C AS z ; (A+ AS x FILTER sum(x.v) < z.v)",
        "(A+ AS x FILTER sum(x.v) < z.v)+ ; C AS z",
        "(A+ AS x FILTER 2 * avg(x.v) + z.w < z.v) ; C AS z",
        "C AS z ; (A+ AS x FILTER increasing(x.v) OR sum(x.v) != z.v)+",
    ],
)
def test_references_to_outer_events_stay_bounded(text):
    assert not collects(text)


@pytest.mark.parametrize(
    "text",
    [
        "(A+ AS x ; B+ AS y) FILTER y.v != sum(x.v)",
        "(A+ AS x ; B+ AS y) FILTER y[v < sum(x.v) OR w > avg(x.v)]",
        "(A+ AS x FILTER sum(x.v) != z.v)+ ; C AS z",
    ],
)
def test_what_needs_all_events_collects_them(text):
    assert collects(text)


@pytest.mark.parametrize("test", TESTS)
def test_a_test_on_a_set_is_checked_as_soon_as_it_can_fail(test):
    transducer = compiled(f"A+ AS x FILTER {test}")
    asking = [t for t in transducer.transitions if t.atoms]
    # Both the events that end a run and those it goes on with.
    assert {t.target in transducer.final for t in asking} == {True, False}
    assert all(t.atoms for t in transducer.transitions if t.source not in transducer.initial and t.labels)


def test_a_state_that_only_a_run_that_goes_on_comes_to_is_not_final():
    transducer = compiled("(A+ AS x FILTER sum(x.v) > 3) ; B")
    assert len(transducer.final) == 1
    assert not any(t.source in transducer.final for t in transducer.transitions)


@pytest.mark.parametrize(
    ("condition", "most"), [("count(x) >= 3", 4), ("2 > count(x)", 3), ("count(x.v) < 2.5", 3), ("count(x) = -1", 1)]
)
def test_counts_stop_where_nobody_asks_for_more(condition, most):
    transducer = compiled(f"A+ AS x FILTER {condition} OR increasing(x.v)")
    written = [repr(w.row[0]) for t in transducer.transitions for w in t.writes]
    assert any(f"< {most} THEN r" in row for row in written)


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("count(x) = 4", "1 <= 3"),
        ("count(x) <= 4.5", "1 <= 3"),
        ("5 > count(x)", "1 <= 3"),
        ("count(x) BETWEEN 2 AND 4", "1 <= 3"),
        ("count(x.v) < 5", "known(v) <= 4"),
    ],
)
@pytest.mark.parametrize("formula", ["A+ AS x", "(A AS x) :+", "(A AS x ; B)+ ; A AS x"])
def test_runs_do_not_go_on_with_a_count_that_is_too_great(formula, condition, most):
    transducer = compiled(f"({formula}) FILTER {condition} AND sum(x.v) > 0")
    ahead = [show(atom) for t in transducer.transitions if t.target not in transducer.final for atom in t.atoms]
    assert ahead
    assert all(atom.endswith(most) for atom in ahead)


def test_counts_that_are_compared_with_others_go_on():
    transducer = compiled("(A+ AS x ; B+ AS y) FILTER count(x) > 2 AND count(x) = count(y)")
    assert not any("CASE" in repr(w.row[0]) for t in transducer.transitions for w in t.writes)


def test_nothing_begins_that_cannot_end():
    assert compiled("(A AS x OR B) FILTER count(x) > 1").transitions == ()
    assert compiled("(A AS x OR B) FILTER stddev(x.v) >= 0").transitions == ()


def test_one_event_needs_no_register():
    assert compiled("A AS x FILTER sum(x.v) > 3 AND avg(x.v) < 9 AND first(x.s) LIKE 'p%'").registers == ()
    assert compiled("NOT(A FILTER sum(A.v) > 3 OR NOT increasing(A.v))").registers == ()
    assert compiled("A AS x FILTER NOT increasing(x.v)").registers == ()


LARGE = 2**62


@pytest.mark.parametrize(
    ("values", "sums"),
    [
        ([LARGE, LARGE, -LARGE], [LARGE, None, LARGE]),
        ([2**63 - 1, 1, -1], [2**63 - 1, None, 2**63 - 1]),
        ([-(2**63) + 1, -1, 1], [-(2**63) + 1, None, -(2**63) + 1]),
        ([-(2**63) + 1, 2**63 - 1, 5], [-(2**63) + 1, 0, 5]),
        ([None, 2**32, -1], [None, 2**32, 2**32 - 1]),
        ([0.1, 0.2, 0.3], [0.1, 0.1 + 0.2, 0.1 + 0.2 + 0.3]),
        ([1e16, 1.0, -1e16], [1e16, 1e16 + 1.0, 1e16 + 1.0 - 1e16]),
        ([math.inf, -math.inf, 1.0], [math.inf, None, None]),
    ],
)
def test_sums_are_those_of_the_definition(values, sums):
    stream = Stream.from_dicts(rows("AAA", v=values))
    for count, total in enumerate(sums, 1):
        for text in ("IS NULL", *([] if total is None else [f"= {total!r}"] if total != math.inf else ["> 1e308"])):
            formula = parse_formula(f"A :+ AS x FILTER sum(x.v) {text}")
            found = matches(compile_formula(formula), stream)
            denotation = Denotation(formula, stream)
            assert found == {(n, c) for n in range(3) for c in denotation(0, n)}
            begun = {n for n, c in found if {p for _, p in c} == set(range(count))}
            assert bool(begun) is ((text == "IS NULL") == (total is None))


@examples(40)
@given(st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3), st.integers(-5, 5).map(float)), min_size=2, max_size=8))
def test_deviations_are_exact_up_to_rounding(values):
    known = [v for v in values if v is not None]
    stream = Stream.from_dicts(rows("A" * len(values), v=[10**6 + v if v is not None else None for v in values]))
    expected = statistics.stdev(known) if len(known) > 1 else None
    asked = "IS NULL" if expected is None else f"BETWEEN {expected - 1e-8!r} AND {expected + 1e-8!r}"
    formula = parse_formula(f"A :+ AS x FILTER stddev(x.v) {asked} AND count(x) = {len(values)}")
    assert len(matches(compile_formula(formula), stream)) == 1


def test_predicates_of_aggregates(predicate):
    predicate("near")(lambda a, b: abs(a - b) <= 1)
    stream = Stream.from_dicts([{"type": "A", "v": v} for v in (1, 2, None, 4)] + [{"type": "B", "v": 3}])
    for condition in ("near(sum(x.v), 3)", "NOT near(sum(x.v), y.v)", "near(avg(x.v), max(y.v) - 1)"):
        formula = parse_formula(f"(A+ AS x ; B AS y) FILTER {condition}")
        found = matches(compile_formula(formula), stream)
        assert found == {(4, c) for c in Denotation(formula, stream)(0, 4)}
        assert 0 < len(found) < 15
