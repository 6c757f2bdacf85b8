"""The stages from a formula to its complex events, against the definitions."""

import pytest
from hypothesis import given

import cerflow
from cerflow.automata import is_io_deterministic, stages
from cerflow.builder import event
from cerflow.definitions import first_order_matches
from cerflow.rewritings import is_locally_parametrized, is_safe
from support.generators.first_order import first_order_formulas, is_unary, small_streams
from support.runners import examples


@examples(60)
@given(first_order_formulas().filter(is_unary), small_streams())
def test_every_stage_is_what_it_says(formula, events):
    found = stages(formula, events)
    expected = first_order_matches(formula, events)
    assert found.well_formed
    if found.lp_form is None:
        assert found.reason is not None
        assert found.reason != "it can never match" or not expected
        return
    assert is_safe(found.safe_form)
    assert is_locally_parametrized(found.lp_form)
    for form in (found.safe_form, found.lp_form):
        assert first_order_matches(form, events) == expected
    if found.matches is not None:
        assert is_io_deterministic(found.deterministic)
        assert {(n, frozenset(p for _, p in c)) for n, c in found.matches} == expected
    assert ("evaluation" in str(found)) is (found.matches is not None)


@pytest.mark.parametrize(
    ("formula", "reason", "last"),
    [
        ("H AS x FILTER y.v <= 30", "an ill-formed formula may depend on events to come", "well_formed"),
        ("T AS x ; T AS x", "it can never match", "safe"),
        ("H AS x ; (T AS y FILTER y.v = x.v)+", "no automaton without memory", "lp_form"),
    ],
)
def test_a_stage_that_does_not_exist_ends_the_way(formula, reason, last):
    found = stages(formula, [])
    assert found.reason.startswith(reason)
    assert found.matches is None
    assert getattr(found, last) is not None
    assert "ends here: " + reason in str(found)
    assert reason in found._repr_html_()


def test_formulas_in_all_forms_and_what_is_shown():
    query = cerflow.parse("SELECT * WHERE A ; B")
    shown = {str(stages(f, [{"type": "A"}])) for f in ("A ; B", query, query.tree.formula, event("A") >> event("B"))}
    (text,) = shown
    assert text.endswith("evaluation: 0 matches\n  0  A  q0, q1")
    both = stages("(T AS x OR (T AS y FILTER y.v > 40)) ; H AS z", [{"type": "T", "v": 50}, {"type": "H", "v": 1}])
    assert not is_io_deterministic(both.automaton)
    assert {(n, frozenset(p for _, p in c)) for n, c in both.matches} == {(1, frozenset((0, 1)))}
    titles = [line.split(":")[0] for line in str(both).splitlines() if not line.startswith("  ")]
    assert titles[:3] == ["formula", "well-formed", "safe"]
    assert all(f"<h4>{title}</h4>" in both._repr_html_() for title in titles)
    assert "<td>{0, 1}</td>" in both._repr_html_()
    assert repr(both).startswith("<Stages of (T AS x OR")
    assert stages("A AS x").matches is None


def test_errors_say_where():
    with pytest.raises(cerflow.QuerySyntaxError, match="line 1, column 9"):
        stages("A AS x ;;")
    with pytest.raises(cerflow.QueryError, match="the first-order reading does not support ':'"):
        stages("A : B")
    with pytest.raises(cerflow.ArgumentError, match="a formula is a text"):
        stages(5)
