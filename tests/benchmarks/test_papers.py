"""The figures of the papers: their cases exist, ask something, and are written as one page."""

from dataclasses import replace

import pytest
from benchmarks.cases import Case, Question, Stream
from benchmarks.engines import cerflow_engine
from benchmarks.measure import DIFFER, IDLE, OVER, Row, check_questions, measure
from benchmarks.papers.__main__ import paper_cases
from benchmarks.papers.figures import FIGURES, place_and_form
from benchmarks.papers.keeping import KeptRows, Plan, in_batches
from benchmarks.papers.page import write_page
from benchmarks.papers.queries import FOLDER, query_files
from benchmarks.streams import load
from benchmarks.suites.determinism import COPIES, DETERMINISED, WINDOWS
from benchmarks.suites.srt import PATTERNS
from benchmarks.suites.srt_streams import SMART_HOMES, TAXIS
from benchmarks.worker import answer

import cerflow
from cerflow.examples import smart_homes, stocks, taxis
from support.runners import bag, semantics

CASES = {case.name: case for case in paper_cases(Stream("stocks", {}))}
STREAM = Stream("synthetic", {"events": 200, "types": "A,B"})


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.key for figure in FIGURES])
def test_figures_have_cases_and_numbers_for_each(figure):
    assert set(figure.places.values()) <= set(CASES)
    assert all(len(values) == len(figure.places) for values in figure.paper.values())


def test_quick_runs_ask_a_part_of_the_same():
    quick = {case.name: case for case in paper_cases(Stream("stocks", {}), quick=True)}
    assert set(quick) < set(CASES)
    assert {name for name in quick if quick[name].stream.kind == "stocks"} >= {
        "seq3, 500 ms",
        "seq12, 500 ms",
        "q5, 1000 ms",
    }
    assert not {"seq6, 500 ms", "taxis: nested8, 100 s", "stress Q1, 2,000 events"} & set(quick)
    assert [peer.engine for peer in quick["seq3, 500 ms"].peers] == ["FlinkCEP", "Esper"]
    assert not quick["kleene3, 500 ms"].peers


def test_every_pattern_of_registers_is_asked_in_both_languages():
    figures = [figure for figure in FIGURES if figure.key.startswith("004") and figure.key != "004-s6"]
    names = {name for figure in figures for name in figure.places.values()}
    assert {f"{name}, SREMO" for name in names} <= set(CASES)
    assert {case.question.pattern for case in CASES.values() if case.stream.kind == "stocks"} == {
        *(f"{kind}{n}" for kind in ("seq", "kleene") for n in (3, 6, 9, 12)),
        *(f"nested{n}" for n in (4, 8, 12, 16)),
        *(f"q{n}" for n in range(1, 6)),
        "three ticks",
    }


def test_queries_are_files():
    expected = {FOLDER / file: text for file, text in query_files()}
    assert {file: file.read_text("utf-8") for file in FOLDER.rglob("*.*")} == expected
    assert len(expected) == 6 + 2 * (17 + 12 + 12)


def test_deterministic_automata_detect_what_those_that_they_are_made_of_do():
    asked = [case for case in CASES.values() if case.question and case.question.pattern == "three ticks"]
    ticks = {"kind": "stocks", "events": 40_000}
    found = {c.name: answer({"stream": ticks, "query": c.query, "mode": "count"})["matches"] for c in asked}
    for window in WINDOWS:
        name = f"three ticks, {window} events"
        forms = [name, name + DETERMINISED, *([name + COPIES] if name + COPIES in found else [])]
        assert {place_and_form(form)[0] for form in forms} == {name}
        assert len({found[form] for form in forms}) == 1
    assert len(set(found.values())) == len(WINDOWS)
    assert "0" not in found.values()


def test_sequences_in_the_words_of_esper():
    case = CASES["taxis: seq3, 100 s"]
    assert case.request("Esper")["statement"] == (
        "select x0.time from pattern [every x0=Tick(type='TRIP', name = 'East Harlem North to Midwood') -> "
        "((every y0=Tick(type='TRIP', name = 'Midwood to Gravesend') -> "
        "every z0=Tick(type='TRIP', name = 'Gravesend to West Brighton', price > x0.price)) "
        "where timer:within(100 milliseconds))]"
    )
    assert CASES["smart homes: seq3, 5 s"].request("FlinkCEP")["pattern"][:3] == ["x0", "LOAD", "name=0&price>236"]
    assert CASES["q5, 1000 ms"].peer("Esper") is None, "EPL's patterns do not combine iterations"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["smart_homes", "taxis"])
def test_homes_and_trips_match_every_pattern_and_none_twice(kind):
    asked = [case for case in CASES.values() if case.stream.kind == kind and case.language == "ceql"]
    narrow = min({case.question.span for case in asked}, key=lambda span: int(span.split()[0]))
    counts = {
        case.name: answer({"stream": case.stream.description, "query": case.query, "mode": "count"})["matches"]
        for case in asked
        if case.question.span == narrow
    }
    assert len(counts) == 12
    assert "0" not in counts.values()
    assert len(set(counts.values())) == 12


STRATEGIES = [name for figure in FIGURES if figure.key.startswith("p1-5") for name in figure.places.values()]
SMALL = [CASES[name] for name in STRATEGIES if name.endswith("window of 20")]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_strategies_find_what_the_semantics_finds(case):
    """All matches of a short stream, and one of those of each detecting event, as the case asks."""
    table = next(load({**case.stream.description, "events": 30, "seed": 6}).chunks())
    query = cerflow.parse(case.query)
    whole = cerflow.Query(replace(query.tree, limit=None))
    expected = semantics(whole, table)
    found = query.match(table)
    assert expected
    assert bag(whole.match(table).to_pylist()) == bag(expected)
    assert bag(found.to_pylist()) <= bag(expected)
    assert found.count() == len({match["detected_at"] for match in expected})


def _case(name: str, text: str, *question: str, empty: str | None = None) -> Case:
    asked = Question(*question)
    query = f"SELECT * WHERE {text} WITHIN 3 EVENTS"
    return Case("srt", name, query, STREAM, ("type",), ("count",), layouts=("encoded",), question=asked, empty=empty)


def test_cases_that_tell_nothing_are_wrong(tmp_path):
    cases = [
        _case("some", "A AS a ; B AS b", "ab", "3"),
        _case("none", "A AS a ; C AS b", "ac", "3"),
        _case("none, as expected", "C AS a ; C AS b", "cc", "3", empty="there is no C"),
        _case("same question, other number", "A AS a ; A AS b", "ab", "3"),
        _case("other question, same number", "(A AS a ; B AS b)", "ab too", "3"),
        _case("some, though none is expected", "B AS a ; B AS b", "bb", "3", empty="it is said"),
    ]
    rows = measure(cases, [cerflow_engine("cerflow", "encoded", tmp_path)], runs=1, limit=60)
    notes = {row.case: row.note for row in rows}
    assert notes["none"].startswith(IDLE)
    assert notes["none, as expected"] == ""
    assert notes["same question, other number"].startswith(DIFFER)
    assert notes["other question, same number"].startswith(IDLE)
    assert notes["some, though none is expected"].startswith(DIFFER)
    assert {row.case for row in rows if not row.wrong} == {"none, as expected"}


def test_matches_are_listed_apart_from_their_recognition(tmp_path):
    case = CASES["stress Q1, 200 events"]
    rows = measure([replace(case, peers=())], [cerflow_engine("cerflow", "encoded", tmp_path)], runs=1, limit=60)
    apart = next(row for row in rows if row.mode == "apart")
    assert apart.matches == next(row.matches for row in rows if row.mode == "count") != "0"
    assert 0 < apart.details["remembered"] < 1
    assert apart.details["enumeration"] > 0
    page = write_page(tmp_path, rows, {"size": "small"}, {"CORE": "it is not here"}).read_text("utf-8")
    assert "P1, Figure 4: Q1, MB remembered before the last event" in page
    assert "CORE, because it is not here" in page
    assert "Figure 6" not in page, "figures that were not measured are left out"


def test_pages_have_every_figure(tmp_path):
    told = {"query": "", "tags": [], "events": 200, "matches": "7", "seconds": [0.5], "peak_mb": 80.4}
    told["details"] = {"remembered": 1.5, "enumeration": 0.5}
    rows = []
    for case in paper_cases(Stream("stocks", {})):
        asked = [("cerflow, encoded", mode) for mode in case.modes] + [(peer.engine, peer.mode) for peer in case.peers]
        rows += [Row(case.suite, case.name, engine, mode, **told) for engine, mode in asked]
    page = write_page(tmp_path, rows, {}, {}).read_text("utf-8")
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        f"## {figure.title}" for figure in FIGURES
    ]
    assert "MB of the processes here, with all events: cerflow 80, FlinkCEP 80, Esper 80." in page


def test_pages_tell_what_was_over_the_limit(tmp_path):
    case = CASES["stress Q1, 200 events"]
    told = {"suite": "cel", "case": case.name, "query": "", "tags": []}
    rows = [
        Row(
            **told, engine="cerflow", mode="apart", seconds=[0.5], events=200, matches="7", details={"remembered": 1.5}
        ),
        Row(**told, engine="Esper", mode="count", status=OVER),
        Row(**told, engine="FlinkCEP", mode="write", status="out of memory"),
    ]
    page = write_page(tmp_path, rows, {"memory of a bare Python": 8.998}, {}).read_text("utf-8")
    assert "memory of a bare Python: 9 MB" in page
    assert "| events | matches | cerflow | Esper |\n|---|---|---|---|\n| 200 | 7 | 0.5 | over |\n" in page
    assert "| events | matches | cerflow |\n|---|---|---|\n| 200 | 7 | 1.5 |\n" in page
    assert f"**Failed:** {case.name}, FlinkCEP, write: out of memory" in page


def test_lines_join_the_places_of_one_window_or_query():
    parts = {figure.key: [figure.part(place) for place in figure.places] for figure in FIGURES}
    assert set(parts["004-6-stock"]) == {""}
    assert parts["004-9-smart"][:5] == ["5", "5", "5", "5", "10"]
    assert parts["004-10"] == ["q1", "q2", "q3", "q4", "q5"]
    assert parts["p1-5-s1-all"][:4] == ["Q1", "Q1", "Q1", "Q2"]


@pytest.mark.parametrize("seed", [*range(1, 9), 42, 2024])
def test_ticks_of_every_seed_match_the_patterns_about_as_often_as_the_papers(seed):
    """Each pattern in its narrowest window, beside the counts on the ticks of the paper where it matches there."""
    recorded = {"seq3": 819, "kleene3": 1_367, "nested4": 763, "q1": 686, "q3": 29_069, "q4": 272, "q5": 5_287}
    ticks = stocks(224_473, seed)
    found = {}
    for named in PATTERNS.values():
        for name, pattern in named.items():
            query = cerflow.parse(pattern.cel(1000 if name.startswith("q") else 500))
            matches = query.match(ticks, time="stock_time")
            detected = matches.aggregate({"n": "count"})["detected_at"].to_pylist()
            found[name] = (matches.count(), sum(detected))
    assert found.pop("q2") == (0, 0)
    assert all(count > 0 for count, _ in found.values())
    assert len(set(found.values())) == 16, "two patterns have the same matches"
    for name, count in recorded.items():
        assert count / 3 < found[name][0] < count * 7


@pytest.mark.parametrize("seed", [1, 2024])
@pytest.mark.parametrize(
    ("patterns", "make", "events", "window"),
    [(SMART_HOMES, smart_homes, 1_000_000, 5), (TAXIS, taxis, 585_762, 100)],
    ids=["smart homes", "taxis"],
)
def test_other_streams_of_every_seed_match_all_patterns(patterns, make, events, window, seed):
    stream = make(events, seed)
    for named in patterns.values():
        for name, pattern in named.items():
            assert cerflow.parse(pattern.cel(window)).match(stream, time="timestamp").count() > 0, name


@pytest.mark.parametrize("seed", range(1, 21, 4))
def test_nobody_buys_what_the_second_query_asks_for_within_its_window(seed):
    ticks = stocks(224_473, seed)
    q2 = PATTERNS["q"]["q2"]
    assert cerflow.parse(q2.cel(1000)).match(ticks, time="stock_time").count() == 0
    assert cerflow.parse(q2.cel(2000)).match(ticks, time="stock_time").count() > 0


def test_runs_go_on_where_they_were_interrupted(tmp_path):
    cases = [CASES[name] for name in ("seq3, 500 ms", "seq3, 500 ms, SREMO", "seq3, 1000 ms", "q1, 1000 ms")]
    assert [[case.name for case in batch] for batch in in_batches(cases)] == [
        ["seq3, 500 ms", "seq3, 500 ms, SREMO", "seq3, 1000 ms"],
        ["q1, 1000 ms"],
    ]
    row = Row("srt", cases[0].name, "cerflow", "count", cases[0].query, [], cases[0].point, 10, "3", [0.5])
    kept = KeptRows(tmp_path / "measured.json", "three runs")
    kept.add([row])
    assert KeptRows(tmp_path / "measured.json", "three runs").rows_of(cases[0]) == [row]
    assert KeptRows(tmp_path / "measured.json", "three runs").rows_of(cases[2]) == []
    other = KeptRows(tmp_path / "measured.json", "one run")
    assert other.rows_of(cases[0]) == []
    other.add([row])
    again = KeptRows(tmp_path / "measured.json", "three runs")
    assert again.rows_of(cases[0]) == [row]
    assert again.rows_of(replace(cases[0], query="another")) == []
    again.forget(cases[1:])
    assert again.rows_of(cases[0]) == [row]
    again.forget(cases[:1])
    assert again.rows_of(cases[0]) == []


def test_plans_tell_how_long_the_rest_takes():
    told = []
    cases = [CASES[name] for name in ("seq3, 500 ms", "q1, 1000 ms")]
    plan = Plan([[case] for case in cases], 3, 60, told.append)
    plan.done(5)
    assert told[0] == "2 cases in 2 batches, 30 questions, 60 s at most for each"
    assert told[1].startswith("15 of 30 questions in 0 min, 5 rows more; the rest will take")


def test_cases_with_as_many_matches_elsewhere_are_right():
    def row(case, mode, matches, **details):
        return Row("srt", case.name, "cerflow", mode, case.query, [], matches=matches, details=details)

    one, other = (CASES[name] for name in ("seq3, 500 ms", "q1, 1000 ms"))
    other = replace(other, question=one.question._replace(pattern="q1"))
    for where, wrong in ((7, True), (8, False)):
        rows = [row(one, "count", "5"), row(one, "detect", "2", where=7)]
        rows += [row(other, "count", "5"), row(other, "detect", "2", where=where)]
        check_questions([one, other], rows)
        assert [r.note.startswith(IDLE) for r in rows if r.mode == "count"] == [wrong, wrong]
