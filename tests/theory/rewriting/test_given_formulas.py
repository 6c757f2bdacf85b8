"""Functions on formulas take them in every form, and definitions take lists of dicts."""

import pytest

import cerflow
from cerflow import automata, definitions, rewritings
from cerflow.base.errors import ArgumentError, CerflowError, QueryError, QuerySyntaxError
from cerflow.builder import event

TEXT = "A ; B"
FORMS = {
    "text": TEXT,
    "tree": cerflow.parse_formula(TEXT),
    "builder": event("A") >> event("B"),
    "query": cerflow.parse(f"SELECT * WHERE {TEXT}"),
    "query of a tree": cerflow.Query(cerflow.parse_formula(TEXT)),
    "query of the builder": cerflow.Query(event("A") >> event("B")),
}
STREAM = [{"type": t} for t in "ABAB"]
REWRITINGS = [
    rewritings.push_down_filters,
    rewritings.push_down_labels,
    rewritings.push_down_renames,
    rewritings.sequences_to_strict,
    rewritings.strict_to_sequences,
    rewritings.eliminate_strict_iteration,
    rewritings.eliminate_conjunctions,
    rewritings.disjunctive_normal_form,
]
COMPILED = [automata.compile_cel, automata.compile_cel_star, automata.compile_cepl, rewritings.to_transducer]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form(form):
    for rewrite in REWRITINGS:
        assert str(rewrite(form)) == TEXT
        assert cerflow.parse_formula(str(rewrite(form))) == rewrite(form)
    for compile_ in COMPILED:
        assert compile_(form) == compile_(TEXT)
    assert cerflow.equivalent(form, TEXT)
    assert definitions.formula_matches(form, STREAM) == definitions.formula_matches(TEXT, STREAM)
    assert definitions.first_order_matches(form, STREAM) == {
        (1, frozenset({0, 1})),
        (3, frozenset({0, 3})),
        (3, frozenset({2, 3})),
    }


@pytest.mark.parametrize("function", [*REWRITINGS, *COMPILED, rewritings.safe_form, cerflow.equivalent])
def test_what_is_no_formula(function):
    arguments = [3] * (1 + (function is cerflow.equivalent))
    with pytest.raises(ArgumentError, match="not of type int"):
        function(*arguments)
    with pytest.raises(QuerySyntaxError, match="line 1, column 5"):
        function("A ; ; B", *arguments[1:])


def test_errors_tell_the_place_in_a_text():
    with pytest.raises(QueryError, match="line 1, column 15: unknown variable 'y'"):
        rewritings.safe_form("A AS x FILTER y.v > 1")


def test_texts_of_values():
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 3 EVENTS")
    assert cerflow.parse(str(query)).tree == query.tree
    assert str(event("A") >> event("B")) == TEXT


def test_lists_of_dicts_are_streams():
    found = definitions.formula_matches(TEXT, STREAM)
    ucea = automata.compile_cel(TEXT)
    assert automata.reported_matches(ucea, STREAM) == found
    assert automata.accepts(ucea, STREAM)
    assert rewritings.transducer_matches(rewritings.to_transducer(TEXT), STREAM) == found
    star = automata.compile_cel_star(TEXT)
    assert automata.star_matches is rewritings.star_matches
    assert automata.star_matches(star, STREAM) == found
    assert rewritings.star_matches(automata.to_engine(star), STREAM) == found
    assert automata.to_formula is rewritings.to_formula
    for automaton in (ucea, rewritings.to_transducer(TEXT)):
        assert str(rewritings.to_formula(automaton, types="AB")) == TEXT
    with pytest.raises(CerflowError, match="row 1 of the stream is 7 of type int, and not a dict"):
        automata.accepts(ucea, [{"type": "A"}, 7])


def test_definitions_17_and_18_of_004():
    expression = "[TRUE] AS x INTO r . [v > r.v] AS y"
    string = [{"type": "A", "v": 1}, {"type": "A", "v": 2}]
    marks = frozenset({("x", 0), ("y", 1)})
    assert definitions.sremo_derivations(expression, string) == {(marks, (("r", 0),))}
    assert definitions.sremo_match_string(expression, string) == {marks}
    assert definitions.sremo_match_string(expression, string[::-1]) == frozenset()
    assert definitions.sremo_matches(cerflow.parse(expression, language="sremo"), string) == {(1, marks)}
    later = "[TRUE] . [v > r.v] AS y"
    assert definitions.sremo_derivations(later, string) == frozenset()
    assert definitions.sremo_derivations(later, string, {"r": 0}) == {(frozenset({("y", 1)}), (("r", 0),))}
    with pytest.raises(ArgumentError, match="register 'r' holds event 5"):
        definitions.sremo_derivations(later, string, {"r": 5})


def test_orders():
    assert definitions.next_at_most({5, 8}, {1, 8})
    assert not definitions.next_at_most({1, 8}, {5, 8})
    assert definitions.last_at_most({1, 8}, {5, 8})


@pytest.mark.parametrize(
    "formula",
    [
        "A AS x ; B AS y",
        "A AS x OR A AS y",
        "A AS x ; A AS x",
        "(A AS x OR B AS y)+ ; B AS z",
        "A AS x ; ((B AS y FILTER x.v >= 2) OR (A AS z FILTER x.v < 2))",
        "EVENT AS x ; (NOT(A) AS y)+",
        "(A AS x ; (A AS y FILTER y.v > 1)+) FILTER x.v < 3",
    ],
)
def test_automata_of_first_order_formulas(formula):
    for form in (
        formula,
        cerflow.parse_formula(formula),
        cerflow.parse(f"SELECT * WHERE {formula}", reading="first-order"),
    ):
        cea = automata.compile_cel(form, reading="first-order")
        assert isinstance(cea, automata.ComplexEventAutomaton)
        for word in ("", "A", "AB", "ABBA", "BAABB", "AAABBA"):
            stream = [{"type": t, "v": (3 * k + 1) % 4} for k, t in enumerate(word)]
            found = {(n, frozenset(p for _, p in c)) for n, c in automata.reported_matches(cea, stream)}
            assert found == definitions.first_order_matches(formula, stream)


def test_first_order_formulas_without_an_automaton():
    with pytest.raises(automata.NotMemorylessError, match="no automaton without memory"):
        automata.compile_cel("(A AS x ; B AS y) FILTER x.v = y.v", reading="first-order")
    with pytest.raises(ArgumentError, match="reading must be"):
        automata.compile_cel("A", reading="third-order")
