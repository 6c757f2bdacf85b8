"""I/O-determinisation and complement, against the definition of runs (P1 Proposition 1)."""

from itertools import product

import pytest
from hypothesis import assume, given

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import accepting_runs, matches
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.deciding.subset_construction import complement, determinize, is_deterministic
from cerflow.errors import UnsupportedQueryError
from cerflow.language.parser import parse_condition, parse_formula
from cerflow.values.events import Stream
from support.generators.queries import Fragment, formulas, stream_of, streams
from support.golden import rows
from support.runners import examples

SMALL = Fragment(depth=2, relating=False, outer=False, windows=False, projection=False)


def small(formula):
    """The transducer and its deterministic one, where that is small enough to look at."""
    transducer = compile_formula(formula)
    try:
        return transducer, determinize(transducer, steps=20_000)
    except UnsupportedQueryError as error:
        assume("too large" not in str(error))
        raise


@examples(25)
@given(formulas(SMALL), streams(max_size=6))
def test_determinised_transducers_have_the_same_matches(formula, some):
    transducer, deterministic = small(formula)
    stream = stream_of(some)
    assert is_deterministic(deterministic)
    assert matches(deterministic, stream) == matches(transducer, stream)
    runs = list(accepting_runs(deterministic, stream))
    assert len({(run.end, run.complex_event) for run in runs}) == len(runs)


def test_a_window_of_events_becomes_states():
    transducer = compile_formula(parse_formula("((A ; B) WITHIN 3 EVENTS) ; C"))
    deterministic = determinize(transducer)
    assert transducer.registers
    assert not deterministic.registers
    for types in product("ABC", repeat=4):
        stream = Stream.from_dicts(rows(types))
        assert matches(deterministic, stream) == matches(transducer, stream)


def test_a_truth_value_becomes_states():
    transducer = compile_formula(parse_formula("(A AS x ; B AS y) FILTER x.v > 1 OR y.v > 1"))
    deterministic = determinize(transducer)
    assert transducer.registers
    assert not deterministic.registers
    for values in product((None, 1, 2), repeat=3):
        stream = Stream.from_dicts(rows("AAB", v=values))
        assert matches(deterministic, stream) == matches(transducer, stream)


def _two_ways(one, other, labels=("A", "A")):
    """From the first state to the second, on two tests."""
    found = zip(labels, (parse_condition(text, bare_attributes=True) for text in (one, other)))
    transitions = tuple(Transition(0, k, test, labels=frozenset(label)) for k, (label, test) in enumerate(found, 1))
    return Transducer(3, frozenset({0}), frozenset({1, 2}), transitions)


def test_what_is_deterministic():
    assert is_deterministic(compile_formula(parse_formula("A ; B")))
    assert not is_deterministic(compile_formula(parse_formula("A+")))
    assert not is_deterministic(compile_formula(parse_formula("A OR B")))
    assert is_deterministic(_two_ways("v > 1", "v <= 1"))
    assert not is_deterministic(_two_ways("v > 1", "v >= 2"))
    assert is_deterministic(_two_ways("v > 1", "v >= 2", labels=("A", "B")))
    # Two tests of which nobody knows.
    assert not is_deterministic(_two_ways("s REGEXP '^a$'", "s REGEXP '^b$'"))


@pytest.mark.parametrize("text", ["A", "A ; B", "A : B", "A+", "(A FILTER A.v > 1) OR B", "A+ UNLESS B"])
def test_complement_has_all_that_is_left(text):
    transducer = compile_formula(parse_formula(text))
    labels = [frozenset(), frozenset("A"), frozenset("B")]
    opposite = complement(transducer, labels)
    assert is_deterministic(opposite)
    twice = complement(opposite, labels)
    for types, value in product(product("ABC", repeat=3), (None, 1, 2)):
        stream = Stream.from_dicts(rows(types, v=[value] * 3))
        everything = {
            (n, frozenset((name, p) for p, given in enumerate(choice) for name in given))
            for n in range(3)
            for choice in product(labels, repeat=n + 1)
        }
        found = matches(transducer, stream)
        assert matches(opposite, stream) == everything - found
        assert matches(twice, stream) == found


def test_label_sets_of_a_complement_are_those_of_the_transitions():
    opposite = complement(compile_formula(parse_formula("A AS x")))
    assert {t.labels for t in opposite.transitions} == {frozenset(), frozenset({"A", "x"})}


def test_sizes_are_limited():
    transducer = compile_formula(parse_formula(" ; ".join(f"((A FILTER A.a{k} > 0) OR A+)" for k in range(9))))
    with pytest.raises(UnsupportedQueryError, match="more than 5,000 steps"):
        determinize(transducer, steps=5_000)


def test_values_cannot_become_states():
    transducer = compile_formula(parse_formula("(A AS x ; B AS y) FILTER x.v > y.v"))
    with pytest.raises(UnsupportedQueryError, match="remember values of earlier events"):
        determinize(transducer)
