import json
import re
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
import pytest

import cerflow
from cerflow.base.errors import BadRecordError, InputError


def write(path, content, encoding="utf-8"):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode(encoding))
    return path


def test_types_follow_from_the_values_or_are_given(tmp_path):
    path = write(tmp_path / "orders.csv", "type,zip,ok,at\nA,00501,true,2024-01-01T10:00\nA,501,false,2024-01-02\n")
    inferred = cerflow.read_events(path, time="at")
    assert inferred.schema.types == [pa.string(), pa.int64(), pa.bool_(), pa.timestamp("us")]
    table = cerflow.read_events(str(path), column_types={"zip": "text", "ok": "text", "at": "text"})
    assert table.to_pylist()[0] == {"type": "A", "zip": "00501", "ok": "true", "at": "2024-01-01T10:00"}
    assert cerflow.read_events([path], column_types={"zip": "float"}).column("zip").to_pylist() == [501.0, 501.0]
    query = cerflow.parse("SELECT * WHERE A AS a ; A AS b FILTER a.zip = b.zip")
    assert (query.match(inferred).count(), query.match(table).count()) == (1, 0)


def test_types_that_are_given_hold_for_every_format(tmp_path):
    write(
        tmp_path / "a.json", '{"type": "A", "zip": 501, "when": "2024-01-01", "v": "7"}\n{"type": "A", "zip": 1.50}\n'
    )
    table = cerflow.read_events(tmp_path / "a.json", column_types={"zip": "text", "when": "timestamp", "v": "integer"})
    assert table.column("zip").to_pylist() == ["501", "1.5"]
    assert table.schema.types[2:] == [pa.timestamp("us"), pa.int64()]
    pyarrow.parquet.write_table(pa.table({"type": ["A", "B"], "v": [1, 2], "w": ["1", "x"]}), tmp_path / "a.parquet")
    refused = []
    table = cerflow.read_events(
        tmp_path / "a.parquet", column_types={"v": "text", "w": "integer"}, on_bad_record=refused.append
    )
    assert table.to_pylist() == [{"type": "A", "v": "1", "w": 1}]
    assert refused[0].to_pylist() == [
        {"row": 1, "reason": "w is not an integer: 'x'", "text": None, "type": "B", "v": "2", "w": "x"}
    ]


def test_a_column_with_a_type_may_be_given_the_same_or_a_similar_one(tmp_path):
    columns = {
        "type": ["A", "A"],
        "at": pa.array([0, None], pa.timestamp("ms")),
        "there": pa.array([0, 1], pa.timestamp("ns", "Europe/Berlin")),
        "day": pa.array([1, 2], pa.date32()),
        "price": pa.array([Decimal("1.25"), Decimal("2.00")]),
        "code": pa.array(["7", "8"]).dictionary_encode(),
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    given = dict.fromkeys(("at", "there", "day"), "timestamp") | {"price": "float", "code": "integer"}
    table = cerflow.read_events(tmp_path / "a.parquet", column_types=given)
    kinds = [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.float64(), pa.int64()]
    assert table.schema.types[1:] == kinds
    assert table.column("day")[0].as_py() == datetime(1970, 1, 2)
    assert (table.column("price").to_pylist(), table.column("code").to_pylist()) == ([1.25, 2.0], [7, 8])


def test_values_that_do_not_fit_are_bad_records(tmp_path):
    path = write(tmp_path / "t.csv", "type,v\nA,1\nB,x\nC,2.5\n")
    with pytest.raises(BadRecordError, match="row 1: v is not an integer: 'x'"):
        cerflow.read_events(path, column_types={"v": "integer"})
    assert len(cerflow.read_events(path, column_types={"v": "integer"}, on_bad_record="skip")) == 1
    assert len(cerflow.read_events(path, column_types={"v": "float"}, on_bad_record="skip")) == 2
    with pytest.raises(InputError, match=r"no value of the column 'v' is a boolean; row 1 of .*t\.csv.* has 'x'"):
        cerflow.read_events(write(path, "type,v\nA,\nB,x\n"), column_types={"v": "boolean"})


def test_other_encodings(tmp_path):
    text = "type,név\nA,Müller\n"
    for encoding in ("latin-1", "utf-16", "utf-16-le", "cp1252", "utf-8-sig"):
        path = write(tmp_path / "t.csv", text, encoding)
        assert cerflow.read_events(path, encoding=encoding).to_pylist() == [{"type": "A", "név": "Müller"}]
    lines = '{"type": "A", "név": "Müller"}\n'
    path = write(tmp_path / "t.json", lines, "utf-16")
    assert cerflow.read_events(path, encoding="UTF16").to_pylist() == [json.loads(lines)]
    path = write(tmp_path / "t.csv", "type,v\nA,Müller\n", "latin-1")
    with pytest.raises(BadRecordError, match=r"row 0: v of .*t\.csv is not utf-8: 'M\\xfcller'; .* such as latin-1"):
        cerflow.read_events(path)
    for name, says in {
        "latin1x": "did you mean 'latin-1'",
        "base64": "not an encoding of text",
        "rot13": "not an encoding of text",
        "undefined": "not an encoding of text",
        "": "try utf-8",
    }.items():
        with pytest.raises(InputError, match=says):
            cerflow.read_events(path, encoding=name)


def test_files_of_a_directory_are_looked_at_together(tmp_path):
    write(tmp_path / "d" / "a.csv", "type,zip\nA,501\n")
    write(tmp_path / "d" / "b.csv", "zip,type\nK1A,B\n")
    assert cerflow.read_events(tmp_path / "d").to_pylist() == [{"type": "A", "zip": "501"}, {"type": "B", "zip": "K1A"}]
    assert len(cerflow.read_events([tmp_path / "d" / "*.csv", tmp_path / "d" / "b.csv"])) == 3


def test_files_without_rows(tmp_path):
    for name, content in {"a.csv": "", "b.csv": "type,at,v\n", "c.json": "", "d.json": "[]"}.items():
        table = cerflow.read_events(write(tmp_path / name, content), time="at")
        assert len(table) == 0
        assert table.schema.field("at").type == pa.timestamp("us")
        assert ("v" in table.column_names) == (name == "b.csv")


@pytest.mark.parametrize("sign", [";", "|", "\\t"])
def test_columns_between_other_signs(tmp_path, sign):
    text = "type,at,v\nA,01.02.2024,5\n".replace(",", sign.replace("\\t", "\t"))
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(InputError, match=re.escape(f"say delimiter='{sign}' (--delimiter '{sign}')")):
        cerflow.read_events(path)
    table = cerflow.read_events(path, delimiter=sign, time_format="%d.%m.%Y", time="at")
    assert table.to_pylist() == [{"type": "A", "at": datetime(2024, 2, 1), "v": 5}]
    # A name may be as it is if it is meant.
    path = write(tmp_path / "one.csv", "a;b\nA\n")
    assert cerflow.read_events(path, type="a;b").to_pylist() == [{"a;b": "A"}]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"column_types": {"zap": "text"}}, "the column 'zap', whose type is given, is not in the input; .*'zip'"),
        ({"column_types": {"zip": "string"}}, "there is no column type 'string'; the types are text"),
        ({"column_types": {"type": "integer"}}, "the type column 'type' holds text"),
        ({"format": "cvs"}, "there is no format 'cvs'; did you mean 'csv'"),
        ({"time": "wenn"}, "the time column 'wenn' is not in the input"),
        ({"type": "tipe"}, "did you mean 'type'"),
    ],
)
def test_what_cannot_be(tmp_path, options, says):
    path = write(tmp_path / "t.csv", "type,zip\nA,1\n")
    with pytest.raises(InputError, match=says):
        cerflow.read_events(path, **options)
    with pytest.raises(InputError, match="no path"):
        cerflow.read_events([])
    for delimiter in ("", ";;", "é", '"', "\n"):
        with pytest.raises(InputError, match="cannot separate columns"):
            cerflow.read_events(path, delimiter=delimiter)
    with pytest.raises(InputError, match="there is no file or directory"):
        cerflow.read_events(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match="on_bad_record must be"):
        cerflow.read_events(path, on_bad_record="ignore")
