import gzip
import json
from datetime import datetime

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from cerflow.api.stream_inputs import Input
from cerflow.base.errors import InputError
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.reading import read_inputs
from cerflow.files.sources import InputFormat, parse_source
from cerflow.logic.analysis.columns import ColumnUsage

CSV = """type,price,volume,when,name
SELL,27.5,100,2024-03-15T09:30:00,INTC
BUY,abc,200,2024-03-15T09:30:01,INTC
BUY,27.4,200,yesterday,INTC
BUY,27.4
,27.4,200,2024-03-15T09:30:03.5,INTC
BUY,27.3,300,,INTC
BUY,27.2,300,2024-03-15T09:30:05,INTC
SELL,27.6,400,2024-03-15T09:30:06,007
"""

USED = ColumnRoles(time="when", usage=ColumnUsage(numbers=frozenset({"volume"}), ordered=frozenset({"price"})))


def read(*paths, columns=USED, **options):
    return read_inputs([Input(parse_source(str(path))) for path in paths], columns, **options)


def write(directory, name, content):
    path = directory / name
    path.write_text(content)
    return path


def test_bad_rows_are_set_aside_with_number_and_reason(tmp_path):
    events = read(write(tmp_path, "ticks.csv", CSV))
    assert events.table.column("price").to_pylist() == [27.5, 27.2, 27.6]
    assert events.rows.tolist() == [0, 6, 7]
    assert [(r["row"], r["reason"]) for r in events.refused.to_pylist()] == [
        (1, "price is not a number: 'abc'"),
        (2, "when is not a time: 'yesterday'"),
        (3, "2 fields where 5 are expected"),
        (4, "the type is null"),
        (5, "the time is null"),
    ]
    assert events.refused.column("text").to_pylist() == [None, None, "BUY,27.4", None, None]
    assert events.refused.column("price").to_pylist()[0] == "abc"


def test_clean_rows_leave_nothing_aside(tmp_path):
    events = read(write(tmp_path, "t.csv", "type,when,price,volume\nA,5,1,2\n"))
    assert events.refused is None
    assert events.rows is None
    assert events.table.column("when").type == pa.int64()


def test_text_in_the_query_keeps_digits_as_text(tmp_path):
    path = write(tmp_path, "t.csv", "type,name,other\n1,007,007\n2,008,008\n")
    table = read(path, columns=ColumnRoles(usage=ColumnUsage(text=frozenset({"name"})))).table
    assert table.to_pylist()[0] == {"type": "1", "name": "007", "other": 7}


def test_only_the_empty_field_is_null(tmp_path):
    path = write(tmp_path, "t.csv", 'type,name\nA,NA\nA,\nA,""\nA,null\n')
    assert read(path, columns=ColumnRoles()).table.column("name").to_pylist() == ["NA", None, "", "null"]


def test_a_column_without_any_number_is_at_fault_itself(tmp_path):
    path = write(tmp_path, "t.csv", "type,when,volume\nA,1,many\nA,2,few\n")
    with pytest.raises(InputError, match="no value of the column 'volume' is a number"):
        read(path)


def test_a_column_without_any_time_is_at_fault_itself(tmp_path):
    with pytest.raises(InputError, match="no value of the column 'when' is a time"):
        read(write(tmp_path, "t.csv", "type,when\nA,x\nA,y\n"))


def test_ordered_words_stay_words(tmp_path):
    path = write(tmp_path, "t.csv", "type,when,price\nA,1,low\nA,2,high\nA,3,7\n")
    assert read(path).table.column("price").to_pylist() == ["low", "high", "7"]


def test_json_lines_of_mixed_types(tmp_path):
    lines = [
        json.dumps({"type": "A", "price": 1.5, "when": "2024-01-01T00:00:00"}),
        json.dumps({"type": "A", "price": "abc", "when": "2024-01-01T00:00:01"}),
        "not json",
        "[1]",
        "",
        json.dumps({"type": "B", "price": 2, "when": "2024-01-01T00:00:02.5", "more": {"a": 1}}),
    ]
    events = read(write(tmp_path, "t.jsonl", "\n".join(lines)))
    assert events.table.to_pylist() == [
        {"type": "A", "price": 1.5, "when": datetime(2024, 1, 1), "more": None},
        {"type": "B", "price": 2.0, "when": datetime(2024, 1, 1, 0, 0, 2, 500_000), "more": {"a": 1}},
    ]
    assert [(r["row"], r["text"]) for r in events.refused.to_pylist()] == [(1, None), (2, "not json"), (3, "[1]")]


def test_a_json_array(tmp_path):
    path = write(tmp_path, "t.json", '[{"type": "A", "when": 1},\n {"type": "B", "when": 2}]')
    assert read(path).table.column("type").to_pylist() == ["A", "B"]


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_typed_files_keep_their_types(tmp_path, suffix):
    table = pa.table({"type": ["A", "B"], "volume": ["1", "x"], "when": pa.array([1, 2], pa.timestamp("ns"))})
    path = tmp_path / f"t.{suffix}"
    (pyarrow.parquet.write_table if suffix == "parquet" else pyarrow.orc.write_table)(table, path)
    events = read(path)
    assert events.table.column("volume").to_pylist() == [1]
    assert events.refused.column("reason").to_pylist() == ["volume is not a number: 'x'"]


def test_compressed_csv(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"type,when\nA,1\n"))
    assert len(read(path).table) == 1


def test_a_directory_is_read_in_order_of_names(tmp_path):
    write(tmp_path, "b.csv", "type,when\nB,1\n")
    write(tmp_path, "a.csv", "type,when\nA,2\n")
    write(tmp_path, "_SUCCESS", "")
    assert read(tmp_path).table.column("type").to_pylist() == ["A", "B"]


def test_several_streams_are_told_apart_and_rows_counted_through(tmp_path):
    quotes = write(tmp_path, "quotes.csv", "type,when,price\nQ,1,5\nQ,x,6\n")
    trades = write(tmp_path, "t.csv", "type,when\nT,2\n,3\n")
    events = read(quotes, f"trades={trades}", named=True)
    assert events.table.to_pylist() == [
        {"type": "Q", "when": 1, "price": 5, "stream": "quotes"},
        {"type": "T", "when": 2, "price": None, "stream": "trades"},
    ]
    assert events.rows.tolist() == [0, 2]
    assert [r["row"] for r in events.refused.to_pylist()] == [1, 3]
    assert "row 1 of" in events.refused.column("reason")[1].as_py()


def test_the_stream_column_does_not_hide_an_attribute(tmp_path):
    path = write(tmp_path, "t.csv", "type,stream\nA,mine\n")
    events = read(f"s={path}", columns=ColumnRoles(), named=True)
    assert events.schema.stream == "_stream"
    assert events.table.column("stream").to_pylist() == ["mine"]


def test_inputs_that_do_not_fit_together(tmp_path):
    one = write(tmp_path, "a.csv", "type,v\nA,word\n")
    two = write(tmp_path, "b.csv", "type,v\nA,2024-01-01\n")
    with pytest.raises(InputError, match="do not fit together: the column 'v' is string in 'a' and date32"):
        read(one, two, columns=ColumnRoles())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (ColumnRoles(type="tipe"), "type column 'tipe'.*did you mean 'type'"),
        (ColumnRoles(time="wenn"), "time column 'wenn'.*did you mean 'when'"),
        (ColumnRoles(sequence="volum"), "sequence column 'volum'.*did you mean 'volume'"),
    ],
)
def test_missing_columns_are_named(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, "t.csv", CSV), columns=columns)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"no parquet", "cannot read .* as parquet"),
        ("t.orc", b"no orc", "cannot read .* as orc"),
        ("t.csv", b"ty\xffe\nA\n", "cannot read .*t.csv as csv: the header is not utf-8; if the file is not utf-8"),
        ("t.csv", b"\xff\xfet\x00y\x00", "the file begins with the mark of UTF-16: give the encoding utf-16"),
        ("t.csv", b"type,v,v\nA,1,2\n", "the header has the column 'v' more than once"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path, columns=ColumnRoles())


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="no file or directory"):
        parse_source(str(tmp_path / "nothing.csv"))
    with pytest.raises(InputError, match="has no files"):
        parse_source(str(tmp_path))
    with pytest.raises(InputError, match="--input-format"):
        parse_source(str(write(tmp_path, "t.dat", "")))
    with pytest.raises(InputError, match="--input-format"):
        parse_source("-")


def test_names_and_formats_of_sources(tmp_path):
    plain = write(tmp_path, "t.dat", "")
    odd = tmp_path / "day=1"
    odd.mkdir()
    write(odd, "part.parquet", "")
    assert parse_source(f"s={plain}", InputFormat.CSV).name == "s"
    assert parse_source(str(odd)).name is None
    assert parse_source(str(odd)).format is InputFormat.PARQUET


def test_directories_say_more_of_their_files(tmp_path):
    for directory, content in {
        "day=2024-03-15/hour=7": "type,v\nA,1\n",
        "day=a%20b/hour=__HIVE_DEFAULT_PARTITION__": "v,type\n2.5,B\n",
    }.items():
        (tmp_path / "root" / directory).mkdir(parents=True)
        write(tmp_path / "root" / directory, "part.csv", content)
    expected = [
        {"type": "A", "v": 1.0, "day": "2024-03-15", "hour": 7},
        {"type": "B", "v": 2.5, "day": "a b", "hour": None},
    ]
    columns = ColumnRoles(usage=ColumnUsage(numbers=frozenset({"hour"})))
    assert read(tmp_path / "root", columns=columns).table.to_pylist() == expected
    assert read(tmp_path / "root" / "day=*", columns=columns).table.to_pylist() == expected
    assert read(tmp_path / "root" / "**" / "*.csv", columns=columns).table.to_pylist() == expected
    assert "hour" not in read(tmp_path / "root/day=2024-03-15/hour=7", columns=columns).table.column_names


def test_what_a_file_and_its_directory_say(tmp_path):
    (tmp_path / "v=2").mkdir()
    write(tmp_path / "v=2", "a.csv", "type,v\nA,1\n")
    with pytest.raises(InputError, match=r"the column 'v' is in .* and in the name of its directory too"):
        read(tmp_path, columns=ColumnRoles())


def test_patterns(tmp_path):
    for name in ("b", "a", "c[1]"):
        write(tmp_path, f"{name}.csv", f"type\n{name}\n")
    assert read(tmp_path / "[ab].csv", columns=ColumnRoles()).table.column("type").to_pylist() == ["a", "b"]
    # What is there by this very name is meant.
    assert read(tmp_path / "c[1].csv", columns=ColumnRoles()).table.column("type").to_pylist() == ["c[1]"]
    with pytest.raises(InputError, match="no file or directory matches"):
        parse_source(str(tmp_path / "*.json"))


def test_a_column_without_values_fits_every_other(tmp_path):
    one = write(tmp_path, "a.csv", "type,v,w\nA,1,\n")
    two = write(tmp_path, "b.csv", "type,v,w\nA,,\n")
    schema = read(one, two, columns=ColumnRoles()).table.schema
    assert (schema.field("v").type, schema.field("w").type) == (pa.int64(), pa.string())


def test_times_in_json_keep_their_zone(tmp_path):
    lines = '{"type": "A", "at": "2024-01-01T02:00:00+02:00"}\n{"at": "2024-01-01T00:00:01Z", "type": "B"}\n'
    table = read(write(tmp_path, "t.json", lines), columns=ColumnRoles(time="at")).table
    assert table.column_names == ["type", "at"]
    assert [value.isoformat() for value in table.column("at").to_pylist()] == [
        "2024-01-01T00:00:00+00:00",
        "2024-01-01T00:00:01+00:00",
    ]
