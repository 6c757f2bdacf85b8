"""The studio without its page: a text and a sample, and what follows from them."""

import gzip
import itertools
import re
import subprocess
import sys
from contextlib import contextmanager
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("nicegui", reason="NiceGUI is not installed (cerflow[studio])")

import cerflow
from cerflow import automata
from cerflow.base import limits
from cerflow.base.errors import InputError, UnsupportedQueryError
from cerflow.cli.output.writing import OutputFormat, write_table
from cerflow.engine.stopping import checked
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.look.pictures.formula_svg import formula_svg
from cerflow.studio import runs
from cerflow.studio.colouring import coloured, labels_in
from cerflow.studio.panels.drawing import automaton_svg
from cerflow.studio.panels.export import exported
from cerflow.studio.runs import (
    SampleDifference,
    StoppedError,
    difference_in,
    other_clauses,
    preview,
    run_query,
    shown_number,
)
from cerflow.studio.sampling import QUERIES, SAMPLE, load_events
from cerflow.studio.server import Tabs
from cerflow.studio.session import StudioSession

EVENTS = "type,t,v\nA,1,3\nB,2,4\nA,3,5\nC,4,1\nB,5,9\n"


@contextmanager
def stopped(after=0):
    """What looks in this block whether it is to stop does so, after some looks."""
    looks = itertools.count()

    def check():
        if next(looks) >= after:
            raise StoppedError("it was stopped")

    with checked(check):
        yield


@pytest.fixture
def session(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS)
    session = StudioSession("SELECT * WHERE (A AS x ; B AS y) FILTER y.v > x.v")
    session.load(tmp_path / "events.csv")
    return session


def test_errors_have_their_place_and_hint():
    (problem,) = StudioSession("SELECT * WHERE A -> B").problems()
    assert (problem.span.start, problem.span.end, problem.line, problem.column) == (17, 19, 1, 18)
    assert "A ; B" in problem.hint


def test_errors_of_columns_are_found_with_a_sample(session):
    session.text = "SELECT * WHERE A FILTER A.w > 1"
    (problem,) = session.problems()
    assert session.text[problem.span.start : problem.span.end] == "A.w"
    session.events = None
    assert session.problems() == []


def test_types_that_do_not_occur_are_doubted(session):
    session.text = "SELECT * WHERE A ; D"
    (doubt,) = session.doubts()
    assert session.text[doubt.span.start : doubt.span.end] == "D"
    assert isinstance(doubt, cerflow.QueryWarning)


def test_words_have_colours():
    text = "SELECT * -- all\nWHERE A AS x FILTER x.price > 1.5 AND x.n = 'it''s' AND max(x.v) > 2"
    kinds = {text[word.start : word.end]: word.kind for word in coloured(text, ["A"])}
    assert kinds == {
        "SELECT": "keyword", "-- all": "comment", "WHERE": "keyword", "A": "type", "AS": "keyword", "x": "label",
        "FILTER": "keyword", "price": "attribute", "1.5": "number", "AND": "keyword", "n": "attribute",
        "'it''s'": "string", "max": "function", "v": "attribute", "2": "number",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["'open", '"open', "/* open", "SELECT 'a", "é ∧ ☃"])
def test_any_text_has_colours(text):
    assert all(0 <= word.start < word.end <= len(text) for word in coloured(text))


def test_words_can_be_completed(session):
    found = session.completions()
    assert {"SELECT", "A", "x"} <= {word["label"] for word in found[""]}
    assert [word["label"] for word in found["."]] == ["type", "t", "v"]


def test_fields_of_structs_can_be_completed(tmp_path):
    path = tmp_path / "events.json"
    path.write_text('{"type": "A", "device": {"os": "ios", "at": {"lat": 1.5, "my lon": 2}}, "a.b": 1}\n')
    session = StudioSession()
    session.load(path)
    session.text = 'SELECT * WHERE A AS x ; A AS device ; A AS "my x"'
    found = {place: [word["label"] for word in words] for place, words in session.completions().items()}
    fields = ["os", "at", "at.lat", 'at."my lon"']
    assert found["."] == found["x."] == found["device."]
    assert found["."] == ["type", "device", '"a.b"', *(f"device.{name}" for name in fields)]
    assert found["x.device."] == found['"my x".device.'] == found["device.device."] == fields
    assert found["x.device.at."] == found["device.at."] == ["lat", '"my lon"']
    loaded = session.load(path, type="device.os", time="device.at.lat")
    assert (loaded.types, loaded.columns[-2:]) == (["ios"], ("device.at.lat", "device.at.my lon"))
    session.text = "SELECT * WHERE ios AS x FILTER x.device.at.lat = 1.5"
    assert session.problems() == session.doubts() == []
    assert session.trace(0, 1)[0].event.time == 1.5
    assert session.read_events(0, 1)[1].column_names == ["type", "device", "a.b"]
    session.text = "SELECT * WHERE A AS x PARTITION BY "
    found = {word["label"]: word["detail"] for word in session.completions()["device."]}
    assert found["at.lat"] == "double"
    for name in found:
        session.text = f"SELECT x.device.{name} AS v WHERE A AS x FILTER x.device.{name} = x.device.{name}"
        assert name == "at" or session.problems() == []


def test_files_without_types_open(tmp_path):
    path = tmp_path / "logins.csv"
    path.write_text("ts,user,result\n2024-03-01,eve,failed\n2024-03-02,bob,ok\n2024-03-03,eve,ok\n")
    session = StudioSession()
    assert session.load(path).type is None
    assert "EVENT AS x" in session.text
    assert session.problems() == session.doubts() == []
    session.text = (
        "DEFINE failed AS result IN ('failed', 'a;b'), \"all ok\" AS result = 'ok'\n"
        'SELECT * WHERE failed AS f ; "all ok" AS o PARTITION BY user'
    )
    assert session.problems() == session.doubts() == []
    details = {word["label"]: word.get("detail") for word in session.completions()[""]}
    assert {name: details[name] for name in ("failed", "all ok", "f", "user")} == {
        "failed": "event kind", "all ok": "event kind", "f": "label", "user": "string",
    }  # fmt: skip
    assert "result" not in labels_in(session.text)
    outcome = run_query(session.query(), session.loaded(), most=2, seconds=60)
    assert [[event["user"] for event in row["events"]] for row in outcome.table.to_pylist()] == [["eve", "eve"]]
    assert session.trace(0, 3)[2].event.attribute("result") == "ok"
    assert "are a match" in str(session.why_not([0, 2]))
    session.outcome, session.ran = outcome, (session.text, session.events)
    session.draw_matches()
    assert "\\u0000" not in session.matches_page
    session.text = "SELECT * WHERE failed"
    assert "the events have no types" in session.problems()[0].reason
    assert session.load(path, type="result").types == ["ok", "failed"]


def test_a_run_lists_matches(session):
    outcome = run_query(session.query(), session.loaded(), most=2, seconds=60)
    assert (outcome.count, len(outcome.table.to_pylist()), outcome.events, outcome.stopped) == (3, 2, 5, None)


def test_a_run_can_be_stopped(session, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_PUSHED_ROWS", 2)
    with stopped():
        found = run_query(session.query(), session.loaded(), most=10, seconds=60)
    assert (found.events, found.stopped) == (0, "it was stopped")
    ended = run_query(session.query(), session.loaded(), most=10, seconds=0)
    assert ended.events == 0
    assert "limit" in ended.stopped


def exploding(tmp_path):
    """A session in which nearly each triple of events is a partial match of its own."""
    path = tmp_path / "many.csv"
    path.write_text("type,v\n" + "".join(f"A,{n}\n" for n in range(2000)))
    four = "SELECT * WHERE (A AS a ; A AS b ; A AS c ; A AS d) FILTER "
    session = StudioSession(four + " AND ".join(f"{x}.v <> {y}.v - 0.5" for x, y in itertools.combinations("abcd", 2)))
    session.load(path, type="type")
    return session


def test_a_push_can_be_stopped(tmp_path, monkeypatch):
    session = exploding(tmp_path)
    monkeypatch.setattr(runs, "_FIRST_ROWS", 2000)
    with stopped(after=4):
        found = run_query(session.query(), session.loaded(), most=10, seconds=600)
    assert (found.events, found.stopped) == (0, "it was stopped")
    with stopped(), pytest.raises(StoppedError):
        session.why_not([("a", 1), ("b", 2), ("c", 3), ("d", 4)])


def test_a_run_has_a_limit_of_memory(tmp_path, monkeypatch):
    session = exploding(tmp_path)
    monkeypatch.setattr(limits, "STUDIO_MEMORY", 20_000_000)
    outcome = run_query(session.query(), session.loaded(), most=10, seconds=600)
    assert "more than the 20,000,000 bytes" in outcome.stopped


@pytest.mark.parametrize(("tick", "first", "sizes"), [(1.0, 4, [4, 1]), (0.0, 1, [1, 2, 2])])
def test_pushes_are_as_large_as_they_are_prompt(session, monkeypatch, tick, first, sizes):
    found, push = [], cerflow.Recognizer.push

    def pushed(recognizer, events):
        found.append(events.num_rows)
        return push(recognizer, events)

    seconds = itertools.count(0, tick)
    monkeypatch.setattr(cerflow.Recognizer, "push", pushed)
    monkeypatch.setattr(runs, "_FIRST_ROWS", first)
    monkeypatch.setattr(runs.time, "perf_counter", lambda: next(seconds))
    assert run_query(session.query(), session.loaded(), most=10, seconds=60).count == 3
    assert found == sizes


PROGRAM = (
    "DEFINE p AS SELECT x.v AS low WHERE A AS x ; B;\nSELECT * FROM p WHERE (p AS a ; p AS b) FILTER b.low > a.low"
)


def test_programs_are_taken_apart_statement_by_statement(session):
    session.text = PROGRAM
    assert session.problems() == []
    assert session.definitions() == ["p"]
    matches = run_query(session.query(), session.loaded(), most=10, seconds=60)
    trace = session.trace(0, 100)
    assert [step.event.type for step in trace] == ["p", "p", "p"]
    assert {(step.event.position, pairs) for step in trace for pairs in step.matches} == {
        (row["detected_at"], frozenset((label, e["position"]) for e in row["events"] for label in e["labels"]))
        for row in matches.table.to_pylist()
    }
    assert "b.low > a.low" in str(session.why_not([0, 1]))
    assert session.read_events(0, 100)[1].column("low").to_pylist() == [3, 3, 5]
    session.statement = "p"
    assert len(session.trace(0, 100)) == 5
    assert session.why_not([("x", 0), ("B", 1)]).detected_at == 1
    # The choice does not outlive the definition.
    session.text = "DEFINE q AS SELECT * WHERE A ; B;\nSELECT * FROM q WHERE q"
    assert [step.event.type for step in session.trace(0, 100)] == ["q", "q", "q"]


@pytest.mark.parametrize("name", ["transducer", "determinised", "logic"])
def test_automata_are_queries_like_others(session, name):
    free = automata.eliminate_epsilon(
        automata.compile_sremo("any([type = 'A'] AS a INTO r, [type = 'B' AND v > r.v] AS b)")
    )
    query = {
        "transducer": lambda: cerflow.Query.from_automaton(free, within="5 EVENTS"),
        # Its states are sets of sets.
        "determinised": lambda: cerflow.Query.from_automaton(automata.determinize_windowed(free, 3), detect=True),
        "logic": lambda: cerflow.Query.from_automaton(automata.compile_cel("A+ ; B")),
    }[name]()
    session.text = str(query)
    assert (session.problems(), session.doubts()) == ([], [])
    expected = query.match(session.events.table, **session.events.roles).to_pylist()
    outcome = run_query(session.query(), session.loaded(), most=10, seconds=60)
    assert [row["detected_at"] for row in outcome.table.to_pylist()] == [row["detected_at"] for row in expected]
    assert outcome.count == len(expected) == {"transducer": 3, "determinised": 2, "logic": 4}[name]
    trace = session.trace(0, 100)
    assert {step.event.position for step in trace if step.matches} == {row["detected_at"] for row in expected}
    assert "type" in str(session.why_not([("a", 2), ("b", 3)] if name == "transducer" else [3]))
    assert ElementTree.fromstring(automaton_svg(session.transducer())).tag.endswith("svg")
    assert {word.kind for word in coloured(session.text)} >= {"keyword", "string"}


def test_definitions_read_as_far_as_is_looked_at(session, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_PUSHED_ROWS", 2)
    session.text = PROGRAM
    whole = session.query().trace(session.events.table, **session.events.roles)
    assert session.trace(0, 1)[0].event == whole[0].event
    _, part = session._studied
    assert (part.reached, part.total, session.progress()) == (2, 5, "Working …")
    assert [step.event for step in session.trace(0, 100)] == [step.event for step in whole]
    assert part.reached == 5
    with part._lock:
        assert session.progress().startswith("The definitions have read 5 of 5 events")
    with pytest.raises(UnsupportedQueryError, match="the query reads 3 events, and has none at this position"):
        session.trace(3, 10)


def test_reading_far_is_stopped_and_goes_on(session, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_PUSHED_ROWS", 2)
    session.text = PROGRAM
    said = "Stopped: the definitions have read 2 of 5 events; with theirs, that makes 1 "
    with stopped(after=1), pytest.raises(StoppedError, match=said):
        session.trace(0, 100)
    _, part = session._studied
    assert part.reached == 2
    # Enough has been read for a shorter stretch.
    with stopped():
        assert len(session.read_events(0, 1)[0]) == 1
    assert len(session.trace(0, 100)) == 3
    assert session._studied[1] is part
    session.statement = "p"
    with stopped(), pytest.raises(StoppedError):
        session.why_not([0])


def test_named_files_are_streams(session, tmp_path):
    (tmp_path / "other.csv").write_text("kind,t,v\nB,6,7\nA,0,1\n")
    session.load(tmp_path / "events.csv", name="one")
    session.load(tmp_path / "other.csv", name="two", type="kind")
    assert session.events.title == "one=events.csv, two=other.csv"
    assert session.events.table.column("stream").to_pylist() == ["two", *["one"] * 5, "two"]
    session.text = "SELECT * FROM two WHERE A ; B"
    trace = session.trace(0, 100)
    assert [step.unread is None for step in trace] == [True, *[False] * 5, True]
    assert [step.detected for step in trace][-1] == 1
    session.text = "SELECT * FROM one, two WHERE one>A ; two>B"
    assert run_query(session.query(), session.loaded(), most=10, seconds=60).count == 2
    assert session.why_not([0, 6])
    assert not session.why_not([1, 6])
    # A file without name takes the place of all.
    session.load(tmp_path / "events.csv")
    assert session.events.inputs == {}


def test_steps_and_answers_count_positions_of_the_sample(session):
    assert session.trace(2, 3)[0].event.position == 2
    assert session.why_not([2, 4]).detected_at == 4
    (way,) = session.why_not([("x", 2), ("y", 3)]).reasons
    assert {part.text for part in way} == {"B", "y.v > x.v"}


def test_a_sample_tells_queries_apart(session):
    first = session.other_query("SELECT * WHERE A AS x ; B AS y WITHIN 2 EVENTS")
    second = session.other_query("SELECT * WHERE (A AS x ; B AS y) FILTER y.v > 4 PARTITION BY t LIMIT 2")
    assert other_clauses(first.tree, second.tree) == [
        ("WITHIN 2 EVENTS", "no window"), ("no PARTITION BY", "PARTITION BY t"), ("no LIMIT", "LIMIT 2"),
    ]  # fmt: skip
    whole = session.other_query("SELECT * WHERE (A AS x ; B AS y) FILTER y.v > 4")
    assert difference_in(first, whole, session.loaded()) == SampleDifference(0, 1, 2, 5)
    assert difference_in(whole, whole, session.loaded()) == SampleDifference(2, 0, 0, 5)
    with stopped():
        assert difference_in(whole, whole, session.loaded()).stopped == "it was stopped"
    # Labels count, and so do the values of rows without events.
    renamed = session.other_query("SELECT * WHERE (A AS x ; B AS z) FILTER z.v > 4")
    assert difference_in(whole, renamed, session.loaded()) == SampleDifference(0, 2, 2, 5)
    values = session.other_query("SELECT x.v AS v WHERE A AS x")
    assert difference_in(values, values, session.loaded()) == SampleDifference(2, 0, 0, 5)


def test_matches_of_too_many_are_not_unfolded(session, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_COMPARED_MATCHES", 2)
    query = session.other_query("SELECT * WHERE A ; B")
    found = difference_in(query, query, session.loaded())
    assert (found.events, found.stopped) == (0, "a query has more than 2 matches")


@pytest.mark.parametrize("said", QUERIES)
def test_queries_of_the_sample_have_matches(said):
    session = StudioSession()
    session.load(SAMPLE)
    session.text = QUERIES[said]
    assert (session.problems(), session.doubts()) == ([], [])
    assert 1 <= run_query(session.query(), session.loaded(), most=5, seconds=60).count <= 100


def seen(session, text):
    """The texts at the parts of a query, by the parts as text."""
    session.text = text
    found = preview(session.query(), session.loaded())
    nodes = {id(node): show(node) for node in walk(found.query.tree) if id(node) in found.parts}
    return found, {nodes[part]: said.lines[0] for part, said in found.parts.items()}


def test_a_preview_tells_what_reaches_each_part(session):
    found, parts = seen(session, "SELECT * WHERE (A AS x FILTER x.v > 9) ; B AS y ; C WITHIN 9 EVENTS LIMIT 1")
    assert (found.outcome.count, found.outcome.events) == (0, 5)
    assert parts["A AS x FILTER x.v > 9"] == "0 of 2 events"
    assert parts["B AS y"] == "2 events"
    found, parts = seen(session, "SELECT x.v AS v WHERE (A AS x ; B AS y) FILTER y.v > x.v + 2")
    assert (found.outcome.count, parts["A AS x ; B AS y"]) == (2, "3 matches")
    picture = formula_svg(found.query.tree, marks=found.parts)
    assert {">3<", ">2 of 3 matches<", ">2 events<"} <= {f">{text}<" for text in re.findall(r">([^<>]+)<", picture)}


def test_a_preview_is_short(session, monkeypatch):
    query = session.query()
    with stopped():
        assert preview(query, session.loaded()) is None
    monkeypatch.setattr(limits, "STUDIO_PREVIEW_ROWS", 2)
    assert preview(query, session.loaded()).outcome.events == 2
    assert shown_number(10**5000).startswith("> 10^")
    assert shown_number(1234) == "1,234"


def test_parts_that_are_no_queries_alone_have_no_number(session):
    _, parts = seen(session, "SELECT * WHERE A AS x ; (B AS y FILTER y.v > x.v)")
    assert "B AS y FILTER y.v > x.v" not in parts
    assert parts["A AS x"] == "2 events"


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_matches_are_saved(session, form, tmp_path):
    with pytest.raises(UnsupportedQueryError, match="run the query first"):
        session.written(form)
    session.outcome = run_query(session.query(), session.loaded(), most=2, seconds=60)
    session.write = lambda target, form, table: write_table(target, OutputFormat(form), table)
    path = tmp_path / f"matches.{form}"
    path.write_bytes(session.written(form))
    if form == "parquet":
        assert pyarrow.parquet.read_table(path).num_rows == 2
    else:
        assert path.read_text().count("\n") == 2 + (form == "csv")


def test_links_begin_with_their_query(session):
    tabs = Tabs(session)
    found = tabs.of("a", {"query": "SELECT * WHERE C", "language": "sremo"})
    assert (found.text, found.language, found.events) == ("SELECT * WHERE C", "sremo", session.events)
    found.text = "SELECT * WHERE B"
    # A page that is loaded again keeps what has been written since.
    assert tabs.of("a", {"query": "SELECT * WHERE C"}).text == "SELECT * WHERE B"


def test_keys_are_written_into_the_query(session):
    session.text = "SELECT * WHERE (A AS x ; B AS y) FILTER y.v > x.v WITHIN 3 EVENTS"
    session.partition("v")
    assert session.text == ("SELECT *\nWHERE A AS x ; B AS y FILTER y.v > x.v\nPARTITION BY v\nWITHIN 3 EVENTS")
    assert session.key == "v"
    session.partition(None)
    assert session.key is None
    assert "PARTITION" not in session.text
    session.text = "DEFINE k AS v > 3, p AS SELECT * WHERE k;\nSELECT * FROM p WHERE p"
    with pytest.raises(cerflow.CerflowError):
        session.partition("v")


def test_texts_with_words_of_clauses_stay_as_they_are(session):
    session.text = "SELECT * WHERE A FILTER A.v = 'x WHERE y WITHIN z'"
    session.partition("v")
    assert "'x WHERE y WITHIN z'" in session.text


def test_columns_are_described(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"at": 5, "n": null, "l": [1]}\n{"at": 90000, "n": "b", "l": []}\n')
    events = load_events(tmp_path / "e.jsonl", time="at")
    assert (events.extent, events.schema.counts_time) == (", from 0.005 s to 0:01:30", True)
    assert events.described == [
        {"column": "at", "kind": "whole number", "nulls": "0", "different": "2", "least": "0.005 s",
         "greatest": "0:01:30"},
        {"column": "n", "kind": "text", "nulls": "1", "different": "1", "least": "b", "greatest": "b"},
        {"column": "l", "kind": "list", "nulls": "0"},
    ]  # fmt: skip


def test_folders_and_patterns_are_opened(tmp_path, monkeypatch):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(EVENTS)
    for path in (tmp_path, tmp_path / "*.csv"):
        assert len(load_events(path).table) == 10
    with pytest.raises(InputError, match="no file"):
        load_events(tmp_path / "*.json")
    monkeypatch.setattr(limits, "STUDIO_BYTES", 60)
    with pytest.raises(InputError, match="the 2 files have"):
        load_events(tmp_path)


def test_tabs_have_sessions_of_their_own(session, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_TABS", 2)
    tabs = Tabs(session)
    assert tabs.of("a") is session
    session.text = "SELECT * WHERE A"
    assert (tabs.of("b").text, tabs.of("b").events) == (
        "SELECT * WHERE (A AS x ; B AS y) FILTER y.v > x.v",
        session.events,
    )
    assert tabs.of("a") is session
    tabs.of("c")
    # What has rested longest is forgotten.
    assert tabs.of("a") is session
    assert tabs.of("b").outcome is None


def test_rows_of_matches_are_for_people(tmp_path):
    rows = "".join(f"{'AB'[k % 2]},2026-01-01T00:00:{k * 7 % 60:02d}.500Z,{k}\n" for k in range(6))
    (tmp_path / "events.csv").write_text("type,at,v\n" + rows)
    session = StudioSession("SELECT * WHERE A AS x ; B+ WITHIN 20 SECONDS")
    session.load(tmp_path / "events.csv")
    outcome = run_query(session.query(), session.loaded(), most=100, seconds=60)
    assert outcome.columns(bookkeeping=False) == (["time", "duration", "x", "B"], ["time", "duration"])
    assert {"detected_at", "end_time"} <= set(outcome.columns(bookkeeping=True)[0])
    (first,) = outcome.page(0, 1, None, False)
    assert {name: first[name] for name in ("#", "time", "duration", "x", "B")} == {
        "#": 1, "time": "2026-01-01 00:00:00.5", "duration": "7 s", "x": "0", "B": "1",
    }  # fmt: skip
    assert outcome.asked(outcome.match(0)) == ["x@0", "B@1"]
    for by in ("time", "duration", "start", "#"):
        up = [row[by] for row in outcome.page(0, 100, by, False)]
        down = [row[by] for row in outcome.page(0, 100, by, True)]
        assert len(up) == outcome.count
        assert up == down[::-1]
    assert outcome.page(2, 5, "duration", True) == outcome.page(0, 100, "duration", True)[2:5]


def test_queries_are_compared():
    session = StudioSession("SELECT * WHERE A ; B")
    same, first, second = session.compared("SELECT * WHERE A : B")
    assert (same.verdict, first.verdict, second.verdict) == (False, False, True)
    assert len(same.stream) == 3


def test_events_are_needed():
    with pytest.raises(UnsupportedQueryError, match="open a file"):
        StudioSession().loaded()


def test_columns_are_guessed(tmp_path):
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(b'{"ts": 2, "Event": "B"}\n{"ts": 1, "Event": "A"}\n'))
    events = StudioSession().load(tmp_path / "e.jsonl.gz")
    assert (events.type, events.time) == ("Event", "ts")
    assert events.table.column("Event").to_pylist() == ["A", "B"]
    assert StudioSession().load(tmp_path / "e.jsonl.gz", time="").time is None


def test_the_first_query_has_types_of_the_file(tmp_path):
    (tmp_path / "e.csv").write_text("type,t\nmy type,1\nSELL,2\nSELL,3\n")
    session = StudioSession()
    session.load(tmp_path / "e.csv")
    assert session.text == 'SELECT *\nWHERE SELL AS x ; "my type" AS y\nWITHIN 10 EVENTS'
    assert session.problems() == session.doubts() == []
    session.text = "SELECT * WHERE A"
    session.load(tmp_path / "e.csv")
    assert session.text == "SELECT * WHERE A"


def test_rows_that_cannot_be_used_are_told(tmp_path):
    (tmp_path / "e.csv").write_text("type,t\nA,1\n,2\n")
    (remark,) = StudioSession().load(tmp_path / "e.csv").remarks
    assert "1 rows cannot be used" in remark


def test_of_large_files_the_first_part_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_BYTES", 20)
    (tmp_path / "e.csv").write_text(EVENTS)
    events = StudioSession().load(tmp_path / "e.csv")
    assert events.table.num_rows == 1
    assert "large" in events.remarks[0]
    monkeypatch.setattr(limits, "STUDIO_ROWS", 2)
    pyarrow.parquet.write_table(pa.table({"type": ["A"] * 5}), tmp_path / "e.parquet")
    events = StudioSession().load(tmp_path / "e.parquet")
    assert events.table.num_rows == 2
    assert "5 rows" in events.remarks[0]


@pytest.mark.parametrize(("name", "text", "said"), [("e.csv", "", "it has no rows"), ("e.json", "nothing", "read")])
def test_files_that_are_no_events_are_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        StudioSession().load(tmp_path / name)
    with pytest.raises(InputError, match="no file"):
        StudioSession().load(tmp_path / "missing.csv")


def test_what_happened_is_drawn():
    transducer = StudioSession("SELECT * WHERE A ; B").transducer()
    picture = ElementTree.fromstring(automaton_svg(transducer, alive=[0, 1], fired=[1], detected=[2]))
    kinds = [element.get("class", "") for element in picture.iter()]
    assert sum("cs-alive" in kind for kind in kinds) == 2
    assert sum("cs-fired" in kind for kind in kinds) == 1
    assert sum("cs-detected" in kind for kind in kinds) == 1


def assert_exports_run(text, session, folder, matches):
    """The exported Python and command find this many matches; the program for PySpark can be compiled."""
    found = exported(text, "ceql", session.events)
    done = subprocess.run([sys.executable, "-c", found["Python"]], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == str(matches)
    (folder / "query.ceql").write_text(found["Query file"])
    command = f"{sys.executable} -m {found['Command']}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd=folder)
    assert len(done.stdout.splitlines()) == matches
    compile(found["PySpark"], "exported", "exec")


@pytest.mark.long
@pytest.mark.slow
def test_exported_queries_run(session, tmp_path):
    assert_exports_run(session.text + "\nWITHIN 10 EVENTS", session, tmp_path, 3)


@pytest.mark.long
@pytest.mark.slow
def test_exported_queries_read_named_files(session, tmp_path):
    session.load(tmp_path / "events.csv", name="one")
    session.load(tmp_path / "events.csv", name="two")
    assert_exports_run("SELECT * FROM one, two WHERE one>A ; two>C", session, tmp_path, 2)


def test_files_without_types_are_exported(tmp_path):
    (tmp_path / "logins.csv").write_text("at,user\n1,eve\n2,bob\n")
    events = load_events(tmp_path / "logins.csv")
    found = exported("SELECT * WHERE EVENT", "ceql", events)
    assert f"--input {tmp_path}/logins.csv --time-column at" in found["Command"]
    assert "query.match(events, type=None, time='at')" in found["Python"]


def test_exported_texts_with_quotes_are_texts():
    text = 'SELECT *\nWHERE A FILTER A.s = \'"""\''
    code = exported(text, "ceql", None)["Python"]
    assert repr(text) in code


def test_a_match_that_the_studio_lists_is_a_match_wherever_it_ends(tmp_path):
    rows = "".join(f"{'cart' if k % 50 == 0 else 'view'},{k},{k % 1000}\n" for k in range(9000))
    (tmp_path / "carts.csv").write_text("type,t,user\n" + rows)
    session = StudioSession("SELECT * WHERE (cart AS c NOT FOLLOWED BY view FOR 5 SECONDS) PARTITION BY [user]")
    session.load(tmp_path / "carts.csv")
    row = run_query(session.query(), session.loaded(), most=100, seconds=60).match(30)
    assert row["detected_at"] > row["start"] + 3000
    assert session.why_not([("c", row["start"])]).detected_at == row["detected_at"]
