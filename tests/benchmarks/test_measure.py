"""Measuring and reporting: turns, limits, disagreement, bars, JSON and Markdown."""

import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.bars import judge
from benchmarks.cases import Case, Peer, Point, Stream
from benchmarks.engines import Engine, cerflow_engine
from benchmarks.measure import DIFFER, OVER, Row, measure
from benchmarks.processes import OverLimitError, ProcessDiedError, Worker
from benchmarks.publish import publish
from benchmarks.report import Report

STREAM = Stream("synthetic", {"events": 200, "types": "A,B"})
QUERY = "SELECT * WHERE A AS a ; B AS b WITHIN 2 EVENTS"

#: Answers every line after this many seconds with this many matches; "die" ends it.
ECHO = """
import json, sys, time
print(json.dumps({"events": 200}), flush=True)
for line in sys.stdin:
    seconds, matches = line.split()
    time.sleep(float(seconds))
    if matches == "die":
        sys.exit("it was told to")
    print(json.dumps({"seconds": float(seconds) or 1e-3, "matches": matches}), flush=True)
"""


def _worker(folder: Path | None = None) -> Worker:
    return Worker([sys.executable, "-c", ECHO], folder=folder)


def _engine(name: str, line: str) -> Engine:
    return Engine(name, _worker, lambda case, mode, limit: line)


def _case(name: str = "a then b", **more) -> Case:
    return Case("core", name, QUERY, STREAM, ("type",), **more)


def test_worker_tells_what_it_needs(tmp_path):
    worker = _worker(tmp_path)
    worker.forget_peak()
    assert worker.ask("0 3", 5)["matches"] == "3"
    peak = worker.peak()
    assert peak is None or 1 < peak < 1000
    worker.close()


def test_worker_over_the_limit_is_ended():
    worker = _worker()
    with pytest.raises(OverLimitError):
        worker.ask("3600 1", 0.1)  # nobody waits for that
    with pytest.raises((ProcessDiedError, ValueError)):
        worker.ask("0 1", 1)


def test_worker_that_dies_says_why(tmp_path):
    with pytest.raises(ProcessDiedError, match="it was told to"):
        _worker(tmp_path).ask("0 die", 5)


def test_equal_numbers_are_marked():
    case = _case(peers=(Peer("other", {}),))
    rows = measure([case], [_engine("cerflow", "0 7"), _engine("other", "0 7")], runs=2, limit=5)
    assert {row.checked for row in rows} == {True}
    assert {len(row.seconds) for row in rows} == {2}


def test_different_numbers_are_told_in_every_row():
    case = _case(peers=(Peer("other", {}),))
    rows = measure([case], [_engine("cerflow", "0 7"), _engine("other", "0 8")], runs=1, limit=5)
    assert {row.checked for row in rows} == {False}
    assert all(row.note.startswith(DIFFER) and row.wrong for row in rows)


def test_differences_that_are_known_are_explained():
    case = _case(peers=(Peer("other", {}, differs="windows are one longer there"),))
    rows = measure([case], [_engine("cerflow", "0 7"), _engine("other", "0 8")], runs=1, limit=5)
    assert {(row.note, row.wrong) for row in rows} == {("windows are one longer there", False)}


def test_an_engine_over_the_limit_has_one_turn_only():
    told: list[str] = []
    case = _case(peers=(Peer("other", {}),))
    engines = [_engine("cerflow", "0 7"), _engine("other", "30 7")]
    rows = measure([case], engines, runs=2, limit=0.1, tell=told.append)
    theirs = [row for row in rows if row.engine == "other"]
    assert [(row.status, row.seconds, row.checked) for row in theirs] == [(OVER, [], None)]
    assert len(told) == 2


def test_a_family_that_was_too_hard_is_asked_no_more():
    cases = [_case(name, peers=(Peer("other", {}, family="all"),)) for name in ("easy", "hard")]
    rows = measure(cases, [_engine("other", "30 7")], runs=1, limit=0.1)
    assert [(row.case, row.status) for row in rows] == [("easy", OVER), ("hard", OVER)]


@pytest.mark.slow
@pytest.mark.long
def test_a_tiny_run_of_cerflow_has_all_fields(tmp_path):
    rows = measure([_case()], [cerflow_engine("cerflow", "text", tmp_path)], runs=1, limit=120)
    report = Report({"runs": 1}, rows, judge(rows, 10.0), {"CORE": "it is not here"})
    report.write(tmp_path, [])
    data = json.loads((tmp_path / "results.json").read_text())
    assert [row["mode"] for row in data["rows"]] == ["count", "write"]
    for row in data["rows"]:
        assert row["status"] == "ok"
        assert row["events"] == 200
        assert row["matches"] == str(_by_hand())
        assert row["events_per_second"] > 0
        assert row["times_floor"] > 1
        assert row["peak_mb"] is None or row["peak_mb"] > 10
        assert row["own_mb"] is None or 10 < row["own_mb"] <= row["peak_mb"]
    text = (tmp_path / "results.md").read_text()
    assert "Not measured: CORE, because it is not here." in text
    assert text.count("| a then b |") == 2


def _by_hand() -> int:
    from benchmarks.streams import load

    kinds = next(load(STREAM.description).chunks()).column("type").to_pylist()
    return sum(pair == ("A", "B") for pair in pairwise(kinds))


def _row(engine: str, mode: str, seconds: float, **more) -> Row:
    return Row("core", "x", engine, mode, QUERY, more.pop("tags", []), events=1000, seconds=[seconds], **more)


@pytest.mark.parametrize(("theirs", "met"), [(70.0, True), (69.0, False)])
def test_bars_against_another_engine(theirs, met):
    rows = [_row("cerflow", "write", 1.0, tags=["nothing"]), _row("CORE", "write", theirs)]
    verdict = _verdict(rows, lambda bar: bar == "core, nothing matches: cerflow against CORE")
    assert (verdict.measured, verdict.met) == (theirs, met)


def test_bars_of_what_was_not_measured_are_open():
    assert {verdict.met for verdict in judge([], 10.0)} == {None}


def test_memory_is_judged_by_the_largest():
    rows = [_row("cerflow", "count", 1.0, own_mb=200.0), _row("cerflow", "write", 1.0, own_mb=400.0)]
    verdict = _verdict(rows, lambda bar: "memory" in bar)
    assert (verdict.measured, verdict.met) == (390.0, False)


def _verdict(rows: list[Row], wanted: Callable[[str], bool]):
    return next(verdict for verdict in judge(rows, 10.0) if wanted(verdict.bar))


def test_report_says_where_other_engines_are_faster():
    rows = [
        _row("cerflow", "count", 2.0, processor=[2.0]),
        _row("Polars", "count", 5.0, processor=[1.0]),
        _row("DuckDB", "count", 9.0, processor=[9.0]),
    ]
    text = Report({}, rows, [], {}).markdown()
    assert "## Where cerflow is slower" in text
    assert "| core | x | cerflow | count | Polars | 0.50 |" in text
    assert "Polars 2.5, DuckDB 4.5" in text
    assert "| core | DuckDB | 1 | 1 | 4.5 | 4.5 | 4.5 |" in text
    assert re.search(r"\| core \| Polars \| 1 \| 0 \| 0\.5", text)
    assert text.count("| DuckDB |") == 2


def test_bars_of_threads_and_of_structs():
    rows = [
        Row("large", "x", "cerflow, encoded", mode, QUERY, [], seconds=[seconds], details=details)
        for mode, seconds, details in (("count", 1.0, {}), ("threads", 0.5, {}), ("structs", 4.0, {"gather": 1.0}))
    ]
    assert _verdict(rows, lambda bar: "two threads" in bar).measured == 2.0
    assert _verdict(rows, lambda bar: "structs" in bar).measured == 3.0


def test_report_shows_ratios_and_what_is_wrong():
    rows = [
        _row("cerflow", "write", 0.5, matches="3", checked=False, note=f"{DIFFER}: 3 and 4"),
        _row("CORE", "write", 5.0, matches="4", checked=False, note=f"{DIFFER}: 3 and 4"),
    ]
    text = Report({}, rows, judge(rows, 10.0), {}).markdown()
    assert "| x | cerflow | write | 3 **≠** |" in text
    assert "| 10.0 |" in text
    assert "core, x, CORE, write: numbers of matches differ: 3 and 4" in text


def test_results_of_several_runs_are_published_together(tmp_path):
    for number, suite in enumerate(("core", "srt")):
        row = Row(suite, "x", "cerflow, encoded", "count", QUERY, [], Point("window", 5.0, "x"), 1000, "3", [0.5])
        folder = tmp_path / suite
        folder.mkdir()
        Report({"runs": number, "memory of a bare Python": 10.0}, [row], [], {}).write(folder, [])
    publish([tmp_path / "core", tmp_path / "srt"], tmp_path / "docs")
    text = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert "## Suite core" in text
    assert "## Suite srt" in text
    assert "Run of core: runs 0" in text
    assert "Run of srt: runs 1" in text
    for chart in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / "docs" / chart).read_text().startswith("<?xml")


def test_report_compares_the_ends_of_long_streams():
    course = [(100 * n, float(n), 50.0 + n) for n in range(1, 11)]
    row = _row("cerflow", "count", 10.0, details={"course": course})
    text = Report({}, [row], [], {}).markdown()
    assert "| x | 0.0001 | 0.0001 | 51 | 60 |" in text
