"""A look at the bytes of a column spares a look at its values, and changes nothing of what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.api.stream_inputs import Input
from cerflow.base.errors import InputError
from cerflow.files import blocks, conversion
from cerflow.files import column_types as looks
from cerflow.files.column_types import type_named
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.reading import read_inputs
from cerflow.files.sources import InputFormat, source_of
from cerflow.logic.analysis.columns import ColumnUsage
from support.runners import examples

#: Values of one kind, of which most columns are, and values of all kinds.
KINDS = [
    ["0", "1", "-1", "+1", "007", "-0", "00", "9223372036854775807", "-9223372036854775808"],
    ["1.5", "-1.", ".5", "+.25", "1", "-0", "-0.0", "007", "100000000000000000000", "0.1"],
    ["9223372036854775808", "-9223372036854775809", "1", "1.5", "9" * 400, "9" * 400 + ".5"],
    ["2024-01-01", "2024-02-30", "0000-01-01", "1", "1-1", "1/2"],
    ["1", "-", "+", ".", "--1", "+-1", "-+1", "1.5.2", '"1,5"', '""', "", "+", "1-", "1+1"],
    ["1", "1e5", "1e400", "0x1", "0X1", "nan", "NaN(1)", "-inf", "Infinity", " 1", "1\t", "\u00a01"],
    ["2024-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "2024-01-01 00:00:00Z"],
    ["2024-01-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T23:59:60Z", "2024-01-01T00:00:00A"],
    ["2024-01-01T00:00:00.123456", "9999-12-31T23:59:59.999999", "0001-01-01T00:00:00.000001"],
    ["2024-01-01", "2024-12-31", "0001-01-01"],
    ["2024-01-01 10:00", "2024-01-01T10:00", "2024-01-01 10:0x", "2024-01-01 10:00:00.1234567", "2024-01-01T10"],
    ["x", "true", "FALSE", "Müller", "\ufdd0", "a b", " x", "\x1f1", "\x7f"],
]
VALUES = st.one_of(*[st.sampled_from(kind) for kind in KINDS])
COLUMN = st.one_of(
    *[st.lists(st.sampled_from(kind), min_size=6, max_size=6) for kind in KINDS],
    st.lists(VALUES, min_size=6, max_size=6),
)
USES = [
    ColumnRoles(usage=ColumnUsage(numbers=frozenset({"v"}))),
    ColumnRoles(usage=ColumnUsage(ordered=frozenset({"v"}))),
    ColumnRoles(usage=ColumnUsage(text=frozenset({"v"}))),
    ColumnRoles(time="v"),
    ColumnRoles(),
]
DECLARED = st.sampled_from([None, None, None, "text", "integer", "float", "timestamp", "boolean"])


def read(path, columns, declared):
    """What is read of a file, to the bit, or the error."""
    types = {"v": type_named(declared)} if declared else {}
    try:
        events = read_inputs([Input(source_of(str(path), InputFormat.CSV, None, types))], columns)
    except InputError as error:
        return str(error)
    rows = None if events.rows is None else events.rows.tolist()
    refused = None if events.refused is None else events.refused.to_pylist()
    return str(events.table.schema), repr(events.table.to_pylist()), rows, refused, events.remarks


@examples(300)
@given(COLUMN, st.sampled_from([0, 0, 120]), st.sampled_from(USES), DECLARED)
def test_with_and_without_a_look_at_the_bytes(tmp_path_factory, column, before, uses, declared):
    path = tmp_path_factory.getbasetemp() / "cheap.csv"
    column = column[:1] * before + column  # more of one kind than are looked at first
    path.write_text("type,v,w\n" + "".join(f"A,{value},{k}\n" for k, value in enumerate(column)), encoding="utf-8")
    quick = read(path, uses, declared)
    with pytest.MonkeyPatch.context() as patch:
        for module in (conversion, looks, blocks):
            patch.setattr(module, "byte_range", lambda _: (0, 255), raising=False)
            patch.setattr(module, "is_plain", lambda _: False, raising=False)
            patch.setattr(module, "times_of_one_form", lambda _: None, raising=False)
        assert read(path, uses, declared) == quick
