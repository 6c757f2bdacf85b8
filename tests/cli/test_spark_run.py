"""``cerflow run`` on Spark gives what the local runner gives."""

import json
import re
import signal

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app
from cerflow.cli.spark import runner as spark_runner
from cerflow.cli.spark.runner import parquet_in_tasks
from cerflow.engine.kernels.base.library import load_kernels
from cerflow.examples import query_text, stocks
from support.runners import ONLY_DEEP

pytestmark = pytest.mark.slow

CSV = """type,id,value,at
H,2,25,2024-07-01T06:00:00
T,0,45,2024-07-01T06:01:00
T,0,hot,2024-07-01T06:01:30
H,0,20,2024-07-01T06:02:00
T,0
T,0,42,2024-07-01T06:05:00
,0,42,2024-07-01T06:05:30
T,0,43,later
H,0,18,2024-07-01T06:08:00
"""
QUERY = (
    "SELECT * FROM readings WHERE (T AS hot ; H AS dry) "
    "FILTER hot.value > 40 AND dry.value <= 25 AND hot.id = dry.id WITHIN 10 MINUTES"
)


@pytest.fixture(scope="module", autouse=True)
def session(spark):
    """The command line takes the session that is there, and finds its kernels loaded."""
    load_kernels()
    return spark


def rows(path):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def run(directory, runner, *arguments):
    output = directory / f"{runner}.jsonl"
    dead = directory / f"{runner}-dead.jsonl"
    options = ["--runner", runner, "--output", output, "--on-bad-record", f"dead-letter={dead}"]
    result = CliRunner().invoke(app, ["run", *map(str, [*arguments, *options])])
    assert result.exit_code == 0, result.stderr
    return rows(output), sorted(row["row"] for row in rows(dead)), result.stderr.split("; ")[0]


@pytest.mark.usefixtures("session")
def test_interrupts_are_handled_as_without_spark(interrupt):
    # PySpark's own handler calls Java amid a call of Java.
    assert signal.getsignal(signal.SIGINT) is interrupt


@pytest.mark.versions
def test_a_file_with_bad_records(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text(CSV)
    arguments = ["-e", QUERY, "--input", path, "--time-column", "at"]
    spark_rows, spark_dead, spark_counts = run(tmp_path, "spark", *arguments)
    local_rows, local_dead, local_counts = run(tmp_path, "local", *arguments)
    assert spark_rows == local_rows
    assert len(spark_rows) == 3
    assert spark_dead == local_dead == [2, 4, 6, 7]
    assert spark_counts == local_counts == "5 events, 3 matches, 4 bad records"
    failed = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert failed.exit_code == 1
    assert failed.stderr == "error: row 2: value is not a number: 'hot'\n"


def test_fields_have_roles(tmp_path):
    path = tmp_path / "events.json"
    path.write_text("".join(f'{{"meta": {{"kind": "{"AB"[n % 2]}", "at": {n * n}}}, "v": {n}}}\n' for n in range(9)))
    query = "SELECT x.v AS a, y.v AS b WHERE (A AS x ; B AS y) WITHIN 9 MILLISECONDS"
    arguments = ["-e", query, "-i", path, "--type-column", "meta.kind", "--time-column", "meta.at"]
    found = run(tmp_path, "spark", *arguments)
    assert found == run(tmp_path, "local", *arguments)
    assert [(row["a"], row["b"]) for row in found[0]] == [(0, 1), (2, 3)]


def test_names_of_columns_may_have_dots(tmp_path):
    lines = [{"type": t, "dev.id": n // 2, "a b": n, "d": {"o`s": n}} for n, t in enumerate("ABAB")]
    events = tmp_path / "events.jsonl"
    written(events, "\n".join(map(json.dumps, lines)))
    query = 'SELECT *, x."a b" AS v WHERE (A AS x ; B AS y) FILTER x.d."o`s" < y.d."o`s" PARTITION BY "dev.id"'
    found, _, _ = both(tmp_path, "-e", query, "--input", events)
    assert [(row["dev.id"], row["v"]) for row in found] == [(0, 0), (1, 2)]


def test_types_that_no_event_has_are_said_by_both_runners(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text("type,t\nT,1\nh,2\nH,3\n")
    options = ["-i", str(path), "--time-column", "t", "--time-unit", "ms", "-o", "-"]
    for runner in ("spark", "local"):
        query = "SELECT * WHERE t ; H ; nowhere"
        result = CliRunner().invoke(app, ["run", "-e", query, "--runner", runner, *options])
        assert result.exit_code == 0
        said = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
        assert said == [
            "warning: line 1, column 16: no event of the input has the type 't'",
            "warning: line 1, column 24: no event of the input has the type 'nowhere'",
        ]
        assert "\nDid you mean 'T'?\n" in result.stderr


def test_parquet_in_parquet_out(tmp_path):
    path = tmp_path / "stocks.parquet"
    pyarrow.parquet.write_table(stocks(5_000), path)
    (tmp_path / "q.ceql").write_text(query_text("dip").replace("1 MINUTES", "30 MINUTES"))
    arguments = ["run", tmp_path / "q.ceql", "--input", path, "--time-column", "time", "--sequence-column", "id"]
    answers = []
    for runner in ("spark", "local"):
        output = tmp_path / f"{runner}.parquet"
        result = CliRunner().invoke(app, [*map(str, arguments), "--runner", runner, "--output", str(output)])
        assert result.exit_code == 0, result.stderr
        table = pyarrow.parquet.read_table(output)
        events = table.column("events").to_pylist()
        answers.append(
            sorted((row["detected_at"], str([e["position"] for e in es])) for row, es in zip(table.to_pylist(), events))
        )
    assert answers[0] == answers[1]
    assert answers[0]


def both(directory, *arguments):
    """What both runners give; it must be the same, but for the words with which a bad record is described."""
    found = run(directory, "spark", *arguments)
    assert found == run(directory, "local", *arguments)
    return found


def written(path, content):
    """A file of text, packed as its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(content.encode())


def test_streams_with_columns_of_their_own(tmp_path):
    written(tmp_path / "t.csv", "kind,at,px,007\nBUY,2,10,7\nSELL,4,11,7\nSELL,hot,12,8\n,6,13,9\n")
    pyarrow.parquet.write_table(pa.table({"ts": [1, 3, 5], "price": [9.5, 12.0, 12.5]}), tmp_path / "quotes.parquet")
    query = (
        "SELECT q, s, s.price - q.price AS change FROM quotes, trades "
        "WHERE quotes>QUOTE AS q ; trades>SELL AS s FILTER s.price >= q.price WITHIN 10 SECONDS"
    )
    matches, dead, said = both(
        tmp_path,
        *("-e", query, "--input", f"trades={tmp_path / 't.csv'}", "--input", tmp_path / "quotes.parquet"),
        *("--type-column", "trades=kind", "--constant-type", "quotes=QUOTE", "--rename", "trades=price=px"),
        *("--time-column", "trades=at", "--time-column", "quotes=ts"),
    )
    assert [(row["change"], [e["stream"] for e in row["events"]]) for row in matches] == [(1.5, ["quotes", "trades"])]
    assert dead == [2, 3]
    assert said == "5 events, 1 match, 2 bad records"


@pytest.mark.long
def test_sources_of_every_kind(tmp_path):
    columns = {"type": ["A", "B"], "v": [1, 2], "t": [1000, 2000]}
    lines = [dict(zip(columns, row)) for row in zip(*columns.values())]
    written(tmp_path / "csv/part=1/h=07/a.csv", "type,v,t,w\nA,1,3000,\nB,2,4000,\n")
    # Other columns in another order: Spark by itself would mix them up.
    written(tmp_path / "csv/part=x y/h=12/[b].csv.gz", "t,w,type,v\n5000,7,A,1.5\n6000,8,B,hot\n")
    written(tmp_path / "lines/a.json.lz4", "\n".join(map(json.dumps, lines)))
    written(tmp_path / "lines/b.json.bz2", json.dumps([{"v": 3, "type": "B", "t": 7000}]))
    pyarrow.parquet.write_table(pa.table(columns | {"t": [8000, 9000]}), tmp_path / "p.parquet")
    pyarrow.orc.write_table(pa.table(columns | {"t": [11_000, 12_000], "v": [0.5, 2]}), tmp_path / "p.orc")
    inputs = [tmp_path / "csv", tmp_path / "lines" / "*.json.*", tmp_path / "p.parquet", tmp_path / "p.orc"]
    query = "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v AND b.v > 0 AND (b.h IS NULL OR b.h > 5) WITHIN 4 SECONDS"
    options = [option for path in inputs for option in ("--input", path)]
    matches, dead, said = both(tmp_path, "-e", query, *options, "--time-column", "t")
    assert {e["part"] for row in matches for e in row["events"]} == {None, "1", "x y"}
    assert {e["h"] for row in matches for e in row["events"]} == {None, 7, 12}
    assert len(matches) == 6
    assert dead == [3]
    assert said == "10 events, 6 matches, 1 bad record"


def test_texts_and_times_in_files_without_types(tmp_path):
    text = '{"type": "A", "b": "2024-01-01T02:00:00+02:00", "a": "2024-02-30", "c": 1}\n' \
           '{"type": "B", "b": "2024-01-01T00:00:01Z", "a": "2024-02-01", "c": {"d": [1]}}\n'  # fmt: skip
    written(tmp_path / "a.json", text.replace('"c": 1', '"c": null'))
    written(tmp_path / "b.csv", 'type,b,e\nA,2024-01-01T00:00:02Z,""\nB,2024-01-01T00:00:03+00:00,\n')
    options = ["--input", tmp_path / "a.json", "--input", tmp_path / "b.csv", "--time-column", "b"]
    matches, _, _ = both(tmp_path, "-e", "SELECT * WHERE A ; B WITHIN 2 SECONDS", *options)
    assert [row["start_time"][-9:] for row in matches] == ["00:00:00Z", "00:00:02Z"]
    assert sorted((list(e) for row in matches for e in row["events"]), key=len)[-1][3:] == ["b", "a", "c", "e"]
    assert [e["e"] for e in matches[1]["events"]] == ["", None]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", '[{"type": "A"},', "the JSON array is broken"),
        ("a.parquet", "nonsense", "cannot read .* as parquet"),
        ("a.orc", "nonsense", "cannot read .* as orc"),
        ("a.csv", "type,type\n", "the header has the column 'type' more than once"),
        ("type=A/a.csv", "type\nA\n", "the column 'type' is in .* and in the name of its directory"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, says):
    written(tmp_path / "in" / name, content)
    for runner in ("spark", "local"):
        result = CliRunner().invoke(
            app, ["run", "-e", "SELECT * WHERE A", "--input", str(tmp_path / "in"), "--runner", runner]
        )
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        assert re.search(says, result.stderr)
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_directory_of_files(tmp_path, session):
    path = tmp_path / "farm=1.csv"
    path.write_text(CSV)
    output, dead = tmp_path / "out", tmp_path / "dead.jsonl"
    query = QUERY.replace("SELECT *", "SELECT hot, dry").replace("WITHIN", "PARTITION BY id WITHIN")
    arguments = ["run", "-e", query, "--input", path, "--time-column", "at", "--output", output]
    arguments += ["--output-format", "csv", "--partition-by", "id"]
    skip = ["--on-bad-record", f"dead-letter={dead}"]

    def invoke(*options):
        result = CliRunner().invoke(app, [str(a) for a in [*arguments, *options]])
        return result.exit_code, result.stderr

    code, said = invoke("--output-mode", "overwrite")
    assert (code, said) == (1, "error: row 2: value is not a number: 'hot'\n")
    assert not output.exists()
    code, said = invoke(*skip)
    assert (code, said.split("; ")[0]) == (0, "5 events, 3 matches, 4 bad records")
    assert said.endswith("; on Spark, because of --partition-by\n")
    assert len(rows(dead)) == 4
    assert [p.name for p in output.iterdir() if p.name[0] not in "._"] == ["id=0"]
    found = [row.asDict() for row in session.read.csv(str(output), header=True, escape='"').collect()]
    local = run(tmp_path, "local", *arguments[1:7])[0]
    # Spark itself writes three digits of a second.
    assert sorted((int(r["detected_at"]), r["events"].replace('.000"', '"')) for r in found) == sorted(
        (r["detected_at"], json.dumps(r["events"], separators=(",", ":"))) for r in local
    )
    code, said = invoke(*skip)
    assert (code, said) == (
        1,
        f"error: '{output}' already exists; choose another --output-mode or remove it\n",
    )
    assert invoke("--output-mode", "ignore") == (0, "the output already exists: nothing was read or written\n")
    assert invoke("--output-mode", "overwrite-partitions", *skip)[0] == 0
    assert session.read.csv(str(output), header=True).count() == 3
    code, said = invoke("--output-mode", "overwrite", "--partition-by", "idd", *skip)
    assert "the result has no column 'idd' to partition by; did you mean 'id'" in said
    assert session.read.csv(str(output), header=True).count() == 3


def test_the_demonstration(tmp_path, capsys):
    from cerflow.examples.demo import run_demo

    outcome = run_demo(tmp_path / "demo-output")
    said = capsys.readouterr().out
    assert outcome.events == 200_000
    assert outcome.matches == 68_751
    assert "68,751 matches" in said
    assert "events/s" in said
    assert sorted(p.name for p in (tmp_path / "demo-output").iterdir()) == [
        "dip.ceql",
        "matches.jsonl",
        "stocks.parquet",
    ]


@pytest.mark.long
def test_parquet_is_read_in_the_tasks_where_that_gives_the_same(tmp_path, monkeypatch):
    ticks = stocks(3_000, seed=3)
    (tmp_path / "q.ceql").write_text(query_text("dip").replace("1 MINUTES", "30 MINUTES"))
    types = [None if n % 1000 == 7 else name for n, name in enumerate(ticks.column("type").to_pylist())]
    several = tmp_path / "several.parquet"
    several.mkdir()
    for part in range(3):
        pyarrow.parquet.write_table(ticks.slice(part * 1_000, 1_000), several / f"{part}.parquet", row_group_size=300)
    tables = {
        "plain.parquet": ticks,
        "bad.parquet": ticks.set_column(0, "type", pyarrow.array(types)),
        "text.parquet": ticks.set_column(4, "price", ticks.column("price").cast("string")),
    }
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, tmp_path / name, row_group_size=500)
    chosen = []

    def watched(*arguments):
        found = parquet_in_tasks(*arguments)
        chosen.append(None if found is None else found.explanation)
        return found

    monkeypatch.setattr(spark_runner, "parquet_in_tasks", watched)
    found = {}
    for name in ("plain.parquet", "several.parquet", "bad.parquet", "text.parquet"):
        arguments = [tmp_path / "q.ceql", "--input", tmp_path / name, "--time-column", "time"]
        found[name] = run(tmp_path, "spark", *arguments)
        assert found[name] == run(tmp_path, "local", *arguments), name
    assert found["plain.parquet"][0]
    assert found["plain.parquet"][:2] == found["several.parquet"][:2]
    assert len(found["bad.parquet"][1]) == 3
    assert [how is not None for how in chosen] == [True, True, False, False]
    flat = run(tmp_path, "spark", *arguments, "--flat")
    assert flat == run(tmp_path, "local", *arguments, "--flat")
    arguments[2] = tmp_path / "plain.parquet"
    assert flat[0] == run(tmp_path, "spark", *arguments, "--flat")[0]
    assert "events" not in flat[0][0]
    assert any(name.endswith("_price") for name in flat[0][0])
    assert "reads all 3,000 events in order" in chosen[0]


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("letters.csv", marks=ONLY_DEEP), "letters.parquet"])
def test_numbers_of_matches_are_bounded_in_the_tasks(tmp_path, name):
    path, output = tmp_path / name, tmp_path / "o.jsonl"
    table = pa.table({"type": ["A"] * 350 + ["B"]})
    if name.endswith("csv"):
        written(path, "type\n" + "\n".join(table.column("type").to_pylist()))
    else:
        pyarrow.parquet.write_table(table, path)
    output.write_text("old")
    arguments = ["run", "--runner", "spark", "--input", str(path), "--output", str(output), "-e"]
    result = CliRunner().invoke(app, [*arguments, "SELECT * WHERE A+ ; B"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: there are 2.3e105 matches or more, and at most 100,000,000 may be listed")
    assert output.read_text() == "old"
    count = "SELECT COUNT(*) AS n WHERE A+ ; B"
    result = CliRunner().invoke(app, [*arguments, count])
    assert result.exit_code == 1
    assert "does not fit 38 digits" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    found = both(tmp_path, "--input", path, "--counts", "text", "-e", count)
    assert [len(row["n"]) for row in found[0]] == [106]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_unit_of_times(tmp_path, suffix):
    table = pa.table({"type": ["A", "B", "B"], "t": [1700000000, 1700000009, 1700003600]})
    path = tmp_path / f"events.{suffix}"
    (pyarrow.parquet.write_table if suffix == "parquet" else pyarrow.csv.write_csv)(table, path)
    query = ["-e", "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS", "--input", path, "--time-column", "t"]
    assert len(run(tmp_path, "spark", *query)[0]) == 2
    found = run(tmp_path, "spark", *query, "--time-unit", "s")[0]
    assert [row["end_time"] for row in found] == [1700000009]
    assert found == run(tmp_path, "local", *query, "--time-unit", "s")[0]
    output = tmp_path / "again.jsonl"
    again = CliRunner().invoke(app, ["run", *map(str, query), "--runner", "spark", "--output", str(output)])
    assert "look like seconds since 1970" in again.stderr


def test_inputs_of_different_units(tmp_path):
    (tmp_path / "left.csv").write_text("type,t\nA,1700000000\n")
    (tmp_path / "right.csv").write_text("type,t\nB,1700000009000\nB,1700000010000\n")
    given = ["-e", "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS", "--time-column", "t", "--time-unit", "left=s"]
    given += ["--input", tmp_path / "left.csv", "--input", tmp_path / "right.csv"]
    found = run(tmp_path, "spark", *given)
    assert [row["end_time"] for row in found[0]] == [1700000009000]
    assert found == run(tmp_path, "local", *given)


def test_a_program_of_several_inputs(tmp_path):
    (tmp_path / "program.ceql").write_text(
        "DEFINE dry AS SELECT h.value AS value FROM log WHERE T ; H AS h FILTER h.value <= 25 WITHIN 4 MINUTES;\n"
        "SELECT d.value AS value, n.text AS text, n FROM dry, notes WHERE dry AS d : notes>NOTE AS n"
    )
    (tmp_path / "log.csv").write_text(CSV)
    (tmp_path / "notes.csv").write_text("type,at,text\nNOTE,2024-07-01T06:01:00,early\nNOTE,2024-07-01T06:09:00,late\n")
    inputs = [f"--input={name}={tmp_path / name}.csv" for name in ("log", "notes")]
    arguments = [tmp_path / "program.ceql", *inputs, "--time-column", "at"]
    found = run(tmp_path, "spark", *arguments)
    assert found == run(tmp_path, "local", *arguments)
    assert [row["text"] for row in found[0]] == ["late"]


def test_a_program_of_parquet_files(tmp_path):
    pa.parquet.write_table(stocks(300), tmp_path / "ticks.parquet")
    text = (
        "DEFINE dip AS SELECT b.price - a.price AS by FROM ticks WHERE SELL AS a : SELL AS b PARTITION BY name;"
        "SELECT sum(d.by) AS by FROM dip WHERE dip{2} AS d PARTITION BY name WITHIN 1 MINUTE"
    )
    arguments = ["-e", text, "--input", tmp_path / "ticks.parquet", "--time-column", "time", "--no-positions"]
    found, _, counts = run(tmp_path, "spark", *arguments)
    assert found
    assert (found, counts) == run(tmp_path, "local", *arguments)[::2]
