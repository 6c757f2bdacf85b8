"""The examples of the guide run and print what the guide shows."""

import json
import re

import pytest

from support.manual import ROOT, blocks

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", ["spark.md", "tutorial.md", pytest.param("streaming.md", marks=pytest.mark.long)])
def test_the_examples_print_what_the_page_shows(capsys, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    # The events of a command on the page of streams.
    (tmp_path / "trades").mkdir()
    events = [{"type": "AB"[n % 2], "t": 1000 + 100 * n, "k": n % 3, "v": n} for n in range(30)]
    (tmp_path / "trades" / "1.jsonl").write_text("\n".join(map(json.dumps, events)))
    shown = blocks(ROOT / "docs" / page)
    names = {}
    for block, following in zip(shown, [*shown[1:], None]):
        if block.program:
            # The session may have begun in another folder.
            code = re.sub(r'"(trades|found|state|letters|live|live-state)(?=/|")(?!":)', rf'"{tmp_path}/\1', block.text)
            exec(compile(code, page, "exec"), names)
            printed = following.text if following and following.language == "text" and not following.reason else ""
            assert capsys.readouterr().out == printed
