"""The tables of the parsers are kept between processes where that is possible, and it does not matter where not."""

import json
import os
import pickle
import subprocess
import sys

import pytest

from cerflow.language.grammar.kept_parsers import parser_of

PARSE = "import cerflow; print(cerflow.parse('SELECT * WHERE A AS x').tree.formula, cerflow.parse_sremo('[TRUE] AS x'))"
GRAMMAR = """
start: NAME other
other: "+" NAME
NAME: /[a-z]+/
%ignore " "
"""


class Builder:
    def start(self, children):
        return [str(child) for child in children]

    def other(self, children):
        return str(children[-1]).upper()


def parsed():
    return parser_of("tiny", GRAMMAR, ("start",), Builder()).parse("a + b")


@pytest.mark.parametrize("damage", [b"nothing of use", b"{}", b"[]", b'{"data": {"options": {}}, "memo": {}}', b"\xff"])
def test_tables_are_kept_and_made_anew_if_they_are_damaged(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "deep" / "er"))
    assert parsed() == ["a", "B"]
    (kept,) = (tmp_path / "deep" / "er").iterdir()
    before = kept.stat().st_mtime_ns
    assert parsed() == ["a", "B"]
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(damage)
    assert parsed() == ["a", "B"]
    assert json.loads(kept.read_text())["data"]
    # Nothing else is left behind; another grammar has tables of its own.
    assert list(kept.parent.iterdir()) == [kept]
    assert parser_of("tiny", GRAMMAR.replace('"+"', '"-"'), ("start",), Builder()).parse("a - b") == ["a", "B"]
    assert len(list(kept.parent.iterdir())) == 2


def test_no_place(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert parsed() == ["a", "B"]


class Planted:
    """Executes something when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.slow
def test_what_others_have_put_there_is_not_executed(tmp_path):
    def said():
        variables = os.environ | {"CERFLOW_CACHE_DIR": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", PARSE], capture_output=True, check=True, env=variables).stdout

    expected = said()
    kept = [file.name for file in tmp_path.glob("*.json")]
    assert sorted(name.split("-")[0] for name in kept) == ["ceql", "ceql"]
    planted = pickle.dumps(Planted(tmp_path / "executed"))
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    for name in [*kept, f"ceql-{version}.tables"]:
        (tmp_path / name).write_bytes(planted)
    assert said() == expected
    assert not (tmp_path / "executed").exists()
