import sys

import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app
from cerflow.language.predicates import registry
from cerflow.language.predicates.registry import using

QUERY = "SELECT COUNT(*) AS n WHERE (A AS x ; B AS y) FILTER close(x.v, y.v)"
FILE = """
from dataclasses import dataclass

import cerflow


@dataclass
class Settings:
    width: "float" = 2


settings = Settings()


@cerflow.predicate(compile=False)
def close(a, b):
    return abs(a - b) < settings.width


@cerflow.predicate
def alike(a, b):
    return a.lower() == b.lower()
"""


@pytest.fixture(autouse=True)
def _nothing_registered():
    with using(()):
        yield


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "events.csv").write_text("type,v,s\nA,1,q\nA,3,Q\nB,2,q\nB,9,p\n")
    return tmp_path


def cerflow(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize("path", ["mine.py", "./mine.py"])
def test_run_with_a_file(files, path):
    result = cerflow("run", "-e", QUERY, "-i", "events.csv", "--runner", "local", "--predicates", path)
    assert result.exit_code == 0, result.stderr
    assert '"n": 2' in result.stdout
    assert not [name for name in sys.modules if "mine" in name and "predicates" in name]


def test_run_with_a_module(files, monkeypatch):
    monkeypatch.syspath_prepend(str(files))
    (files / "mine_too.py").write_text(FILE)
    result = cerflow("run", "-e", QUERY, "-i", "events.csv", "--runner", "local", "--predicates", "mine_too")
    assert result.exit_code == 0, result.stderr
    assert '"n": 2' in result.stdout


def test_check_and_explain(files, monkeypatch):
    # Other tests may have left predicates of this name after.
    monkeypatch.setattr(registry, "_registered", {})
    for command in ("check", "explain"):
        with using(()):
            result = cerflow(command, "-e", QUERY)
        assert result.exit_code == 1
        assert "unknown function or predicate 'close'" in result.stderr
        assert "^" in result.stderr
        for inputs in ((), ("--input", "events.csv")):
            with using(()):
                result = cerflow(command, "-e", QUERY, "--predicates", "mine.py", *inputs)
            assert result.exit_code == 0, result.stderr
    result = cerflow("check", "-e", QUERY.replace("close", "closer"), "--predicates", "mine.py")
    assert "Did you mean 'close'?" in result.stderr


def test_slow_ones_are_warned_of(files):
    query = QUERY.replace("close(x.v, y.v)", "alike(x.s, y.s)")
    result = cerflow("run", "-e", query, "-i", "events.csv", "--runner", "local", "--predicates", "mine.py")
    assert result.exit_code == 0, result.stderr
    assert "warning: predicate 'alike' runs as plain Python, which is slow: it gets a string" in result.stderr
    assert '"n": 2' in result.stdout


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("missing.py", None, "there is no file 'missing.py' with predicates"),
        (
            "missing",
            None,
            "there is no module 'missing' with predicates; a file is given by its path, such as ./missing.py",
        ),
        ("mine.txt", None, "there is no module 'mine.txt' with predicates"),
        ("./mine.txt", "x = 1", "'mine.txt' is not a file of Python"),
        ("bad.py", "x =", "the predicates in 'bad.py' cannot be loaded, line 1: SyntaxError: invalid syntax"),
        ("bad.py", "\nimport nothing_like_it", "'bad.py' cannot be loaded, line 2: ModuleNotFoundError: No module"),
        ("bad.py", "\n\n1 / 0", "'bad.py' cannot be loaded, line 3: ZeroDivisionError: division by zero"),
        ("bad.py", "raise SystemExit(3)", "'bad.py' cannot be loaded, line 1: SystemExit: 3"),
        (
            "bad.py",
            "import cerflow\ncerflow.predicate('count')(lambda x: x)",
            "line 2: cerflow.base.errors.ArgumentError: 'count' cannot be the name of a predicate",
        ),
    ],
)
def test_what_cannot_be_loaded(files, source, text, message):
    if text is not None:
        (files / source).write_text(text)
    result = cerflow("check", "-e", QUERY, "--predicates", source)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_file_that_registers_nothing_is_warned_of(files):
    (files / "empty.py").write_text("x = 1")
    result = cerflow("check", "-e", "SELECT * WHERE A", "--predicates", "empty.py")
    assert result.exit_code == 0
    assert "warning: 'empty.py' registers no predicates" in result.stderr


def test_failures_are_messages(files):
    (files / "bad.py").write_text("import cerflow\ncerflow.predicate('close')(lambda a, b: a // (b - 9))")
    result = cerflow("run", "-e", QUERY, "-i", "events.csv", "--runner", "local", "--predicates", "bad.py")
    assert result.exit_code == 1
    assert "error: predicate 'close' failed on (" in result.stderr
    assert ", 9): ZeroDivisionError" in result.stderr
