"""The definition of runs against the semantics of formulas, and automata of the papers written down by hand."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import HIDDEN_LABEL, Accumulation, Register, Transducer, Transition, Write
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.base.errors import QueryError
from cerflow.base.events import Stream, support
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Literal,
    Not,
)
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.language.parser import parse_formula
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.conditions.guards import Satisfied, Stored, TypeTest
from cerflow.theory.semantics.complex_events import within
from cerflow.theory.semantics.formulas import Denotation
from support.generators import predicates as random_predicates
from support.generators.conditions import FIRST, Fragment
from support.generators.queries import formulas, stream_of, streams
from support.golden import SENSORS, SIX, at_end, rows
from support.runners import examples
from support.transducer_runs import accepting_runs


@st.composite
def cases(draw, max_size=7, fragment=FIRST):
    formula = draw(formulas(fragment))
    return formula, stream_of(draw(streams(max_size=max_size, like=formula)))


def denoted(formula, stream):
    denotation = Denotation(formula, stream)
    return {(n, c) for n in range(len(stream)) for c in denotation(0, n)}


def missing(event):
    return event.attribute("v") is None


def supports(found):
    return {(n, frozenset(p for _, p in c)) for n, c in found}


@examples(300)
@given(cases())
def test_compiled_formulas_detect_what_they_denote(case):
    formula, stream = case
    assert matches(compile_formula(formula), stream) == denoted(formula, stream)


@examples(60)
@given(cases(max_size=6, fragment=Fragment(predicates=True, depth=2)))
def test_calls_of_predicates(case):
    formula, stream = case
    with random_predicates.registered():
        assert matches(compile_formula(formula), stream) == denoted(formula, stream)


@examples(150)
@given(st.data())
def test_compiled_formulas_with_conditions_on_sets(data):
    formula = data.draw(formulas(Fragment(aggregates=True)))
    stream = stream_of(data.draw(streams(max_size=7, like=formula)))
    assert matches(compile_formula(formula), stream) == denoted(formula, stream)


@examples(100)
@given(
    cases(),
    st.one_of(
        st.builds(CountWindow, st.integers(1, 5)),
        st.builds(lambda ms: DurationWindow(1000 * ms), st.integers(1, 8)),
        st.builds(AttributeWindow, st.sampled_from((1, 2.5, 4)), st.sampled_from(("n", "n", "v"))),
    ),
)
def test_windows_of_whole_queries(case, window):
    formula, stream = case
    if isinstance(window, AttributeWindow) and window.attribute == "v":
        # An attribute that is sometimes missing; it must not decrease.
        ordered = iter(sorted(e.attribute("v") for e in stream if not missing(e)))
        changed = [
            dataclasses.replace(
                e, attributes={**e.attributes, "v": None if e.attribute("v") is None else next(ordered)}
            )
            for e in stream
        ]
        stream = Stream(changed, stream.microseconds_per_tick)
    expected = {(n, c) for n, c in denoted(formula, stream) if within(c, window, stream)}
    assert matches(compile_formula(formula, window=window), stream) == expected


@examples(100)
@given(cases(), st.sets(st.sampled_from(("A", "B", "x", "y")), min_size=1))
def test_projections_of_whole_queries(case, keep):
    formula, stream = case
    expected = {(n, frozenset(pair for pair in c if pair[0] in keep)) for n, c in denoted(formula, stream)}
    assert matches(compile_formula(formula, keep=frozenset(keep)), stream) == expected


@examples(100)
@given(cases(), st.sets(st.sampled_from(("A", "B", "x", "y")), min_size=1), st.one_of(st.none(), st.integers(1, 5)))
def test_projections_that_keep_supports(case, keep, size):
    formula, stream = case
    window = None if size is None else CountWindow(size)
    expected = set()
    for n, c in denoted(formula, stream):
        if window is None or within(c, window, stream):
            shown = {pair for pair in c if pair[0] in keep}
            hidden = support(c) - support(shown)
            expected.add((n, frozenset(shown | {(HIDDEN_LABEL, p) for p in hidden})))
    compiled = compile_formula(formula, window=window, keep=frozenset(keep), marks=True)
    assert matches(compiled, stream) == expected


@examples(150)
@given(cases(max_size=6))
def test_runs_give_the_matches_and_unambiguous_means_one_run_each(case):
    formula, stream = case
    transducer = compile_formula(formula)
    outputs = [(run.end, run.complex_event) for run in accepting_runs(transducer, stream)]
    assert set(outputs) == matches(transducer, stream)
    if not ambiguous(transducer):
        assert len(outputs) == len(set(outputs))


def test_ambiguity_is_seen():
    transducer = compile_formula(parse_formula("(A ; A) OR (A ; A FILTER A.v > 0)"))
    assert ambiguous(transducer)
    runs = list(accepting_runs(transducer, Stream.from_dicts(rows("AA", v=[1, 1]))))
    assert len(runs) == 2
    assert len({run.complex_event for run in runs}) == 1


def test_runs_that_part_on_contradicting_tests_are_not_ambiguous():
    assert not ambiguous(compile_formula(parse_formula("(A FILTER A.v > 1) OR (A FILTER A.v <= 1)")))
    assert ambiguous(compile_formula(parse_formula("(A FILTER A.v > 1) OR (A FILTER A.v >= 1)")))


def test_conditions_on_all_rows_of_a_collection_do_not_contradict():
    """Without rows both a condition and its negation hold."""
    value, each = Attribute(None, "v"), Stored(0, 0)
    equal = Satisfied(Comparison(Operator.EQ, value, each))
    ways = [(equal,), (Not(equal),)]
    for keeps, expected in ((Accumulation.SET, True), (Accumulation.MAX, False)):
        registers = (Register(keeps, 1, "v"),)
        transitions = tuple(Transition(0, 1, atoms=atoms) for atoms in ways)
        assert ambiguous(Transducer(2, frozenset({0}), frozenset({1}), transitions, registers)) is expected


# --- automata of the papers ------------------------------------------------------------------------------------------

HOT = conjunction([TypeTest("T"), Comparison(Operator.GT, Attribute(None, "value"), Literal(40))])
MARKED = frozenset({"event"})

#: P1 Figure 2.
FIGURE_2_CEA = Transducer(
    states=3,
    initial=frozenset({0}),
    final=frozenset({2}),
    transitions=(
        Transition(0, 0),
        Transition(0, 1, TypeTest("H"), labels=MARKED),
        Transition(1, 1),
        Transition(1, 1, HOT, labels=MARKED),
        Transition(1, 2, TypeTest("H"), labels=MARKED),
    ),
)

#: P2 Figure 2: detects at a T, which it leaves out.
FIGURE_2_UCEA = Transducer(
    states=3,
    initial=frozenset({0}),
    final=frozenset({2}),
    transitions=(
        Transition(0, 0),
        Transition(0, 1, TypeTest("H"), labels=frozenset({"H"})),
        Transition(1, 1),
        Transition(1, 2, TypeTest("T")),
    ),
)

#: 003 Figure 1: a T, and an H of the same sensor.
FIGURE_1_RMA = Transducer(
    states=3,
    initial=frozenset({0}),
    final=frozenset({2}),
    transitions=(
        Transition(0, 0),
        Transition(0, 1, TypeTest("T"), labels=MARKED, writes=(Write(0, (Attribute(None, "id"),), True),)),
        Transition(1, 1),
        Transition(1, 2, TypeTest("H"), (Comparison(Operator.EQ, Attribute(None, "id"), Stored(0, 0)),), labels=MARKED),
    ),
    registers=(Register(Accumulation.VALUE, 1, "id of the T"),),
)


def test_P1_figure_2():
    expected = at_end(
        *"02 012 03 013 23 07 017 057 0157 27 257 37 357 08 018 058 0158 28 258 38 358 78".split()  # noqa: SIM905
    )
    stream = Stream.from_dicts(SENSORS)
    assert supports(matches(FIGURE_2_CEA, stream)) == expected
    formula = parse_formula("(H ; H) OR (H ; (T FILTER T.value > 40)+ ; H)")
    assert supports(matches(compile_formula(formula), stream)) == expected


def test_P2_figure_2():
    values = [-2, 30, 20, -1, 27, 2, 45, 50, -2, 65]
    stream = Stream.from_dicts(rows("THHTHTHHTH", value=values))
    found = matches(FIGURE_2_UCEA, stream)
    expected = {3: "12", 5: "124", 8: "12467"}
    assert found == {(n, frozenset({("H", int(p))})) for n, places in expected.items() for p in places}
    assert found == matches(compile_formula(parse_formula("PROJECT H (H ; T)")), stream)
    # Read as a complex event automaton it must mark the event that it detects at.
    assert matches(FIGURE_2_UCEA, stream, reporting=True) == set()


def test_003_figure_1():
    stream = Stream.from_dicts(SIX)
    assert supports(matches(FIGURE_1_RMA, stream)) == at_end("03", "13", "04", "14")
    runs = [run for run in accepting_runs(FIGURE_1_RMA, stream) if run.end == 3]
    # The run (4) of the paper, and the other one.
    assert sorted([t.target for t in run.transitions] for run in runs) == [[0, 1, 1, 2], [1, 1, 1, 2]]


@pytest.mark.parametrize(
    ("window", "expected"),
    [(2, ()), (3, ("13",)), (4, ("03", "13", "14")), (5, ("03", "13", "04", "14"))],
)
def test_003_windows(window, expected):
    windowed = dataclasses.replace(FIGURE_1_RMA, window=CountWindow(window))
    assert supports(matches(windowed, Stream.from_dicts(SIX))) == at_end(*expected)


# --- registers -------------------------------------------------------------------------------------------------------


def _remembering(keeps, operator):
    """Any number of As, then a B that compares to what is kept of them."""
    value = (Attribute(None, "v"),)
    return Transducer(
        states=3,
        initial=frozenset({0}),
        final=frozenset({2}),
        transitions=(
            Transition(0, 1, TypeTest("A"), labels=frozenset({"A"}), writes=(Write(0, value, True),)),
            Transition(1, 1, TypeTest("A"), labels=frozenset({"A"}), writes=(Write(0, value, False),)),
            Transition(1, 2, TypeTest("B"), (Comparison(operator, value[0], Stored(0, 0)),), frozenset({"B"})),
        ),
        registers=(Register(keeps, 1, "A.v"),),
    )


@pytest.mark.parametrize(
    ("keeps", "operator", "values", "holds"),
    [
        (Accumulation.VALUE, Operator.EQ, [1, 2, 2], True),
        (Accumulation.VALUE, Operator.EQ, [2, 1, 2], False),
        (Accumulation.MIN, Operator.LT, [2, 3, 1], True),
        (Accumulation.MIN, Operator.LT, [3, 2, 2], False),
        (Accumulation.MAX, Operator.GT, [2, 3, 4], True),
        (Accumulation.MAX, Operator.GT, [3, 2, 3], False),
        (Accumulation.MAX, Operator.GT, [None, 2, 3], False),
        (Accumulation.SAME, Operator.EQ, [2, 2, 2], True),
        (Accumulation.SAME, Operator.EQ, [2, 3, 2], False),
        (Accumulation.SAME, Operator.EQ, [3, 2, 2], False),
        (Accumulation.SET, Operator.NE, [1, 2, 3], True),
        (Accumulation.SET, Operator.NE, [1, 2, 1], False),
        (Accumulation.SET, Operator.NE, [1, None, 3], False),
    ],
)
def test_what_registers_keep(keeps, operator, values, holds):
    stream = Stream.from_dicts(rows("AAB", v=values))
    assert bool(matches(_remembering(keeps, operator), stream)) is holds


def test_writes_read_what_was_there_before():
    swap = (Write(0, (Stored(1, 0),), True), Write(1, (Stored(0, 0),), True))
    value = Attribute(None, "v")
    swapped = (Comparison(Operator.EQ, Stored(0, 0), Literal(0)), Comparison(Operator.EQ, Stored(1, 0), value))
    transducer = Transducer(
        states=4,
        initial=frozenset({0}),
        final=frozenset({3}),
        transitions=(
            Transition(0, 1, writes=(Write(0, (value,), True), Write(1, (Literal(0),), True))),
            Transition(1, 2, writes=swap),
            Transition(2, 3, atoms=swapped),
        ),
        registers=(Register(Accumulation.VALUE, 1, "one"), Register(Accumulation.VALUE, 1, "other")),
    )
    assert matches(transducer, Stream.from_dicts(rows("AAA", v=[5, 1, 5]))) == {(2, frozenset())}
    assert matches(transducer, Stream.from_dicts(rows("AAA", v=[5, 1, 4]))) == set()


def test_a_window_of_time_needs_times():
    transducer = dataclasses.replace(FIGURE_1_RMA, window=DurationWindow(1000))
    with pytest.raises(QueryError, match="needs events with times"):
        matches(transducer, Stream.from_dicts(SIX))


def test_hand_built_transducers_are_checked():
    with pytest.raises(ValueError, match="state 3 does not exist"):
        dataclasses.replace(FIGURE_2_CEA, final=frozenset({3}))
    with pytest.raises(ValueError, match="register 0 does not exist"):
        dataclasses.replace(FIGURE_1_RMA, registers=())
    asking = Comparison(Operator.EQ, Stored(0, 0), Literal(1))
    for t, fault in (
        (Transition(0, 0, asking), "the test of"),
        (Transition(0, 0, atoms=(asking,)), "register 0 does not exist"),
        (Transition(0, 1), "leaves the states"),
    ):
        with pytest.raises(ValueError, match=fault):
            Transducer(1, frozenset({0}), frozenset(), (t,))
