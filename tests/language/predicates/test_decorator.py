import functools

import numpy as np
import pytest

import cerflow
from cerflow.language.node import walk
from cerflow.language.parser import parse_condition, parse_query
from cerflow.language.predicates.registry import (
    Fold,
    Form,
    PredicateKind,
    calls_of_sets,
    find_predicate,
    predicates_in,
    registered,
    using,
)


def two(a, b):
    return a < b


def test_a_function_is_registered_under_its_name_and_given_back(predicate):
    assert predicate(two) is two
    found = find_predicate("two")
    assert (found.function, found.kind, found.form, found.compile) == (two, PredicateKind.SCALAR, Form.VALUES, True)
    assert (found.fewest, found.most, found.arity) == (2, 2, "2 arguments")


def test_names_and_options(predicate):
    assert predicate("below")(two) is two
    assert predicate(name="under", compile=False)(two) is two
    assert predicate(vectorized=True)(two) is two
    assert predicate("all", vectorized="arrow") is not None
    assert predicate("widths", of_set="arrow")(two) is two
    assert find_predicate("below").compile
    assert not find_predicate("under").compile
    assert (find_predicate("two").kind, find_predicate("two").form) == (PredicateKind.VECTORIZED, Form.NUMPY)
    assert (find_predicate("widths").kind, find_predicate("widths").form) == (PredicateKind.SET, Form.ARROW)
    assert "widths" in calls_of_sets()
    assert not {"below", "under", "two"} & calls_of_sets()
    assert {"below", "two", "under", "widths"} <= {found.name for found in cerflow.registered_predicates()}


def test_a_set_event_by_event(predicate):
    made = predicate("falls", init=0, step=lambda state, a, b: state + (a > b), accept=bool)
    assert made is find_predicate("falls")
    assert (made.kind, made.form, made.fewest, made.most) == (PredicateKind.SET, Form.VALUES, 2, 2)
    assert isinstance(made.function, Fold)
    assert made.function([(1, 2), (2, 1)]) is True
    assert made.function([]) is False


@pytest.mark.parametrize(
    ("function", "arity", "words"),
    [
        (lambda a: a, (1, 1), "1 argument"),
        (lambda a, b=2, *, c=3: a, (1, 2), "1 to 2 arguments"),
        (lambda a=1, b=2: a, (1, 2), "1 to 2 arguments"),
        (functools.partial(two, 1), (1, 1), "1 argument"),
    ],
)
def test_the_number_of_arguments(predicate, function, arity, words):
    predicate("p")(function)
    found = find_predicate("p")
    assert (found.fewest, found.most) == arity
    assert found.arity == words


def test_functions_of_numba_have_as_many_arguments(predicate):
    numba = pytest.importorskip("numba", reason="Numba comes with the extra 'compile'")
    predicate("p")(numba.njit(two))
    assert find_predicate("p").arity == "2 arguments"


def test_the_number_of_arguments_can_be_said(predicate):
    predicate("p", arity=3)(lambda *many: True)
    assert (find_predicate("p").fewest, find_predicate("p").most) == (3, 3)
    predicate("less", arity=2, vectorized=True)(np.less)
    assert find_predicate("less").most == 2


@pytest.mark.parametrize(
    ("arguments", "options", "function", "message"),
    [
        (("so far",), {}, two, "not an identifier"),
        ((), {}, lambda a: a, "not an identifier"),
        ((3,), {}, two, "not an identifier"),
        (("Filter",), {}, two, "a reserved word"),
        (("COUNT",), {}, two, "a reserved word"),
        (("increasing",), {}, two, "a reserved word"),
        (("p",), {}, lambda *many: True, "not clear; give arity"),
        (("p",), {}, lambda a, *, b: True, "not clear; give arity"),
        (("p",), {}, min, "not known; give arity"),
        (("p",), {}, lambda: True, "must take an argument"),
        (("p",), {"arity": 0}, lambda *many: True, "must take an argument"),
        (("p",), {"vectorized": True, "of_set": True}, two, "either vectorized or of a set"),
        (("p",), {"vectorized": "pandas"}, two, "'numpy' or 'arrow', not 'pandas'"),
    ],
)
def test_what_cannot_be_registered(predicate, arguments, options, function, message):
    before = cerflow.registered_predicates()
    with pytest.raises(ValueError, match=message):
        predicate(*arguments, **options)(function)
    assert cerflow.registered_predicates() == before


@pytest.mark.parametrize(
    "parts", [{"init": 0}, {"step": two, "accept": bool}, {"init": 0, "step": two, "accept": bool, "of_set": True}]
)
def test_sets_event_by_event_need_all_three_parts(predicate, parts):
    with pytest.raises(ValueError, match="takes init, step and accept"):
        predicate("p", **parts)


async def later(a):
    return True


def one_by_one(a):
    yield True


async def later_one_by_one(a):
    yield True


@pytest.mark.parametrize("function", [later, one_by_one, later_one_by_one])
def test_functions_that_answer_later_are_refused(predicate, function):
    for options in ({}, {"vectorized": True}, {"of_set": True}):
        with pytest.raises(cerflow.ArgumentError, match="must answer when it is called"):
            predicate("late", **options)(function)
    with pytest.raises(cerflow.ArgumentError, match="must answer when it is called"):
        predicate("late", init=0, step=max, accept=function)


def test_names_in_use_come_and_go(predicate):
    predicate(two)
    first = registered("two")
    predicate(two)
    assert registered("two") is not first
    assert registered("two") in cerflow.registered_predicates()
    with using([first]):
        assert registered("two") is first
    assert registered("two") is not first
    cerflow.unregister_predicate("two")
    assert find_predicate("two") is None
    with pytest.raises(KeyError):
        cerflow.unregister_predicate("two")
    predicate("twos")(two)
    with pytest.raises(cerflow.QueryError, match="'two' is not registered") as caught:
        registered("two")
    assert caught.value.suggestion == "twos"


def test_the_predicates_of_a_query(predicate):
    predicate("p")(two)
    predicate("q")(two)
    predicate("r")(two)
    query = parse_query("SELECT * WHERE (A AS x ; B AS y) FILTER q(x.v, y.v) AND x[p((v), 1) OR q((v), 2)] AND s(x)")
    assert [found.name for found in predicates_in(query)] == ["q", "p"]


@pytest.mark.parametrize("name", ["by", "empty", "range", "mark", "into", "days", "events", "größe", "_"])
def test_names_that_are_words_elsewhere_can_be_called(predicate, name):
    predicate(name)(two)
    assert [n.name for n in walk(parse_condition(f"{name}(x.v, y.v)")) if hasattr(n, "arguments")] == [name]
