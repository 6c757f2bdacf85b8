"""Brackets with prev: worked examples, places where it cannot stand, and what is given up early."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.builder import event, label, prev, select, this

EVENTS = [{"type": "A", "v": v, "t": 2 * t} for t, v in enumerate([1, 2, 5, 3, None, 4])]


def found(text, events=EVENTS):
    matches = cerflow.parse(f"SELECT * WHERE {text}").match(events, time="t")
    return [[e["position"] for e in match["events"]] for match in matches]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A:{3} FILTER A[v > prev(v)]", [[0, 1, 2]]),
        ("A:{2} FILTER NOT A[v > prev(v)]", [[2, 3]]),
        ("A:{2} FILTER A[v > prev(v)] OR A[v < prev(v)]", [[0, 1], [1, 2], [2, 3]]),
        ("A{2} FILTER A[time() - prev(time()) < 3 AND v - prev(v) != 1]", [[1, 2], [2, 3]]),
        ("A{5,} FILTER A[position() - prev(position()) <= 1 AND (prev(v) IS NULL OR v IS NULL OR v != prev(v))]",
         [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]),
        ("A:{2} FILTER A[prev(v) > 1]", [[1, 2], [2, 3], [3, 4]]),
        ("A:{2} FILTER NOT A[prev(v) > 1] OR A[v > prev(v)] AND A.t < 6", [[0, 1], [1, 2]]),
        ("A AS low ; ((A AS x):{2} FILTER x[prev(v) > low.v])",
         [[0, 1, 2], [0, 2, 3], [1, 2, 3], [0, 3, 4], [1, 3, 4]]),
        ("A FILTER A[v > prev(v)]", [[0], [1], [2], [3], [4], [5]]),
        ("(A AS x){2} ; A AS y FILTER x[v > prev(v)] AND y.v = 4",
         [[0, 1, 5], [0, 2, 5], [0, 3, 5], [1, 2, 5], [1, 3, 5]]),
        ("A AS low ; ((A AS x):{2} FILTER x[v > prev(v) AND prev(v) > low.v])", [[0, 1, 2]]),
    ],
)  # fmt: skip
def test_worked_examples(text, expected):
    assert sorted(found(text)) == sorted(expected)


@pytest.mark.parametrize("name", ["increasing", "decreasing", "nondecreasing", "nonincreasing"])
def test_tests_on_sets_are_a_special_case(name):
    sign = {"increasing": ">", "decreasing": "<", "nondecreasing": ">=", "nonincreasing": "<="}[name]
    known = [{**e, "v": e["v"] or 0} for e in EVENTS]
    assert found(f"A+ FILTER A[v {sign} prev(v)]", known) == found(f"A+ FILTER {name}(A.v)", known)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A+ FILTER A.v > prev(A.v)", "only in a bracket"),
        ("A+ FILTER A[v > prev(prev(v))]", "inside prev"),
        ("NOT(A FILTER A[v > prev(v)])", "NOT reads one event"),
        ("(A ; B)+ FILTER A[v > prev(B.v)]", "the event of 'A' before"),
        ("A+ FILTER A[v > prev(v) AND increasing(A.v)]", "all events of a label"),
        ("A+ FILTER SOME A: A[v > prev(v)]", "SOME chooses single events"),
        ("(B AS y ; (A AS x)+) FILTER x[v > prev(v) * y.v]", "cannot read 'y'"),
    ],
)
def test_where_it_cannot_stand(text, reason):
    with pytest.raises(cerflow.CerflowError, match=reason) as caught:
        cerflow.parse(f"SELECT * WHERE {text}").match([{"type": "A", "v": 1}])
    assert caught.value.column is not None


def test_the_builder_writes_it():
    r = label("r")
    query = select(event("A").as_(r).repeated(3).filter(r[this.v > prev(this.v)]))
    assert query == cerflow.parse("SELECT * WHERE (A AS r){3,} FILTER r[v > prev(v)]").tree


def test_runs_that_fall_are_given_up():
    query = cerflow.parse("SELECT * WHERE (A AS r):{3,} FILTER r[v > prev(v)]")
    recognizer = query.recognizer(pa.schema({"type": pa.string(), "v": pa.int64()}))
    recognizer.push([{"type": "A", "v": -k} for k in range(1000)])
    assert recognizer.live["configurations"] <= 2
