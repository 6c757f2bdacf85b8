"""Pages of matches: what they contain, whatever the values and the form of the result."""

import csv
import io
import json
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.look.viewing.page import ViewedStream, page_of
from support.pages import Elements, Page

QUERY = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) PARTITION BY [k]")
NOON = datetime(2024, 3, 15, 12)


def events(**columns):
    count = len(next(iter(columns.values()), [0] * 6))
    plain = {"type": ["A", "B"] * (count // 2), "k": ["p", "p", "q", "q", "p", "p"][:count]}
    return pa.table({**plain, "t": list(range(count)), **columns})


def test_matches_and_events_come_back():
    stream = events(v=[1.5, None, float("inf"), 4.0, 5.0, 6.0])
    matches = QUERY.match(stream, time="t")
    page = Page(matches.to_html())
    expected = [
        [(e["position"], [label for label in e["labels"] if label in "xy"]) for e in m["events"]] for m in matches
    ]
    assert page.matches() == expected
    assert len(expected) == 4
    assert page.lanes() == {"type": ["A", "B"] * 3, "k": ["p", "p", "q", "q", "p", "p"]}
    assert page.column(page.head["axis"]) == [0, 1, 2, 3, 4, 5]
    assert page.column_of("matches", "k") == [m["k"] for m in matches]
    used = sorted({e["position"]: e["v"] for m in matches for e in m["events"]}.items())
    assert page.column_of("marks", "v") == [value for _, value in used]
    assert page.head["notices"] == []


def test_nothing_is_fetched_and_no_value_becomes_a_part_of_the_page():
    evil = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "&lt;b&gt;\u2028${DATA}"]
    stream = pa.table({"type": ["A", "B"] * 3, "k": [e for e in evil for _ in range(2)], "</th>": evil * 2})
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.k = y.k")
    harmless = Page(query.match(stream).to_html(title="plain"))
    text = query.match(stream).to_html(title='<img src="http://example.org/">')
    page = Page(text)
    assert [tag for tag, _ in page.elements.found] == [tag for tag, _ in harmless.elements.found]
    assert not {"src", "href", "srcset", "onerror"} & {name for _, found in page.elements.found for name in found}
    assert "url(" not in text
    assert sorted(set(page.lanes()["k"])) == sorted(evil)
    assert page.column_of("marks", "</th>") == evil * 2
    assert page.head["title"] == page.elements.texts["title"] == '<img src="http://example.org/">'
    policy = next(found["content"] for tag, found in page.elements.found if "http-equiv" in found)
    assert policy.startswith("default-src 'none'; ")


def test_null_keys_and_types_have_lanes():
    stream = pa.table({"type": ["A", "B", "A"], "k": pa.array([None, None, "p"], pa.string())})
    page = Page(cerflow.parse("SELECT * WHERE A ; B").match(stream).to_html())
    assert page.lanes()["type"] == ["A", "B", "A"]
    table = pa.table({"type": pa.array(["A", None], pa.string()), "k": pa.array([None, 2], pa.int64())})
    text = page_of(pa.table({"detected_at": [0]}), ViewedStream(table, keys=[["k"]]), title="")
    assert Page(text).lanes() == {"type": ["A", "(null)"], "k": ["(null)", "2"]}


@pytest.mark.parametrize("stream", [[], events().slice(0, 0), events()])
def test_results_without_matches(stream):
    page = Page(cerflow.parse("SELECT * WHERE A ; A ; A ; A").match(stream).to_html())
    assert page.matches() == []
    assert page.head["events"] == len(stream)


TIMES = {
    "timestamp[s]": pa.array([NOON] * 6, pa.timestamp("s")),
    "zoned": pa.array([NOON.replace(tzinfo=UTC)] * 6, pa.timestamp("us", "America/New_York")),
    "offset": pa.array([1, 2, 3, 4, 5, 6], pa.timestamp("ms", "+05:30")),
    "nanoseconds": pa.array([1710504000123456789 + k for k in range(6)], pa.timestamp("ns")),
    "before 1970": pa.array([datetime(1, 1, 1) + timedelta(k) for k in range(6)], pa.timestamp("us")),
    "far": pa.array([2**62 // 10**6 + k for k in range(6)], pa.timestamp("s")),
    "date32": pa.array([date(2024, 2, 28 + k // 3) for k in range(6)]),
    "date64": pa.array([date(2024, 2, 28 + k // 3) for k in range(6)], pa.date64()),
    "int32": pa.array(range(-3, 3), pa.int32()),
    "float": pa.array([k / 4 for k in range(6)]),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type_are_exact(name):
    column = TIMES[name]
    page = Page(QUERY.match(events(t=column), time="t").to_html())
    axis = page.head["axis"]
    plain = column
    if pa.types.is_date(column.type):
        plain = column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    if pa.types.is_timestamp(plain.type):
        assert (axis["kind"], axis["unit"], axis["zone"]) == ("time", plain.type.unit, plain.type.tz)
        plain = plain.cast(pa.int64())
    else:
        assert axis["kind"] == "number"
    assert [int(axis["base"]) + float(v) for v in page.array(axis["values"])] == [float(v) for v in plain.to_pylist()]
    distances = [value - plain.to_pylist()[0] for value in plain.to_pylist()]
    assert np.diff(page.array(axis["values"]), prepend=page.array(axis["values"])[:1]).cumsum().tolist() == distances


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), (None, 10**3)])
def test_numbers_since_1970_are_times(unit, scale):
    since = [(1_710_504_000 + k) * scale for k in range(6)]
    axis = Page(QUERY.match(events(t=since), time="t", time_unit=unit).to_html()).head["axis"]
    assert (axis["kind"], axis["unit"]) == ("time", unit or "ms")


VALUES = {
    "decimal": ([Decimal("1.10"), None], ["1.10", None]),
    "bool": ([True, None], ["true", None]),
    "large": ([2**60 + 1, None], [str(2**60 + 1), None]),
    "int": ([-7, None], [-7, None]),
    "duration": ([timedelta(minutes=5), timedelta(days=-1)], [300.0, -86400.0]),
    "list": ([[1, 2], None], ["[1, 2]", None]),
    "struct": ([{"a": "ü"}, None], ['{"a": "ü"}', None]),
    "binary": ([b"\x00\xff", None], ["00ff", None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_attributes_of_every_type(name):
    given_values, shown = VALUES[name]
    page = Page(
        cerflow.parse("SELECT * WHERE A ; B").match(pa.table({"type": ["A", "B"], "v": given_values})).to_html()
    )
    assert page.column_of("marks", "v") == shown


def test_short_floats_keep_their_notation():
    stream = pa.table({"type": ["A", "B"], "v": pa.array([0.1, 2.5], pa.float32())})
    assert Page(cerflow.parse("SELECT * WHERE A ; B").match(stream).to_html()).column_of("marks", "v") == [0.1, 2.5]


def _csv(table):
    """A table as cerflow run writes it to CSV."""
    text = io.StringIO()
    writer = csv.writer(text)
    for row in table.to_pylist():
        writer.writerow([json.dumps(v) if isinstance(v, list) else v for v in row.values()])
    rows = list(csv.reader(io.StringIO(text.getvalue())))
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(table.column_names)})


KINDS = st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, max_size=9)


@given(kinds=KINDS, several=st.booleans())
def test_all_forms_of_a_result_give_the_same_page(kinds, several):
    stream = pa.table({"type": kinds, "v": range(len(kinds))})
    text = "(A AS x)+ ; (B AS x_y)+" if several else "A AS x ; (B OR C) AS x_y"
    matches = cerflow.parse(f"SELECT * WHERE {text}").match(stream)
    nested = matches.to_arrow()
    pages = [
        Page(page_of(table, ViewedStream(stream), title="")).matches()
        for table in (nested, matches.to_arrow(flat=True), _csv(nested), _csv(matches.to_arrow(flat=True)))
        if len(table)
    ]
    assert all(found == pages[0] for found in pages)
    if pages:
        assert [[p for p, _ in match] for match in pages[0]] == [[e["position"] for e in m["events"]] for m in matches]


def test_results_without_events_show_where_they_begin_and_end():
    stream = events()
    extent = Page(cerflow.parse("SELECT x.t AS t WHERE A AS x ; B").match(stream).to_html())
    assert extent.matches()[0] == [(0, ["start"]), (1, ["end"])]
    counted = Page(cerflow.parse("SELECT COUNT(*) AS n WHERE A ; B").match(stream).to_html())
    assert counted.matches()[0] == [(1, ["detected_at"])]
    assert counted.column_of("matches", "n") == ["1", "2", "3"]
    nothing = Page(cerflow.parse("SELECT NONE WHERE A ; B").match(stream).to_html())
    assert nothing.matches() == [[(1, ["detected_at"])], [(3, ["detected_at"])], [(5, ["detected_at"])]]
    lone = Page(cerflow.parse("SELECT x.t AS t WHERE A AS x").match(stream).to_html())
    assert lone.matches()[0] == [(0, ["start", "end"])]


def test_more_matches_than_shown_are_announced():
    page = Page(QUERY.match(events()).to_html(limit=2))
    assert len(page.matches()) == 2
    (notice,) = page.head["notices"]
    assert notice.startswith("The first 2 of 4 matches are shown; a higher limit shows more")
    with pytest.raises(ValueError, match="limit"):
        QUERY.match(events()).to_html(limit=0)


def test_many_events_are_thinned_out_but_for_those_of_matches(monkeypatch):
    monkeypatch.setattr(limits, "VIEWED_EVENTS", 100)
    stream = pa.table({"type": ["A", *["C"] * 998, "B"], "t": range(1000)})
    page = Page(cerflow.parse("SELECT * WHERE A ; B").match(stream, time="t").to_html())
    assert page.matches() == [[(0, ["A"]), (999, ["B"])]]
    assert page.head["events"] <= 100
    assert page.head["notices"][0].startswith(f"{page.head['events']} of 1,000 events are drawn")
    assert page.column(page.head["axis"]) == page.array(page.head["positions"]).tolist()


def test_many_events_of_matches_leave_matches_out(monkeypatch):
    monkeypatch.setattr(limits, "VIEWED_MARKS", 5)
    page = Page(QUERY.match(events()).to_html())
    assert len(page.matches()) == 2
    assert "The first 2 of 4 matches are shown, as they have 4 events" in page.head["notices"][0]


def test_many_values_share_a_lane(monkeypatch):
    monkeypatch.setattr(limits, "VIEWED_LANES", 3)
    stream = pa.table({"type": ["A", "B"] * 4, "k": ["b", "b", "a", "a", "c", "d", "e", "e"]})
    page = Page(QUERY.match(stream).to_html())
    assert page.lanes()["k"] == ["b", "b", "a", "a", "(others)", "(others)", "(others)", "(others)"]
    assert "The column 'k' has 5 values" in page.head["notices"][0]


def test_lanes_are_in_natural_order():
    stream = pa.table({"type": ["A"] * 4, "k": ["10", "9", "x", "2"]})
    head = Page(page_of(pa.table({"detected_at": [0]}), ViewedStream(stream, keys=[["k"]]), title="")).head
    assert head["lanes"][1]["texts"] == ["2", "9", "10", "x"]


def test_matches_of_a_recogniser():
    stream = events()
    found = QUERY.recognizer(stream.schema, time="t").push(stream)
    assert "Only the events of matches are shown" in Page(found.to_html()).head["notices"][0]
    page = Page(found.to_html(events=stream))
    assert page.head["notices"] == []
    assert page.matches() == Page(QUERY.match(stream, time="t").to_html()).matches()


def test_unsorted_streams_with_bad_records_keep_the_positions():
    stream = pa.table({"type": ["B", None, "A", "C"], "t": [30, 5, 10, 20]})
    matches = cerflow.parse("SELECT * WHERE A ; B").match(stream, time="t", on_bad_record="skip")
    page = Page(matches.to_html())
    assert page.lanes()["type"] == ["A", "C", "B"]
    assert page.matches() == [[(0, ["A"]), (2, ["B"])]]


def test_query_sets_threads_and_programs_show_their_streams():
    stream = events()
    (found,) = cerflow.QuerySet({"q": QUERY}).match(stream, time="t").values()
    assert Page(found.to_html()).head["events"] == 6
    assert Page(QUERY.match(stream, time="t", threads=2).to_html()).head["events"] == 6
    assert Page(QUERY.match(stream, time="t")[1:].to_html()).head["events"] == 6
    program = cerflow.parse_program(
        "DEFINE pair AS SELECT x.t AS v WHERE A AS x ; B; SELECT * FROM pair WHERE pair ; pair"
    )
    page = Page(program.match(stream, time="t").to_html())
    assert page.matches()


def test_results_that_do_not_fit_are_refused():
    stream = events()
    result = QUERY.match(stream).to_arrow()
    with pytest.raises(cerflow.InputError, match="'detected_at' is missing"):
        page_of(stream, ViewedStream(stream), title="")
    with pytest.raises(cerflow.InputError, match="position 5, but there are 4 events"):
        page_of(result, ViewedStream(stream.slice(0, 4)), title="")
    with pytest.raises(cerflow.InputError, match="position 0 has the type 'B', but in the result it is 'A'"):
        page_of(result, ViewedStream(pa.concat_tables([stream.slice(1), stream])), title="")
    with pytest.raises(cerflow.InputError, match="no column 'kk' for lanes; did you mean 'k'"):
        page_of(result, ViewedStream(stream, keys=[["kk"]]), title="")
    with pytest.raises(cerflow.InputError, match=r"have no positions.*--no-positions"):
        QUERY.match(stream, positions=False).to_html()
    broken = result.set_column(result.schema.get_field_index("events"), "events", [["[{"] * len(result)])
    with pytest.raises(cerflow.InputError, match="row 0: the column 'events'"):
        page_of(broken, ViewedStream(stream), title="")


def test_a_page_is_written_to_a_file(tmp_path):
    text = QUERY.match(events()).to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text


def test_show_opens_the_browser_or_the_notebook(monkeypatch):
    opened, displayed = [], []
    monkeypatch.setattr("webbrowser.open", opened.append)
    matches = QUERY.match(events())
    matches.show(title="A & B")
    (address,) = opened
    assert "A &amp; B" in Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    Path(address.removeprefix("file://")).unlink()
    shell = SimpleNamespace(kernel=object())
    display = SimpleNamespace(HTML=lambda text: text, display=displayed.append)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    matches.show()
    (frame,) = displayed
    (element,) = Elements(frame).found
    assert element[1]["sandbox"] == "allow-scripts"
    assert Page(element[1]["srcdoc"]).matches() == Page(matches.to_html()).matches()
    assert len(opened) == 1
