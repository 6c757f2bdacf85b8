"""What cannot be used is refused by policy, and nothing is lost silently."""

import datetime
import math
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import BadRecordError, InputError
from support.runners import examples

QUERY = cerflow.parse("SELECT * WHERE A ; B")
SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


def events(*rows):
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(SCHEMA.names)}, schema=SCHEMA)


GOOD = events(("A", 1, 0), ("B", 2, 0))
BAD = {
    "null type": (events(("A", 1, 0), (None, 2, 1), ("B", 3, 2)), 1, "no event type in 'type'"),
    "null time": (events(("A", 1, 0), ("A", None, 1), ("B", 3, 2)), 1, "no time in 't'"),
    "earlier": (events(("A", 5, 0), ("B", 4, 1), ("B", 5, 2)), 1, "time goes backwards in 't', from 5 to 4"),
    "both": (events((None, None, 1), ("A", 5, 0), ("B", 5, 2)), 0, "no event type in 'type'"),
}


class Collector:
    def __init__(self):
        self.tables = []

    def __call__(self, table):
        self.tables.append(table)

    @property
    def rows(self):
        return [(row["row"], row["reason"]) for table in self.tables for row in table.to_pylist()]


@pytest.mark.parametrize(("table", "row", "reason"), BAD.values(), ids=BAD)
def test_fail(table, row, reason):
    recognizer = QUERY.recognizer(SCHEMA, time="t")
    with pytest.raises(BadRecordError, match=f"row {row}: {reason}") as caught:
        recognizer.push(table)
    assert (caught.value.row, caught.value.reason.partition(";")[0]) == (row, reason)
    assert isinstance(caught.value, ValueError)
    # Nothing of the batch was processed, and the recogniser goes on.
    assert (recognizer.events, recognizer.bad_records) == (0, 0)
    assert recognizer.push(GOOD).count() == 1
    assert recognizer.events == 2


@pytest.mark.parametrize(("table", "row", "reason"), BAD.values(), ids=BAD)
def test_skip(table, row, reason):
    recognizer = QUERY.recognizer(SCHEMA, time="t", on_bad_record="skip")
    (match,) = recognizer.push(table).to_pylist()
    assert (recognizer.events, recognizer.bad_records) == (2, 1)
    assert [event["v"] for event in match["events"]] == [0, 2]
    # Positions count the events that were accepted.
    assert [event["position"] for event in match["events"]] == [0, 1]


@pytest.mark.parametrize(("table", "row", "reason"), BAD.values(), ids=BAD)
def test_callable(table, row, reason):
    refused = Collector()
    recognizer = QUERY.recognizer(SCHEMA, time="t", on_bad_record=refused)
    recognizer.push(GOOD.slice(0, 0))
    assert refused.tables == []
    recognizer.push(table)
    assert refused.rows == [(row, reason)]
    assert refused.tables[0].column_names == ["type", "t", "v", "row", "reason"]
    assert refused.tables[0].schema.field("row").type == pa.int64()
    assert refused.tables[0]["v"].to_pylist() == [table["v"].to_pylist()[row]]


def test_rows_are_numbered_over_all_batches():
    refused = Collector()
    recognizer = QUERY.recognizer(SCHEMA, time="t", on_bad_record=refused)
    recognizer.push(events(("A", 1, 0), (None, 1, 0), (None, 1, 0)))
    recognizer.push(events(("A", 1, 0), ("A", 0, 0)))
    assert [row for row, _ in refused.rows] == [1, 2, 4]
    assert (recognizer.events, recognizer.bad_records) == (2, 3)
    recognizer = cerflow.Recognizer.restore(QUERY, recognizer.snapshot(), on_bad_record=refused)
    recognizer.push(events(("A", 0, 0)))
    assert refused.rows[-1] == (5, "time goes backwards in 't', from 1 to 0")
    assert (recognizer.events, recognizer.bad_records) == (2, 4)


def test_a_row_that_goes_back_does_not_hold_up_the_others():
    refused = Collector()
    recognizer = QUERY.recognizer(SCHEMA, time="t", on_bad_record=refused)
    recognizer.push(events(("A", 5, 0), ("B", 9, 0), ("B", 2, 0), ("B", 8, 0), ("B", 9, 0), ("B", 10, 0)))
    assert [row for row, _ in refused.rows] == [2, 3]
    recognizer.push(events(("A", 9, 0), ("A", 10, 0)))
    assert [row for row, _ in refused.rows] == [2, 3, 6]


def test_names_of_columns_do_not_clash():
    schema = pa.schema([("type", pa.string()), ("row", pa.int64()), ("reason", pa.string())])
    refused = Collector()
    recognizer = QUERY.recognizer(schema, on_bad_record=refused)
    recognizer.push(pa.table({"type": [None], "row": [7], "reason": ["mine"]}, schema=schema))
    assert refused.tables[0].to_pylist() == [
        {"type": None, "row": 7, "reason": "mine", "row_": 0, "reason_": "no event type in 'type'"}
    ]


TIMES = {
    "nan": pa.array([1.0, math.nan, 3.0]),
    "float": pa.array([1.0, None, 3.0]),
    "timestamp": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
    "date": pa.array([datetime.date(1960, 1, 1), None, datetime.date(1961, 1, 1)]),
    "decimal": pa.array([Decimal("1.5"), None, Decimal(3)], pa.decimal128(12, 1)),
    "whole decimal": pa.array([Decimal(1), None, Decimal(3)], pa.decimal128(18, 0)),
    "unsigned": pa.array([1, None, 3], pa.uint8()),
    "negative": pa.array([-5, None, -3]),
    "long ago": pa.array([-5 * 10**17, None, -3 * 10**17], pa.timestamp("ns")),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_times_of_every_type(times):
    table = pa.table({"type": ["A", "A", "B"], "t": times})
    refused = Collector()
    recognizer = QUERY.recognizer(table.schema, time="t", on_bad_record=refused)
    (match,) = recognizer.push(table).to_pylist()
    assert refused.rows == [(1, "no time in 't'")]
    assert match["start_time"] == times[0].as_py()
    recognizer.push(table.slice(0, 1))
    ((row, reason),) = refused.rows[1:]
    assert row == 3
    assert reason.startswith("time goes backwards in 't', from ")


#: The least and the greatest number that a time column of a type holds here, as it lies in memory.
LIMITS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**62), 2**62),
    pa.uint32(): (0, 2**32 - 1),
    pa.date32(): (-100_000, 100_000),
    pa.timestamp("s"): (-(2**42), 2**42),
    pa.timestamp("ms"): (-(2**52), 2**52),
    pa.timestamp("us"): (-(2**62), 2**62),
    pa.timestamp("ns"): (-(2**62), 2**62),
}


@pytest.mark.parametrize("kind", LIMITS, ids=str)
@given(data=st.data())
@examples(40)
def test_order_of_times_at_the_limits_of_their_type(kind, data):
    least, most = LIMITS[kind]
    far = [least, least // 2, least // 4, least // 8, 0, most // 2, most]
    times = data.draw(st.lists(st.sampled_from(far) | st.integers(least, most), min_size=2, max_size=4))
    cut = data.draw(st.integers(1, len(times)))
    # What is in order but for the cut is seen by the check of whole batches.
    times = sorted(times[:cut]) + sorted(times[cut:], reverse=data.draw(st.booleans()))
    column = pa.array(times, pa.int64()).cast(pa.int32() if pa.types.is_date(kind) else kind).cast(kind)
    table = pa.table({"type": ["A"] * len(times), "t": column})
    refused = Collector()
    recognizer = QUERY.recognizer(table.schema, time="t", on_bad_record=refused)
    for part in (table.slice(0, cut), table.slice(cut)):
        recognizer.push(part)
    late = [k for k, time in enumerate(times) if time < max(times[:k], default=time)]
    assert [row for table in refused.tables for row in table.column("row").to_pylist()] == late


def test_a_time_beyond_64_bits():
    table = pa.table({"type": ["A"], "t": pa.array([2**63], pa.uint64())})
    with pytest.raises(BadRecordError, match="row 0: the value 9223372036854775808 of 't' is not between"):
        QUERY.recognizer(table.schema, time="t").push(table)


def test_an_unsigned_integer_beyond_64_bits():
    table = pa.table({"type": ["A"], "v": pa.array([2**63], pa.uint64())})
    with pytest.raises(BadRecordError, match=r"of 'v' is not between .*; give the column as text or as a decimal"):
        cerflow.parse("SELECT * WHERE A FILTER A.v > 0").recognizer(table.schema).push(table)


def test_a_type_that_hides_in_a_dictionary():
    types = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["A", None, "B"]))
    recognizer = QUERY.recognizer(pa.schema([("type", types.type)]), on_bad_record="skip")
    assert recognizer.push(pa.table({"type": types})).count() == 1
    assert recognizer.bad_records == 1


def test_match_names_the_row_of_the_input():
    # Not that of the sorted stream; and time may go backwards there.
    table = events(("B", 5, 0), ("A", 1, 0), (None, 3, 0))
    with pytest.raises(BadRecordError, match="row 2: no event type"):
        QUERY.match(table, time="t")
    assert QUERY.match(table, time="t", on_bad_record="skip").count() == 1
    refused = Collector()
    QUERY.match(table, time="t", on_bad_record=refused)
    assert refused.rows == [(2, "no event type in 'type'")]


def test_a_decreasing_measure_of_a_window():
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 10 [v]")
    table = events(("A", 1, 5), ("B", 1, 4), ("B", 1, 6))
    with pytest.raises(BadRecordError, match=r"row 1: .*measures a window decreases"):
        query.recognizer(SCHEMA).push(table)
    refused = Collector()
    recognizer = query.recognizer(SCHEMA, on_bad_record=refused)
    assert [row["end"] for row in recognizer.push(table).to_pylist()] == [2]
    assert refused.rows == [(1, "an attribute that measures a window decreases: 'v'")]
    assert recognizer.bad_records == 1


def test_the_attributes_that_may_decrease_are_named():
    schema = pa.schema({"type": pa.string(), "v": pa.int64(), "at": pa.struct({"x": pa.int64()})})
    query = cerflow.parse("SELECT * WHERE ((A ; B) WITHIN 10 [v]) WITHIN 10 [at.x]")
    row = {"type": "A", "v": 1, "at": {"x": 2}}
    with pytest.raises(BadRecordError, match=r"row 1: an attribute that measures a window decreases: 'at\.x' or 'v'$"):
        query.recognizer(schema).push(pa.Table.from_pylist([row, {"type": "B", "v": 1, "at": {"x": 1}}], schema))


def test_measures_decrease_in_each_substream_by_itself():
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY t WITHIN 10 [v]")
    recognizer = query.recognizer(SCHEMA, on_bad_record="skip")
    recognizer.push(events(("A", 1, 5), ("A", 2, 1), ("B", 1, 6), ("B", 2, 2)))
    assert recognizer.bad_records == 0
    recognizer.push(events(("B", 2, 1), ("B", 1, 6)))
    assert recognizer.bad_records == 1


def test_the_time_of_a_refused_row_does_not_count():
    rows = [(None, 100, 0), ("A", 1, 0), ("B", 2, 0)]
    for batches in ([events(*rows)], [events(row) for row in rows]):
        refused = Collector()
        recognizer = QUERY.recognizer(SCHEMA, time="t", on_bad_record=refused)
        assert sum(recognizer.push(batch).count() for batch in batches) == 1
        assert refused.rows == [(0, "no event type in 'type'")]
        assert (recognizer.events, recognizer.bad_records) == (2, 1)


def test_match_names_the_row_of_the_input_whose_measure_decreases():
    # Row 0 is refused for its type, and row 1 comes last in the order of time.
    table = events((None, 0, 0), ("B", 9, 4), ("A", 1, 5))
    text = "SELECT * WHERE A ; B WITHIN 10 [v]"
    with pytest.raises(BadRecordError, match=r"row 1: .*measures a window decreases"):
        cerflow.parse(text).match(table, time="t", on_bad_record="skip").count()
    with pytest.raises(BadRecordError, match=r"row 1: .*measures a window decreases"):
        cerflow.QuerySet({"q": text}).match(table, time="t", on_bad_record="skip")["q"].count()


WINDOWS = {
    "time": "SELECT * WHERE A AS x ; B AS y WITHIN 3 milliseconds",
    "attribute": "SELECT * WHERE A AS x ; B AS y WITHIN 3 [v]",
    "by key": "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 3 [v]",
    "inside": "SELECT * WHERE (A AS x ; B AS y WITHIN 3 [v]) ; C AS z PARTITION BY k",
}
KEYED = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("k", pa.string())])
ROWS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["A", "B", "C", None]),
        "t": st.sampled_from([None, 0, 1, 2, 3, 4, 5, 9]),
        "v": st.sampled_from([None, 0, 1, 2, 3, 4, 5]),
        "k": st.sampled_from(["p", "q", None]),
    }
)


def told(rows, batches, restore, make, again):
    """The refused rows, the counts, and the matches by query, of batches or single events."""
    refused = Collector()
    recognizer = make(refused)
    found = []
    for batch in batches:
        matches = recognizer.push(batch)
        if not isinstance(matches, dict):
            matches = {"": matches}
        found += [(name, repr(match)) for name, some in matches.items() for match in some.to_pylist()]
        if restore:
            recognizer = again(recognizer.snapshot(), refused)
    assert recognizer.events + recognizer.bad_records == len(rows)
    numbers = [number for number, _ in refused.rows]
    assert len(set(numbers)) == len(numbers) == recognizer.bad_records
    for table in refused.tables:
        for row in table.to_pylist():
            assert {name: row[name] for name in KEYED.names} == rows[row["row"]]
    return sorted(refused.rows), sorted(found)


@examples(40)
@given(
    st.lists(ROWS, max_size=12), st.sets(st.integers(1, 11)), st.booleans(), st.booleans(), st.sampled_from([*WINDOWS])
)
def test_what_is_refused_does_not_depend_on_the_cuts(rows, cuts, restore, single, window):
    table = pa.Table.from_pylist(rows, KEYED)
    query, queries = cerflow.parse(WINDOWS[window]), cerflow.QuerySet(WINDOWS)

    def one(refused):
        return query.recognizer(KEYED, time="t", on_bad_record=refused)

    def one_again(data, refused):
        return cerflow.Recognizer.restore(query, data, on_bad_record=refused)

    def many(refused):
        return queries.recognizer(KEYED, time="t", on_bad_record=refused)

    def many_again(data, refused):
        return queries.restore(data, KEYED, time="t", on_bad_record=refused)

    ends = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    parts = rows if single else [table.slice(begin, end - begin) for begin, end in pairwise(ends)]
    for make, again in ((one, one_again), (many, many_again)):
        assert told(rows, parts, restore, make, again) == told(rows, [table], False, make, again)


# --- batches of another form -----------------------------------------------------------------------------------------


def test_a_missing_column():
    with pytest.raises(InputError, match="no column 't'"):
        QUERY.recognizer(SCHEMA).push(GOOD.drop_columns(["t"]))


def test_other_columns_do_no_harm_and_order_does_not_matter():
    table = GOOD.append_column("more", pa.array([1, 2])).select(["more", "v", "type", "t"])
    assert QUERY.recognizer(SCHEMA).push(table).to_arrow() == QUERY.recognizer(SCHEMA).push(GOOD).to_arrow()


def test_types_are_cast_if_they_fit():
    narrow = GOOD.cast(pa.schema([("type", pa.large_string()), ("t", pa.int8()), ("v", pa.float64())]))
    assert QUERY.recognizer(SCHEMA).push(narrow).to_arrow() == QUERY.recognizer(SCHEMA).push(GOOD).to_arrow()
    assert QUERY.recognizer(SCHEMA).push(narrow.to_batches()[0]).count() == 1


@pytest.mark.parametrize("column", [pa.array(["x", "y"]), pa.array([1.5, 2.5]), pa.array([[1], [2]])])
def test_types_that_do_not_fit(column):
    with pytest.raises(InputError, match="does not fit the schema"):
        QUERY.recognizer(SCHEMA).push(GOOD.set_column(2, "v", column))


def test_whether_null_is_allowed_does_not_matter():
    strict = pa.schema([pa.field(f.name, f.type, nullable=False) for f in SCHEMA])
    for schema, table in ((SCHEMA, GOOD.cast(strict)), (strict, GOOD)):
        recognizer = QUERY.recognizer(schema)
        recognizer.push(table.slice(0, 1))
        recognizer.push(GOOD.slice(0, 0))
        assert recognizer.push(table.slice(1)).count() == 1


@pytest.mark.parametrize("policy", ["ignore", None, 5])
def test_unknown_policies(policy):
    with pytest.raises(ValueError, match="on_bad_record"):
        QUERY.recognizer(SCHEMA, on_bad_record=policy)


def test_types_must_be_text():
    schema = SCHEMA.append(pa.field("f", pa.float64()))
    with pytest.raises(InputError, match="must hold text, integers or booleans, not double"):
        QUERY.recognizer(schema, type="f")


def test_times_must_be_times():
    with pytest.raises(InputError, match="time column 'type' has type string"):
        QUERY.recognizer(SCHEMA, time="type")


def test_empty_batches():
    recognizer = QUERY.recognizer(SCHEMA, time="t")
    assert recognizer.push(SCHEMA.empty_table()).to_pylist() == []
    assert recognizer.push(pa.RecordBatch.from_pylist([], SCHEMA)).count() == 0
    assert recognizer.push(pa.Table.from_batches([], SCHEMA)).to_arrow().schema == recognizer.schema
    assert recognizer.events == 0


def _broken(rows, at):
    """A column of texts, one of which is not UTF-8."""
    texts = pa.array([b"\xff\xfe" if k == at else b"text %d" % k for k in range(rows)], pa.binary())
    return pa.StringArray.from_buffers(rows, texts.buffers()[1], texts.buffers()[2])


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(("rows", "at"), [(500, 450), (5, 2)])
@pytest.mark.parametrize("condition", ["substr(e.s, 1, 2) = 'te'", "lower(e.s) = 'text 1'"])
def test_a_text_that_is_not_unicode_is_named_where_it_is_noticed(condition, rows, at, encoded):
    query = cerflow.parse(f"SELECT * WHERE EVENT AS e FILTER {condition}")
    texts, sound = _broken(rows, at), pa.array(["text 1", "text 2"])
    if encoded:
        texts = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int32()), texts)
        sound = sound.dictionary_encode()
    events, sound = (pa.table({"s": some, "type": ["A"] * len(some)}) for some in (texts, sound))
    place = "a text in the dictionary of 's'" if encoded else f"row {at}: the text in 's'"
    with pytest.raises(InputError, match=f"{place} is not UTF-8; cast the column"):
        query.match(events).count()
    recognizer = query.recognizer(events.schema)
    found = len(recognizer.push(sound))
    with pytest.raises(InputError, match=f"{'' if encoded else 'row [0-9]+: '}.* is not UTF-8"):
        recognizer.push(events)
    # Nothing of it has been processed.
    assert recognizer.events == 2
    assert len(recognizer.push(sound)) == found > 0
