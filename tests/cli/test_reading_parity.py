"""Files as they should not be: Spark reads of them what the local reader reads, and refuses the same rows."""

import bz2
import gzip
import math
import re

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
import zstandard
from pyspark.errors import PySparkException

import cerflow
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.cli.commands.request import Inputs
from cerflow.cli.options import InputOptions
from cerflow.cli.spark.reading import read_frame
from cerflow.files import blocks as pieces
from cerflow.files.blocks import read_blocks
from cerflow.files.input_plans import InputPlan, survey, survey_of_pieces, texts
from cerflow.files.raw_rows import FilePart

DEEP = b'{"type":"D","v":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
LINES = b'{"type":"A","v":1}\n{"type":"B","v":2}\n'
#: Name: content, and what is read: (numbers of the rows, numbers of those refused), or the start of the error.
FILES = {
    "plain.csv": (b"type,v\nA,1\nB,2\n", ([0, 1], [])),
    "carriage.csv": (b"type,v\r\nA,1\r\n\r\nB\r\nB,2", ([0, 2], [1])),
    "old-mac.csv": (b"type,v\rA,1\rB\rB,2\r", ([0, 2], [1])),
    "ragged.csv": (b"type,v\nA,1\n\nB\nA,1,2\n\nB,x\nB,4\n", ([0, 4], [1, 2, 3])),
    "quotes.csv": (b'type,v,s\nA,1,"x\ny,""z"""\nB\nB,2,5" pipe\n', ([0, 2], [1])),
    "open-quote.csv": (b'type,v,s\nA,1,x\nB,2,"y\nA,3,z\n', ([0], [1])),
    "long-row.csv": (b'type,v,s\nA,1,x\nB\nA,2,"' + b"line\n" * 500_000 + b'"\nB,3,z\n', ([0, 2, 3], [1])),
    "byte.csv": (b"type,v,s\nA,1,x\nB,2,M\xfcller\nA,3,z\xff\nB,4,\n", ([0, 3], [1, 2])),
    "byte-ragged.csv": (b"type,v\nA,\xff,3\nA,1\n\xff\nB,2\n", ([1, 3], [0, 2])),
    "mark.csv": (b"\xef\xbb\xbftype,v\nA,1\n", ([0], [])),
    "utf16.csv": ("type,v,s\nA,1,é\nB,2,x\n".encode("utf-16"), "cannot read .*: the header is not utf-8.*UTF-16"),
    "half.utf16.csv": ("type,v,s\nA,1,é\n".encode("utf-16") + b"B\x00,\x00002\x00,\x00\x00\xd8\n\x00", ([0], [1])),
    "latin.latin1.csv": ("type,v,s\nA,1,Müller\n".encode("latin-1"), ([0], [])),
    "bad.cp1252.csv": (b"type,v,s\nA,1,\x80\nB,2,\x81\n", ([0], [1])),
    "zip.csv": (b"type,zip\nA,00501\nA,501\n", ([0, 1], [])),
    "big.csv": (b"type,v,id\nA,1,123456789012345678901234567890\nB,1e400,9223372036854775808\nB,2,1\n", ([0, 2], [1])),
    "words.csv": (
        b"type,v,a,b,c,d\nA,NaN,TRUE,2024-01-01,2024-02-30,09:30\nB,-inf,false,2024-01-02,2024-03-01,x\n",
        ([0, 1], []),
    ),
    "semicolons.excel.csv": (
        b'type;v;s;t\nA;1,5;"a;b";1.3.2024 09:30\nB;1.5;1,5;02.03.2024 10:00\n\nB;"2,0";x"y;31.02.2024 10:00\nB\n'
        b"B;-,5e1;1.5;\nB;7;;02.03.2024 10:00\n",
        ([0, 5], [1, 2, 3, 4]),
    ),
    "spaces.csv": (b"type,v,w\nA, 1 ,\t2\nB,\xc2\xa02,x\n", ([0, 1], [])),
    "moments.csv": (b"type,v,t\nA,1,2024-01-01T00:00:00+02:00\nB,2,2024-01-01 00:00:00.1234567\n", ([0, 1], [])),
    "long.csv": (b"type,v\n" + b"A,1\n" * 60_000 + b"B\nB,2\nB,x\n", ([*range(60_000), 60_001], [60_000, 60_002])),
    "nothing.csv": (b"", ([], [])),
    "blank.csv": (b"\n\r\n", ([], [])),
    "header.csv": (b"type,v", ([], [])),
    "nulls.csv": (b"type,v,s\nA,,\n,1,\n", ([0], [1])),
    "plain.json": (LINES, ([0, 1], [])),
    "mark.json": (b"\xef\xbb\xbf" + LINES, ([0, 1], [])),
    "utf16.utf16.json": (LINES.decode().encode("utf-16"), ([0, 1], [])),
    "separators.json": (
        '{"type":"A","v":1,"s":"a\u2028b\u0085c"}\nbroken\n{"type":"B","v":2,"s":"\u2029"}\n'.encode(),
        ([0, 2], [1]),
    ),
    "byte.json": (b'{"type":"A","v":1,"s":"\xff"}\n' + LINES + b"\xfe\n", ([1, 2], [0, 3])),
    "half.json": (b'{"type":"A","v":1,"s":"\\ud800"}\n{"type":"B","v":2,"s":"\\ud83d\\ude00"}\n', ([1], [0])),
    "deep.json": (LINES + DEEP + b"\n" + LINES, ([0, 1, 3, 4], [2])),
    "double.json": (b'{"type":"A","v":1,"v":2}\n{"type":"A","v":{"x":1,"x":1}}\n' + LINES, ([2, 3], [0, 1])),
    "infinite.json": (b'{"type":"A","v":NaN}\n{"type":"B","v":-Infinity}\n{"type":"B","v":Inf}\n', ([0, 1], [2])),
    "huge.json": (
        b'{"type":"A","v":1,"id":123456789012345678901234567890}\n{"type":"B","v":1e400}\n'
        b'{"type":"B","v":2,"id":18446744073709551615}\n{"type":"B","v":' + b"9" * 5000 + b"}\n",
        ([0, 2], [1, 3]),
    ),
    "others.json": (b'null\n5\n"x"\n[1]\n{}\n{"type":"A","v":1} {"type":"B"}\n' + LINES, ([6, 7], [0, 1, 2, 3, 4, 5])),
    "empty-objects.json": (b"{}\n{ }\n" + LINES + b"{}", ([2, 3], [0, 1, 4])),
    "only-empty-objects.json": (b"{}\n{}\n", ([], [0, 1])),
    "lines.json": (b'\r\n{"type":"A","v":1}\r\n \t\r\n{"v":2,\n"type":"B"}\r\n{"type":"B","v":3}', ([0, 3], [1, 2])),
    "mixed.json": (
        b'{"type":"A","v":1,"s":1.50}\n{"type":"B","v":"2","s":"x"}\n{"type":"B","v":"x","s":true}\n'
        b'{"type":7,"v":2,"s":[1]}\n',
        ([0, 1, 3], [2]),
    ),
    "nested.json": (b'{"type":"A","v":1,"s":{"a":[1,null]}}\n{"type":"B","s":{"b":"2024-01-01"}}\n', ([0, 1], [])),
    "hollow.json": (b'{"type":"A","v":1,"s":{}}\n{"type":"B","v":2,"s":{},"u":null}\n', ([0, 1], [])),
    "moments.json": (
        b'{"type":"A","v":1,"t":"2024-01-01T00:00:00Z"}\n{"type":"B","v":2,"t":"2024-01-01"}\n',
        ([0, 1], []),
    ),
    "late.json": (
        LINES * 30_000 + b'{"type":"B","v":2.5,"s":1}\n{"type":"B","v":"x","s":{}}\n',
        ([*range(60_001)], [60_001]),
    ),
    "array.json": (
        b' [{"type":"A","v":1}, {"type":"B","v":2,"v":2},\n5, {"type":"B","s":"\\ud800"}, {"type":"B"}]',
        ([0, 4], [1, 2, 3]),
    ),
    "byte-array.json": (b'[{"type":"A","v":1},{"type":"B","s":"\xff"}]', ([0], [1])),
    "broken-array.json": (b'[{"type":"A","v":1},', "cannot read .* as json: the JSON array is broken"),
    "deep-array.json": (b"[" + DEEP + b"]", "cannot read .* as json: brackets are nested more than 100 deep"),
    "nothing.json": (b"", ([], [])),
    "no-array.json": (b"[]", ([], [])),
    "only-broken.json": (b"x\ny\n", ([], [0, 1])),
    "half.json.gz": (gzip.compress(LINES)[:-10], "cannot read .* as json"),
    "two.json.gz": (gzip.compress(LINES) + gzip.compress(LINES), ([0, 1, 2, 3], [])),
    "plain.json.bz2": (bz2.compress(LINES), ([0, 1], [])),
    "plain.csv.zst": (zstandard.compress(b"type,v\nA,1\nB\n"), ([0], [1])),
    "plain.csv.lz4": (pa.compress(b"type,v\nA,1\nB\n", "lz4", asbytes=True), ([0], [1])),
}  # fmt: skip
TABLES = {
    "text.parquet": (pa.table({"type": ["A", None, "B", "B"], "v": [" 1", "2", "x", "3"], "s": [b"x"] * 4}), [1, 2]),
    "text.orc": (pa.table({"type": ["A", "B"], "v": ["1.5", "99999999999999999999"], "t": ["a", "b"]}), []),
    "typed.parquet": (pa.table({"type": pa.array([1, None, 2]), "v": pa.array([1, 2, 3], pa.int32())}), [1]),
}
FORMS = {
    "utf16": {"encoding": "utf-16"},
    "latin1": {"encoding": "latin-1"},
    "cp1252": {"encoding": "cp1252"},
    "excel": {"delimiter": ";", "decimal_point": ",", "time_format": "%d.%m.%Y %H:%M", "time": ["t"]},
}
QUERY = cerflow.parse("SELECT * WHERE A AS a ; B AS b FILTER a.v + b.v > 0")


def plain(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def rows_of(table):
    return [tuple(map(plain, row)) for row in zip(*(column.to_pylist() for column in table.columns))]


def options(path, **others):
    form = next((form for mark, form in FORMS.items() if f".{mark}." in path.name), {})
    return InputOptions([str(path)], **form, **others)


def local(given):
    """The table, the numbers of its rows, the refused rows, and the remarks; or the error."""
    try:
        read = Inputs.prepare(QUERY, given)
        events = read.read()
    except InputError as error:
        return str(error)
    numbers = list(range(len(events.table))) if events.rows is None else events.rows.tolist()
    return events.table, numbers, [] if events.refused is None else events.refused.to_pylist(), events.remarks


@pytest.mark.parametrize("name", FILES)
def test_what_is_read(tmp_path, name):
    content, expected = FILES[name]
    (tmp_path / name).write_bytes(content)
    found = local(options(tmp_path / name))
    if isinstance(expected, str):
        assert re.search(expected, found), found
    else:
        assert (found[1], [row["row"] for row in found[2]]) == expected
        assert all(str(tmp_path / name) in row["reason"] for row in found[2] if " is not utf-" in row["reason"])


@pytest.mark.parametrize("name", FILES)
def test_pieces_of_a_file(tmp_path, monkeypatch, name):
    content, expected = FILES[name]
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(limits, "FILE_PIECE_BYTES", max(10, len(content) // 20))
    read = Inputs.prepare(QUERY, options(tmp_path / name))
    (one,) = read.inputs
    cut = pieces.cut_file(one.events, tmp_path / name)
    if len(cut) == 1 or (".csv" in name and any(map(pieces.has_quotes, cut))):
        return
    assert b"".join(content[piece.begin : piece.end] for piece in cut) == content
    as_text = texts(one, read.columns)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            list(read_blocks(one.events, cut[0], as_text))
        return
    blocks = [list(read_blocks(one.events, piece, as_text)) for piece in cut]
    found = [survey(one, read.columns, piece, blocks_of) for piece, blocks_of in zip(cut, blocks)]
    plan = InputPlan.of(one, read.columns, [survey_of_pieces(found)], False)
    table, rows, refused, _ = local(options(tmp_path / name))
    parts, before = [], 0
    for piece, each in zip(cut, found):
        parts += [plan.part(block.behind(before), 0, None) for block in read_blocks(one.events, piece, plan.as_text)]
        before += each.rows
    together = pa.concat_tables(part.table for part in parts)
    assert rows_of(together.select(table.column_names)) == rows_of(table)
    assert [row for part in parts for row in part.rows.tolist()] == rows
    lost = [row for part in parts if part.refused is not None for row in part.refused.to_pylist()]
    assert sorted(lost, key=lambda row: row["row"]) == refused


@pytest.mark.parametrize("name", ["big.parquet", "big.orc"])
def test_pieces_of_a_file_with_types(tmp_path, monkeypatch, name):
    table = pa.table({"type": ["A", "B", None, "C"] * 5000, "v": [*map(str, range(19_999)), "x"]})
    if name.endswith("orc"):
        pyarrow.orc.write_table(table, tmp_path / name, stripe_size=1 << 16, batch_size=500, compression="uncompressed")
    else:
        pyarrow.parquet.write_table(table, tmp_path / name, row_group_size=1500)
    monkeypatch.setattr(limits, "FILE_PIECE_BYTES", 30_000)
    read = Inputs.prepare(QUERY, options(tmp_path / name))
    (one,) = read.inputs
    cut = pieces.cut_file(one.events, tmp_path / name)
    assert len(cut) > 2
    assert pa.concat_tables(block.table for each in cut for block in read_blocks(one.events, each)).equals(table)
    surveys = [survey(one, read.columns, each) for each in cut]
    assert survey_of_pieces(surveys).rows == len(table)
    plan = InputPlan.of(one, read.columns, [survey_of_pieces(surveys)], False)
    assert (plan.types, plan.clean) == ({"v": pa.int64()}, False)


@pytest.mark.parametrize(("types", "clean"), [(["A", "B"], True), (["A", None], False)])
def test_it_is_known_of_files_with_types_whether_rows_are_bad(tmp_path, types, clean):
    pyarrow.parquet.write_table(pa.table({"type": types, "v": [1, None]}), tmp_path / "a.parquet")
    read = Inputs.prepare(QUERY, options(tmp_path / "a.parquet"))
    found = survey(read.inputs[0], read.columns, FilePart(tmp_path / "a.parquet"))
    assert (found.rows, found.columns["v"].values) == (2, 0)
    assert InputPlan.of(read.inputs[0], read.columns, [found], False).clean is clean


def compared(spark, given):
    """Read a path by both, compare, and give what the local reader found."""
    found = local(given)
    read = Inputs.prepare(QUERY, given)
    if isinstance(found, str):
        with pytest.raises(PySparkException, match=re.escape(found)):
            read_frame(spark, read)
        return found
    table, _, refused, remarks = found
    events = read_frame(spark, read)
    assert events.remarks == remarks
    assert events.rows == len(table) + len(refused)
    told = [] if events.refused is None else events.refused.toArrow().to_pylist()
    assert sorted(told, key=lambda row: row["row"]) == refused
    usable = events.events.toArrow()
    types = [(f.name, str(f.type).replace("element:", "item:")) for f in usable.schema]
    assert types == [(f.name, str(f.type)) for f in table.schema]
    assert rows_of(usable) == rows_of(table)
    return found


@pytest.mark.long
@pytest.mark.slow
def test_spark_reads_the_same(tmp_path, spark, monkeypatch):
    # Spark reads the largest of the files in pieces.
    monkeypatch.setattr(limits, "FILE_PIECE_BYTES", 100_000)
    for name, (content, expected) in FILES.items():
        kind = "csv" if ".csv" in name else "json"
        alone = isinstance(expected, str) or any(f".{mark}." in name for mark in FORMS)
        folder = tmp_path / ("alone" if alone else kind)
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    # Most files by one read: sessions are slow, and there are columns with other types in other files.
    refused = [len(compared(spark, options(tmp_path / kind))[2]) for kind in ("csv", "json")]
    assert min(refused) > 10
    compared(spark, options(tmp_path / "csv" / "zip.csv", column_types=["zip=text"]))
    compared(spark, options(tmp_path / "csv" / "nothing.csv"))
    for path in sorted((tmp_path / "alone").iterdir()):
        compared(spark, options(path))
    pyarrow.parquet.write_table(TABLES["text.parquet"][0], tmp_path / "pieces.parquet", row_group_size=1)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "FILE_PIECE_BYTES", 100)
        found = compared(spark, options(tmp_path / "pieces.parquet"))
    assert [row["row"] for row in found[2]] == TABLES["text.parquet"][1]
    for name, (table, expected) in TABLES.items():
        writer = pyarrow.orc.write_table if name.endswith("orc") else pyarrow.parquet.write_table
        writer(table, tmp_path / name)
        assert [row["row"] for row in compared(spark, options(tmp_path / name))[2]] == expected, name
