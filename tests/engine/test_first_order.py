"""Queries of the first-order reading: their matches are sets of positions, and choices compare in the whole stream."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.api.programs.program import query_as_text
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.language.formula import CountWindow, Strategy
from cerflow.language.select import CountItem, Projection, ProjectionKind, Select
from cerflow.theory.semantics.first_order import first_order_denotation
from support.generators.first_order import first_order_formulas, small_streams
from support.runners import ENGINE_RUNNERS, bag, examples, semantics, supports

COLUMNS = pa.schema({"type": pa.string(), "v": pa.int64()})
ROWS = [{"type": t, "v": k} for k, t in enumerate("BABBC")]


def first_order(text):
    return cerflow.parse(f"SELECT {text}", reading="first-order")


PROJECTIONS = (
    Projection(ProjectionKind.ALL),
    Projection(ProjectionKind.NONE),
    Projection(ProjectionKind.ITEMS, (CountItem("n"),)),
)


@examples(250)
@given(
    first_order_formulas(strategies=True),
    small_streams(),
    st.sampled_from((Strategy.ALL, Strategy.ALL, Strategy.NEXT, Strategy.LAST, Strategy.MAX, Strategy.STRICT)),
    st.sampled_from(PROJECTIONS),
    st.sampled_from((None, None, CountWindow(2))),
)
def test_runners_agree(formula, rows, strategy, projection, window):
    query = cerflow.Query(Select(formula, projection, strategy=strategy, window=window), reading="first-order")
    table = pa.Table.from_pylist(rows, COLUMNS)
    expected = semantics(query, table)
    if projection == PROJECTIONS[0] and strategy is Strategy.ALL and window is None:
        stream = Stream.from_dicts(rows)
        assert supports(expected) == {
            (n, m) for n in range(len(rows)) for m in first_order_denotation(formula, stream, n)
        }
        assert len(expected) == len(supports(expected))
        assert all(not event["labels"] for match in expected for event in match["events"])
    try:
        query.check()
    except UnsupportedQueryError:
        return
    for name, runner in ENGINE_RUNNERS.items():
        assert bag(runner(query, table)) == bag(expected), name
    again = cerflow.parse(query_as_text(query))
    assert bag(again.match(table).to_pylist()) == bag(expected)


@pytest.mark.parametrize("runner", ["engine", "semantics"])
def test_each_set_of_positions_once(runner):
    for text, count in (("*", 1), ("MAX *", 1), ("NONE", 1)):
        assert first_order(f"{text} WHERE A AS x OR A AS y").match(ROWS, runner=runner).count() == count
    assert first_order("COUNT(*) AS n WHERE A AS x OR A AS y").match(ROWS, runner=runner).to_pylist()[0]["n"] == 1
    (match,) = first_order("* WHERE A AS x OR A AS y LIMIT 3").match(ROWS, runner=runner).to_pylist()
    assert match["events"] == [{"position": 1, "labels": [], "type": "A", "v": 1}]


@pytest.mark.parametrize("runner", ["engine", "semantics"])
def test_a_filter_on_a_variable_that_is_bound_twice_never_matches(runner):
    """That is no error: formulas are rewritten to safe ones, which leave such branches out."""
    twice = "(A AS x FILTER x.v = z.v) ; (B AS z ; B AS z)"
    assert first_order(f"* WHERE {twice}").match(ROWS, runner=runner).to_pylist() == []
    found = first_order(f"* WHERE ({twice}) OR A AS y").match(ROWS, runner=runner)
    assert supports(found.to_pylist()) == {(1, frozenset((1,)))}


def test_flat_columns_have_no_label():
    found = first_order("* WHERE B AS x ; C AS y FILTER x.v = 3").match(ROWS).to_arrow(flat=True)
    assert found.column_names[:-6] == ["EVENT_position", "EVENT_type", "EVENT_v"]
    assert found["EVENT_position"].to_pylist() == [[3, 4]]


def test_choices_compare_in_the_whole_stream():
    """P1 §4: the NEXT match of B ; C that ends at the last event begins before A."""
    query = first_order("* WHERE A AS x ; NEXT(B AS y ; C AS z)")
    assert query.match(ROWS, runner="semantics").to_pylist() == []
    for evaluate in (
        lambda: query.match(ROWS),
        lambda: query.recognizer(COLUMNS),
        query.check,
        query.to_svg,
        lambda: query_as_text(query),
    ):
        with pytest.raises(UnsupportedQueryError, match="NEXT compares with all matches in the whole stream") as caught:
            evaluate()
        assert caught.value.column == 25
    assert "Not evaluable" in query.explain()
    assert query.warnings() == ()
    found = first_order("* WHERE NEXT(B AS y ; C AS z)")
    for runner in ("engine", "semantics"):
        assert supports(found.match(ROWS, runner=runner).to_pylist()) == {(4, frozenset((0, 4)))}


@pytest.mark.parametrize("what", ["x", "x.v AS v", "*, x.v AS v", "count(x) AS n"])
def test_projections_are_refused(what):
    with pytest.raises(QueryError, match=r"SELECT takes \*, NONE or COUNT\(\*\)") as caught:
        first_order(f"{what} WHERE A AS x")
    assert "second-order reading" in caught.value.hint


def test_explanations_show_no_label_of_ours():
    query = first_order("* WHERE A AS x ; B AS y FILTER x.v < y.v")
    assert "\0" not in query.explain() + query.explain("json") + query.to_svg("boxes")
    assert "| {•}" in query.explain()


def test_equivalence_of_sets_of_positions():
    one, other = first_order("* WHERE A AS x"), first_order("* WHERE A AS y")
    assert cerflow.equivalent(one, other)
    assert not cerflow.equivalent("A AS x", "A AS y")
    assert cerflow.equivalent("A AS x", "A AS y", output="positions")
    assert cerflow.contained("A AS x ; B", "(A ; B) OR (A ; C)", output="positions")
    verdict = cerflow.equivalent("A ; B", "A : B", output="positions")
    assert repr(verdict).startswith("<Verdict False: {•@0, •@2} detected at 2 only by the first")
    with pytest.raises(ValueError, match="output must be 'labels' or 'positions'"):
        cerflow.equivalent("A", "B", output="supports")


def test_queries_on_keys_and_windows():
    query = first_order("* WHERE B AS x ; B AS y PARTITION BY k WITHIN 2 EVENTS")
    rows = [{"type": "B", "k": k} for k in (1, 2, 1, 2, 2)]
    for runner in ("engine", "semantics"):
        assert supports(query.match(rows, runner=runner).to_pylist()) == {
            (2, frozenset((0, 2))),
            (3, frozenset((1, 3))),
            (4, frozenset((3, 4))),
        }
