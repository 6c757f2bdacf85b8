"""However AND and OR of a filter are evaluated (as a tree, in clauses, in copies, in registers), they mean the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.parser import parse_formula
from support.runners import bag, examples, one_batch, semantics

FORMULAS = (
    "(A AS x ; B AS y)",
    "((A AS x)+ ; B AS y)",
    "((A AS x)+ ; (B AS y)+)",
    "((A AS x ; B AS y) OR (A AS x ; C AS z) OR B AS y)",
    "((A AS x ; C) OR (B AS y)+)",
)
ATOMS = (
    "x.v > 1", "x.w = 0", "x.v IS NULL", "y.v <= 1", "y.w != 2", "x.v = y.v", "x.w < y.w", "count(x) > 1",
    "x[v > 0 OR w > 0]", "1 = 1", "1 = 2",
)  # fmt: skip
CONDITIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda below: st.one_of(
        st.builds("({} AND {})".format, below, below),
        st.builds("({} OR {})".format, below, below),
        st.builds("NOT ({})".format, below),
    ),
    max_leaves=8,
)
VALUES = st.one_of(st.none(), st.integers(0, 2))
EVENTS = st.lists(st.fixed_dictionaries({"type": st.sampled_from("ABC"), "v": VALUES, "w": VALUES}), max_size=6)
SCHEMA = pa.schema([("type", pa.string()), ("v", pa.int64()), ("w", pa.int64())])


@pytest.fixture(params=[(100, 16), (2, 16), (2, 1), (100, 1)], ids=str)
def small_limits(request, monkeypatch):
    """Small limits, so that small conditions are evaluated as large ones are."""
    monkeypatch.setattr(limits, "FILTER_CLAUSE_ATOMS", request.param[0])
    monkeypatch.setattr(limits, "FILTER_COPIES", request.param[1])


@pytest.mark.usefixtures("small_limits")
def test_conditions_mean_what_the_definition_says():
    @examples(120)
    @given(st.sampled_from(FORMULAS), CONDITIONS, EVENTS)
    def check(formula, condition, events):
        query = cerflow.parse(f"SELECT * WHERE {formula} FILTER {condition}")
        table = pa.Table.from_pylist(events, schema=SCHEMA)
        assert bag(one_batch(query, table)) == bag(semantics(query, table))

    check()


def size(condition, formula="(A AS x)+ ; B AS y"):
    transducer = compile_formula(parse_formula(f"({formula}) FILTER {condition}"))
    return transducer.states, len(transducer.transitions)


def pairs(count, first="x", second="x", join="OR"):
    return [f"({first}.v = {k} {join} {second}.v > {k + 1})" for k in range(count)]


@pytest.mark.parametrize(
    "condition",
    [" AND ".join(pairs(500, "y", "y")), " OR ".join(pairs(500, "y", "y", "AND")), " OR ".join(pairs(50, join="AND"))],
    ids=["pairs of one event", "alternatives of one event", "alternatives of several events"],
)
def test_the_automaton_does_not_grow_beyond_the_text(condition):
    states, transitions = size(condition)
    assert states <= 200
    assert transitions <= 500


def test_choices_between_two_single_events_are_one_comparison():
    assert size(" OR ".join(pairs(300, "x", "y", "AND")), "A AS x ; B AS y") == size("x.v = y.v", "A AS x ; B AS y")


@pytest.mark.slow
def test_many_choices_about_several_events_are_remembered_and_bounded():
    assert size(" AND ".join(pairs(30))) <= (4, 20)
    with pytest.raises(UnsupportedQueryError, match="labels with several events") as caught:
        size(" AND ".join(pairs(60)))
    assert "x[… OR …]" in str(caught.value)
    nested = "x.v = 0"
    for k in range(100):
        nested = f"({nested} OR x.v = {k}) AND (x.w = {k} OR count(x) > {k})"
    with pytest.raises(UnsupportedQueryError):
        size(nested)


def test_filters_in_a_row_are_one():
    row = " FILTER ".join(f"x.v != {k}" for k in range(300))
    assert compile_formula(parse_formula(f"A AS x FILTER {row}")) == compile_formula(
        parse_formula(f"A AS x FILTER {row.replace('FILTER', 'AND')}")
    )
