"""``%%cerflow`` in a shell of IPython: what it reads, shows and refuses."""

import io
import json

import pyarrow as pa
import pytest
from rich.console import Console

import cerflow
from cerflow.base import limits
from cerflow.cli.output.reporting import Progress
from cerflow.engine.recognize.finite_stream import FiniteStream
from support.pictures import read_svg

pytest.importorskip("IPython")
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

ROWS = [{"type": "AB"[k % 2], "v": k, "t": 1000 * k} for k in range(10)]
QUERY = "SELECT * WHERE A AS x : B AS y"


@pytest.fixture
def shell():
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "cerflow")
    shell.user_ns |= {"rows": ROWS, "table": pa.Table.from_pylist(ROWS)}
    yield shell
    InteractiveShell.clear_instance()


def cell(shell, line, text=QUERY):
    return shell.run_cell_magic("cerflow", line, text)


def test_a_table_is_matched_and_shown(shell):
    found = cell(shell, "table --time-column t --limit 2 --to kept")
    assert repr(found).startswith("<5 matches of <Query SELECT * WHERE")
    assert found.matches.to_pylist() == cerflow.parse(QUERY).match(ROWS, time="t").to_pylist()
    assert shell.user_ns["kept"] is found.matches
    html = found._repr_html_()
    picture, rest = html.split("<table>")
    read_svg(picture[picture.index("<svg") : picture.index("</svg>")] + "</svg>")
    assert "<p>5 matches, the first 2 shown</p>" in rest
    assert rest.rstrip().endswith("</iframe>")
    assert cell(shell, "rows --no-picture --limit 7")._repr_html_() == cerflow.parse(QUERY).match(ROWS)._repr_html_()


def test_large_pictures_are_left_out(shell, monkeypatch):
    monkeypatch.setattr(limits, "NOTEBOOK_PICTURE", 1000)
    html = cell(shell, "rows")._repr_html_()
    assert "<iframe" not in html
    assert "A picture of 0 MB is left out; show() of the matches shows it." in html


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_data_frames(shell, kind):
    shell.user_ns["frame"] = pytest.importorskip(kind).DataFrame(ROWS)
    assert len(cell(shell, "frame").matches) == 5


def test_files(shell, tmp_path):
    path = tmp_path / "my events.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    options = f"--input '{path}' --input-format json --time-column t --time-unit s"
    found = cell(shell, options, f"{QUERY} WITHIN 2 MINUTES")
    assert len(found.matches) == 0
    assert "<iframe" not in found._repr_html_()
    assert len(cell(shell, f"-i '{path}' --input-format json").matches) == 5


def test_the_line_command_takes_the_query_behind_its_options(shell):
    text = "rows --limit 3 SELECT * WHERE A AS x : B AS y FILTER x.v > 2 AND 'a b' = 'a b'"
    assert len(shell.run_line_magic("cerflow", text).matches) == 3


def test_programs_expressions_and_counts(shell):
    program = "DEFINE pair AS SELECT x.v AS v FROM s WHERE A AS x : B AS y; SELECT * FROM pair WHERE pair ; pair"
    found = cell(shell, "rows", program)
    assert len(found.matches) == 10
    assert "the query" in found._repr_html_()
    assert len(cell(shell, "rows --language sremo", "[v > 7] MARK").matches) == 2
    counted = cell(shell, "rows", "SELECT COUNT(*) AS n WHERE A ; B")
    assert "<table>" in counted._repr_html_()


def test_several_inputs_are_streams(shell, tmp_path):
    text = "SELECT * FROM one, two WHERE one>A ; two>B"
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    expected = len(cell(shell, "one=rows two=table --time-column t", text).matches)
    joined = cerflow.streams({"one": cerflow.Input(ROWS), "two": cerflow.Input(ROWS)}, time="t")
    assert expected == cerflow.parse(text).match(joined.events, **joined.roles).count() == 15
    path = tmp_path / "rows.jsonl"
    assert len(cell(shell, f"-i one={path} -i two={path} --time-column t", text).matches) == expected
    # Files without names are one stream.
    assert len(cell(shell, f"-i {path} -i {path}").matches) == 10


def test_events_are_recognised_once(shell, monkeypatch):
    passes = []
    whole = FiniteStream.__iter__
    monkeypatch.setattr(FiniteStream, "__iter__", lambda self: passes.append(1) or whole(self))
    found = cell(shell, "rows")
    found._repr_html_()
    assert found.matches.count() == len(found.matches.to_pylist()) == 5
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        ("rows table", QUERY, "several variables need the names of their streams: NAME=VARIABLE"),
        ("one=rows table", QUERY, "each of several streams needs a name of its own: NAME=VARIABLE"),
        ("one=rows one=table", QUERY, "each of several streams needs a name of its own"),
        ("rows", "", "cell body is empty"),
        ("rows", "  ", "there is no query"),
        ("", QUERY, "name the events, either a variable or files"),
        ("rows --input x", QUERY, "name the events, either a variable or files"),
        ("row", QUERY, "there is no variable row; did you mean rows"),
        ("rows --limit 0", QUERY, "--limit must be at least 1, not 0"),
        ("rows --to a-b", QUERY, "--to needs the name of a variable, not 'a-b'"),
        ("rows --nosuch", QUERY, "unrecognized arguments: --nosuch"),
        ("rows 'open", QUERY, "No closing quotation in its options"),
        ("rows", "SELECT * WERE A", "line 1, column 10"),
        ("rows --time-column nowhere", QUERY, "nowhere"),
        ("--input nowhere.csv", QUERY, "nowhere.csv"),
    ],
)
def test_mistakes_are_told_without_a_traceback(shell, line, text, message):
    with pytest.raises(UsageError, match=message):
        cell(shell, line, text)


def test_queries_are_not_evaluated_as_python(shell):
    with pytest.raises(UsageError):
        cell(shell, "rows", "__import__('os').system('true')")


@pytest.mark.parametrize("jupyter", [True, False])
def test_progress_is_shown_in_notebooks_too(jupyter):
    console = Console(file=io.StringIO(), force_jupyter=jupyter, force_terminal=False)
    shown = Progress(console)
    assert shown.disable is not jupyter
