"""The studio in a real browser, without its window: what a user types, presses and sees."""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="NiceGUI is not installed (cerflow[studio])")
api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium (apt-get install chromium, or CHROMIUM=path)"),
]
#: Milliseconds that a page may take; tests share the machine.
PATIENCE = 300_000
EVENTS = "type,t,v\n" + "".join(f"{'ABC'[k % 3]},{k},{k % 5}\n" for k in range(60))
QUERY = "SELECT *\nWHERE (A AS x ; B AS y) FILTER y.v > x.v\nWITHIN 3 EVENTS"


@contextmanager
def studio(folder, events, query):
    """A studio with these texts of a file and a query: its address."""
    given = []
    if events is not None:
        (folder / "events.csv").write_text(events)
        given += ["--input", str(folder / "events.csv")]
    if query is not None:
        (folder / "query.ceql").write_text(query)
        given += ["--query", str(folder / "query.ceql")]
    # In place of a browser, a script that keeps what it is given.
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > "{folder}/given"\ncp "${{1#file://}}" "{folder}/opened.html"\n')
    script.chmod(0o700)
    command = [sys.executable, "-m", "cerflow", "studio", *given]
    environment = {**os.environ, "BROWSER": str(script), "HOME": str(folder)}
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
    try:
        for _ in range(1200):
            found = re.search(r"http://\S+", (folder / "said").read_text())
            if found:
                break
            assert process.poll() is None, (folder / "said").read_text()
            time.sleep(0.1)
        yield found.group()
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with studio(tmp_path_factory.mktemp("studio"), EVENTS, QUERY) as address:
        yield address


@pytest.fixture(scope="module")
def chromium():
    api.expect.set_options(timeout=PATIENCE)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"], ignore_default_args=["--hide-scrollbars"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, address):
    page = chromium.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # Nothing may come from another machine.
    page.on("request", lambda request: errors.append(request.url) if "//127.0.0.1" not in request.url else None)
    page.goto(address)
    page.locator(".cm-content").first.wait_for()
    api.expect(page.get_by_text("events.csv: 60 events")).to_be_visible()
    page.wait_for_function("window.cerflowWords !== undefined")
    # On a busy machine the first run may take longer than the limit that the page suggests.
    page.get_by_label("Seconds at most").fill(str(PATIENCE))
    write(page, QUERY)
    yield page
    assert [e for e in errors if not e.startswith(("data:", "blob:"))] == []
    page.close()


def write(page, text, editor=0):
    page.locator(".cm-content").nth(editor).click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def choose(page, number):
    """Choose a match of the table."""
    page.get_by_role("gridcell", name=str(number), exact=True).first.click()


def text_of(page):
    return page.locator(".cm-content").first.inner_text()


def test_an_error_is_marked_while_one_types(page):
    write(page, "SELECT * WHERE A ; ")
    page.keyboard.type("B -> C", delay=20)
    api.expect(page.locator(".ce-error")).to_have_text("->")
    api.expect(page.get_by_text("line 1, column 22")).to_be_visible()
    assert text_of(page) == "SELECT * WHERE A ; B -> C"


def test_words_are_completed(page):
    write(page, "SELECT * WHERE A AS x FILTER x.")
    page.keyboard.press("Control+Space")
    page.locator(".cm-tooltip-autocomplete").get_by_text("v", exact=True).wait_for()
    # Their icons need a font that the page has not: squares would be seen.
    icons = page.locator(".cm-completionIcon")
    assert icons.count() >= 3
    assert not any(icon.is_visible() for icon in icons.all())
    page.keyboard.press("Escape")
    write(page, "")
    page.keyboard.type("SEL", delay=60)
    page.locator(".cm-tooltip-autocomplete").get_by_text("SELECT").first.wait_for()
    time.sleep(0.2)
    page.keyboard.press("Enter")
    api.expect(page.locator(".cm-content").first).to_have_text("SELECT")


def test_a_query_runs_and_its_matches_are_shown(page):
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^16 matches in 60 events"))).to_be_visible()
    choose(page, 1)
    api.expect(page.get_by_text("Match 1, detected at event 1")).to_be_visible()
    # The keyboard goes from row to row, and chooses.
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    api.expect(page.get_by_text("Match 3, detected at event 7")).to_be_visible()
    page.get_by_role("button", name="Step to it").click()
    api.expect(page.get_by_text("Event 7", exact=True)).to_be_visible()


def test_the_table_reads_its_rows_by_pages(page):
    write(page, "SELECT * WHERE A AS x ; B AS y")
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^210 matches in 60 events"))).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/rows?" in request.url else None)
    head = page.get_by_role("columnheader", name="duration")
    head.click()
    api.expect(head).to_have_attribute("aria-sort", "ascending")
    head.click()
    api.expect(head).to_have_attribute("aria-sort", "descending")
    api.expect(page.locator(".ag-row[row-index='0'] [col-id='duration']")).to_have_text("0.058 s")
    assert any("first=0&end=100&by=duration&down=true" in url for url in asked)
    page.get_by_role("switch", name="All columns").click()
    api.expect(page.get_by_role("columnheader", name="detected_at")).to_be_visible()


def test_what_is_said_of_old_matches_is_true(page):
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^16 matches in 60 events"))).to_be_visible()
    changed = page.get_by_text("The query has changed since this run.")
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("9")
    api.expect(changed).to_be_visible()
    page.keyboard.press("Backspace")
    api.expect(changed).to_be_hidden()
    api.expect(page.locator(".cs-stale")).to_have_count(0)
    page.keyboard.type(" ->")
    page.keyboard.press("Control+Enter")
    # The caret stands below what is wrong, and the old matches are marked as such.
    error = page.get_by_text(re.compile(r"unexpected '->'.*\n.*\n +\^", re.DOTALL)).last
    api.expect(error).to_have_css("white-space", "pre-wrap")
    api.expect(changed).to_be_visible()
    api.expect(page.locator(".cs-stale")).to_have_count(1)


def test_another_file_is_not_another_query(page, tmp_path):
    (tmp_path / "other.csv").write_text(EVENTS)
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^16 matches in 60 events"))).to_be_visible()
    load(page, tmp_path / "other.csv")
    page.get_by_role("tab", name="Matches").click()
    api.expect(page.get_by_text("The file has changed since this run.")).to_be_visible()


def load(page, path):
    page.get_by_role("button", name="Open file").click()
    page.get_by_label("Path").fill(str(path))
    page.get_by_role("button", name="Open", exact=True).click()
    api.expect(page.locator("header").get_by_text(path.name)).to_be_visible()


def test_the_editor_has_the_query_that_is_run(chromium, tmp_path):
    (tmp_path / "other.csv").write_text("type,t\nSELL,1\nSELL,2\nBUY,3\n")
    with studio(tmp_path, None, None) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.locator(".cm-content").first.wait_for()
        load(page, tmp_path / "other.csv")
        api.expect(page.locator(".cm-content").first).to_have_text(re.compile("SELL AS x ; BUY AS y"))
        page.get_by_role("tab", name="Export").click()
        api.expect(page.get_by_text("WHERE SELL AS x ; BUY AS y").last).to_be_visible()
        page.close()


def test_each_tab_has_a_session(chromium, address):
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    tabs = [
        (context.new_page(), text, found) for text, found in (("SELECT * WHERE A ; C", 210), ("SELECT * WHERE B", 20))
    ]
    for tab, text, found in tabs:
        tab.goto(address)
        tab.wait_for_function("window.cerflowWords !== undefined")
        write(tab, text)
        tab.get_by_label("Seconds at most").fill(str(PATIENCE))
        tab.get_by_role("button", name="Run").click()
        api.expect(tab.get_by_text(re.compile(f"^{found} matches in 60 events"))).to_be_visible()
    for tab, text, found in tabs:
        assert text_of(tab) == text
        # Either keeps its query and its matches.
        tab.reload()
        api.expect(tab.locator(".cm-content").first).to_have_text(text)
        api.expect(tab.get_by_text(re.compile(f"^{found} matches in 60 events"))).to_be_visible()
        api.expect(tab.get_by_role("gridcell", name="1", exact=True).first).to_be_visible()
    context.close()


def test_the_field_and_the_page_tell_of_the_same_event(page):
    page.get_by_role("tab", name="Step").click()
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
    field = page.get_by_label("Event", exact=True)
    field.fill("50")
    api.expect(page.get_by_text("Event 50", exact=True)).to_be_visible()
    # There is no such event.
    field.fill("5000")
    api.expect(page.get_by_text("The query reads 60 events, and has none at this position")).to_be_visible()
    api.expect(field).to_have_value("50")
    api.expect(page.get_by_text("Event 50", exact=True)).to_be_visible()


def test_matches_are_drawn_in_their_stream(page):
    page.get_by_role("button", name="Run").click()
    inner = page.frame_locator("iframe")
    api.expect(inner.locator("canvas").first).to_be_visible()
    api.expect(inner.get_by_role("grid")).to_be_hidden()
    api.expect(inner.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Dark or light").click()
    api.expect(inner.locator("html")).to_have_attribute("data-theme", "dark")


def test_table_timeline_and_detail_show_the_same_match(page):
    page.get_by_role("button", name="Run").click()
    inner = page.frame_locator("iframe")
    inner.locator("canvas").first.wait_for()
    choose(page, 1)
    api.expect(page.get_by_text("Match 1, detected at event 1")).to_be_visible()
    frame = page.frames[-1]
    frame.wait_for_function("cerflow.state.chosen === 0")
    # And the other way round.
    inner.locator("#picture").press("n")
    api.expect(page.get_by_text("Match 2, detected at event 4")).to_be_visible()
    api.expect(page.locator(".ag-row-selected [col-id='#']").first).to_have_text("2")
    # Events are stepped to and asked about one by one, and the match stays in sight.
    page.get_by_role("button", name="Step to event 3").click()
    api.expect(page.get_by_text("Event 3", exact=True)).to_be_visible()
    page.get_by_role("button", name="y 4", exact=True).click()
    api.expect(page.get_by_text("Event 4", exact=True)).to_be_visible()
    page.get_by_role("button", name="Ask about it").click()
    api.expect(page.get_by_label("Events", exact=True)).to_have_value("4")
    page.get_by_role("tab", name="Step").click()
    page.get_by_role("button", name="Ask about the match").click()
    api.expect(page.get_by_label("Events", exact=True)).to_have_value("x@3, y@4")
    page.get_by_role("button", name="Why not?").click()
    api.expect(page.get_by_text("The events are a match, detected at event 4.")).to_be_visible()


def test_the_stream_is_stepped_through(page):
    page.get_by_role("tab", name="Step").click()
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
    api.expect(page.get_by_text("Partial matches that wait")).to_be_visible()
    page.get_by_role("button", name="Next match").click()
    api.expect(page.get_by_text("Event 1", exact=True)).to_be_visible()
    api.expect(page.get_by_text("{x@0, y@1}").first).to_be_visible()
    # Boxes that have an event differ by signs and lines from others, the automaton is a switch away.
    boxes, field = page.locator(".cs-picture"), page.get_by_label("Event", exact=True)
    said = boxes.locator("text")
    api.expect(said.get_by_text("✓ this event")).to_have_count(1)
    api.expect(boxes.locator("g.cs-taken rect")).to_have_count(1)
    api.expect(said.get_by_text("✓ event 0")).to_be_visible()
    api.expect(said.get_by_text("2 events left, since event 0")).to_be_visible()
    api.expect(boxes.locator("circle.cf-clock")).to_be_visible()
    page.get_by_role("button", name="Automaton").click()
    api.expect(page.locator("g.cs-detected")).to_have_count(1)
    page.get_by_role("button", name="Boxes").click()
    # The slider is the same place in the stream as the field.
    for event in (2, 3):
        page.locator(".q-slider [tabindex='0']").press("ArrowRight")
        api.expect(field).to_have_value(str(event))
        api.expect(page.get_by_text(f"Event {event}", exact=True)).to_be_visible()


def test_a_part_that_refuses_says_why(page):
    write(page, "SELECT * WHERE (A AS x ; B AS y) FILTER y.v < x.v")
    page.get_by_role("tab", name="Step").click()
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
    page.keyboard.press("Alt+ArrowRight")
    refused = page.locator(".cs-picture g.cs-refused text")
    api.expect(refused.get_by_text("✗ v < x.v (v = 1, x.v = 0)")).to_be_visible()


def test_a_picture_is_zoomed_and_scrolled(page):
    place = page.locator(".cs-picture")
    api.expect(place.locator("svg")).to_be_visible()
    wide = "e => e.scrollWidth > e.clientWidth && e.offsetHeight > e.clientHeight"
    assert not place.evaluate(wide)
    for _ in range(5):
        page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"({wide})(document.querySelector('.cs-picture'))")
    page.get_by_role("button", name="Fit the picture in").click()
    page.wait_for_function(f"!({wide})(document.querySelector('.cs-picture'))")


def test_deadlines_that_pass_are_steps(page):
    write(page, "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 1 MILLISECONDS")
    page.get_by_role("tab", name="Step").click()
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
    page.get_by_role("button", name="Next match").click()
    api.expect(page.get_by_text("Event 1", exact=True)).to_be_visible()
    page.keyboard.press("Alt+ArrowLeft")
    api.expect(page.get_by_text("1: the deadline of x@0 passes")).to_be_visible()
    api.expect(page.get_by_text("as event 1 shows")).to_be_visible()
    page.keyboard.press("Alt+ArrowLeft")
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()


def test_statements_of_programs_are_stepped_through(page):
    write(page, "DEFINE p AS SELECT x.v AS low WHERE A AS x : B;\nSELECT * FROM p WHERE p AS a : p AS b")
    page.get_by_role("tab", name="Step").click()
    api.expect(page.get_by_text("low 0").first).to_be_visible()
    page.get_by_label("Statement").click()
    page.get_by_role("option", name="p", exact=True).click()
    api.expect(page.get_by_text("The query has changed.", exact=True)).to_be_visible()
    page.get_by_role("button", name="Begin again").click()
    api.expect(page.get_by_text("type A").first).to_be_visible()


def test_long_walks_are_stopped(chromium, tmp_path):
    # Many configurations, and no match: each step takes its time.
    many = "type,t,v\n" + "".join(f"A,{k},{k}\n" for k in range(3000))
    with studio(tmp_path, many, "SELECT * WHERE (A AS x ; A AS y) FILTER x.v > y.v + 9 WITHIN 900 EVENTS") as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.wait_for_function("window.cerflowWords !== undefined")
        page.get_by_role("tab", name="Step").click()
        page.get_by_role("button", name="Next match").click()
        stop = page.get_by_role("tabpanel").get_by_role("button", name="Stop")
        stop.click()
        api.expect(page.get_by_text(re.compile(r"^Stopped at event \d+"))).to_be_visible()
        api.expect(stop).to_be_hidden()
        # What was shown stays, and goes on.
        api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
        page.keyboard.press("Alt+ArrowRight")
        api.expect(page.get_by_text("Event 1", exact=True)).to_be_visible()
        page.close()


def test_it_says_why_events_are_no_match(page):
    page.get_by_role("tab", name="Why not?").click()
    page.get_by_label("Events", exact=True).fill("x@3, y@4")
    page.get_by_role("button", name="Why not?").click()
    api.expect(page.get_by_text("The events are a match, detected at event 4.")).to_be_visible()
    page.get_by_label("Events", exact=True).fill("x@0, y@4")
    page.keyboard.press("Enter")
    api.expect(page.get_by_text("WITHIN 3 EVENTS").last).to_be_visible()
    api.expect(page.get_by_text("the events are too far apart: 0 to 4")).to_be_visible()
    # Events are chosen in the table, and taken away again.
    page.get_by_label("Events", exact=True).fill("")
    page.keyboard.press("Enter")
    api.expect(page.get_by_text("Choose events in the list, or write their positions")).to_be_visible()
    for number, said in ((4, "4"), (6, "4, 6"), (4, "6")):
        choose(page.get_by_role("tabpanel").last, number)
        api.expect(page.get_by_label("Events", exact=True)).to_have_value(said)
    # The list can be of one key, ranges are chosen as a whole, and the button stays in view.
    page.get_by_label("Filter by").click()
    page.get_by_role("option", name="v", exact=True).click()
    page.get_by_label("is", exact=True).fill("4")
    api.expect(page.get_by_role("tabpanel").last.locator(".ag-row[row-index='1'] [col-id='#']")).to_have_text("9")
    page.get_by_label("Events", exact=True).fill("0-4")
    page.keyboard.press("Enter")
    api.expect(page.get_by_text("No match consists of these 5 events alone")).to_be_visible()
    page.get_by_role("tabpanel").first.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    api.expect(page.get_by_role("button", name="Why not?")).to_be_in_viewport()
    # An answer goes with the query.
    write(page, "SELECT * WHERE A ; B")
    api.expect(page.get_by_text("No match consists of these 5 events alone")).to_be_hidden()


def test_no_matches_lead_to_why_not(page):
    write(page, "SELECT * WHERE (A AS x ; B AS y) FILTER y.v > 99")
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^0 matches in 60 events"))).to_be_visible()
    page.get_by_role("button", name="Why are there none?").click()
    for number in (0, 1):
        choose(page.get_by_role("tabpanel").last, number)
    page.get_by_role("button", name="Why not?").click()
    api.expect(page.get_by_text("it does not hold; y.v = 1 at event 1")).to_be_visible()


def test_the_matches_that_it_finds_are_matches(chromium, tmp_path):
    # No column of types; events of other keys show that deadlines have passed; matches lie beyond the first stretch.
    rows = [(f"2026-01-01T{k // 1200:02d}:{k // 20 % 60:02d}:{k % 20 * 3:02d}Z", f"h{k % 3}") for k in range(6000)]
    results = ["bad" if k in (4500, 4503, 4509, 5400, 5403) else "ok" for k in range(6000)]
    text = "at,host,result\n" + "".join(f"{at},{host},{result}\n" for (at, host), result in zip(rows, results))
    query = (
        "DEFINE bad AS result = 'bad'\nSELECT * WHERE (bad AS a ; bad AS b) NOT FOLLOWED BY bad FOR 1 MINUTES\n"
        "PARTITION BY host\nWITHIN 5 MINUTES"
    )
    with studio(tmp_path, text, query) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.wait_for_function("window.cerflowWords !== undefined")
        page.get_by_label("Seconds at most").fill(str(PATIENCE))
        page.get_by_role("button", name="Run").click()
        api.expect(page.get_by_text(re.compile(r"^3 matches in 6,000 events"))).to_be_visible()
        api.expect(page.get_by_role("columnheader")).to_have_text(["#", "time", "duration", "host", "a", "b"])
        for number, last, shown_by, detected in ((1, 4509, 4529, 2), (3, 5403, 5423, 1)):
            page.get_by_role("tab", name="Matches").click()
            choose(page, number)
            api.expect(page.get_by_text(f"Match {number}, detected at event {shown_by}")).to_be_visible()
            page.get_by_role("button", name="Step to it").click()
            api.expect(page.get_by_text(f"the deadline of b@{last} passes")).to_be_visible()
            api.expect(page.get_by_text("key 'h0'")).to_be_visible()
            api.expect(page.get_by_text(f"as event {shown_by} shows")).to_be_visible()
            api.expect(page.get_by_text(re.compile(f"^{detected} match(es)? detected$"))).to_be_visible()
            page.get_by_role("tab", name="Matches").click()
            page.get_by_role("button", name="Ask about it").click()
            page.get_by_role("button", name="Why not?").click()
            api.expect(page.get_by_text(f"The events are a match, detected at event {shown_by}.")).to_be_visible()
        page.close()


def test_queries_are_compared(page):
    page.get_by_role("tab", name="Compare").click()
    write(page, "SELECT * WHERE A ; B")
    write(page, "SELECT * WHERE A : B", editor=1)
    time.sleep(0.3)
    page.get_by_role("button", name="Compare").click()
    api.expect(page.get_by_text("Each match of the other formula is a match of the formula in the edi")).to_be_visible()
    api.expect(page.get_by_text("They are the same.")).to_be_visible()
    for said in ("20 matches of both", "190 matches only of the query in", "0 matches only of the other"):
        api.expect(page.get_by_text(said)).to_be_visible()
    # The other query is coloured, marked and completed as the first.
    other = page.get_by_role("textbox", name="Other query")
    api.expect(other.locator(".ce-keyword").first).to_have_text("SELECT")
    page.locator(".cm-content").nth(1).click()
    page.keyboard.type(" -> C", delay=20)
    api.expect(other.locator(".ce-error")).to_have_text("->")
    page.get_by_role("button", name="Dark or light").click()
    editors = page.locator(".cm-editor")
    api.expect(editors).to_have_count(2)
    for editor in editors.all():
        api.expect(editor).to_have_css("background-color", "rgb(46, 50, 53)")


def test_what_is_proven_of_formulas_is_not_said_of_queries(page):
    page.get_by_role("tab", name="Compare").click()
    write(page, "SELECT * WHERE A ; B WITHIN 3 EVENTS")
    write(page, "SELECT * WHERE A ; B PARTITION BY v WITHIN 30 EVENTS", editor=1)
    time.sleep(0.3)
    page.get_by_role("button", name="Compare").click()
    api.expect(page.get_by_text("The formulas, in every stream")).to_be_visible()
    api.expect(page.get_by_text("They are equivalent")).to_be_visible()
    api.expect(page.get_by_text("WITHIN 3 EVENTS; in the other query WITHIN 30 EVENTS")).to_be_visible()
    api.expect(page.get_by_text("no PARTITION BY; in the other query PARTITION BY v")).to_be_visible()
    api.expect(page.get_by_text("20 matches only of the query in the editor")).to_be_visible()


def test_matches_and_pictures_are_saved(page):
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="CSV").click()
    api.expect(page.get_by_text("There are no matches yet: run the query first.")).to_be_visible()
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^16 matches in 60 events"))).to_be_visible()
    page.get_by_role("tab", name="Export").click()
    for name, first in (("CSV", b"detected_at"), ("Parquet", b"PAR1"), ("JSON lines", b'{"detected_at"')):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name).click()
        with open(saved.value.path(), "rb") as file:
            assert file.read().startswith(first)
    for name, first in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name, exact=True).click()
        assert saved.value.suggested_filename == f"query.{name.lower()}"
        with open(saved.value.path(), "rb") as file:
            assert file.read().startswith(first)


def test_a_link_has_the_query(chromium, address):
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}&query=SELECT+*%0AWHERE+C")
    api.expect(page.locator(".cm-content").first).to_have_text(re.compile("SELECT .*WHERE C"))
    page.close()


def test_queries_that_ran_come_back_and_settings_are_in_the_link(chromium, address):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_function("window.cerflowWords !== undefined")
    page.get_by_label("Seconds at most").fill(str(PATIENCE))
    for text in ("SELECT * WHERE B", "SELECT * WHERE C"):
        write(page, text)
        page.get_by_role("button", name="Run").click()
        api.expect(page.get_by_text(re.compile("^20 matches in 60 events"))).to_be_visible()
    page.get_by_role("button", name="Earlier queries").click()
    page.get_by_role("listitem").get_by_text("SELECT * WHERE B").click()
    api.expect(page.locator(".cm-content").first).to_have_text("SELECT * WHERE B")
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="Copy", exact=True).click()
    api.expect(page.get_by_text("The link is copied.")).to_be_visible()
    # The text may be there a little later than the message.
    page.wait_for_function("navigator.clipboard.readText().then((text) => text !== '')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert f"seconds={PATIENCE}" in link
    other = context.new_page()
    other.set_default_timeout(PATIENCE)
    other.goto(link)
    api.expect(other.locator(".cm-content").first).to_have_text("SELECT * WHERE B")
    other.get_by_role("tab", name="Matches").click()
    api.expect(other.get_by_label("Seconds at most")).to_have_value(str(PATIENCE))
    context.close()


def test_counts_come_while_one_types(page):
    write(page, "SELECT * WHERE (A AS x FILTER x.v > 99) ; B WITHIN 3 EVENTS")
    api.expect(page.get_by_text("0 matches in all 60 events")).to_be_visible()
    picture = page.locator(".cs-picture").first
    counts = picture.locator("tspan.cf-count")
    api.expect(counts).to_have_text(["0", "0 of 20 events", "20 events"])
    # The stream has the colours of the labels.
    strip = page.locator(".cs-strip")
    api.expect(strip.locator("svg")).to_have_count(0)
    write(page, QUERY)
    api.expect(strip.locator("text")).to_have_text([re.compile("x +16"), re.compile("y +16")])
    api.expect(strip.locator(".cs-lane0 .cs-event")).to_have_count(16)
    page.get_by_role("button", name="Automaton").click()
    api.expect(picture.locator("tspan").get_by_text("q0", exact=True)).to_be_visible()


_AXE = find_spec("axe_playwright_python")
#: What a user of the studio looks at, and what is to be seen then.
STATES = {
    "Data": lambda page: page.get_by_role("row").filter(has_text="whole number").first.wait_for(),
    "Matches": lambda page: choose(page, 1),
    "Step": lambda page: page.get_by_label("Event", exact=True).fill("58"),
    "Why not?": lambda page: page.get_by_role("gridcell", name="12", exact=True).wait_for(),
    "Compare": lambda page: page.get_by_role("button", name="Compare").click(),
    "Export": lambda page: page.get_by_text("import cerflow").first.wait_for(),
}
#: What lies over any of these.
OVER = {
    "Earlier queries": lambda page: page.get_by_role("listitem").first.wait_for(),
    "Help": lambda page: page.get_by_role("dialog").get_by_text("the very next event").wait_for(),
}


@pytest.mark.skipif(_AXE is None, reason="axe-playwright-python, which has axe-core, is not installed")
@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_nobody_is_shut_out(page, width, dark):
    page.set_viewport_size({"width": width, "height": 900})
    if dark:
        page.get_by_role("button", name="Dark or light").click()
    page.get_by_role("button", name="Run").click()
    api.expect(page.get_by_text(re.compile(r"^16 matches in 60 events"))).to_be_visible()
    # The last step detects many matches, and the text is long.
    write(page, "SELECT * WHERE (A AS x ; B AS y) FILTER y.v <> x.v + 99 * 100\n\n\n\n\n\n-- the end")
    api.expect(page.get_by_text(re.compile("^210 matches in all"))).to_be_visible()
    found = {}
    page.add_script_tag(path=Path(_AXE.origin).with_name("axe.min.js"))
    for name, look in {**STATES, **OVER}.items():
        if name in OVER:
            page.get_by_role("button", name=name).click()
        else:
            page.keyboard.press(f"Alt+{list(STATES).index(name) + 1}")
        look(page)
        page.mouse.move(0, 0)
        time.sleep(1)
        result = page.evaluate("axe.run(document, {iframes: false})")
        found[name] = [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in result["violations"]]
        page.keyboard.press("Escape")
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_query_is_exported_and_survives_a_reload(page):
    write(page, "SELECT * WHERE A ; C")
    page.get_by_role("tab", name="Export").click()
    api.expect(page.get_by_text("query = cerflow.parse('SELECT * WHERE A ; C')").first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save").first.click()
    with open(saved.value.path(), encoding="utf-8") as file:
        assert file.read() == "SELECT * WHERE A ; C\n"
    page.reload()
    api.expect(page.locator(".cm-content").first).to_have_text("SELECT * WHERE A ; C")


def test_help_is_a_dialog(page):
    page.get_by_role("button", name="Help").click()
    api.expect(page.get_by_role("dialog").get_by_text("the very next event")).to_be_visible()
    page.keyboard.press("Escape")
    api.expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.get_by_role("button", name="Help").evaluate("e => e.contains(document.activeElement)")


@pytest.mark.skipif(_AXE is None, reason="axe-playwright-python, which has axe-core, is not installed")
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_help_leads_to_the_manual(chromium, address, scheme):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 360, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address)
    # What one clicks before is lost.
    page.wait_for_function("window.cerflowWords !== undefined")
    page.get_by_role("button", name="Help").click()
    with context.expect_page() as opened:
        page.get_by_role("link", name="The manual of the language").click()
    manual = opened.value
    manual.get_by_role("heading", name="The query language").wait_for()
    assert manual.locator("a[href$='.md']").count() == 0
    manual.get_by_role("link", name="below").click()
    api.expect(manual.get_by_role("heading", name="Absence until a deadline")).to_be_in_viewport()
    assert manual.evaluate("document.documentElement.scrollWidth") <= 360
    manual.add_script_tag(path=Path(_AXE.origin).with_name("axe.min.js"))
    result = manual.evaluate("axe.run(document)")
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in result["violations"]] == []
    context.close()


def test_the_focus_is_seen_and_never_lost(page):
    page.get_by_role("button", name="Run").click()
    page.locator("iframe").wait_for()
    choose(page, 1)
    page.get_by_role("button", name="Step to it").focus()
    page.keyboard.press("Enter")
    api.expect(page.get_by_text("Event 1", exact=True)).to_be_visible()
    # The button is gone with its panel.
    api.expect(page.get_by_role("tab", name="Step")).to_be_focused()
    controls = page.get_by_role("tab", name="Step").get_attribute("aria-controls")
    assert page.locator(f"#{controls}").get_by_role("tabpanel").count()
    for name in ("Run", "Zoom in", "Next match"):
        button = page.get_by_role("button", name=name)
        button.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert button.evaluate("e => getComputedStyle(e).outlineWidth") == "3px"
    # The width of the panes is changed by keys.
    pane = page.locator(".q-splitter__before")
    width = pane.bounding_box()["width"]
    page.get_by_role("separator").press("ArrowRight")
    api.expect(page.get_by_role("separator")).to_have_attribute("aria-valuenow", "48")
    page.wait_for_function("width => document.querySelector('.q-splitter__before').offsetWidth > width", arg=width)
    api.expect(page.locator("table caption").get_by_text("Partial matches that wait")).to_be_visible()
    # The picture tells the pattern, and the step on it, in words.
    picture = page.get_by_role("img", name="SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 3 EVENTS")
    said = picture.evaluate("e => document.getElementById(e.getAttribute('aria-describedby')).textContent")
    assert said.startswith("A as x, later B as y, where y.v > x.v, all within 3 EVENTS; ")
    assert "A AS x: ✓ event 0" in said


#: What has the focus, or the pane around it, and the place of its ring.
RINGS = {
    "header": lambda page: page.get_by_role("button", name="Help"),
    "Run": lambda page: page.get_by_role("button", name="Run"),
    "button": lambda page: page.get_by_role("button", name="Zoom in"),
    "toggle": lambda page: page.get_by_role("button", name="Boxes"),
    "tab": lambda page: page.get_by_role("tab", name="Matches"),
    "input": lambda page: page.get_by_label("Matches listed"),
    "switch": lambda page: page.get_by_role("switch", name="All columns"),
    "row": lambda page: page.get_by_role("gridcell", name="2", exact=True).first,
    "picture": lambda page: page.locator(".cs-picture"),
    "separator": lambda page: page.get_by_role("separator"),
    "timeline": lambda page: page.frame_locator("iframe").locator("#picture"),
    "editor": lambda page: page.locator(".cm-content").first,
}


@pytest.mark.parametrize("dark", [False, True])
def test_rings_of_the_focus_stand_out(page, dark):
    if dark:
        page.get_by_role("button", name="Dark or light").click()
    page.get_by_role("button", name="Run").click()
    page.locator("iframe").wait_for()
    choose(page, 1)
    weak = {}
    for name, find in RINGS.items():
        place = find(page)
        place.focus()
        # Rings are for the keyboard.
        page.keyboard.press("Shift")
        width, ratio = place.evaluate(RING)
        if width < 2 or ratio < 3:
            weak[name] = width, ratio
    assert weak == {}


def test_everything_is_reached_by_the_keyboard(page):
    page.locator(".cm-content").first.focus()
    page.keyboard.press("Control+Enter")
    api.expect(page.get_by_text(re.compile("16 matches in 60 events"))).to_be_visible()
    page.keyboard.press("Alt+3")
    for event in ("Event 0", "Event 1"):
        api.expect(page.get_by_text(event, exact=True)).to_be_visible()
        page.keyboard.press("Alt+ArrowRight")
    page.keyboard.press("Alt+4")
    api.expect(page.get_by_text("Which events should be a match?")).to_be_visible()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_are_dark_or_light(chromium, address, scheme):
    page = chromium.new_page(color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.locator(".cm-content").first.wait_for()
    api.expect(page.locator("body.body--dark")).to_have_count(int(scheme == "dark"))
    page.get_by_role("button", name="Dark or light").click()
    api.expect(page.locator("body.body--dark")).to_have_count(int(scheme == "light"))
    page.close()


#: The contrast of text with what is behind it, by the definition of WCAG.
CONTRAST = """(e, colour) => {
    const light = c => c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const parts = text => text.match(/[\\d.]+/g).map(Number);
    let behind = e;
    while (behind && (parts(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const below = behind ? getComputedStyle(behind).backgroundColor : "rgb(255,255,255)";
    const [a, b] = [colour ?? getComputedStyle(e).color, below].map(c => light(parts(c).slice(0, 3)));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }"""


#: The width of the ring of the focus, and its contrast with what is behind it.
RING = f"""e => {{
    const style = getComputedStyle(e), width = style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth);
    return [width, ({CONTRAST})(e, style.outlineColor)]; }}"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_what_is_behind_them(page, dark):
    if dark:
        page.get_by_role("button", name="Dark or light").click()
    page.keyboard.press("Alt+3")
    page.get_by_text("Event 0", exact=True).wait_for()
    page.get_by_role("button", name="Next match").click()
    page.get_by_text("1 match detected").wait_for()
    page.mouse.move(0, 0)
    time.sleep(0.5)
    looked_at = page.locator(".q-btn:not(.disabled), .q-tab, .q-badge, td, .bg-positive div, .cm-lineNumbers")
    places = [place for place in looked_at.all() if place.is_visible()]
    assert len(places) > 20
    weak = {place.inner_text(): place.evaluate(CONTRAST) for place in places}
    assert {text: ratio for text, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("width", [420, 760])
def test_small_windows_have_one_column(chromium, address, width):
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.locator(".cm-content").first.wait_for()
    api.expect(page.locator(".cf-picture").first).to_be_visible()
    run, editor = page.get_by_role("button", name="Run").bounding_box(), page.locator(".cm-editor").bounding_box()
    assert run["y"] + run["height"] <= editor["y"]
    assert run["x"] + run["width"] <= width
    assert editor["width"] > 0.9 * width
    assert page.get_by_role("tab", name="Matches").bounding_box()["y"] > editor["y"] + editor["height"]
    # The words of the picture keep a size that can be read.
    assert page.locator(".cf-picture text").first.bounding_box()["height"] > 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_path_that_cannot_be_opened_gives_a_notice(page, tmp_path):
    (tmp_path / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08\x00")
    page.get_by_role("button", name="Open file").click()
    box = page.get_by_label("Path")
    for path, said in (
        ("~nouser/x", "there is no file ~nouser/x"),
        (str(tmp_path / "cut.csv.gz"), "cut.csv.gz cannot be read: Truncated compressed stream"),
    ):
        box.fill(path)
        page.get_by_role("button", name="Open", exact=True).click()
        # The notice stays.
        api.expect(page.get_by_role("alert").get_by_text(said)).to_be_visible()


def test_data_come_first(chromium, tmp_path):
    with studio(tmp_path, None, None) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        chooser, said = page.locator("input[type=file]"), page.get_by_role("alert")
        for name, text, reason in (
            ("empty.csv", "", "empty.csv cannot be read: it has no rows"),
            ("head.csv", "a,b\n", "head.csv has no events: its columns are a, b"),
            ("empty.json", "", "empty.json cannot be read: it has no rows"),
        ):
            chooser.set_input_files({"name": name, "mimeType": "text/plain", "buffer": text.encode()})
            api.expect(said).to_have_text(re.compile(f"^{reason}.*A file of events has a line for each event", re.S))
        rows = "".join(f"2026-01-01T00:{k:02d}:00Z,u{k % 3},{'ok' if k % 4 else 'bad'}\n" for k in range(60))
        text = ("at,user,result\n" + rows).encode()
        chooser.set_input_files({"name": "logins.csv", "mimeType": "text/csv", "buffer": text})
        api.expect(said).to_have_text("")
        found = page.get_by_text("logins.csv: 60 events, from 2026-01-01 00:00:00 to 2026-01-01 00:59:00")
        api.expect(found).to_be_visible()
        user = page.get_by_role("row").filter(has_text="user")
        api.expect(user.get_by_role("cell")).to_have_text(["user", "text", "0", "3", "u0", "u2"])
        for box, choice in (("Event type", "result"), ("Key", "user")):
            page.get_by_label(box, exact=True).click()
            page.get_by_role("option", name=choice, exact=True).click()
            api.expect(page.get_by_label(box, exact=True)).to_have_value(choice)
            # A list goes slowly, and the next one has the same choices.
            api.expect(page.get_by_role("option")).to_have_count(0)
        api.expect(page.locator(".cm-content").first).to_contain_text("PARTITION BY user")
        write(page, "SELECT * WHERE ok ; bad PARTITION BY user")
        page.get_by_role("button", name="Run").click()
        api.expect(page.get_by_text(re.compile("matches in 60 events"))).to_be_visible()
        page.get_by_role("tab", name="Export").click()
        # The file is where the user has it, and not where the studio keeps it.
        api.expect(page.get_by_text("cerflow.read_events('logins.csv'").first).to_be_visible()
        page.close()


def test_the_sample_has_queries_to_begin_with(chromium, tmp_path):
    with studio(tmp_path, None, None) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.get_by_role("button", name="Use the sample").click()
        api.expect(page.get_by_text("sample.csv: 400 events,")).to_be_visible()
        page.get_by_role("button", name="Something that does not come").click()
        api.expect(page.locator(".cm-content").first).to_contain_text("NOT FOLLOWED BY pay")
        page.get_by_role("button", name="Run").click()
        api.expect(page.get_by_text(re.compile("^11 matches in 400 events"))).to_be_visible()
        page.close()


def test_the_browser_is_led_there_by_a_file(chromium, tmp_path):
    with studio(tmp_path, EVENTS, QUERY) as address:
        for _ in range(600):
            if (tmp_path / "opened.html").exists():
                break
            time.sleep(0.1)
        given = (tmp_path / "given").read_text().strip()
        assert address.partition("token=")[2] not in given
        assert list(tmp_path.glob("cerflow-studio-*.html")) == [tmp_path / given.rpartition("/")[2]]
        context = chromium.new_context()
        # Cookies of other programs of this machine.
        place = {"url": address.partition("?")[0]}
        others = [{"name": "prefs", "value": '{"a":1}', **place}, {"name": "x/y", "value": "a b", **place}]
        context.add_cookies(others)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto((tmp_path / "opened.html").as_uri())
        api.expect(page.get_by_text("events.csv: 60 events")).to_be_visible()
        assert not list(tmp_path.glob("cerflow-studio-*.html"))
        # With the cookie alone the page loads, too, and has the matches in its frame.
        page.goto(place["url"])
        page.get_by_role("button", name="Run").click()
        page.frame_locator("iframe").locator("svg, canvas").first.wait_for()
        context.close()


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong"])
def test_without_the_token_nothing_is_shown(chromium, address, query):
    place = address.split("?")[0]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(place + query)
    assert refused.value.code == 403
    page = chromium.new_page()
    assert page.goto(place + query).status == 403
    # Nor do websockets open.
    opened = page.evaluate(
        """place => new Promise(done => {
            const path = '_nicegui_ws/socket.io/?EIO=4&transport=websocket';
            const socket = new WebSocket(place.replace('http', 'ws') + path);
            socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })""",
        place,
    )
    assert opened == "refused"
    page.close()


def test_pages_of_others_are_refused(address):
    request = urllib.request.Request(address, headers={"Origin": "http://example.org"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 403
