"""The benchmark of Spark jobs: its files, its queries, its bars."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks.engines import source_path
from benchmarks.measure import Row
from benchmarks.report import Report
from benchmarks.spark.bars import judge_jobs
from benchmarks.spark.measure import measure_jobs
from benchmarks.spark.questions import ORDINARY, PASS, QUESTIONS, SCAN, SOURCE, TAKE
from benchmarks.spark.ticks import NARROW, WIDE, written_ticks

import cerflow
from support.runners import only_deep


@pytest.fixture(scope="module")
def ticks(tmp_path_factory):
    return written_ticks(1_200_000, tmp_path_factory.mktemp("cache"))


def test_files_hold_the_ticks_in_the_order_of_time(ticks):
    files = sorted(ticks.iterdir())
    assert [pq.read_metadata(file).num_rows for file in files] == [1_000_000, 200_000]
    assert [pq.read_metadata(file).num_row_groups for file in files] == [4, 1]
    table = pq.read_table(ticks)
    assert tuple(table.column_names) == WIDE
    assert table.column("id").to_pylist()[::400_000] == [0, 400_000, 800_000]
    times = table.column("time").combine_chunks()
    assert pc.all(pc.less_equal(times[:-1], times[1:])).as_py()
    assert written_ticks(1_200_000, ticks.parent) == ticks


def test_queries_mean_what_their_names_say(ticks):
    events = pq.read_table(ticks / "day-0001.parquet")
    asked = [question for question in QUESTIONS if question.query is not None]
    found = {q.name: cerflow.parse(q.query).match(events.select(q.columns), time="time").count() for q in asked}
    assert found["unselective"] == found["unselective, by key"]
    assert found["selective, by key"] == found["selective, by key, all attributes"]
    # Few matches, but some; their figures would say little otherwise.
    assert all(0 < number < len(events) / 20 for number in found.values()), found
    assert all(set(NARROW) <= set(q.columns) <= set(WIDE) for q in QUESTIONS)


def row(case, way, cores, seconds, tags=("selective",), columns=5):
    details, times = {"cores": cores, "columns": columns}, [seconds, 2 * seconds]
    return Row("spark", case, way, f"local[{cores}]", "", list(tags), events=100, seconds=times, details=details)


def test_bars_are_judged_by_the_worst_figure():
    slow_at_first = row("c", ORDINARY, 2, 5.0, ["same", "unselective"])
    slow_at_first.details["first"] = 8.5
    rows = [
        row("5 columns", TAKE, 1, 8.0, ["floor"]),
        row("5 columns", TAKE, 2, 4.0, ["floor"]),
        row("12 columns", TAKE, 2, 40.0, ["floor"], 12),
        row("a", ORDINARY, 1, 4.0),
        row("a", ORDINARY, 2, 2.0),
        row("b", ORDINARY, 2, 5.0),
        slow_at_first,
        row("a", SOURCE, 1, 0.75),
        row("a", SOURCE, 2, 0.5),
    ]
    measured = [(verdict.measured, verdict.met) for verdict in judge_jobs(rows)]
    assert measured == [
        (pytest.approx(0.8), False),
        (pytest.approx(0.8), False),
        (pytest.approx(8.0), True),
        (pytest.approx(3.5), True),
        (2.0, True),
        (pytest.approx(1.5), False),
    ]


def test_reports_of_jobs_can_be_read_again(tmp_path):
    rows = [row("5 columns", PASS, 1, 8.0, ["floor"]), row("a", ORDINARY, 1, 4.0)]
    report = Report({"memory of a bare Python": 9.0}, rows, judge_jobs(rows), {SOURCE: "it is not here"})
    report.write(tmp_path, ())
    assert json.loads((tmp_path / "results.json").read_text())["missing"] == {SOURCE: "it is not here"}
    again = Report.read([tmp_path])
    assert again.rows == rows
    assert "| a | cerflow.spark.match | 1 | – | 2.5e-05 | 4 s | 8 s | – | – | – | 2 | – |" in again.markdown()


#: In a process of its own: below this one there may be a session.
WATCH = """
import json, subprocess, sys
from benchmarks.spark.usage import watched
with watched() as usage:
    for script in sys.argv[1:]:
        subprocess.run([sys.executable, "-c", script], check=True)
print(json.dumps([usage.one_mb, usage.all_mb, usage.python, usage.jvm]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell of processes")
def test_what_python_processes_below_use_is_watched():
    holding = "block = bytearray(200_000_000); block[::4096] = bytes(len(block[::4096])); import time; time.sleep(0.5)"
    busy = "import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.3)"
    command = [sys.executable, "-c", WATCH, holding, busy]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=source_path({}))
    one, everything, python, jvm = json.loads(done.stdout)
    assert 200 < one < 300
    assert one <= everything < 400
    assert 0.5 <= python < 3
    assert jvm == 0


@only_deep
@pytest.mark.slow
def test_jobs_are_measured_and_their_rows_compared(tmp_path):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    questions = [q for q in QUESTIONS if q.name in ("5 columns", "selective, by key")]
    missing = {SOURCE: "this is a test"}
    ticks = written_ticks(100_000, tmp_path)
    rows = measure_jobs(questions, ticks, events=100_000, cores=[2], runs=1, limit=300, missing=missing)
    assert [(r.case, r.engine, r.status) for r in rows] == [
        ("5 columns", SCAN, "ok"),
        ("5 columns", PASS, "ok"),
        ("5 columns", TAKE, "ok"),
        ("selective, by key", ORDINARY, "ok"),
    ]
    events = pq.read_table(ticks)
    expected = cerflow.parse(questions[1].query).match(events, time="time").count()
    assert [r.matches for r in rows] == ["100000", "100000", "0", str(expected)]
    assert all(len(r.seconds) == 1 and r.details["first"] > 0 for r in rows)
    assert all(r.peak_mb > 50 for r in rows[1:])
