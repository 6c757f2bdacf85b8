"""The example notebooks run from their first cell to their last."""

import json
from pathlib import Path

import pytest

pytest.importorskip("IPython")
from IPython.core.interactiveshell import InteractiveShell

NOTEBOOKS = sorted((Path(__file__).parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path):
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["nbformat"] == 4
    shell = InteractiveShell()
    results = []
    for cell in notebook["cells"]:
        assert "outputs" not in cell or cell["outputs"] == [], "notebooks are kept without outputs"
        if cell["cell_type"] == "code":
            outcome = shell.run_cell("".join(cell["source"]))
            outcome.raise_error()
            results.append(outcome.result)
    assert any(hasattr(result, "_repr_html_") for result in results)
    InteractiveShell.clear_instance()
