"""``cerflow show`` and ``cerflow run --summary``."""

import re

import pytest
from typer.testing import CliRunner

import cerflow
from cerflow.cli.app import app
from support.pages import Page

QUERY = "SELECT * WHERE (A AS x ; B AS y) PARTITION BY [k]"
EVENTS = """\
type,k,at
B,p,2024-03-15T12:00:09Z
A,p,2024-03-15T12:00:01Z
A,q,2024-03-15T12:00:02Z
B,q,2024-03-15T12:00:03Z
"""
FORMATS = ["r.jsonl", "r.csv", "r.parquet", "r.orc"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(EVENTS)
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def run(*arguments):
    found = invoke("run", "-e", QUERY, "--input", "events.csv", "--time-column", "at", *arguments)
    assert found.exit_code == 0, found.output
    return found


def show(result, *arguments, inputs=("--input", "events.csv", "--time-column", "at")):
    return invoke("show", result, *inputs, "--output", "page.html", *arguments)


@pytest.mark.parametrize("flat", [[], ["--flat"]])
@pytest.mark.parametrize("name", FORMATS)
def test_every_result_of_run_can_be_shown(folder, name, flat):
    run("--output", name, *flat)
    found = show(name)
    assert found.exit_code == 0, found.output
    assert "2 matches in 4 events" in found.stderr
    page = Page((folder / "page.html").read_text(encoding="utf-8"))
    stream = cerflow.read_events("events.csv", time="at")
    expected = cerflow.parse(QUERY).match(stream, time="at")
    assert page.matches() == Page(expected.to_html()).matches()
    assert page.lanes() == {"type": ["A", "A", "B", "B"], "k": ["p", "q", "q", "p"]}
    assert page.head["axis"]["zone"] == "UTC"
    assert page.head["title"] == name


@pytest.mark.parametrize("name", FORMATS)
def test_results_without_matches(folder, name):
    assert invoke("run", "-e", "SELECT * WHERE C ; C", "--input", "events.csv", "--output", name).exit_code == 0
    assert show(name).exit_code == 0
    assert Page((folder / "page.html").read_text(encoding="utf-8")).matches() == []


def test_limit_keys_and_title(folder):
    run("--output", "r.csv")
    assert show("r.csv", "--limit", "1", "--key", "at", "--title", "<b>").exit_code == 0
    page = Page((folder / "page.html").read_text(encoding="utf-8"))
    assert len(page.matches()) == 1
    assert page.head["notices"] == ["The first 1 of 2 matches are shown; a higher limit shows more."]
    assert [lanes["name"] for lanes in page.head["lanes"]] == ["type", "at"]
    assert page.head["title"] == "<b>"


def test_without_output_the_browser_opens_the_page(folder, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("--output", "r.csv")
    found = invoke("show", "r.csv", "--input", "events.csv", "--time-column", "at")
    assert found.exit_code == 0
    (address,) = opened
    assert address.startswith("file://")
    path = re.search("the page is (.*)", found.stderr)[1]
    with open(path, encoding="utf-8") as file:
        assert len(Page(file.read()).matches()) == 2


def test_wrong_arguments_are_refused(folder):
    run("--output", "r.csv")
    (folder / "other.csv").write_text("type,k,at\nC,p,2024-03-15T12:00:09Z\n")
    assert "position 3, but there are 1 events" in show("r.csv", inputs=("--input", "other.csv")).stderr
    assert "'detected_at' is missing" in show("events.csv").stderr
    assert "--input" in show("r.csv", inputs=()).stderr
    assert "that is the input" in show("r.csv", "--output", "r.csv").stderr
    # Without the time column the rows have other positions.
    assert "position 0 has the type 'B'" in show("r.csv", inputs=("--input", "events.csv")).stderr


@pytest.mark.parametrize("width", [40, 80])
def test_texts_fit_the_terminal(folder, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    found = run("--summary", "--output", "r.csv").stderr.splitlines()
    assert len(found) > 3
    (drawing,) = (line for line in found if line.startswith("matches over time: |"))
    assert len(drawing) == min(width, 81)
    query = "SELECT * WHERE (A AS a ; B AS b) FILTER a.k != b.k WITHIN 5 SECONDS"
    explained = invoke("explain", "-e", query, "--input", "events.csv", "--time-column", "at").stdout.splitlines()
    assert max(map(len, [*found, *explained])) <= width
    assert width - 12 < max(map(len, explained))


def test_summary(folder):
    found = run("--summary", "--output", "r.csv")
    first, second = found.stderr.splitlines()[-2:]
    assert re.fullmatch(r"matches over time: \|( *)█( *)█\|", first)
    assert second.startswith(
        "from 2024-03-15 12:00:01+00:00 to 2024-03-15 12:00:09+00:00, each character covers 0:00:00.133"
    )
    assert second.endswith("at most 1 match")
    counted = invoke("run", "-e", "SELECT COUNT(*) AS n WHERE A ; B", "--input", "events.csv", "--summary")
    assert counted.stderr.splitlines()[-1].endswith("at most 2 matches")
    nothing = invoke("run", "-e", "SELECT * WHERE C", "--input", "events.csv", "--summary")
    assert nothing.stderr.splitlines()[-1] == "matches over time: none"
    unknown = invoke("run", "-e", "SELECT * WHERE A", "--input", "events.csv", "--summary", "--no-positions")
    assert "unknown" in unknown.stderr.splitlines()[-1]
