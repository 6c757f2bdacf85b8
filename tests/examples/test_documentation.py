"""Everything that README and docs show is run, and says what they say it says.

In a block ``console``, a line ``$ cerflow …`` is a command, and the lines below it are its standard output, where a
line ``…`` is any output. A block ``text`` behind a block ``python`` is what that prints. A block ``sql`` is a query.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app
from cerflow.language.parser import parse_query

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    language: str
    text: str


def blocks(page):
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(*f) for f in found]


def named(pages):
    return [pytest.param(p, id=str(p.relative_to(ROOT))) for p in pages]


def pages_with(*languages):
    return named(p for p in PAGES if any(b.language in languages for b in blocks(p)))


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def matches_shown(shown, said):
    pattern = "".join(".*" if part == "…\n" else re.escape(part) for part in shown.splitlines(keepends=True))
    return re.fullmatch(pattern, said, re.DOTALL) is not None


def test_there_is_something_to_run():
    languages = {block.language for page in PAGES for block in blocks(page)}
    assert {"sql", "python", "text", "console"} <= languages


@pytest.mark.parametrize("page", pages_with("python"))
@pytest.mark.usefixtures("empty_directory")
def test_python_prints_what_the_page_shows(page):
    names = {"__name__": "example"}
    shown = blocks(page)
    for block, following in zip(shown, [*shown[1:], Block("", "")]):
        if block.language == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(block.text, str(page), "exec"), names)
            if said.getvalue() or following.language == "text":
                assert said.getvalue() == following.text


@pytest.mark.parametrize("page", pages_with("console"))
@pytest.mark.usefixtures("empty_directory")
def test_commands_print_what_the_page_shows(page):
    for block in blocks(page):
        if block.language != "console":
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            program, *arguments = shlex.split(command)
            assert program == "cerflow"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.stderr
            assert matches_shown(shown, result.stdout), result.stdout


@pytest.mark.parametrize("page", pages_with("sql"))
def test_queries_are_queries(page):
    for block in blocks(page):
        if block.language == "sql":
            parse_query(block.text)


def test_the_query_of_the_readme_is_that_of_the_package():
    from cerflow.examples import query_text

    shown = next(b.text for b in blocks(ROOT / "README.md") if b.language == "sql")
    assert parse_query(shown) == parse_query(query_text("farm"))


@pytest.mark.parametrize("page", named(PAGES))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        destination = page.parent / target if target else page
        assert destination.exists(), target
        assert not anchor or anchor in anchors(destination), f"{target}#{anchor}"


def test_the_index_names_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)", index.read_text("utf-8"))}
    assert [page for page in PAGES if (ROOT / "docs") in page.parents and page != index and page not in linked] == []


@pytest.mark.parametrize("page", named([ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]))
def test_source_files_that_are_named_exist(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.(?:py|lark))`", text):
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "cerflow")), name
