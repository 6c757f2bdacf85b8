"""I/O-determinisation, against the definition of runs (P1 Proposition 1)."""

import os
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import assume, given

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.language.parser import parse_formula
from cerflow.theory.deciding.finite_memory import determinize
from support.generators.queries import Fragment, formulas, stream_of, streams
from support.golden import rows
from support.runners import examples
from support.transducer_runs import accepting_runs

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


def test_sizes_are_limited():
    transducer = compile_formula(parse_formula(" ; ".join(f"((A FILTER A.a{k} > 0) OR A+)" for k in range(9))))
    with pytest.raises(UnsupportedQueryError, match="more than 5,000 steps"):
        determinize(transducer, steps=5_000)


def test_values_cannot_become_states():
    transducer = compile_formula(parse_formula("(A AS x ; B AS y) FILTER x.v > y.v"))
    with pytest.raises(UnsupportedQueryError, match="remember values of earlier events"):
        determinize(transducer)


def test_every_process_numbers_the_states_alike():
    code = (
        "from cerflow.automata import compile_cel; "
        "print(compile_cel('A AS x ; NEXT((B AS y FILTER x.v = 1) OR C AS z)').to_json())"
    )
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1
