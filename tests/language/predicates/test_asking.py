import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cerflow
from cerflow.language.predicates.asking import Each, array_of, ask, ask_of_each, ask_of_set
from cerflow.language.predicates.registry import registered

NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)


def made(predicate, function, **options):
    predicate("p", **options)(function)
    return registered("p")


@pytest.mark.parametrize(
    ("answer", "expected"), [(True, True), (0, False), (np.bool_(True), True), (None, None), (2.5, True), ("", False)]
)
def test_answers_to_single_questions(predicate, answer, expected):
    assert ask(made(predicate, lambda value: answer), [1]) is expected


def test_nulls_are_not_shown(predicate):
    asked = []
    p = made(predicate, lambda a, b: asked.append((a, b)))
    assert ask(p, [None, 1]) is None
    assert ask(p, [1, None]) is None
    assert asked == []


@pytest.mark.parametrize(
    ("function", "cause", "message"),
    [
        (lambda a, b: a / b, ZeroDivisionError, "predicate 'p' failed on (1, 0): ZeroDivisionError: division by zero"),
        (lambda a, b: a["v"], TypeError, "predicate 'p' failed on (1, 0): TypeError: 'int' object"),
        (lambda a, b: np.array([a, b]), ValueError, "ValueError: The truth value of an array"),
    ],
)
def test_failures_are_told(predicate, function, cause, message):
    with pytest.raises(cerflow.PredicateError) as caught:
        ask(made(predicate, function), [1, 0])
    assert message in str(caught.value)
    assert caught.value.predicate == "p"
    assert isinstance(caught.value.__cause__, cause)


def test_long_arguments_are_cut(predicate):
    with pytest.raises(cerflow.PredicateError) as caught:
        ask(made(predicate, lambda a: a["v"]), [{"w": "x" * 1000}])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("given", "true", "unknown"),
    [
        (np.array([True, False, True]), [1, 0, 1], [0, 0, 0]),
        (np.ma.MaskedArray([True, False, True], [True, False, False]), [0, 0, 1], [1, 0, 0]),
        (np.array([True, None, False]), [1, 0, 0], [0, 1, 0]),
        ([None, None, True], [0, 0, 1], [1, 1, 0]),
        (pa.array([True, None, False]), [1, 0, 0], [0, 1, 0]),
        (pa.chunked_array([[True], [None, False]]), [1, 0, 0], [0, 1, 0]),
        (pa.nulls(3), [0, 0, 0], [1, 1, 1]),
        (pd.Series([True, False, True]), [1, 0, 1], [0, 0, 0]),
    ],
)
def test_answers_for_many_events(predicate, given, true, unknown):
    found = ask_of_each(made(predicate, lambda values: given, vectorized=True), [pa.array([1, 2, 3])], 3)
    assert [column.tolist() for column in found] == [list(map(bool, true)), list(map(bool, unknown))]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (True, "it gave True instead of one answer for each of 2 events"),
        (None, "it gave None instead"),
        (np.array([[True], [True]]), r"it gave an array of shape \(2, 1\) instead"),
        (np.array([1, 2]), "values of type int64 instead of booleans"),
        ([True], "it gave 1 answers for 2 events"),
    ],
)
def test_answers_that_are_none(predicate, given, message):
    with pytest.raises(cerflow.PredicateError, match=message):
        ask_of_each(made(predicate, lambda values: given, vectorized=True), [pa.array([1, 2])], 2)


def test_nobody_is_asked_about_nothing(predicate):
    p = made(predicate, lambda values: 1 / 0, vectorized=True)
    assert [len(column) for column in ask_of_each(p, [pa.array([1])], 0)] == [0, 0]


@pytest.mark.parametrize(
    ("value", "numpy", "arrow"),
    [
        (1, np.int64, pa.int64()),
        (1.5, np.float64, pa.float64()),
        (True, np.bool_, pa.bool_()),
        ("a", np.object_, pa.string()),
        (NOON, "datetime64[us]", pa.timestamp("us", "UTC")),
    ],
)
def test_forms_of_arrays(predicate, value, numpy, arrow):
    seen = []

    def look(values, constant):
        seen.append((type(values), getattr(values, "dtype", None), constant))
        return [True] * len(values)

    ask_of_each(made(predicate, look, vectorized="numpy"), [array_of([value]), 3], 1)
    assert seen.pop() == (np.ndarray, np.dtype(numpy), 3)
    found = made(predicate, lambda values, c: pa.array([values.type == arrow and c == 3]), vectorized="arrow")
    assert ask_of_each(found, [array_of([value]), 3], 1)[0].all()


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_a_set_as_arrays(predicate, form):
    def descending(values, weights, by):
        values = np.asarray(values)
        return bool((np.diff(values) <= -by).all()) and len(weights) == len(values)

    p = made(predicate, descending, of_set=form)
    assert ask_of_set(p, [Each([5, 3, 1]), Each([1.0, 2.0, 3.0]), 2]) is True
    assert ask_of_set(p, [Each([5, 4, 1]), Each([1.0, 2.0, 3.0]), 2]) is False
    # The event with a null is left out.
    assert ask_of_set(p, [Each([5, 4, 1]), Each([1.0, None, 3.0]), 2]) is True
    assert ask_of_set(p, [Each([]), Each([]), 2]) is True
    assert ask_of_set(p, [Each([1]), Each([1]), None]) is None


def test_a_set_event_by_event(predicate):
    predicate("p", init=list, step=lambda seen, *values: [*seen, values], accept=lambda seen: len(seen) == 2, arity=2)
    p = registered("p")
    assert ask_of_set(p, [Each([1, None, 2]), 7]) is True
    # The list that begins again is not the one of before.
    assert ask_of_set(p, [Each([1]), 7]) is False


def test_whole_events_over_many(predicate):
    def cheap(events):
        return pc.less(events["price"], 3)

    p = made(predicate, cheap, vectorized=True)
    events = array_of([{"price": 1, "name": "a"}, {"price": None, "name": "b"}])
    assert [column.tolist() for column in ask_of_each(p, [events], 2)] == [[True, False], [False, True]]


@pytest.mark.parametrize("options", [{"of_set": True}, {"init": 0, "step": lambda s, v: s / v, "accept": bool}])
def test_failures_of_sets_are_told(predicate, options):
    if "init" in options:
        predicate("p", **options)
    else:
        predicate("p", **options)(lambda values: 1 / 0)
    with pytest.raises(cerflow.PredicateError, match="predicate 'p' failed: ZeroDivisionError"):
        ask_of_set(registered("p"), [Each([0])])
