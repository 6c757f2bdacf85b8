"""The recipes of the cookbook find the same on Spark."""

import contextlib
import io
import re
from pathlib import Path

import pandas as pd
import pytest

import cerflow
from cerflow.spark import match

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"

pytestmark = pytest.mark.slow


def test_the_recipes_find_the_same(spark):
    names = {"__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
    recipes = names["recipes"]
    assert len(recipes) == 12
    for name, (text, events) in recipes.items():
        query = cerflow.parse_program(text) if "DEFINE" in text else cerflow.parse(text)
        here = query.match(events, time="at")
        there = match(query, spark.createDataFrame(pd.DataFrame(events)), time="at")
        assert there.count() == here.count() > 0, name
