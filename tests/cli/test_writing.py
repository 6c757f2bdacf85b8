import csv
import io
import json
import math
from datetime import datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
import typer

from cerflow.api.query import parse
from cerflow.base.errors import BadRecordError, InputError, OutputError
from cerflow.cli.commands.request import BadRecords, Request
from cerflow.cli.options import InputOptions, OutputOptions, RunOptions
from cerflow.cli.output.targets import check_writable
from cerflow.cli.output.writing import OutputFormat, open_sink, output_format_of

EVENT = pa.struct([("position", pa.int64()), ("labels", pa.list_(pa.string())), ("at", pa.timestamp("ns"))])
SCHEMA = pa.schema(
    [("n", pa.int64()), ("x", pa.float64()), ("when", pa.timestamp("ms", "UTC")), ("events", pa.list_(EVENT))]
)
MOMENT = datetime(2024, 3, 15, 9, 30, 0, 250_000)
BATCH = pa.RecordBatch.from_pylist(
    [
        {"n": 1, "x": 0.5, "when": MOMENT, "events": [{"position": 3, "labels": ["A", "é"], "at": MOMENT}]},
        {"n": None, "x": float("inf"), "when": None, "events": []},
        {"n": 3, "x": float("nan"), "when": None, "events": None},
    ],
    SCHEMA,
)


def write(path, output_format, *batches):
    with open_sink(str(path), output_format, SCHEMA) as sink:
        for batch in batches:
            sink.write(batch)


def test_json_lines(tmp_path):
    write(tmp_path / "o.jsonl", OutputFormat.JSONL, BATCH)
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text("utf-8").splitlines()]
    event = {"position": 3, "labels": ["A", "é"], "at": "2024-03-15T09:30:00.250"}
    assert rows == [
        {"n": 1, "x": 0.5, "when": "2024-03-15T09:30:00.250Z", "events": [event]},
        {"n": None, "x": "Infinity", "when": None, "events": []},
        {"n": 3, "x": None, "when": None, "events": None},
    ]


def test_rows_are_written_alike_one_by_one_and_many_at_once(tmp_path):
    """Values that occur often, nulls, columns of which most is cut off, dictionaries with more texts than rows."""
    inner = pa.struct([("s", pa.dictionary(pa.int8(), pa.string())), ("x", pa.float64())])
    fields = {
        "events": pa.list_(inner),
        "of": inner,
        "map": pa.map_(pa.string(), pa.float64()),
        "none": pa.null(),
        "nothing": pa.struct([]),
        "t": pa.time64("us"),
    }
    schema = pa.schema(list(fields.items()))
    rows = []
    for k in range(200):
        value = {"s": None if k % 5 == 0 else f'"{k % 60}" é', "x": [0.0, -0.0, math.nan, math.inf, None, k / 7][k % 6]}
        row = {"events": [value] * (k % 4), "of": value, "map": [("a", value["x"])], "nothing": {}}
        row["t"] = time(1, 2, 3, 1000 * (k % 3))
        rows.append({name: None if (k + len(name)) % 7 == 0 else row.get(name) for name in fields})
    batch = pa.RecordBatch.from_pylist(rows, schema)
    for output_format in (OutputFormat.JSONL, OutputFormat.CSV):
        texts = []
        for size in (1, 40, 200):
            path = tmp_path / f"{size}.{output_format.value}"
            with open_sink(str(path), output_format, schema) as sink:
                for begin in range(0, len(rows), size):
                    sink.write(batch.slice(begin, size))
            texts.append(path.read_text("utf-8"))
        assert texts[0] == texts[1] == texts[2]
    lines = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "1.jsonl").read_text().splitlines()]
    floats = {None: None, math.inf: "Infinity"}

    def plain(x):
        return None if x is not None and math.isnan(x) else floats.get(x, x)

    for line, row in zip(lines, rows, strict=True):
        assert line["of"] == (row["of"] and {"s": row["of"]["s"], "x": plain(row["of"]["x"])})
        assert line["map"] == (row["map"] and [["a", plain(row["map"][0][1])]])
        assert (line["none"], line["nothing"]) == (None, row["nothing"])
        assert (line["events"] is None) == (row["events"] is None)
        assert len(line["events"] or ()) == len(row["events"] or ())
        assert line["t"] == (row["t"] and row["t"].isoformat())


def test_whole_decimals_stay_whole(tmp_path):
    schema = pa.schema([("n", pa.decimal128(38, 0)), ("part", pa.decimal128(5, 2))])
    batch = pa.RecordBatch.from_pylist([{"n": Decimal(10**30), "part": Decimal("1.25")}], schema)
    with open_sink(str(tmp_path / "o.jsonl"), OutputFormat.JSONL, schema) as sink:
        sink.write(batch)
    assert (tmp_path / "o.jsonl").read_text() == f'{{"n": {10**30}, "part": 1.25}}\n'


def test_decimals_keep_their_digits(tmp_path):
    digits = ["18446744073709551615", "900719925474099200.01", "-0.12345678901234567891", "0.10", "-7"]
    schema = pa.schema([("d", pa.decimal128(38, 18)), ("events", pa.list_(pa.decimal256(60, 25)))])
    exact = [Decimal(d) for d in digits]
    rows = [{"d": Decimal(d[:18]), "events": exact} for d in digits]
    for name, form in (("o.jsonl", OutputFormat.JSONL), ("o.csv", OutputFormat.CSV)):
        with open_sink(str(tmp_path / name), form, schema) as sink:
            sink.write(pa.RecordBatch.from_pylist(rows, schema))
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    found = [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines]
    assert found == rows
    table = list(csv.DictReader(io.StringIO((tmp_path / "o.csv").read_text())))
    assert [Decimal(row["d"]) for row in table] == [row["d"] for row in rows]
    assert [json.loads(row["events"], parse_float=Decimal, parse_int=Decimal) for row in table] == [exact] * len(rows)


def test_csv_holds_lists_as_json(tmp_path):
    write(tmp_path / "o.csv", OutputFormat.CSV, BATCH)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "o.csv").read_text("utf-8"))))
    assert rows[0]["when"] == "2024-03-15T09:30:00.250Z"
    assert json.loads(rows[0]["events"])[0]["labels"] == ["A", "é"]
    assert rows[1] == {"n": "", "x": "inf", "when": "", "events": "[]"}


def test_parquet_keeps_types_in_few_row_groups(tmp_path):
    write(tmp_path / "o.parquet", OutputFormat.PARQUET, *[BATCH] * 50)
    file = pyarrow.parquet.ParquetFile(tmp_path / "o.parquet")
    assert file.metadata.num_row_groups == 1
    table = file.read()
    assert table.num_rows == 150
    assert table.column("events")[0].as_py()[0]["position"] == 3


@pytest.mark.parametrize("output_format", list(OutputFormat))
def test_nothing_written_is_still_a_file(tmp_path, output_format):
    write(tmp_path / "o", output_format)
    assert (tmp_path / "o").exists()


@pytest.mark.parametrize("output_format", list(OutputFormat))
def test_an_error_leaves_the_old_file_and_no_other(tmp_path, output_format):
    path = tmp_path / "o"
    path.write_text("old")

    def fail():
        with open_sink(str(path), output_format, SCHEMA) as sink:
            sink.write(BATCH)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_formats_follow_from_names():
    assert output_format_of("-") is OutputFormat.JSONL
    assert output_format_of("a.PARQUET") is OutputFormat.PARQUET
    assert output_format_of("a.txt", OutputFormat.CSV) is OutputFormat.CSV
    with pytest.raises(InputError, match="--output-format"):
        output_format_of("a.txt")


def test_places_that_cannot_be_written_to(tmp_path):
    check_writable("-")
    check_writable(str(tmp_path / "new.csv"))
    with pytest.raises(OutputError, match="is a directory"):
        check_writable(str(tmp_path))
    with pytest.raises(OutputError, match="no directory"):
        check_writable(str(tmp_path / "a" / "b.csv"))


def test_policies():
    assert (BadRecords("fail").fails, BadRecords("fail").path) == (True, None)
    for given in (("dead-letter", "p.csv"), ("dead-letter=p.csv", None), ("dead-letter=p.csv", "p.csv")):
        assert (BadRecords(*given).fails, BadRecords(*given).path) == (False, "p.csv")


@pytest.mark.parametrize(
    ("policy", "path"),
    [("ignore", None), ("skip", "p"), ("fail=x", None), ("dead-letter", None), ("dead-letter=a", "b")],
)
def test_policies_that_do_not_fit(policy, path):
    with pytest.raises(typer.BadParameter, match=r"dead|not one"):
        BadRecords(policy, path)


REFUSED = pa.table({"row": [4, 7], "reason": ["the type is null", "bad"], "v": [1.5, None]})


def test_fail_names_the_first_row():
    with pytest.raises(BadRecordError, match="row 4: the type is null"):
        BadRecords("fail").refuse(REFUSED)


def test_skip_counts():
    bad = BadRecords("skip")
    bad.refuse(REFUSED)
    bad.refuse(REFUSED.slice(0, 0))
    bad.write()
    assert bad.count == 2


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
def test_dead_letters_are_kept(tmp_path, name):
    path = tmp_path / name
    bad = BadRecords("dead-letter", str(path))
    bad.refuse(REFUSED)
    bad.refuse(REFUSED.drop_columns("v"))
    bad.write()
    assert bad.count == 4
    if name == "d.parquet":
        rows = pyarrow.parquet.read_table(path).to_pylist()
        assert rows[0] == {"row": 4, "reason": "the type is null", "text": None, "v": "1.5"}
        assert len(rows) == 4
    else:
        assert "the type is null" in path.read_text()


def test_no_dead_letters_leave_an_empty_file(tmp_path):
    BadRecords("dead-letter", str(tmp_path / "d.jsonl")).write()
    assert (tmp_path / "d.jsonl").read_text() == ""


def test_orc(tmp_path):
    write(tmp_path / "o.orc", OutputFormat.ORC, BATCH, BATCH)
    table = pyarrow.orc.read_table(tmp_path / "o.orc")
    assert table.column("n").to_pylist() == [1, None, 3, 1, None, 3]
    assert table.column("events").to_pylist()[0] == [{"position": 3, "labels": ["A", "é"], "at": MOMENT}]
    write(tmp_path / "empty.orc", OutputFormat.ORC)
    assert pyarrow.orc.read_table(tmp_path / "empty.orc").column_names == SCHEMA.names


def test_what_orc_does_not_hold(tmp_path):
    schema = pa.schema([("nothing", pa.null())])
    with (
        pytest.raises(InputError, match="cannot be written as ORC"),
        open_sink(str(tmp_path / "o.orc"), OutputFormat.ORC, schema),
    ):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (OutputOptions("-", output_mode="error"), "are for directories"),
        (OutputOptions("o", output_mode="overwrite-partitions"), "needs --partition-by COLUMN"),
    ],
)
def test_directories_that_do_not_make_sense(output, says):
    with pytest.raises(typer.BadParameter, match=says):
        Request(parse("SELECT * WHERE A"), InputOptions(), output, RunOptions())
