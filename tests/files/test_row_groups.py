"""Parquet in the order of its events is read group by group, with the results of reading it at once."""

import json
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cerflow import cli
from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.row_groups import OrderedGroups
from cerflow.files.sources import parse_source

TIMES = {
    "integer": pa.int64(),
    "seconds": pa.timestamp("s"),
    "nanoseconds": pa.timestamp("ns", "Europe/Berlin"),
    "date": pa.date32(),
    "small": pa.uint16(),
}
QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v AND a.name = b.name WITHIN 40 EVENTS"


def events(rows=3000, kind=None, seed=1):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(random.choice(["A", "B", "C"], rows)),
            "name": pa.array(random.choice(["x", "y", "ž"], rows)),
            "t": pa.array(np.sort(random.integers(0, rows // 2, rows))).cast(kind or pa.int64())
            if not pa.types.is_date(kind or pa.int64())
            else pa.array(np.sort(random.integers(0, 90, rows)).astype(np.int32)).cast(kind),
            "v": pa.array(random.integers(0, 50, rows)),
            "unread": pa.array(random.random(rows)),
        }
    )


def groups_of(path, **roles):
    return OrderedGroups.of(Input(parse_source(str(path))), ColumnRoles(**({"time": "t"} | roles)))


def run(monkeypatch, capfd, *arguments):
    monkeypatch.setattr(sys, "argv", ["cerflow", "run", "--runner", "local", *map(str, arguments)])
    with pytest.raises(SystemExit) as done:
        cli.main()
    out, err = capfd.readouterr()
    # The events at which matches are detected come in order, the matches of one event may come in any.
    found = sorted(out.splitlines(), key=lambda line: (json.loads(line)["detected_at"] if line[0] == "{" else 0, line))
    assert [line.split(",")[0] for line in found] == [line.split(",")[0] for line in out.splitlines()] or out[0] != "{"
    said = err.splitlines()
    # The closing line tells times; it may take several lines of a terminal.
    closing = next((number for number, line in enumerate(said) if " events, " in line), len(said))
    return done.value.code, found, said[:closing]


def both(monkeypatch, capfd, path, *arguments):
    """What a run over a file says group by group, which must be what it says of the file as a whole."""
    given = ["--input", path, "--time-column", "t", *arguments]
    assert groups_of(path) is not None
    found = run(monkeypatch, capfd, *given)
    with monkeypatch.context() as patch:
        patch.setattr(OrderedGroups, "of", lambda *_: None)
        assert run(monkeypatch, capfd, *given) == found
    return found


@pytest.mark.parametrize("kind", TIMES.values(), ids=TIMES)
def test_every_kind_of_time(tmp_path, monkeypatch, capfd, kind):
    pq.write_table(events(kind=kind), tmp_path / "e.parquet", row_group_size=700)
    code, out, said = both(monkeypatch, capfd, tmp_path / "e.parquet", "-e", QUERY)
    assert (code, said) == (0, [])
    assert len(out) > 1000
    assert json.loads(out[0])["events"][0]["unread"] > 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.name AS n, b.v - a.v AS d WHERE (A AS a ; B AS b) WITHIN 3 EVENTS",
        "SELECT COUNT(*) AS n WHERE A ; B+ AS b ; C WITHIN 5 [t]",
        "SELECT * WHERE (A AS a ; B AS b) FILTER a.v > 47 AND b.v > 47 PARTITION BY name CONSUME BY ANY",
        "SELECT * WHERE A ; MISSING",
        "SELECT * WHERE A FILTER A.v > 50",
        "SELECT ANY * WHERE A : B",
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_every_kind_of_query(tmp_path, monkeypatch, capfd, query, form):
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500)
    both(monkeypatch, capfd, tmp_path / "e.parquet", "-e", query, "--output-format", form)


def test_rows_of_a_group_are_put_in_order(tmp_path, monkeypatch, capfd):
    table = events()
    shuffled = [table.slice(k, 500).take(np.random.default_rng(k).permutation(500)) for k in range(0, 3000, 500)]
    # Times on both sides of a border are equal in the table, so groups may touch.
    pq.write_table(pa.concat_tables(shuffled), tmp_path / "e.parquet", row_group_size=500)
    code, out, _ = both(monkeypatch, capfd, tmp_path / "e.parquet", "-e", QUERY)
    assert code == 0
    assert out


def test_bad_windows_are_named_by_their_row_in_the_input(tmp_path, monkeypatch, capfd):
    table = events(1000)
    measure = np.arange(1000)
    measure[777] = 3
    table = table.append_column("m", pa.array(measure))
    order = np.concatenate([np.arange(500), np.arange(999, 499, -1)])
    pq.write_table(table.take(order), tmp_path / "e.parquet", row_group_size=500)
    table = pq.read_table(tmp_path / "e.parquet")
    sequenced = "SELECT * WHERE A ; B WITHIN 5 [m]"
    code, _, said = both(monkeypatch, capfd, tmp_path / "e.parquet", "-e", sequenced, "--output", tmp_path / "o.csv")
    assert code == 1
    assert "row " in said[0]
    assert not (tmp_path / "o.csv").exists()


def test_output_has_the_types_of_the_input(tmp_path, monkeypatch, capfd):
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500)
    for query in (QUERY, "SELECT a.name AS n, a.type AS k WHERE A AS a"):
        both(monkeypatch, capfd, tmp_path / "e.parquet", "-e", query, "--output", tmp_path / "o.parquet")
        assert "dictionary" not in str(pq.read_schema(tmp_path / "o.parquet"))


def test_files_of_a_directory_follow_each_other(tmp_path, monkeypatch, capfd):
    table = events()
    (tmp_path / "all").mkdir()
    for k in range(3):
        pq.write_table(table.slice(k * 1000, 1000), tmp_path / "all" / f"{k}.parquet", row_group_size=300)
    code, out, _ = both(monkeypatch, capfd, tmp_path / "all", "-e", QUERY, "--rename", "w=unread")
    assert code == 0
    assert '"w"' in out[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.take(np.arange(len(t))[::-1]),
        lambda t: t.set_column(2, "t", pa.array([None, *range(1, len(t))])),
        lambda t: t.set_column(2, "t", t["t"].cast(pa.float64())),
        lambda t: t.set_column(0, "type", pa.array([None, *t["type"].to_pylist()[1:]])),
        lambda t: t.slice(0, 0),
    ],
    ids=["backwards", "no time", "floats", "no type", "no rows"],
)
def test_what_is_read_at_once(tmp_path, change):
    pq.write_table(change(events()), tmp_path / "e.parquet", row_group_size=500)
    assert groups_of(tmp_path / "e.parquet") is None


def test_statistics_and_columns_decide(tmp_path):
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500, write_statistics=False)
    assert groups_of(tmp_path / "e.parquet") is None
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500)
    assert groups_of(tmp_path / "e.parquet", sequence="v") is None
    assert groups_of(tmp_path / "e.parquet", time=None) is not None
    with (tmp_path / "e.parquet").open("r+b") as file:
        file.write(b"PAR1" + b"\xff" * 5000)
    with pytest.raises(Exception, match=r"cannot read .*e.parquet as parquet"):
        list(groups_of(tmp_path / "e.parquet").parts(["type", "t", "v"]))


def test_wrong_statistics_are_told(tmp_path):
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500)
    found = groups_of(tmp_path / "e.parquet")
    object.__setattr__(found, "groups", tuple(replace(one, least=one.least + 1) for one in found.groups))
    with pytest.raises(Exception, match=r"the statistics of 't' in row group 0 of .* are wrong; write the file again"):
        list(found.parts(["type", "t"]))


def test_small_groups_of_a_file_are_read_together(tmp_path, monkeypatch):
    for k in range(2):
        pq.write_table(events().slice(k * 1500, 1500), tmp_path / f"{k}.parquet", row_group_size=400)
    found = groups_of(tmp_path)
    assert [len(part.table) for part in found.parts(["type", "t", "name"])] == [1500, 1500]
    monkeypatch.setattr(limits, "PUSH_ROWS", 900)
    parts = list(found.parts(["type", "t", "name"]))
    assert [len(part.table) for part in parts] == [800, 700, 800, 700]
    assert [part.rows.tolist() for part in parts] == [
        list(range(a, b)) for a, b in pairwise([0, 800, 1500, 2300, 3000])
    ]
    table = pa.concat_tables([part.table for part in parts]).select(["type", "name", "t"])
    assert table.cast(events().select(["type", "name", "t"]).schema).equals(events().select(["type", "name", "t"]))
    monkeypatch.setattr(limits, "PUSH_BYTES", 1)
    assert [len(part.table) for part in found.parts(["type", "t"])] == [400, 400, 400, 300] * 2
    monkeypatch.undo()
    wrong = [replace(one, greatest=one.greatest - 1) if one.place == (1, 2) else one for one in found.groups]
    object.__setattr__(found, "groups", tuple(wrong))
    with pytest.raises(Exception, match=r"statistics of 't' in row group 2 of .*1.parquet are wrong"):
        list(found.parts(["type", "t"]))


def test_columns_that_nobody_reads_stay_in_the_file(tmp_path):
    pq.write_table(events(), tmp_path / "e.parquet", row_group_size=500)
    first = next(groups_of(tmp_path / "e.parquet").parts(["type", "t"]))
    assert first.table.column_names == ["type", "t"]
    assert pa.types.is_dictionary(first.table.schema.field("type").type)
