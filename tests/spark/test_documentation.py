"""The examples of the guide run and print what the guide shows."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("spark")
def test_the_examples_print_what_the_page_shows(capsys):
    blocks = re.findall(
        r"```py\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) >= 3
    names = {}
    for code, shown in blocks:
        exec(compile(code, str(PAGE), "exec"), names)
        assert capsys.readouterr().out == shown
