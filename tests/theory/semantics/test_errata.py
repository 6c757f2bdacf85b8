"""One regression test for each erratum of the papers that concerns meaning; named after the erratum.

E… are those of complex event logic §11, 11.… those of register transducers §11.
"""

import pytest

from cerflow.base.errors import QueryError
from cerflow.base.events import Stream, support
from cerflow.language.formula import StrictIteration
from cerflow.language.parser import parse_formula, parse_query, parse_sremo
from cerflow.logic.analysis.first_order import check_first_order, is_well_formed
from cerflow.theory.semantics.first_order import first_order_denotation
from cerflow.theory.semantics.formulas import Denotation
from cerflow.theory.semantics.queries import evaluate
from cerflow.theory.semantics.sremo import SremoDenotation, sremo_match_string, sremo_matches
from support.golden import PHI1, PHI5, SENSORS, SIX, at_end, rows, sets


def supports(query: str, stream):
    return {(m.detected_at, m.positions) for m in evaluate(parse_query(query), Stream.from_dicts(stream))}


def at(formula: str, stream, n: int):
    return {support(c) for c in Denotation(parse_formula(formula), Stream.from_dicts(stream))(0, n)}


def first_order(formula: str, stream):
    events = Stream.from_dicts(stream)
    return {n: set(first_order_denotation(parse_formula(formula), events, n)) for n in range(len(events))}


def streamed(expression: str, stream):
    return {(n, support(c)) for n, c in sremo_matches(parse_sremo(expression), Stream.from_dicts(stream))}


def test_E1_next_and_last_keep_the_greatest():
    assert supports(f"SELECT NEXT * WHERE {PHI1}", SENSORS) == at_end("12", "18")
    assert supports(f"SELECT LAST * WHERE {PHI1}", SENSORS) == at_end("12", "58")


def test_E2_max_keeps_what_has_no_larger_match():
    assert supports("SELECT MAX * WHERE A+ ; B", rows("AAB")) == at_end("012")
    assert supports(f"SELECT MAX * WHERE {PHI1}", SENSORS) == at_end("12", "18", "58")


def test_E3_strategies_compare_over_all_valuations():
    assert first_order(f"NEXT({PHI1})", SENSORS)[8] == set(sets("18"))
    assert at(f"NEXT({PHI1})", SENSORS, 8) == set(sets("18"))


def test_E3_nested_strategies_fix_the_variables_bound_outside():
    # For each A the best B and C after it, not the best over all A's.
    formula = "A AS x ; NEXT((B AS y FILTER y.v = x.v) ; C AS z)"
    stream = rows("AABBC", v=[1, 2, 1, 2, 0])
    expected = set(sets("024", "134"))
    assert first_order(formula, stream)[4] == expected
    assert at(formula, stream, 4) == expected


def test_E6_strict_iteration_has_single_event_iterations_in_the_middle():
    assert at("A :+", rows("AAA"), 2) == set(sets("2", "12", "012"))


def test_E9_iteration_binds_its_variables_anew():
    formula = parse_formula("C AS x ; ((A AS x OR B AS y) FILTER x.v > 1)+")
    assert is_well_formed(formula, strict=False)
    assert not is_well_formed(formula)
    with pytest.raises(QueryError, match="'x' may have no event here"):
        check_first_order(formula)


def test_E12_or_has_two_sides():
    assert at("A OR B", rows("AB"), 0) == set(sets("0"))
    assert at("A OR B", rows("AB"), 1) == set(sets("1"))


def test_E12_start_needs_an_event_at_the_start():
    assert at("START(A ; B)", rows("AAB"), 2) == set(sets("02"))
    assert at("START(PROJECT B (A ; B))", rows("AAB"), 2) == set()


def test_E12_rename_gives_the_old_events_to_the_new_label():
    c = frozenset({("y", 0)})
    assert Denotation(parse_formula("A [A -> y]"), Stream.from_dicts(rows("A")))(0, 0) == {c}


def test_E12_strict_sequence_is_not_symmetric():
    assert at("A : B", rows("ABA"), 1) == set(sets("01"))
    assert at("A : B", rows("ABA"), 2) == set()


def test_E12_phi5_depends_on_the_future():
    # With both attributes called value, as in the table of examples.
    found = first_order(PHI5, SENSORS)
    assert {m for matches in found.values() for m in matches} == set(sets("0", "2", "3", "7", "8"))
    # Event 2 is a match at 2 because of a later event.
    assert found[2] == set(sets("2"))
    assert first_order("(H AS x) FILTER y.value > 69", SENSORS[:7])[2] == set()
    assert first_order("(H AS x) FILTER y.value > 69", SENSORS)[2] == set(sets("2"))


def test_E15_tests_on_sets_see_order_and_multiplicity():
    assert at("A+ FILTER increasing(A.v)", rows("AA", v=[1, 1]), 1) == set(sets("1"))
    assert at("A+ FILTER nondecreasing(A.v)", rows("AA", v=[1, 1]), 1) == set(sets("1", "01"))
    assert at("A+ FILTER increasing(A.v)", rows("AA", v=[2, 1]), 1) == set(sets("1"))
    assert at("A+ FILTER count(A) = 2", rows("AA", v=[1, 1]), 1) == set(sets("01"))


def test_E16_renaming_a_relation_name_keeps_the_type_of_the_atom():
    formula = parse_formula("(A [A -> B] ; A) FILTER B.v = 1")
    stream = Stream.from_dicts(rows("ABA", v=[1, 1, 1]))
    assert Denotation(formula, stream)(0, 2) == {frozenset({("B", 0), ("A", 2)})}


def test_E17_strict_iteration_and_a_test_on_a_set_do_not_commute():
    stream = rows("AA", v=[2, 1])
    assert at("(A FILTER increasing(A.v)) :+", stream, 1) == set(sets("1", "01"))
    assert at("(A :+) FILTER increasing(A.v)", stream, 1) == set(sets("1"))
    assert isinstance(parse_formula("A :+"), StrictIteration)


def test_E18_positions_keep_their_labels():
    # Same tuples at the same places, but another order of labels is another complex event.
    stream = Stream.from_dicts(rows("AA", v=[1, 1]))
    there = Denotation(parse_formula("A AS x ; A AS y"), stream)(0, 1)
    back = Denotation(parse_formula("A AS y ; A AS x"), stream)(0, 1)
    assert there.isdisjoint(back)


def test_E19_positions_count_from_zero():
    assert {m.detected_at for m in evaluate(parse_query("SELECT * WHERE A"), Stream.from_dicts(rows("A")))} == {0}


# --- register transducers --------------------------------------------------------------------------------------------


def test_11_1_an_atom_reads_all_its_registers():
    # An atom on an empty register is false, its negation true.
    expression = "[type = 'B' AND v > 0] MARK . [v = r.v] MARK"
    negated = "[type = 'B' AND v > 0] MARK . [NOT v = r.v] MARK"
    stream = rows("BB", v=[1, 1])
    assert streamed(expression, stream) == set()
    assert streamed(negated, stream) == at_end("01")


def test_11_1_matches_of_the_empty_string():
    assert sremo_match_string(parse_sremo("EPSILON"), Stream([])) == {frozenset()}
    assert sremo_match_string(parse_sremo("([type = 'a'] MARK)*"), Stream([])) == {frozenset()}
    assert sremo_match_string(parse_sremo("EMPTY"), Stream([])) == frozenset()


def test_11_1_streaming_begins_anywhere():
    assert streamed("[type = 'a'] MARK", rows("xa")) == at_end("1")


def test_11_2_acceptance_and_reporting_differ():
    expression = "[type = 'a'] MARK . [type = 'b']"
    stream = Stream.from_dicts(rows("ab"))
    assert {support(c) for c in sremo_match_string(parse_sremo(expression), stream)} == {frozenset({0})}
    assert streamed(expression, rows("ab")) == set()


def test_11_3_writes_of_different_branches_are_kept_apart():
    expression = (
        "[type = 'a'] MARK INTO r2 . ([type = 'b'] MARK INTO r1 . [id = r2.id] MARK "
        "| [type = 'b'] MARK INTO r2 . [type = 'c' AND id = r1.id] MARK)"
    )
    assert streamed(expression, rows("abx", id=[1, 2, 1])) == at_end("012")
    assert streamed(expression, rows("abx", id=[1, 2, 2])) == set()


def test_11_4_intersection_combines_equal_outputs():
    left, right = "[type = 'a'] MARK . [type = 'b'] MARK", "[type = 'a'] . [type = 'b'] MARK"
    assert streamed(f"({left}) & ({right})", rows("ab")) == set()
    assert streamed(f"({left}) & ({left})", rows("ab")) == at_end("01")


def test_11_5_star_keeps_the_registers():
    expression = "([NOT type = r.type] MARK INTO r)*"
    assert sremo_match_string(parse_sremo(expression), Stream.from_dicts(rows("a"))) != frozenset()
    assert sremo_match_string(parse_sremo(expression), Stream.from_dicts(rows("aa"))) == frozenset()
    assert sremo_match_string(parse_sremo(expression), Stream.from_dicts(rows("aba"))) != frozenset()


def test_11_6_windows_count_from_the_first_to_the_last_marked_event():
    expression = parse_sremo("([TRUE]* . [type = 'a'] MARK) WITHIN 1 EVENTS")
    assert {support(c) for c in sremo_match_string(expression, Stream.from_dicts(rows("xxa")))} == {frozenset({2})}


def test_11_6_a_match_without_events_fits_every_window():
    expression = parse_sremo("([TRUE] . [TRUE]) WITHIN 1 EVENTS")
    assert sremo_match_string(expression, Stream.from_dicts(rows("ab"))) == {frozenset()}


def test_11_7_next_skips_nothing_that_matches():
    assert streamed("next([type = 'a'] MARK, [type = 'b'] MARK)", rows("abbb")) == at_end("01")
    # The complement, repeated, would skip bb, which is not a single b.
    assert streamed("[type = 'a'] MARK . (!([type = 'b']))* . [type = 'b'] MARK", rows("abbb")) >= at_end("03")


def test_11_7_next_of_several_events_is_not_found_across_pieces():
    expression = "next([type = 'a'] MARK, [type = 'b'] MARK . [type = 'c'] MARK)"
    assert streamed(expression, rows("abcbc")) == at_end("012")
    assert streamed(expression, rows("abxbc")) == at_end("034")


def test_11_7_complement_sees_the_registers():
    expression = "next([type = 'a'] MARK INTO r, [type = 'b' AND v = r.v] MARK)"
    assert streamed(expression, rows("abbb", v=[1, 2, 1, 1])) == at_end("02")


def test_11_12_accepting_runs_go_on():
    assert streamed("[type = 'a'] MARK . ([type = 'b'] MARK)+", rows("abb")) == at_end("01", "012")


def test_11_14_both_of_the_matches_of_another_sensor_go():
    assert supports("SELECT * WHERE (T AS x ; H AS y) FILTER x.id = y.id", SIX) == at_end("03", "04", "13", "14")


def test_11_15_a_register_that_a_branch_does_not_write_keeps_its_event():
    expression = "[type = 'a'] MARK INTO r . ([type = 'b'] MARK INTO r)? . [v = r.v] MARK"
    assert streamed(expression, rows("abc", v=[1, 2, 2])) == at_end("012")
    assert streamed(expression, rows("ac", v=[1, 1])) == at_end("01")


def test_complement_marks_nothing_and_keeps_the_registers():
    events = Stream.from_dicts(rows("ab"))
    denotation = SremoDenotation(parse_sremo("!([type = 'a'] MARK INTO r)"), events)
    assert denotation(0, 1) == frozenset()
    assert denotation(1, 2) == {(frozenset(), ())}
    assert denotation(0, 0) == {(frozenset(), ())}
