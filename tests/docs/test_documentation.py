"""Everything that README and docs show is run, and says what they say it says.

In a block ``console``, a line ``$ cerflow …`` is a command, and the lines below it are its standard output, where a
line ``…`` is any output. A block ``text`` after a block ``python`` is what that prints. A block ``sql`` is a query.
Blocks ``py`` need Spark: see tests/spark/test_documentation.py.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cerflow
import cerflow.automata
import cerflow.rewritings
from cerflow.api.programs.program import parse_program
from cerflow.cli.app import app
from cerflow.language.parser import parse_query
from support.manual import PAGES, ROOT, UNEXPLAINED, blocks, census


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


def test_every_block_is_run_or_says_why_not():
    counts = census()
    assert not [language for language, fate in counts if fate == UNEXPLAINED]
    assert {language for language, fate in counts if fate == "run"} == {"python", "py", "console", "sql", "sremo"}
    assert sum(number for (_, fate), number in counts.items() if fate != "not run") > 300


def run_python(text, shown, names, page):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, str(page), "exec"), names)
    assert said.getvalue() == shown


def run_commands(text):
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "cerflow"
        target = arguments[-1] if ">" in arguments else None
        result = CliRunner().invoke(app, arguments[:-2] if target else arguments)
        assert result.exit_code == 0, result.stderr
        if target:
            Path(target).write_text(result.stdout, "utf-8")
        else:
            assert matches_shown(shown, result.stdout), result.stdout


@pytest.mark.parametrize("page", pages_with("python", "console"))
@pytest.mark.usefixtures("empty_directory")
def test_a_page_prints_what_it_shows(page):
    names = {"__name__": "example"}
    shown = blocks(page)
    for block, following in zip(shown, [*shown[1:], None]):
        if block.reason:
            continue
        if block.title:
            Path(block.title).write_text(block.text, "utf-8")
        elif block.language == "python":
            printed = following.text if following and following.language == "text" and not following.reason else ""
            run_python(block.text, printed, names, page)
        elif block.language == "console":
            run_commands(block.text)


@pytest.mark.parametrize("page", pages_with("sql", "sremo"))
def test_queries_are_queries(page):
    for block in blocks(page):
        if block.language == "sql" and not block.reason:
            parse_program(block.text)
        if block.language == "sremo":
            cerflow.parse(block.text, language="sremo")


def test_the_papers_name_the_files_of_their_functions():
    found = 0
    for row in (ROOT / "docs" / "theory" / "papers.md").read_text("utf-8").splitlines():
        if row.startswith("| ") and row.count("|") == 4:
            _, said, files = row.strip("|").split("|")
            for name in re.findall(r"`(?:automata\.|rewritings\.)?(\w+)`", said):
                made = getattr(cerflow.automata, name, getattr(cerflow.rewritings, name, None))
                if made is not None:
                    found += 1
                    assert made.__module__.removeprefix("cerflow.").replace(".", "/") + ".py" in files, name
    assert found > 30


def test_every_erratum_that_is_cited_is_on_the_page():
    page = (ROOT / "docs" / "theory" / "errata.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (E\d+|11\.\d+)", page, re.M))
    cited = {
        number
        for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]
        for words in re.findall(r"errat(?:um|a)\s+((?:(?:E|11\.)\d+(?:, | and )?)+)", path.read_text(encoding="utf-8"))
        for number in re.findall(r"E\d+|11\.\d+", words)
    }
    assert {"E4", "E18", "11.2"} <= cited
    assert cited <= listed


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
