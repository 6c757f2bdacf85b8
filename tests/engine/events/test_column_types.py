"""Columns of every Arrow type in every role: what the definitions say, or an error of cerflow, nothing else."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cerflow
from cerflow.base.errors import CerflowError, InputError
from cerflow.cli.output.writing import OutputFormat, open_sink

DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
#: Two values of each type; columns are these, null, and the second once more.
TYPES = {
    **{str(t): (t, [1, 2]) for t in (pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())},
    **{str(t): (t, [0.5, 2.0]) for t in (pa.float16(), pa.float32(), pa.float64())},
    **{str(t): (t, ["a", "b"]) for t in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(t): (t, [b"a", b"b"]) for t in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))},
    **{str(t): (t, DAYS) for t in (pa.date32(), pa.date64())},
    **{str(t): (t, [1, 2]) for t in (pa.time32("s"), pa.time64("us"), pa.duration("s"))},
    **{str(t): (t, [1, 2]) for u in ("s", "ms", "us", "ns") for t in (pa.timestamp(u), pa.timestamp(u, "Asia/Tokyo"))},
    **{
        str(t): (t, [Decimal(100), Decimal(200)])
        for t in (pa.decimal32(7, 2), pa.decimal64(17, 0), pa.decimal128(38, 2), pa.decimal128(5, -2))
    },
    **{str(t): (t, [Decimal(1), Decimal(2)]) for t in (pa.decimal256(60, 2), pa.decimal128(18, 0))},
    "bool": (pa.bool_(), [False, True]),
    "null": (pa.null(), [None, None]),
    "list": (pa.list_(pa.int8()), [[1], [2]]),
    "struct": (pa.struct([("a", pa.int8())]), [{"a": 1}, {"a": 2}]),
    "map": (pa.map_(pa.string(), pa.int8()), [[("a", 1)], [("b", 2)]]),
}
#: Types that stand in dictionaries and runs, too.
WRAPPED = ("int64", "double", "string", "string_view", "large_string", "binary", "timestamp[us]", "date32[day]", "bool",
           "decimal128(38, 2)", "null")  # fmt: skip


def forms():
    for name, (data_type, (one, other)) in TYPES.items():
        given = [None if v is None else np.float16(v) for v in (one, other)] if name == "halffloat" else (one, other)
        column = pa.array([*given, None, given[1]], data_type)
        yield name, column
        if name in WRAPPED:
            yield (
                f"dictionary of {name}",
                pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), column[:2]),
            )
            hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.uint32()), column[:3])
            yield f"dictionary of {name} and null", hidden
            yield f"runs of {name}", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), column)
    words = pa.array(["a", "b", None, "b"])
    yield "runs of codes", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4]), words.dictionary_encode())
    yield "codes of runs", pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pc.run_end_encode(words[:2]))


FORMS = dict(forms())
QUERIES = [
    "SELECT * WHERE EVENT AS x FILTER x.v IS NULL",
    "SELECT x.v AS v, min(y.v) AS m WHERE EVENT AS x ; (EVENT AS y)+ FILTER x.v <= min(y.v)",
    "SELECT * WHERE EVENT AS x ; EVENT AS y FILTER x.v = y.v PARTITION BY v",
    "SELECT * WHERE EVENT AS x FILTER x.v IN ('b', '2024-01-02')",
    "SELECT * WHERE EVENT ; EVENT WITHIN 2 [v]",
]


def answers(query, table, **roles):
    """What every door says: the matches, or the name of the error."""

    def pushed(parts):
        recognizer = query.recognizer(table.schema, **roles)
        return pa.concat_tables([recognizer.push(part).to_arrow() for part in parts])

    doors = {
        "semantics": lambda: query.match(table, runner="semantics", **roles).to_arrow(),
        "match": lambda: query.match(table, **roles).to_arrow(),
        "batches": lambda: pushed([table.slice(0, 2), table.slice(2)]),
        "events": lambda: pushed(table.to_pylist()),
        "set": lambda: cerflow.QuerySet({"q": query}).match(table, **roles)["q"].to_arrow(),
    }
    found = {}
    for name, door in doors.items():
        try:
            found[name] = sorted(map(repr, door().to_pylist()))
        except CerflowError as error:
            found[name] = type(error).__name__
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_attributes_and_keys(name):
    # Two chunks: those of dictionaries differ.
    column = pa.chunked_array([FORMS[name].slice(0, 2), FORMS[name].slice(2)])
    table = pa.table({"type": ["A", "A", "B", "B"], "v": column})
    for text in QUERIES:
        found = answers(cerflow.parse(text), table)
        assert len(set(map(repr, found.values()))) == 1, (text, found)
    nulls = cerflow.parse(QUERIES[0]).match(table).to_pylist()
    assert [match["start"] for match in nulls] == [k for k, v in enumerate(column.to_pylist()) if v is None]


@pytest.mark.parametrize("name", FORMS)
def test_types_and_times(name):
    column = pa.chunked_array([FORMS[name].slice(0, 2), FORMS[name].slice(2)])
    types = pa.table({"type": column, "v": [1, 2, 3, 4]})
    times = pa.table({"type": ["A", "A", "B", "B"], "t": column})
    for text, table, roles in (
        ("SELECT * WHERE EVENT AS x ; EVENT AS y", types, {}),
        ("SELECT * WHERE EVENT AS x ; EVENT AS y WITHIN 10 DAYS", times, {"time": "t"}),
    ):
        found = answers(cerflow.parse(text), table, on_bad_record="skip", **roles)
        assert len(set(map(repr, found.values()))) == 1, (text, found)


def test_chunks_with_dictionaries_of_their_own():
    chunks = [
        pa.array([f"k{n}", f"k{n}"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for n in range(9)
    ]
    table = pa.table({"type": ["A", "B"] * 9, "k": pa.chunked_array(chunks)})
    found = answers(cerflow.parse("SELECT * WHERE A ; B PARTITION BY k"), table)
    assert len({tuple(rows) for rows in found.values()}) == 1
    assert len(found["match"]) == 9


def test_keys_of_integers_of_different_types():
    table = pa.table(
        {
            "type": ["A", "B", "A", "B"],
            "k": pa.array([2**32 - 1, None, None, None], pa.uint32()),
            "v": pa.array([None, -3, -3, -3], pa.int8()),
            "none": pa.nulls(4),
        }
    )
    for key in ("[k, v]", "[v, none, k]"):
        found = answers(cerflow.parse(f"SELECT * WHERE A ; B PARTITION BY {key}"), table)
        assert len({tuple(rows) for rows in found.values()}) == 1
        assert len(found["match"]) == 1
    assert cerflow.parse("SELECT * WHERE A ; B PARTITION BY none").match(table).count() == 0


def test_times_that_python_has_not(tmp_path):
    far = pa.array([2**62, None, 1], pa.timestamp("us"))
    table = pa.table({"type": ["A", "A", "B"], "at": far, "day": pa.array([2**30, 1, 2], pa.int32()).view(pa.date32())})
    matches = cerflow.parse("SELECT a.at AS at, a, b WHERE A AS a ; B AS b").match(table)
    first, second = sorted(matches.to_pylist(), key=lambda match: match["start"])
    assert first["at"] == first["events"][0]["at"] == np.datetime64(2**62, "us")
    assert first["events"][0]["day"] == np.datetime64(2**30, "D")
    assert second["at"] is None
    assert second["events"][1]["at"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1)
    with open_sink(str(tmp_path / "o.jsonl"), OutputFormat.JSONL, matches.schema) as sink:
        for batch in matches.to_batches():
            sink.write(batch)
    lines = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert {line["at"] for line in lines} == {"148108-07-06T14:00:27.387904", None}
    with pytest.raises(InputError, match="years 1 to 9999"):
        cerflow.parse("SELECT * WHERE A").match(table, runner="semantics").to_pylist()
    nanoseconds = pa.schema([("type", pa.string()), ("t", pa.timestamp("ns"))])
    recognizer = cerflow.parse("SELECT * WHERE A").recognizer(nanoseconds)
    with pytest.raises(InputError, match="'t'"):
        recognizer.push({"type": "A", "t": datetime.datetime(9999, 1, 1)})
