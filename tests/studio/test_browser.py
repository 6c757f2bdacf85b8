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
    (folder / "events.csv").write_text(events)
    (folder / "query.ceql").write_text(query)
    # In place of a browser, a script that keeps what it is given.
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > "{folder}/given"\ncp "${{1#file://}}" "{folder}/opened.html"\n')
    script.chmod(0o700)
    command = [sys.executable, "-m", "cerflow", "studio", "--input", str(folder / "events.csv")]
    environment = {**os.environ, "BROWSER": str(script), "HOME": str(folder)}
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(
            [*command, "--query", str(folder / "query.ceql")], stdout=said, stderr=said, env=environment
        )
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
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
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


def write(page, text):
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def click(button, shown):
    """Click a button until something is shown: a click is lost on what is drawn again just then."""
    for _ in range(4):
        button.click()
        try:
            api.expect(shown).to_be_visible(timeout=15_000)
        except AssertionError:
            continue
        return
    api.expect(shown).to_be_visible()


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
    page.get_by_text("A/x@0 B/y@1").or_(page.get_by_text("A/x@0  B/y@1")).first.click()
    api.expect(page.get_by_text("Match 1, detected at event 1")).to_be_visible()
    # Numbers are buttons, for the keyboard.
    third = page.get_by_text("Match 3, detected at event 7")
    for _ in range(60):
        # While the table is drawn again after a choice, a key may be lost.
        page.get_by_role("button", name="Match 3", exact=True).press("Enter")
        page.wait_for_timeout(500)
        if third.is_visible():
            break
    api.expect(third).to_be_visible()


def test_matches_are_drawn_in_their_stream(page):
    page.get_by_role("button", name="Run").click()
    page.get_by_text("In the stream").click()
    inner = page.frame_locator("iframe")
    api.expect(inner.locator("canvas").first).to_be_visible()
    api.expect(inner.get_by_text("events.csv").first).to_be_visible()
    api.expect(inner.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Dark or light").click()
    api.expect(inner.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_stream_is_stepped_through(page):
    page.get_by_role("tab", name="Step").click()
    page.get_by_role("button", name="Begin", exact=True).click()
    api.expect(page.get_by_text("Event 0", exact=True)).to_be_visible()
    api.expect(page.get_by_text("Live configurations")).to_be_visible()
    page.get_by_role("button", name="Next match").click()
    api.expect(page.get_by_text("Event 1", exact=True)).to_be_visible()
    api.expect(page.get_by_text("{A/x@0, B/y@1}").first).to_be_visible()
    api.expect(page.locator("g.cs-detected")).to_have_count(1)


def test_deadlines_that_pass_are_steps(page):
    write(page, "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 1 MILLISECONDS")
    page.get_by_role("tab", name="Step").click()
    page.get_by_role("button", name="Begin", exact=True).click()
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
    page.get_by_role("button", name="Begin", exact=True).click()
    api.expect(page.get_by_text("low 0").first).to_be_visible()
    page.get_by_label("Statement").click()
    page.get_by_role("option", name="p", exact=True).click()
    api.expect(page.get_by_text("The query has changed. Begin again.")).to_be_visible()
    page.get_by_role("button", name="Begin", exact=True).click()
    api.expect(page.get_by_text("type 'A'").first).to_be_visible()


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
    # An answer goes with the query.
    write(page, "SELECT * WHERE A ; B")
    api.expect(page.get_by_text("the events are too far apart: 0 to 4")).to_be_hidden()


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
        heads = page.locator(".q-table").first.locator("th").all_inner_texts()
        assert [head.removesuffix("arrow_upward") for head in heads[:4]] == ["#", "host", "events", "detected_at"]
        for number, last, shown_by, detected in ((1, 4509, 4529, 2), (3, 5403, 5423, 1)):
            page.get_by_role("tab", name="Matches").click()
            match = page.get_by_role("button", name=f"Match {number}", exact=True)
            click(match, page.get_by_text(f"Match {number}, detected at event {shown_by}"))
            click(page.get_by_role("button", name="Step to it"), page.get_by_text(f"the deadline of b@{last} passes"))
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
    page.locator(".cm-content").nth(1).click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("SELECT * WHERE A : B")
    time.sleep(0.3)
    page.get_by_role("button", name="Compare").click()
    api.expect(page.get_by_text("Every match of the other is one of the query")).to_be_visible()
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


def test_everything_is_reached_by_the_keyboard(page):
    page.locator(".cm-content").first.focus()
    page.keyboard.press("Control+Enter")
    api.expect(page.get_by_text(re.compile("16 matches in 60 events"))).to_be_visible()
    page.keyboard.press("Alt+2")
    api.expect(page.get_by_role("button", name="Begin", exact=True)).to_be_visible()
    for event in ("Event 0", "Event 1"):
        page.keyboard.press("Alt+ArrowRight")
        api.expect(page.get_by_text(event, exact=True)).to_be_visible()
    page.keyboard.press("Alt+3")
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
CONTRAST = """e => {
    const light = c => c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const parts = text => text.match(/[\\d.]+/g).map(Number);
    let behind = e;
    while (behind && (parts(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const [a, b] = [getComputedStyle(e).color, behind ? getComputedStyle(behind).backgroundColor : "rgb(255,255,255)"]
        .map(c => light(parts(c).slice(0, 3)));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_what_is_behind_them(page, dark):
    if dark:
        page.get_by_role("button", name="Dark or light").click()
    page.keyboard.press("Alt+2")
    page.get_by_role("button", name="Begin", exact=True).click()
    page.get_by_text("Event 0", exact=True).wait_for()
    page.get_by_role("button", name="Next match").click()
    page.get_by_text("1 match detected").wait_for()
    page.mouse.move(0, 0)
    time.sleep(0.5)
    looked_at = page.locator(".q-btn:not(.disabled), .q-tab, .q-badge, td, [data-mark=detected], .cm-lineNumbers")
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
        api.expect(page.get_by_text(said)).to_be_visible()
    page.keyboard.press("Escape")


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
        page.get_by_text("In the stream").click()
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
