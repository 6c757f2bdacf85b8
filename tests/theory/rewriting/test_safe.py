import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import Stream, support
from cerflow.language.formula import Disjunction, Formula, Iteration, Sequence
from cerflow.language.node import fold
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.first_order import is_safe
from cerflow.logic.analysis.scopes import labels_of
from cerflow.theory.rewriting.first_order.properties import disjunctive_normal_form, safe_form
from cerflow.theory.rewriting.first_order.reading import from_first_order
from cerflow.theory.semantics.first_order import first_order_denotation
from cerflow.theory.semantics.formulas import Denotation
from support.generators.first_order import first_order_formulas, small_streams


def meanings(formula: Formula | None, stream: Stream):
    return [frozenset() if formula is None else first_order_denotation(formula, stream, n) for n in range(len(stream))]


def in_normal_form(formula: Formula) -> bool:
    """Whether every OR stands at the top, or at the top of the body of an iteration."""

    def visit(current, below):
        # Whether the part has no OR outside iterations; whether it is a disjunction of such parts; all of it fine.
        fine = all(f for _, _, f in below)
        if isinstance(current, Disjunction):
            return False, below[0][1] and below[1][1], fine
        if isinstance(current, Iteration):
            return True, True, fine and below[0][1]
        plain = all(p for p, _, _ in below)
        return plain, plain, fine

    _, top, fine = fold(formula, visit)
    return top and fine


@given(first_order_formulas(), small_streams())
def test_disjunctive_normal_form(formula, rows):
    normal = disjunctive_normal_form(formula)
    assert in_normal_form(normal)
    stream = Stream.from_dicts(rows)
    assert meanings(normal, stream) == meanings(formula, stream)


@given(first_order_formulas(), small_streams())
def test_safe_form(formula, rows):
    safe = safe_form(formula)
    assert safe is None or is_safe(safe)
    stream = Stream.from_dicts(rows)
    assert meanings(safe, stream) == meanings(formula, stream)


@given(first_order_formulas(strategies=True), small_streams())
def test_first_order_reading(formula, rows):
    stream = Stream.from_dicts(rows)
    try:
        ours = from_first_order(formula)
    except UnsupportedQueryError:
        return
    if ours is None:
        assert not any(meanings(formula, stream))
        return
    denotation = Denotation(ours, stream)
    found = [frozenset(map(support, denotation(0, n))) for n in range(len(stream))]
    assert found == meanings(formula, stream)


@given(first_order_formulas(), small_streams(), st.data())
def test_first_order_reading_keeps_labels(formula, rows, data):
    ours = from_first_order(formula)
    if ours is not None:
        assert not [label for label in labels_of(ours).assigned if "'" in label]


def test_unsafe_formula_is_unsatisfiable():
    assert safe_form(parse_formula("T AS x ; T AS x")) is None
    assert from_first_order(parse_formula("(T AS x ; T AS x)+ ; H AS y")) is None


def test_unsafe_branches_go():
    formula = parse_formula("(A AS x OR B AS y) ; A AS x")
    assert safe_form(formula) == parse_formula("B AS y ; A AS x")


def test_safe_formulas_stay_as_they_are():
    formula = parse_formula("(H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z) FILTER x.value < 30")
    assert from_first_order(formula) == formula


def test_variables_of_iterations_are_renamed_apart():
    formula = parse_formula("(A AS x ; (B AS x)+) FILTER x.v > 1")
    ours = from_first_order(formula)
    assert ours == parse_formula("""((A AS x ; (B AS "x'1")+) FILTER x.v > 1) ["x'1" -> x]""")


def test_variable_called_like_a_type_is_renamed():
    stream = Stream.from_dicts([{"type": "A", "v": 1}, {"type": "B", "v": 0}])
    formula = parse_formula("(A AS B ; B AS y) FILTER B.v = 1")
    ours = from_first_order(formula)
    assert Denotation(formula, stream)(0, 1) == frozenset()
    assert {support(c) for c in Denotation(ours, stream)(0, 1)} == {frozenset({0, 1})}


def test_filter_on_one_branch_of_or_means_the_outer_variable_in_the_other():
    # The variable x of the first branch is bound inside it, so that branch is unsafe.
    formula = parse_formula("A AS x ; ((A AS x OR B AS y) FILTER x.v > 1)")
    stream = Stream.from_dicts([{"type": "A", "v": 2}, {"type": "B", "v": 0}, {"type": "A", "v": 3}])
    ours = from_first_order(formula)
    assert {support(c) for n in range(3) for c in Denotation(ours, stream)(0, n)} == {frozenset({0, 1})}


def test_strategy_around_a_choice_cannot_be_taken_apart():
    formula = parse_formula("NEXT(A AS x OR B AS y) ; C AS x")
    with pytest.raises(UnsupportedQueryError, match="bound twice"):
        from_first_order(formula)


def test_long_sequences():
    text = " ; ".join(f"A AS x{i}" for i in range(1000))
    formula = parse_formula(text)
    assert from_first_order(formula) == formula
    assert safe_form(parse_formula(f"{text} ; A AS x7")) is None


def test_ill_formed_formula_is_refused():
    with pytest.raises(QueryError, match="unknown variable 'y'"):
        from_first_order(parse_formula("H AS x FILTER y.value <= 30"))


def test_sequence_type_is_kept():
    safe = safe_form(parse_formula("A AS x ; B AS y"))
    assert isinstance(safe, Sequence)
