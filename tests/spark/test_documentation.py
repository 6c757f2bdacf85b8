"""The example of the guide runs and prints what the guide shows."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("spark")
def test_the_example_prints_what_the_page_shows(capsys):
    (shown,) = re.findall(r"```py\n(.*?)^```\n\n```text\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(shown[0], str(PAGE), "exec"), {})
    assert capsys.readouterr().out == shown[1]
