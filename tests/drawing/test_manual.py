"""The pictures in the manual are those of the query beside them."""

import re
from pathlib import Path

import pytest

import cerflow
from support.pictures import read_svg, texts

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("drawing", ["boxes", "automaton"])
def test_the_picture_is_that_of_the_query(drawing):
    pytest.importorskip("pygraphviz")
    page = (DOCS / "how-to" / "pictures.md").read_text("utf-8")
    (text,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    kept = read_svg((DOCS / "images" / f"picture-{drawing}.svg").read_text("utf-8"))
    # Places depend on the version of the layout engine.
    assert texts(kept) == texts(read_svg(cerflow.parse(text).to_svg(drawing))), "run scripts/draw-pictures"
