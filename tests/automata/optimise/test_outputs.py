"""Determinisation on outputs: the same matches, each from one run, or none at all."""

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.automata.optimise.output_determinization import determinized_on_outputs
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.language.parser import parse_formula
from support.generators.conditions import Fragment
from support.generators.queries import OPERATORS, around, formulas, overlapping, stream_of, streams
from support.golden import rows
from support.runners import examples
from support.transducer_runs import accepting_runs


def assert_determinized(transducer, stream):
    """Whether it was bounded; if so the matches are the same, and no two runs give one."""
    found = determinized_on_outputs(transducer)
    if found is None:
        return False
    assert not ambiguous(found)
    given_by = [(run.end, run.complex_event) for run in accepting_runs(found, stream)]
    assert len(given_by) == len(set(given_by))
    assert set(given_by) == matches(found, stream) == matches(transducer, stream)
    return True


@st.composite
def transducers(draw, source):
    """Automata of random formulas, many of them ambiguous, with some labels hidden."""
    formula = draw(overlapping(source))
    keep = draw(st.none() | st.sampled_from(("A", "AB", "BC", "AC", "ABC")))
    try:
        transducer = compile_formula(formula, keep=keep and frozenset(keep), marks=draw(st.integers(0, 3)) == 0)
    except UnsupportedQueryError:
        assume(False)
    return transducer, stream_of(draw(streams(max_size=5, like=formula)))


@examples(100)
@given(transducers(formulas(Fragment(depth=2, aggregates=True))))
def test_the_matches_stay_the_same(case):
    transducer, stream = case
    bounded = assert_determinized(transducer, stream)
    event(f"{'ambiguous' if ambiguous(transducer) else 'unambiguous'}, {'' if bounded else 'not '}bounded")


@pytest.mark.parametrize("operator", OPERATORS)
@examples(30)
@given(data=st.data())
def test_the_matches_of_operators_stay_the_same(operator, data):
    transducer, stream = data.draw(transducers(around(operator)))
    bounded = assert_determinized(transducer, stream)
    event(f"{'ambiguous' if ambiguous(transducer) else 'unambiguous'}, {'' if bounded else 'not '}bounded")


def compiled(text, *keep, **options):
    return compile_formula(parse_formula(text), keep=frozenset(keep) or None, **options)


@pytest.mark.parametrize(
    ("text", "keep", "most"),
    [
        ("(A OR B)+ ; (A OR B)+", (), 4),
        ("((A OR B)+ ; (B ; A+)+)+", (), 8),
        ("(A AS x ; (B+ ; (B OR C)+)+ ; C AS y) FILTER x.v < y.v", (), 5),
        ("(A AS x ; (B AS y ; (C AS z)+)+ ; C AS u) FILTER x.v < u.v", ("x", "u"), 5),
        ("(A ; B :B) OR (A ; B ; B)", (), 6),
        ("(A AS x ; (B ; A)+ ; B AS y) FILTER x.v < y.v WITHIN 4 EVENTS", ("x",), 5),
    ],
)
def test_bounded(text, keep, most):
    transducer = compiled(text, *keep)
    assert ambiguous(transducer)
    stream = Stream.from_dicts(list(rows("ABABBCAC", v=[1, 2, None, 3, 1, 5, 4, 2])))
    assert assert_determinized(transducer, stream)
    assert determinized_on_outputs(transducer).states <= most


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        # Each A may be the x that matters, and there is no telling how many of them come.
        ("((A AS x)+ ; (A OR B AS y)+)+ FILTER x.v != y.v", ("A", "B")),
        ("(A AS x ; (A AS y FILTER y.v > x.v) ; B AS u) FILTER u.v = y.v", ("u",)),
        # Not known to begin: nothing that the run has read is part of the output.
        ("A ; B", ("B",)),
    ],
)
def test_unbounded(text, keep):
    transducer = compiled(text, *keep)
    assert ambiguous(transducer)
    assert determinized_on_outputs(transducer) is None


def test_what_is_too_large_is_left_to_run_time(monkeypatch):
    transducer = compiled("((A OR B)+ ; (B ; A+)+)+")
    for limit in ("OUTPUT_STATES", "OUTPUT_TRANSITIONS", "OUTPUT_CASES"):
        with monkeypatch.context() as patch:
            patch.setattr(limits, limit, 3)
            assert determinized_on_outputs(transducer) is None
    assert determinized_on_outputs(transducer) is not None


def test_the_complement_of_a_comparison_holds_where_that_is_unknown():
    transducer = compiled("(A AS x ; B AS y ; C) OR (((A AS x ; B AS y) FILTER x.v < y.v) ; C)")
    for v in ([1, 2, 0], [2, 1, 0], [None, 1, 0], [1, None, 0]):
        assert assert_determinized(transducer, Stream.from_dicts(list(rows("ABC", v=v))))


def test_transitions_share_their_trees():
    conditions = "(nonincreasing(r.v) AND max(r.v) != 0) OR increasing(r.v) AND min(r.v) > 1"
    found = determinized_on_outputs(compiled(f"(A AS x : (EVENT AS r):{{3}}) FILTER {conditions}"))
    trees = [tree for t in found.transitions for tree in t.trees]
    assert len(trees) > len(set(trees)) == len(set(map(id, trees)))
