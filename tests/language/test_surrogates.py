"""Texts with halves of characters, which have no UTF-8, are refused at their place."""

import pytest

import cerflow
from cerflow.builder import label


@pytest.mark.parametrize("number", [0xD800, 0xDCFF, 0xDFFF])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A AS x FILTER x.v = '?'",
        "SELECT * WHERE A AS x FILTER x.v LIKE '?%'",
        'SELECT * WHERE "?" AS x',
        "SELECT * -- ?\nWHERE A",
        "SELECT *\nWHERE ?",
        "DEFINE k AS v = '?' SELECT * WHERE k",
    ],
)
def test_no_query_has_half_a_character(text, number):
    place = text.index("?")
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    for read in (cerflow.parse, cerflow.parse_program):
        with pytest.raises(cerflow.QuerySyntaxError) as refused:
            read(text.replace("?", chr(number)))
        assert (refused.value.line, refused.value.column) == (line, column)
        assert f"'\\u{number:04x}' is half of a character" in str(refused.value)
        str(refused.value).encode()


def test_nor_have_other_texts():
    for read, text in (
        (cerflow.parse_formula, "A FILTER A.v = '\ud800'"),
        (cerflow.parse_sremo, "[v = '\ud800']"),
    ):
        with pytest.raises(cerflow.QuerySyntaxError, match="half of a character"):
            read(text)
    with pytest.raises(cerflow.QuerySyntaxError, match="half of a character"):
        label("x").v == "\ud800"  # noqa: B015
    # Characters beyond 16 bits are whole.
    assert (
        cerflow.parse("SELECT * WHERE A FILTER A.v = '\U0001f600'").match([{"type": "A", "v": "\U0001f600"}]).count()
        == 1
    )
