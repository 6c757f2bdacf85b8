"""The pictures in the manual are those of the query beside them."""

import re
from pathlib import Path

import pytest

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from support.pictures import read_svg, texts

DOCS = Path(__file__).parents[3] / "docs"


def query_on(page):
    (text,) = re.findall(r"^```sql[^\n]*\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return cerflow.parse(text)


def kept(name):
    return texts(read_svg((DOCS / "images" / f"{name}.svg").read_text("utf-8")))


# Places depend on the version of the layout engine, texts do not.
@pytest.mark.parametrize("drawing", ["boxes", "automaton"])
def test_the_picture_is_that_of_the_query(drawing):
    pytest.importorskip("pygraphviz")
    drawn = query_on("how-to/pictures.md").to_svg(drawing)
    assert kept(f"picture-{drawing}") == texts(read_svg(drawn)), "run scripts/draw-pictures"


def test_the_transducer_is_that_of_the_formula():
    pytest.importorskip("pygraphviz")
    drawn = compile_formula(query_on("theory/automata.md").tree.formula).to_svg()
    assert kept("transducer") == texts(read_svg(drawn)), "run scripts/draw-pictures"
