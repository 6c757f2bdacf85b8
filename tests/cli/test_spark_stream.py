"""``cerflow stream``: from files to files, and what it tells."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import cerflow
from cerflow.cli.app import app

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 1 SECOND"
EVENTS = [{"type": "AB"[n % 2], "t": 1000 + 100 * n, "k": n % 3, "v": n} for n in range(30)]
GIVEN = ["-e", QUERY, "--input", ".", "--input-format", "json", "--columns", "type string, time bigint, k int, v int"]
GIVEN += ["--checkpoint", "c"]


@pytest.fixture(scope="module", autouse=True)
def session(spark):
    return spark


@pytest.fixture
def as_of_the_command_line(spark):
    """Settings of the sessions that the command line makes; that of the tests is not one of them."""
    given = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "UTC"}
    before = {key: spark.conf.get(key) for key in given}
    for key, value in given.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


def invoked(*arguments):
    return CliRunner().invoke(app, ["stream", *map(str, arguments)])


def test_files_become_lines_and_the_status_is_kept(tmp_path):
    folder = tmp_path / "input"
    folder.mkdir()
    lines = [json.dumps(event) for event in EVENTS[::-1] if event != EVENTS[10]]
    (folder / "events.jsonl").write_text("\n".join(lines))
    checkpoint = tmp_path / "checkpoint"
    given = ["--input", folder, "--time-column", "t", "--checkpoint", checkpoint, "--buckets", 2]
    run = ["-e", QUERY, *given, "--delay", "5 seconds", "--available-now"]
    first = invoked(*run)
    assert first.exit_code == 0, first.stderr
    assert "29 events wait for later ones: the next run continues with them, and --flush" in first.stderr
    assert not first.stdout
    # An event that comes an hour later is not late.
    (folder / "later.jsonl").write_text(json.dumps(EVENTS[10]))
    result = invoked(*run, "--flush")
    assert result.exit_code == 0, result.stderr
    assert "wait for later" not in result.stderr
    expected = cerflow.parse(QUERY).match(EVENTS, time="t").to_pylist()
    found = [json.loads(line) for line in result.stdout.splitlines()]
    pairs = [sorted((row["first"], row["second"]) for row in rows) for rows in (found, expected)]
    assert pairs[0] == pairs[1] != []
    assert "batch 0: 29 events, 0 matches, 29 waiting for the watermark, no watermark yet" in first.stderr
    told = invoked("--status", checkpoint)
    assert f"30 events, 0 late, 0 bad, {len(expected)} matches" in told.stdout
    changed = invoked("-e", QUERY.replace("1 SECOND", "2 SECONDS"), *given, "--delay", "5 seconds", "--available-now")
    assert changed.exit_code == 1
    assert "is of another query" in changed.stderr


def test_one_bad_time_or_number_makes_no_column_text(tmp_path):
    """The types of columns are inferred: Spark takes those with a wrong value for text."""
    folder = tmp_path / "input"
    folder.mkdir()
    events = [{"type": "AB"[n], "t": f"2025-01-01T00:00:0{n}", "v": n + 9} for n in range(2)]
    bad = [{"type": "B", "t": "yesterday", "v": 30}, {"type": "B", "t": "2025-01-01T00:00:01", "v": "34x"}]
    (folder / "1.jsonl").write_text("\n".join(map(json.dumps, [*events, *bad])))
    query = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v WITHIN 10 SECONDS"
    given = ["--input", folder, "--time-column", "t", "--delay", "1 second", "--available-now", "--buckets", 1]
    result = invoked("-e", query, *given, "--flush", "--on-bad-record", "skip", "--checkpoint", tmp_path / "c")
    assert result.exit_code == 0, result.stderr
    # As text, 10 would come before 9.
    assert [(row["first"], row["second"]) for row in map(json.loads, result.stdout.splitlines())] == [(9, 10)]


@pytest.mark.parametrize("format", ["json", "parquet", "orc"])
@pytest.mark.usefixtures("as_of_the_command_line")
def test_times_with_a_zone_keep_it(tmp_path, format):
    """In the sessions of the command line TIMESTAMP means times without one."""
    folder = tmp_path / "input"
    folder.mkdir()
    times = [dt.datetime(2025, 1, 1, 0, 0, n, tzinfo=dt.UTC) for n in range(2)]
    table = pa.table({"type": ["A", "B"], "t": pa.array(times, pa.timestamp("us", "UTC"))})
    match format:
        case "json":
            rows = [{"type": t, "t": f"2025-01-01T00:00:0{n}Z"} for n, t in enumerate("AB")]
            (folder / "1.json").write_text("\n".join(map(json.dumps, rows)))
        case "parquet":
            pyarrow.parquet.write_table(table, folder / "1.parquet")
        case _:
            pyarrow.orc.write_table(table, folder / "1.orc")
    given = ["--input", folder, "--time-column", "t", "--delay", "1 second", "--available-now", "--flush"]
    result = invoked("-e", "SELECT * WHERE A ; B", *given, "--buckets", 1, "--checkpoint", tmp_path / "c")
    assert result.exit_code == 0, result.stderr
    (match,) = map(json.loads, result.stdout.splitlines())
    assert (match["start_time"], match["end_time"]) == ("2025-01-01T00:00:00.000Z", "2025-01-01T00:00:01.000Z")


def test_files_of_csv_may_lack_columns_or_have_them_in_another_order(tmp_path):
    folder = tmp_path / "input"
    folder.mkdir()
    texts = (
        "type,t,v\nA,1000,1\nB,1100,2\n",
        "v,other,type,t\n3,x,A,1200\n4,y,B,1300\n34x,z,A,1310\n",
        "t,type\n1320,A\n1400,B\n1400,B,5\n",
    )
    for number, text in enumerate(texts):
        (folder / f"{number}.csv").write_text(text)
    query = "SELECT a.v AS first, b.v AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v WITHIN 10 SECONDS"
    given = ["--input", folder, "--time-column", "t", "--delay", "1 second", "--available-now", "--buckets", 1]
    given += ["--columns", "type string, t bigint, v int", "--flush", "--on-bad-record", "skip"]
    checkpoint = tmp_path / "c"
    result = invoked("-e", query, *given, "--checkpoint", checkpoint)
    assert result.exit_code == 0, result.stderr
    found = sorted((row["first"], row["second"]) for row in map(json.loads, result.stdout.splitlines()))
    assert found == [(1, 2), (1, 4), (3, 4)]
    assert "8 events, 0 late, 2 bad, 3 matches, 2 without 'v'" in result.stderr
    assert "without 'v'" in result.stderr
    given[given.index("skip")] = "fail"
    result = invoked("-e", query, *given, "--checkpoint", tmp_path / "d")
    assert result.exit_code == 1
    assert "_corrupt_record: '34x,z,A,1310'" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-e", QUERY], "needs --input, --checkpoint and --delay"),
        (["--status", "nowhere"], "no micro-batch has ended"),
        (["-e", QUERY, "--input", "kafka://x", "--checkpoint", "c", "--delay", "1 second"], "kafka://HOST:PORT/TOPIC"),
        (["-e", QUERY, "--input", "kafka://h:1/t", "--checkpoint", "c", "--delay", "1 second"], "--columns"),
        (["-e", QUERY, "--input", ".", "--checkpoint", "c", "--delay", "1 second"], "--input-format"),
        (["-e", QUERY, "--input", ".", "--checkpoint", "c", "--delay", "soon"], "'soon' is not a duration"),
        ([*GIVEN, "--delay", "0 seconds", "--idle-timeout", "later"], "'later' is not a duration"),
        ([*GIVEN, "--delay", "0 seconds", "--late", "dead-letter"], "a path dead_letter goes together with"),
        ([*GIVEN, "--delay", "0 seconds", "--available-now", "--trigger", "1 second"], "available_now ends it"),
    ],
)
def test_what_is_missing_is_said(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    # Spark keeps the directory in which its JVM was started.
    result = invoked(*(str(tmp_path / "c") if argument == "c" else argument for argument in arguments))
    assert result.exit_code != 0
    assert says in " ".join(result.stderr.replace("│", "").split())
