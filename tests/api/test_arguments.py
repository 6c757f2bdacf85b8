"""Every public function says in a sentence of its own what is wrong with an argument; nothing raw comes out."""

import datetime
import inspect
import itertools

import pyarrow as pa
import pytest

import cerflow
from cerflow import builder
from cerflow.base.errors import ArgumentError, CerflowError

TABLE = pa.table({"type": ["A", "B"], "v": [1, 2], "t": [1, 2]})
QUERY = cerflow.parse("SELECT * WHERE (A AS a ; B AS b) FILTER b.v > a.v")
QUERIES = cerflow.QuerySet({"q": QUERY})
MATCHES = QUERY.match(TABLE)
FORMULA = cerflow.parse_formula("A ; B")
SNAPSHOT = QUERY.recognizer(TABLE.schema).snapshot()

WRONG = (
    *(None, 0, -1, 2**70, float("nan"), 1.5, "nix", b"x", [], ["v"], {}, object(), True),
    *(("a", "v", "nix"), ("a", None, "sum"), (1, 2, 3), QUERY, TABLE),
)


def roles(call, *names):
    return {f"{call.__name__} {name}": (lambda given, name=name: call(**{name: given})) for name in names}


def schema(**given):
    return cerflow.Schema(TABLE.schema, **given)


def match(**given):
    return QUERY.match(TABLE, **given).count()


def match_set(**given):
    return QUERIES.match(TABLE, **given)["q"].count()


def recognizer(**given):
    return QUERY.recognizer(TABLE.schema, **given)


def recognizer_of_set(**given):
    return QUERIES.recognizer(TABLE.schema, **given)


def streams(**given):
    return cerflow.streams({"a": cerflow.Input(TABLE)}, **given)


def stream_input(**given):
    return cerflow.streams({"a": cerflow.Input(TABLE, **given)})


def hashed(given):
    return given if isinstance(given, (type(None), int, float, str, bytes, tuple)) else 3


CALLS = {
    "parse": cerflow.parse,
    "parse language": lambda x: cerflow.parse("SELECT * WHERE A", language=x),
    "parse reading": lambda x: cerflow.parse("SELECT * WHERE A", reading=x),
    "parse_formula": cerflow.parse_formula,
    "parse_sremo": cerflow.parse_sremo,
    "Query": cerflow.Query,
    "QuerySet": cerflow.QuerySet,
    "QuerySet of": lambda x: cerflow.QuerySet({"a": x}),
    "Schema": cerflow.Schema,
    **roles(schema, "type", "time", "stream", "time_unit"),
    **roles(match, "type", "time", "stream", "sequence", "on_bad_record", "runner", "threads", "time_unit"),
    **roles(match_set, "type", "time", "stream", "sequence", "on_bad_record", "time_unit"),
    "recognizer": QUERY.recognizer,
    "recognizer of set": QUERIES.recognizer,
    **roles(recognizer, "type", "time", "stream", "position", "on_bad_record", "time_unit"),
    **roles(recognizer_of_set, "type", "time", "position", "on_bad_record"),
    "restore query": lambda x: cerflow.Recognizer.restore(x, SNAPSHOT),
    "result_schema": QUERY.result_schema,
    "check": QUERY.check,
    "warnings": QUERY.warnings,
    "explain": QUERY.explain,
    "explain schema": lambda x: QUERY.explain(schema=x),
    "to_batches": lambda x: list(MATCHES.to_batches(x)),
    "to_batches events": lambda x: list(MATCHES.to_batches(events=x)),
    "to_arrow columns": lambda x: MATCHES.to_arrow(columns=x),
    "to_arrow flat columns": lambda x: MATCHES.to_arrow(flat=True, columns=x),
    "number": lambda x: MATCHES[x],
    "slice": lambda x: MATCHES[x:],
    "first": lambda x: MATCHES.first(x, by="start").count(),
    "first by": lambda x: MATCHES.first(1, by=x).count(),
    "sample": lambda x: MATCHES.sample(x).count(),
    "sample seed": lambda x: MATCHES.sample(1, seed=x).count(),
    "aggregate": MATCHES.aggregate,
    "aggregate of": lambda x: MATCHES.aggregate({"n": x}),
    "aggregate name": lambda x: MATCHES.aggregate({hashed(x): "count"}),
    "streams": cerflow.streams,
    "streams of": lambda x: cerflow.streams({"a": x}),
    "streams name": lambda x: cerflow.streams({hashed(x): cerflow.Input(TABLE)}),
    **roles(streams, "type", "time", "sequence", "stream"),
    **roles(stream_input, "type", "time", "sequence", "constant_type", "rename"),
    "equivalent": lambda x: cerflow.equivalent(x, FORMULA),
    "contained": lambda x: cerflow.contained(FORMULA, x),
    "satisfiable": cerflow.satisfiable,
}


def error_of(call, given):
    """What a call raises; None if it takes what it is given."""
    try:
        call(given)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_wrong_arguments(name):
    for given in WRONG:
        error = error_of(CALLS[name], given)
        if error is None:
            continue
        raised = f"{given!r}: {error!r}"
        # The protocol of sequences asks for an IndexError.
        assert isinstance(error, CerflowError) or (name == "number" and isinstance(error, IndexError)), raised
        assert " " in str(error), raised


@pytest.mark.parametrize("name", sorted(set(builder.__all__) - {x for x in builder.__all__ if x[0].isupper()}))
def test_wrong_arguments_of_the_builder(name):
    function = getattr(builder, name)
    if callable(function):
        refused_or_taken(name, function)


X = builder.label("x")
BUILT = {"formula": builder.event("A"), "value": X.v, "condition": X.v > 1, "expression": builder.read(X.v > 1)}


@pytest.mark.parametrize("kind", BUILT)
def test_wrong_arguments_of_what_is_built(kind):
    for name in dir(BUILT[kind]):
        method = None if name.startswith("_") else getattr(BUILT[kind], name)
        if inspect.ismethod(method):
            refused_or_taken(f"{kind}.{name}", method)


def refused_or_taken(name, function):
    """One or two wrong arguments are taken or refused with an error of ours, if the function takes as many."""
    some = (*WRONG, datetime.timedelta(0), datetime.timedelta(days=10**8), "a\0b", builder.event("A"), X, X.v)
    for given in (*((x,) for x in some), *itertools.product(some, repeat=2)):
        try:
            inspect.signature(function).bind(*given)
        except TypeError:
            continue
        error = error_of(lambda given: function(*given), given)
        assert error is None or isinstance(error, CerflowError), f"{name}{given!r}: {error!r}"


def test_a_strategy_that_does_not_exist():
    with pytest.raises(cerflow.ArgumentError, match=r"strategy must be one of ALL, .*, not 'BEST'"):
        cerflow.Query.from_automaton(cerflow.automata.compile_cel("A"), strategy="BEST")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: match(type=None), "is named as the type of an event, but the events have no types"),
        (lambda: match(threads=0), "threads must be at least 1, not 0"),
        (lambda: match(threads=1.5), "threads must be a whole number, not 1.5 of type float"),
        (
            lambda: cerflow.Query("SELECT * WHERE A"),
            "a Query is made of a tree; cerflow.parse reads a text, not 'SELECT",
        ),
        (lambda: cerflow.QuerySet(["SELECT * WHERE A"]), "a set of queries is made of a dict of queries or texts"),
        (lambda: cerflow.QuerySet({1: "SELECT * WHERE A"}), "the name of a query must be text, not 1 of type int"),
        (lambda: cerflow.QuerySet({"a": 3}), "the query 'a' must be a Query or a text, not 3 of type int"),
        (lambda: QUERY.recognizer(TABLE), "the schema of events must be one of Arrow, such as table.schema, not"),
        (lambda: QUERY.check(TABLE.schema), "the schema must be a cerflow.Schema, such as cerflow.Schema"),
        (lambda: MATCHES.to_arrow(columns="start"), "columns must be a list of names, not 'start' of type str"),
        (lambda: MATCHES.first(None, by="start"), "the number of matches must be a whole number, not None"),
        (lambda: cerflow.streams({"a": TABLE}), "the input 'a' must be a cerflow.Input, not "),
    ],
)
def test_what_is_said(call, said):
    with pytest.raises(CerflowError) as caught:
        call()
    assert said in str(caught.value)


def test_values_of_many_lines_are_shown_in_one():
    table = pa.table({"type": ["A"] * 100})
    query = cerflow.parse("SELECT * WHERE A ; B")
    for ask in (lambda: query.recognizer(table), lambda: query.explain(table.schema), lambda: query.explain(table)):
        with pytest.raises(ArgumentError) as raised:
            ask()
        message = str(raised.value)
        assert "\n" not in message
        assert len(message) < 200
