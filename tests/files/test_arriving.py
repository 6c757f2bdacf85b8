"""Lines that come by a pipe are events as soon as they come, by the types of the first ones."""

import gzip
import json
import os
import threading
from itertools import pairwise
from unittest import mock

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cerflow.api.stream_inputs import Input
from cerflow.base.errors import InputError
from cerflow.cli.app import app
from cerflow.files import reading
from cerflow.files.blocks import read_blocks
from cerflow.files.column_types import type_named
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.raw_rows import FilePart
from cerflow.files.reading import read_inputs
from cerflow.files.sources import InputFormat, Source, source_of


def come(chunks, kind, columns, patient=True, encoding="utf-8", **types):
    """The tables of events, and what is said."""
    declared = {name: type_named(text) for name, text in types.items()}
    source = Source("-", InputFormat(kind), (), encoding=encoding, column_types=declared)
    said = []
    with mock.patch.object(reading, "standard_input", return_value=iter(chunks)):
        nothing, *tables = reading.arriving_events(Input(source), columns, patient=patient, say=said.append)
    assert not len(nothing.table)
    assert all(part.table.schema == nothing.table.schema for part in tables)
    return tables or [nothing], said


def refusals(tables):
    found = [row for table in tables if table is not None for row in table.to_pylist()]
    return sorted((row["row"], row["reason"], row["text"]) for row in found)


def cut(data, places):
    places = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [piece for a, b in pairwise(places) if (piece := data[a:b])]


_FIELDS = st.sampled_from(["", "a", '"b"', '"c\nd"', '"e""f"', '"g,h"', 'i"j', '"k"l', '"', '"""', "\r", "3"])
_ROWS = st.lists(st.lists(_FIELDS, min_size=1, max_size=3).map(",".join), max_size=6)
_PLACES = st.lists(st.integers(0, 200), max_size=8)


@given(_ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), _PLACES)
def test_csv_in_pieces_gives_the_rows_of_the_whole(tmp_path_factory, rows, ends, blank, places):
    data = ends.join(["type,v", *([""] if blank else []), *rows, ""]).encode()
    path = tmp_path_factory.getbasetemp() / "whole.csv"
    path.write_bytes(data)
    whole = read_inputs([Input(source_of(str(path), column_types={"v": pa.string()}))], ColumnRoles())
    parts, _ = come(cut(data, places), "csv", ColumnRoles(), v="text")
    assert pa.concat_tables([part.table for part in parts]).to_pylist() == whole.table.to_pylist()
    assert refusals(part.refused for part in parts) == refusals([whole.refused])


_VALUES = st.sampled_from([0, -3, 2**53 + 1, 2**63 - 1, 2**64, 1.5, "x", "é", None, True, [1], {"a": 1}])
_LINES = st.one_of(
    st.fixed_dictionaries({"type": st.just("A"), "v": _VALUES}).map(json.dumps),
    st.sampled_from(
        ["", "[]", "{", "3", '{"v": 1}', '{"type": "A"}', '{"type": "A", "v": 1e400}', '{"type": "\\ud800"}']
    ),
)


@pytest.mark.parametrize("kind", ["text", "integer", "float"])
@given(lines=st.lists(_LINES, max_size=8), places=_PLACES)
def test_json_in_pieces_gives_the_rows_of_the_whole(tmp_path_factory, kind, lines, places):
    first = {"text": '"x"', "integer": "1", "float": "1.5"}[kind]
    data = "\n".join([f'{{"type": "A", "v": {first}}}', *lines]).encode()
    parts, _ = come(cut(data, places), "json", ColumnRoles(), v=kind)
    # A line by itself has no neighbour that would change how it is read.
    expected, refused = [], []
    for row, line in enumerate(line for line in data.decode().split("\n") if line):
        path = tmp_path_factory.getbasetemp() / "line.json"
        path.write_text(f'{{"type": "Z", "v": {first}}}\n{line}\n')
        one = read_inputs([Input(source_of(str(path), column_types={"v": type_named(kind)}))], ColumnRoles())
        expected += [event for event in one.table.to_pylist() if event["type"] != "Z"]
        refused += [row] * (one.refused is not None)
    assert pa.concat_tables([part.table for part in parts]).to_pylist() == expected
    assert [row for row, _, _ in refusals(part.refused for part in parts)] == refused


def test_types_follow_from_the_first_lines_and_later_values_are_bad_records():
    lines = ['{"type": "A", "v": 1, "d": {"os": "x"}, "w": null}', '{"type": "B", "v": 2.5, "u": 1}']
    lines += ['{"type": "C", "v": 3, "d": {"os": [1]}, "w": 4}', '{"type": "D", "v": "4", "d": null}']
    parts, said = come([f"{line}\n".encode() for line in lines], "json", ColumnRoles())
    assert parts[0].table.schema == parts[3].table.schema
    rows = [row for part in parts for row in part.table.to_pylist()]
    assert rows == [
        {"type": "A", "v": 1, "d": {"os": "x"}, "w": None},
        {"type": "D", "v": 4, "d": None, "w": None},
    ]
    (_, first, _), (_, second, _) = refusals(part.refused for part in parts)
    assert first == ("v is not an integer: '2.5'; types follow from the first lines, --column-type v=… gives another")
    assert second.startswith("d is not of the type struct<os: string>: ")
    assert said == ["'u' is left out, because the first lines lack it; --column-type u=… keeps it"]


def test_columns_that_come_later_are_kept_where_they_are_known():
    from cerflow.api.query import parse
    from cerflow.logic.analysis.columns import usage_of

    columns = ColumnRoles(usage=usage_of(parse("SELECT * WHERE A AS a FILTER a.v > 1").tree))
    lines = [b'{"type": "A"}\n', b'{"type": "A", "v": 2.5, "u": "2024-03-15"}\n']
    parts, said = come(lines, "json", columns, u="timestamp")
    assert [str(field.type) for field in parts[0].table.schema] == ["string", "timestamp[us]", "double"]
    assert parts[1].table.to_pylist()[0]["v"] == 2.5
    assert parts[1].table.to_pylist()[0]["u"].year == 2024
    assert said == []


def test_lines_that_are_no_events_do_not_decide_on_types():
    lines = [b"no JSON\n", b'{"type": "A", "t": "soon"}\n', b'{"type": "A", "t": 5}\n']
    parts, _ = come(lines, "json", ColumnRoles(time="t"))
    assert [row["t"] for part in parts for row in part.table.to_pylist()] == [5]
    assert [row for row, _, _ in refusals(part.refused for part in parts)] == [0, 1]
    with pytest.raises(InputError, match="no value of the column 't' is a time"):
        come(lines, "json", ColumnRoles(time="t"), patient=False)
    with pytest.raises(InputError, match="no value of the column 't' is a time"):
        come(lines[:2], "json", ColumnRoles(time="t"))


def test_what_cannot_be_read_line_by_line():
    array = b'[{"type": "A", "v": 1},\n {"type": "A", "v": 2.5}]'
    parts, _ = come([array[:20], array[20:30], array[30:]], "json", ColumnRoles())
    assert [row["v"] for part in parts for row in part.table.to_pylist()] == [1, 2.5]
    text = "type,v\nA,é\n".encode("utf-16")
    parts, _ = come([text[:3], text[3:20], text[20:]], "csv", ColumnRoles(), encoding="utf-16")
    assert [row["v"] for part in parts for row in part.table.to_pylist()] == ["é"]
    assert [len(part.table) for part in come([], "json", ColumnRoles())[0]] == [0]
    assert [part.table.column_names for part in come([b"type,v"], "csv", ColumnRoles())[0]] == [["type", "v"]]
    assert [part.table.to_pylist() for part in come([b"kind\nA\n"], "csv", ColumnRoles())[0]] == [[{"kind": "A"}]]
    with pytest.raises(InputError, match="the type column 'kid' is not in the input; did you mean 'kind'"):
        come([b"kind\nA\n"], "csv", ColumnRoles("kid"))
    with pytest.raises(InputError, match="the column 'w', whose type is given"):
        come([b"type,v\nA,1\n"], "csv", ColumnRoles(), w="float")
    with (
        mock.patch("cerflow.base.limits.TEXT_ROW_BYTES", 100),
        pytest.raises(InputError, match="a row after row 0 has more"),
    ):
        come([b"type,v\nA,1\n", b'A,"', b"x" * 101], "csv", ColumnRoles())


def run(monkeypatch, capfd, lines, *arguments):
    """The exit code, the output and the messages of a run on lines that come by a pipe."""
    end, begin = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(end))

    def write():
        with os.fdopen(begin, "w") as pipe:
            pipe.writelines(f"{line}\n" for line in lines)

    writer = threading.Thread(target=write)
    writer.start()
    query = ["-e", "SELECT a.v AS a, b.v AS b WHERE A AS a ; B AS b", "--no-positions"]
    try:
        source = ["--input", "-", "--input-format", "json", "--time-column", "t"]
        code = app(["run", *query, *source, *arguments], standalone_mode=False) or 0
    finally:
        writer.join()
    out, err = capfd.readouterr()
    return code, [(row["a"], row["b"]) for row in map(json.loads, out.splitlines())], err


LINES = ['{"type": "A", "t": 5, "v": 1}', '{"type": "B", "t": 6, "v": 2}']


@pytest.mark.parametrize(("program", "pack"), [("zstd", zstandard.compress), ("gzip", gzip.compress)])
def test_what_comes_compressed_is_to_be_unpacked(program, pack):
    packed = pack(b"type,v\nA,1\n")
    for kind in ("csv", "json"):
        source = Source("-", InputFormat(kind), ())
        with pytest.raises(InputError, match=f"standard input is compressed with {program}; unpack it before"):
            list(read_blocks(source, FilePart(data=[packed])))


def test_events_that_go_back_in_time_are_bad_records(monkeypatch, capfd, tmp_path):
    lines = [*LINES, "{", '{"type": "B", "t": 3, "v": 3}', '{"type": "B", "t": 7, "v": 4}']
    code, found, said = run(monkeypatch, capfd, [*LINES, *lines[3:]])
    assert (code, found) == (1, [(1, 2)])
    assert (
        "row 2: time goes backwards in 't', from 6 to 3; events from a pipe are read in the order in which they arrive"
        in said
    )
    letters = tmp_path / "letters.jsonl"
    code, found, said = run(monkeypatch, capfd, lines, "--on-bad-record", f"dead-letter={letters}")
    assert (code, found) == (0, [(1, 2), (1, 4)])
    assert "3 events, 2 matches, 2 bad records" in said
    kept = [(row["row"], row["reason"]) for row in map(json.loads, letters.read_text().splitlines())]
    assert [row for row, _ in kept] == [2, 3]
    assert kept[1][1] == "time goes backwards in 't', from 6 to 3"
    # What is to be ordered is read as a whole.
    code, found, _ = run(monkeypatch, capfd, [*LINES, lines[3]], "--sequence-column", "v")
    assert (code, found) == (0, [(1, 2)])


def test_matches_before_a_bad_record_are_written(monkeypatch, capfd):
    code, found, said = run(monkeypatch, capfd, [*LINES, '{"type": "B", "t": 7}', "{", LINES[1]])
    assert (code, found) == (1, [(1, 2), (1, None)])
    assert "row 3: not JSON" in said


def test_bounds_and_warnings_are_those_of_files(monkeypatch, capfd):
    code, found, said = run(monkeypatch, capfd, [*LINES, LINES[1]], "--max-matches", "1")
    assert (code, len(found)) == (1, 0) or (code, found) == (1, [(1, 2)])
    assert "at most 1 may be listed" in said
    code, found, said = run(monkeypatch, capfd, LINES[:1])
    assert (code, found) == (0, [])
    assert "no event of the input has the type 'B'" in said
    code, found, said = run(monkeypatch, capfd, [])
    assert (code, found) == (0, [])
    assert "the input has no rows" in said
