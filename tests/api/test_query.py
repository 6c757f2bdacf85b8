"""Queries and sets of them as objects: sent to other processes, and shown in notebooks."""

import copy
import importlib.metadata
import pickle
import re
import runpy
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pytest

import cerflow
import cerflow.theory.deciding.remarks as remarks_module
from cerflow import QueryWarning
from cerflow.automata.compile.formulas import compile_formula
from cerflow.language.formula import Selection
from cerflow.language.node import walk

EVENTS = [{"type": "A", "v": 1}, {"type": "B", "v": 2}, {"type": "B", "v": 0}, {"type": "B", "v": 3}]
TEXT = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v"


QUERIES = {
    "text": lambda: cerflow.parse(TEXT),
    "tree": lambda: cerflow.Query(cerflow.parse(TEXT).tree),
    "SREMO": lambda: cerflow.parse("[type = 'A'] AS x . [v > 1] AS y", language="sremo"),
    "first-order": lambda: cerflow.parse(TEXT, reading="first-order"),
    # Deeper than Python's recursion limit.
    "long": lambda: cerflow.parse("SELECT * WHERE A OR " + " OR ".join(f"T{k}" for k in range(1_200))),
}


def test_a_query_is_parsed_checked_and_made_ready_once():
    calls = Counter()

    def note(frame, event, _):
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        query = cerflow.parse(TEXT)
        matches = [query.match(EVENTS).to_pylist() for _ in range(2)]
        query.result_schema(pa.Table.from_pylist(EVENTS).schema)
    finally:
        sys.setprofile(None)
    assert len(matches[0]) == 2
    once = ("parse_query", "check_query", "check_types", "compile_formula", "Plan.__init__")
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)


@pytest.mark.parametrize(
    "make", [pytest.param(make, id=name, marks=[pytest.mark.slow] * (name == "long")) for name, make in QUERIES.items()]
)
def test_queries_are_pickled(make):
    query = make()
    expected = query.match(EVENTS).to_pylist()
    assert expected
    # What a query has made ready stays here, before and after it was used.
    for given in (query, make()):
        again = pickle.loads(pickle.dumps(given))
        assert (repr(again), again.text, again.reading) == (repr(query), query.text, query.reading)
        assert again.match(EVENTS).to_pylist() == expected
    assert copy.deepcopy(query).match(EVENTS).to_pylist() == expected


def test_sets_of_queries_are_pickled():
    queries = {name: make() for name, make in QUERIES.items() if name != "long"}
    found = pickle.loads(pickle.dumps(cerflow.QuerySet(queries))).match(EVENTS)
    assert {name: len(matches) for name, matches in found.items()} == {
        name: query.match(EVENTS).count() for name, query in queries.items()
    }


@pytest.mark.slow
def test_other_processes_match():
    query = cerflow.parse(TEXT)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_count, query, EVENTS).result() == query.match(EVENTS).count() == 2


def _count(query, events):
    return query.match(events).count()


def test_the_version(monkeypatch, capsys):
    assert cerflow.__version__ == importlib.metadata.version("cerflow")
    with pytest.raises(AttributeError, match="module 'cerflow' has no attribute 'vresion'"):
        _ = cerflow.vresion
    monkeypatch.setattr(sys, "argv", ["cerflow", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("cerflow", run_name="__main__")
    assert capsys.readouterr().out == f"cerflow {cerflow.__version__}\n"


# --- in notebooks ----------------------------------------------------------------------------------------------------


def test_a_query_is_shown_as_it_was_written():
    shown = cerflow.parse("\n    SELECT *\n    WHERE (A AS x) FILTER x.v < 3\n")._repr_html_()
    assert shown.startswith("<pre>SELECT *\nWHERE (A AS x) FILTER x.v &lt; 3</pre>\n")
    assert "</svg>" in shown
    built = cerflow.Query(cerflow.parse(TEXT).tree)._repr_html_()
    text = TEXT.replace("<", "&lt;").replace("(A AS x ; B AS y)", "A AS x ; B AS y")
    assert built.startswith(f"<pre>{text}</pre>\n")


@pytest.mark.parametrize("runner", ["engine", "semantics"])
def test_matches_are_a_table(runner):
    events = [
        {"type": "A", "s": "<b>&", "k": 7},
        {"type": "B", "s": None, "k": 7},
        {"type": "C", "s": "x" * 90, "k": 7},
    ]
    query = cerflow.parse("SELECT * WHERE A AS x ; B ; EVENT PARTITION BY k")
    shown = query.match(events, runner=runner)._repr_html_()
    assert "<tr><th>k</th><th>timeline</th><th>x</th><th>B</th><th>EVENT</th><th>detected_at</th>" in shown
    assert "</svg></td><td>s &lt;b&gt;&amp;, k 7</td><td>k 7</td>" in shown
    assert "<b>" not in shown
    assert "xxxxx…" in shown
    assert shown.endswith("</table></div><p>1 match</p>")


def test_a_match_is_a_line_with_its_events_and_detection_on_one_axis():
    events = [{"type": t, "t": 10 * k} for k, t in enumerate("AABDC")]
    query = cerflow.parse("SELECT * WHERE (A AS a ; B AS b) NOT FOLLOWED BY C FOR 15 SECONDS")
    shown = query.match(events, time="t", time_unit="s")._repr_html_()
    lines = re.findall(r'<title>(.*?)</title><path d="M(.*?) 7H(.*?)M(.*?) 2v10"/>((?:<circle.*?/>)+)</svg>', shown)
    at = ["4.0", "42.0", "80.0", "156.0"]
    assert [line[:4] for line in lines] == [("10 – 20", at[1], at[3], at[3]), ("0 – 20", at[0], at[3], at[3])]
    assert [re.findall('cx="(.*?)"', line[4]) for line in lines] == [[at[1], at[2]], [at[0], at[2]]]
    assert "<br>" not in shown


def test_only_the_first_of_very_many_are_shown():
    events = [{"type": "A"}] * 60 + [{"type": "B"}]
    matches = cerflow.parse("SELECT * WHERE A+ AS x ; B").match(events)
    shown = matches._repr_html_()
    assert shown.count("<tr>") == 1 + 20
    assert f"{2**60 - 1:,} matches, the first 20 shown" in shown
    assert shown.count("type A · ") <= 20 * 3


@pytest.mark.parametrize(
    ("select", "said"),
    [("COUNT(*) AS n", "2 rows"), ("NONE", "2 matches"), ("x.v AS v", "3 matches"), ("ANY *", "2 matches")],
)
def test_all_kinds_of_results_are_shown(select, said):
    events = [*EVENTS[:2], EVENTS[0], EVENTS[1]]
    assert f"<p>{said}" in cerflow.parse(f"SELECT {select} WHERE A AS x ; B").match(events)._repr_html_()
    assert "<p>0 " in cerflow.parse(f"SELECT {select} WHERE A AS x ; B").match([])._repr_html_()


def test_why_nothing_matches_is_asked_without_choices(monkeypatch):
    """Choices only take matches away, and may make the automaton large."""

    def without_choices(formula, **named):
        assert not any(isinstance(node, Selection) for node in walk(formula))
        return compile_formula(formula, **named)

    monkeypatch.setattr(remarks_module, "compile_formula", without_choices)
    query = cerflow.parse("SELECT * WHERE NEXT((A AS x ; B AS y) FILTER x.v > 3 AND x.v < 2)")
    matches = query.match([{"type": "A", "v": 1}, {"type": "B", "v": 2}])
    with pytest.warns(QueryWarning, match="this query can never match"):
        assert matches.to_pylist() == []


LOGINS = [{"type": name} for name in ("login", "payment", "other", "logout")]
NONE_AFTER = "None after it is A NOT FOLLOWED BY B FOR 5 MINUTES, none between two events (A ; C) WITHOUT B."


def none_between(ends, event="payment", inside="payment"):
    return f"None between is ({ends}) WITHOUT {event}; a label says that one event is meant: NOT({inside}) AS other."


def told(query):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        query.match(LOGINS).count()
    assert all(isinstance(warning.message, QueryWarning) for warning in found)
    return [(warning.message.column, warning.message.hint) for warning in found]


@pytest.mark.parametrize(
    ("formula", "columns", "hint"),
    [
        ("login ; NOT payment ; logout", [24], none_between("login ; logout")),
        ("NOT(login) ; login ; (NOT payment ; (logout ; login))", [38], none_between("login ; logout")),
        ("(login ; NOT payment ; NOT payment ; logout) OR other", [25, 39], none_between("login ; logout")),
        (
            "login AS l ; NOT(payment FILTER payment.type > l.type) ; logout",
            [29],
            none_between(
                "login AS l ; logout", "(payment FILTER payment.type > l.type)", "payment FILTER payment.type > l.type"
            ),
        ),
        ("login AS l WITHOUT payment", [35], NONE_AFTER),
        ("login AS l WITHOUT (payment+ AS p FILTER p.type = l.type)", [36], NONE_AFTER),
    ],
)
def test_what_people_mean_by_not_and_without(formula, columns, hint):
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    expected = [(column, hint) for column in columns]
    assert [found for found in told(query) if found[1]] == expected
    assert [(warning.column, warning.hint) for warning in query.warnings() if warning.hint] == expected
    with pytest.warns(QueryWarning, match=re.escape(hint)):
        cerflow.QuerySet({"q": query}).match(LOGINS)


@pytest.mark.parametrize(
    "formula",
    [
        *("NOT payment ; logout", "login ; NOT payment", "login : NOT payment : logout"),
        *("NOT other ; NOT payment ; logout", "(login ; NOT payment ; logout){1,2} ; login"),
        *("login ; NOT payment+ ; logout", "login ; NOT payment? ; logout"),
        *("login ; NOT payment AS other ; logout", "login ; (NOT payment FILTER payment.type = 'x') ; logout"),
        *("(login ; logout) WITHOUT payment", "EVENT WITHOUT payment", "login WITHOUT login", "login WITHOUT EVENT"),
        *("login UNLESS payment", "login+ WITHOUT payment", "(login OR logout) WITHOUT login"),
    ],
)
def test_uses_of_not_and_without_that_are_not_doubted(formula):
    found = cerflow.parse(f"SELECT * WHERE {formula}")
    assert [hint for _, hint in told(found) if hint and hint.startswith("None")] == []


def test_a_kind_may_be_the_event_that_is_excluded():
    query = cerflow.parse("DEFINE kind AS type = 'login' SELECT * WHERE login WITHOUT kind")
    assert [hint for _, hint in told(query) if hint] == []


@pytest.mark.parametrize(
    ("formula", "name", "hint"),
    [
        ("l:login ; logout", "l", "A label comes after its type: login AS l; A : B is a B directly after an A."),
        ("login ; log : logout", "log", "Did you mean 'login'?"),
        ("login ; x : paymnt", "x", "The types are"),
        ("login : x", "x", "The types are"),
    ],
)
def test_a_label_in_front_of_a_type(formula, name, hint):
    found = {
        w.reason.split("'")[1]: w.hint
        for w in cerflow.parse(f"SELECT * WHERE {formula}").doubtful_types({e["type"] for e in LOGINS})
    }
    assert found[name].startswith(hint)


def test_unknown_arguments_are_named():
    schema = pa.schema({"type": pa.string(), "t": pa.int64()})
    query = cerflow.parse("SELECT * WHERE A")
    with pytest.raises(TypeError, match=r"no argument 'tme'; did you mean 'time'\?"):
        query.recognizer(schema, tme="t")
    with pytest.raises(TypeError, match="no argument 'clock'; the others are type, time,"):
        cerflow.QuerySet({"one": query}).recognizer(schema, clock="t")
