"""The examples of the guide run and print what the guide shows."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("page", "least"), [("spark.md", 3), pytest.param("streaming.md", 2, marks=pytest.mark.long)])
def test_the_examples_print_what_the_page_shows(capsys, tmp_path, monkeypatch, page, least):
    monkeypatch.chdir(tmp_path)
    path = DOCS / page
    # The events of a command on the page of streams.
    (tmp_path / "trades").mkdir()
    events = [{"type": "AB"[n % 2], "t": 1000 + 100 * n, "k": n % 3, "v": n} for n in range(30)]
    (tmp_path / "trades" / "1.jsonl").write_text("\n".join(map(json.dumps, events)))
    blocks = re.findall(
        r"```py\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) >= least
    names = {}
    for code, shown in blocks:
        # The session may have begun in another folder.
        code = re.sub(r'"(trades|found|state|letters|live|live-state)(?=/|")(?!":)', rf'"{tmp_path}/\1', code)
        exec(compile(code, str(path), "exec"), names)
        assert capsys.readouterr().out == shown
