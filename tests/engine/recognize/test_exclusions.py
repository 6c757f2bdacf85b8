"""Excluded parts that are compared with events outside of them: against the semantics, and what they cost."""

import random

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.parser import parse_formula
from support.generators.exclusions import ExclusionQueries
from support.runners import ENGINE_RUNNERS, bag, examples, semantics

ROLES = {"time": "t", "time_unit": "ms"}
PAIR = "(A AS a ; B AS b) {} (C AS c ; D AS d FILTER {})"
BOTH_TIMES = "time(b) - time(c) <= 300000 AND time(d) - time(a) <= 300000"


@examples(120)
@given(st.integers(0, 2**32))
def test_the_engine_is_the_semantics(seed):
    own = ExclusionQueries(seed)
    query = cerflow.parse(own.query())
    for _ in range(3):
        table = own.events()
        try:
            expected = bag(semantics(query, table, **ROLES))
            for name, run in ENGINE_RUNNERS.items():
                assert bag(run(query, table, **ROLES)) == expected, name
        except UnsupportedQueryError as error:
            event(error.reason)
            return


@pytest.mark.parametrize("operator", ["UNLESS", "WITHOUT"])
@pytest.mark.parametrize(
    "relations",
    [
        BOTH_TIMES,
        "c.v = b.v AND d.v > a.v",
        "c.v < b.v AND c.w < a.w AND d.v = b.w",
        "abs(c.v - b.v) <= 1 AND d.v <> b.v",
        "c.v = a.v AND d.v = b.v AND b.v > 0",
    ],
)
def test_no_run_guesses_which_relation_fails(operator, relations):
    # A guess would give several runs for one complex event, with sets of rows each.
    assert not ambiguous(compile_formula(parse_formula(PAIR.format(operator, relations))))


def test_a_thousand_events_without_an_answer_of_exponential_size():
    draw = random.Random(1)
    table = pa.table({"type": [draw.choice("ABCD") for _ in range(1000)], "t": [k * 60_000 for k in range(1000)]})
    query = cerflow.parse(
        f"SELECT * WHERE ((A AS a ; B AS b) WITHIN 5 MINUTES) UNLESS (C AS c ; D AS d FILTER {BOTH_TIMES})"
    )
    types, times = table["type"].to_pylist(), table["t"].to_pylist()

    def excluded(a, b):
        found = [k for k in range(b + 1) if types[k] == "C" and times[b] - times[k] <= 300_000]
        return any(types[d] == "D" and times[d] - times[a] <= 300_000 for c in found for d in range(c + 1, b + 1))

    pairs = [(a, b) for b in range(1000) for a in range(max(0, b - 4), b) if types[a] == "A" and types[b] == "B"]
    found = [tuple(e["position"] for e in row["events"]) for row in query.match(table, **ROLES).to_pylist()]
    assert sorted(found) == sorted(pair for pair in pairs if not excluded(*pair))
    assert found


def test_only_the_latest_time_is_kept_for_a_bound_on_it():
    # `>=` is how a row makes another unnecessary.
    kept = compile_formula(parse_formula(PAIR.format("UNLESS", "time(b) - time(c) <= 300000"))).registers
    assert all(r.covering == (">=",) for r in kept if r.keeps == "set")
    kept = compile_formula(parse_formula(PAIR.format("UNLESS", "time(b) - time(c) >= 300000"))).registers
    assert all(r.covering == ("=",) for r in kept if r.keeps == "set")


@pytest.mark.parametrize("unit", ["ms", None])
def test_times_at_the_limits_of_64_bits(unit):
    # The difference of distant times is null, so it is within no bound.
    largest = 2**63 - 1
    times = [-largest, -largest, 0, 5, largest, largest]
    table = pa.table({"type": list("CDCDAB"), "t": pa.array(times, pa.int64())})
    for bound in ("time(b) - time(c) <= 9", "time(d) - time(a) <= 9", "abs(time(c) - time(b)) <= 9", BOTH_TIMES):
        query = cerflow.parse(f"SELECT * WHERE {PAIR.format('UNLESS', bound)}")
        roles = {"time": "t"} | ({} if unit is None else {"time_unit": unit})
        assert bag(query.match(table, **roles).to_pylist()) == bag(semantics(query, table, **roles))


def test_an_event_of_an_enclosing_formula_may_come_on_either_side():
    table = pa.table({"type": list("CXACXB"), "v": [1, 1, 0, 2, 2, 0], "t": range(6)})
    for formula in (
        "(A UNLESS (C AS b ; (X AS c FILTER b.v <= c.v AND c.v < x.v) ; A)) ; X AS x",
        "X AS x ; (A AS a ; B) UNLESS (C AS c FILTER c.v = x.v AND a.v = 0)",
        "(A AS a UNLESS (C AS c FILTER c.v = x.v AND c.v > a.v)) ; X AS x",
        "((A AS a ; B) UNLESS (C AS c FILTER c.v = x.v AND c.v > a.v)) ALL X AS x",
    ):
        query = cerflow.parse(f"SELECT * WHERE {formula}")
        for run in ENGINE_RUNNERS.values():
            assert bag(run(query, table, time="t")) == bag(semantics(query, table, time="t"))


@pytest.mark.parametrize("operator", ["(A AS a ; B AS b) UNLESS {}", "A AS a NOT FOLLOWED BY {} FOR 1 HOUR"])
def test_rows_whose_window_has_passed_are_dropped(operator):
    excluded = "(C AS c ; D AS d FILTER c.v = d.v WITHIN 50 MILLISECONDS)"
    recognizer = cerflow.parse(f"SELECT * WHERE {operator.format(excluded)}").recognizer(
        pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())]), time="t"
    )
    recognizer.push({"type": "A", "t": 0, "v": 0})
    sizes = []
    for begin in (1, 301, 601):
        recognizer.push([{"type": "C", "t": t, "v": t * 7919 % 100_003} for t in range(begin, begin + 300)])
        sizes.append(len(recognizer.snapshot()))
    assert max(sizes) - min(sizes) < 100
