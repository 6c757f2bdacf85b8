"""Pages of matches in a real browser, without a network; skipped where no browser is installed."""

import re
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import cerflow
from support.pages import browser

pytestmark = pytest.mark.slow

EVIL = "</script><img src=x onerror=window.broken=1>"
ZONED = pa.timestamp("ms", "Asia/Tokyo")
START = datetime(2024, 3, 15, 9, 30)


def stream(count=3_000):
    """Every third event is of a type that no match has; one key is text that would do harm in a page."""
    return pa.table(
        {
            "type": [("A", "B", EVIL)[k % 3] for k in range(count)],
            "k": [("p", "q", EVIL)[k // 3 % 3] for k in range(count)],
            "v": [k * 0.5 for k in range(count)],
            "t": pa.array(
                [START + timedelta(milliseconds=7 * k) for k in range(count)], pa.timestamp("ms", "Asia/Tokyo")
            ),
        }
    )


QUERY = "SELECT * WHERE (A AS first ; B AS second) PARTITION BY [k] WITHIN 3 EVENTS"


@pytest.fixture(scope="module")
def chrome():
    with browser() as found:
        yield found


def test_pages_that_take_svg_out_show_images(chrome):
    """JupyterLab takes out of notebooks that are not trusted the elements of SVG and styles, and leaves texts."""
    html = cerflow.parse(QUERY)._repr_html_()
    texts = re.sub(r"</?(svg|g|title|path|rect|circle|polygon|text|tspan)\b[^>]*>", "", html)
    for shown, image in ((html, False), (re.sub("(?s)<style>.*?</style>", "", texts), True)):
        page = chrome.new_page()
        page.set_content(shown)
        assert [img.is_visible() for img in page.locator("img").all()] == [image] * 2
        assert all(page.evaluate("[...document.images].map(img => img.naturalWidth > 100)"))
        assert page.locator("svg").count() == (0 if image else 2)
        assert [drawn.is_visible() for drawn in page.locator(".cf-drawn").all()] == [not image] * 2
        page.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "page.html"
    cerflow.parse(QUERY).match(stream(), time="t").to_html(path)
    return path


def wait(page, condition):
    """Wait until an expression is true. (The page forbids what `wait_for_function` does for that.)"""
    for _ in range(500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not true after 10 s: {condition}")


def opened(chrome, path, **options):
    context = chrome.new_context(viewport={"width": 1200, "height": 700}, offline=True, **options)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    wait(page, "!!(window.cerflow && cerflow.timing.frames && document.querySelector('.match'))")
    return page


@pytest.fixture
def page(chrome, path):
    page = opened(chrome, path)
    yield page
    assert page.faults == []
    page.context.close()


def span(page):
    return page.evaluate("cerflow.state.x1 - cerflow.state.x0")


def cells(page, column):
    """The texts of a column in the rows that the table draws, in their order."""
    return page.evaluate(
        "k => [...document.querySelectorAll('.match')].map(row => row.children[k].textContent)", column
    )


def titles(page):
    return page.evaluate("[...document.querySelectorAll('#titles .cell')].map(cell => cell.textContent)")


def found(page):
    return page.inner_text("#found")


def painted(page, canvas):
    """Whether anything is drawn on a canvas."""
    return page.evaluate(
        """name => {
            const canvas = document.getElementById(name);
            return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(value => value);
        }""",
        canvas,
    )


def settled(page):
    """Wait for the next frame that is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_page_shows_all_and_runs_no_value_as_code(page):
    assert page.inner_text("#count") == "1,000 matches · 3,000 events"
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert "3,000 events, 1,000 matches in view" in page.evaluate("cerflow.timing.drawn")
    assert titles(page)[:6] == ["#", "start", "end", "duration", "events", "k"]
    assert "second.v" in titles(page)
    # 9:30 in UTC is 18:30 in Tokyo.
    assert cells(page, 1)[0] == "18:30:00"
    assert cells(page, 3)[0] == "7 ms"
    assert len(cells(page, 0)) < 60
    assert painted(page, "base")
    assert not painted(page, "over")


def test_zoom_by_wheel_to_a_millisecond_and_back(page):
    whole = span(page)
    box = page.locator("#picture").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 300)
    share = (middle[0] - box["x"] - 112) / (box["width"] - 112)
    under = f"cerflow.state.x0 + (cerflow.state.x1 - cerflow.state.x0) * {share}"
    page.mouse.move(*middle)
    before = page.evaluate(under)
    page.mouse.wheel(0, -500)
    settled(page)
    assert span(page) == pytest.approx(whole / 2.718, rel=0.01)
    assert page.evaluate(under) == pytest.approx(before, rel=1e-6)
    for _ in range(40):
        page.mouse.wheel(0, -1000)
    settled(page)
    assert span(page) < 1
    page.keyboard.press("0")
    settled(page)
    assert span(page) == pytest.approx(whole)


def test_drag_moves_along_the_axis(page):
    page.evaluate("cerflow.setView(5000, 6000)")
    box = page.locator("#picture").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 300, steps=4)
    page.mouse.up()
    moved = 100 * 1000 / (box["width"] - 112)
    assert page.evaluate("cerflow.state.x0") == pytest.approx(5000 + moved, rel=1e-3)
    assert page.evaluate("cerflow.state.chosen") == -1


def test_keys(page):
    page.locator("#picture").focus()
    whole = span(page)
    page.keyboard.press("+")
    assert span(page) == pytest.approx(whole * 0.6)
    x0 = page.evaluate("cerflow.state.x0")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("cerflow.state.x0") > x0
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert page.evaluate("cerflow.state.chosen") == 1
    page.keyboard.press("p")
    assert page.evaluate("cerflow.state.chosen") == 0
    page.keyboard.press("Enter")
    assert span(page) < 60
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    assert page.evaluate("cerflow.state.chosen") == -1
    page.keyboard.press("?")
    assert page.is_visible("#keys")


def test_a_click_on_an_event_chooses_its_match_in_the_table(page):
    page.evaluate("cerflow.setView(7000, 7300)")
    settled(page)
    match = page.evaluate("[...cerflow.shown()].find(m => cerflow.place(cerflow.events(m)[0])[0] > 300)")
    x, y = page.evaluate("m => cerflow.place(cerflow.events(m)[0])", match)
    box = page.locator("#picture").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)
    assert page.evaluate("cerflow.state.chosen") == match
    row = page.locator('.match[aria-selected="true"]')
    assert row.locator(".cell").first.inner_text() == str(match + 1)
    assert f"Match {match + 1:,}" in page.inner_text("#details")
    assert page.locator("#details td").first.inner_text() == "first"


def test_a_click_on_a_row_chooses_its_match_in_the_picture(page):
    page.evaluate("cerflow.setView(20000, 20100)")
    page.locator(".match").nth(4).click()
    settled(page)
    assert page.evaluate("cerflow.state.chosen") == 4
    # The picture moves to it.
    left, right = page.evaluate("cerflow.events(4).map(event => cerflow.place(event)[0])")
    assert 112 <= left < right <= page.locator("#picture").bounding_box()["width"]
    assert painted(page, "over")


def test_a_double_click_on_a_row_zooms_to_its_match(page):
    whole = span(page)
    page.locator(".match").nth(4).dblclick()
    settled(page)
    assert page.evaluate("cerflow.state.chosen") == 4
    assert span(page) < whole / 10
    left, right = page.evaluate("cerflow.events(4).map(event => cerflow.place(event)[0])")
    assert 112 <= left < right <= page.locator("#picture").bounding_box()["width"]


def test_sort(page):
    column = titles(page).index("second.v")
    button = page.locator("#titles .cell").nth(column)
    button.click()
    assert cells(page, column)[:3] == ["0.5", "2", "3.5"]
    assert button.get_attribute("aria-sort") == "ascending"
    button.click()
    assert cells(page, column)[:3] == ["1499", "1497.5", "1496"]
    key = titles(page).index("k")
    page.locator("#titles .cell").nth(key).click()
    assert set(cells(page, key)) == {EVIL}


def test_search(page):
    page.fill("#search", "1497.5")
    wait(page, "document.getElementById('found').textContent === '1 of 1,000'")
    assert cells(page, 0) == ["999"]
    page.fill("#search", "onerror 18:30:00.0")
    wait(page, "document.querySelectorAll('.match').length < 9")
    assert cells(page, titles(page).index("k")) == [EVIL]
    page.fill("#search", "nothing of this kind")
    wait(page, "document.querySelectorAll('.match').length === 0")
    assert found(page) == "0 of 1,000"


def test_filters_by_key_and_label(page):
    page.fill("#key", "q")
    assert found(page) == "333 of 1,000"
    page.fill("#key", "")
    first, second = page.locator("#labels .label").all()
    first.click()
    assert found(page) == "1,000"
    assert first.get_attribute("aria-pressed") == "false"
    second.click()
    assert found(page) == "0 of 1,000"


def test_lanes_and_axis_can_be_switched(page):
    page.select_option("#lanes", label="k")
    page.select_option("#axis", label="position")
    settled(page)
    assert page.evaluate("cerflow.bounds()") == pytest.approx([-29.99, 3028.99])
    assert page.evaluate("cerflow.head.lanes[cerflow.state.lanes].name") == "k"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_dark_and_light(chrome, path, scheme):
    page = opened(chrome, path, color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(colour)
    assert first == {"dark": "rgb(18, 21, 28)", "light": "rgb(251, 251, 253)"}[scheme]
    page.click("#theme")
    assert page.evaluate(colour) != first
    assert page.faults == []
    page.context.close()


OTHERS = ["SELECT * WHERE C", "SELECT COUNT(*) AS n WHERE A ; B", "SELECT first.v AS v WHERE A AS first"]


@pytest.mark.parametrize("text", OTHERS)
@pytest.mark.parametrize("time", [None, "t"])
def test_other_results(chrome, tmp_path, text, time):
    matches = cerflow.parse(text).match(stream(30), time=time)
    matches.to_html(tmp_path / "page.html")
    context = chrome.new_context()
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    wait(page, "!!(window.cerflow && cerflow.timing.frames)")
    assert page.inner_text("#count") == f"{len(matches)} matches · 30 events"
    page.keyboard.press("n")
    page.keyboard.press("+")
    settled(page)
    assert faults == []
    context.close()


def test_an_empty_stream(chrome, tmp_path):
    cerflow.parse("SELECT * WHERE C").match([]).to_html(tmp_path / "page.html")
    page = chrome.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    wait(page, "!!(window.cerflow && cerflow.timing.frames)")
    assert page.inner_text("#count") == "0 matches · 0 events"
    assert faults == []
    page.close()


HOUR = 3_600_000
#: Milliseconds in view, those from one tick to the next (None: months or years), and the first text at +05:30.
TICKS = [
    (HOUR * 24 * 4000, None, "2002"),
    (HOUR * 24 * 400, None, "2001-10"),
    (HOUR * 24 * 7, 2 * 24 * HOUR, "2001-09-11"),
    (HOUR * 30, 6 * HOUR, "12:00"),
    (HOUR / 2, HOUR / 6, "07:20"),
    (30_000, 10_000, "07:16:40"),
    (40, 10, "16:40.00"),
    (2, 1, "16:40.000"),
]


@pytest.mark.parametrize(("length", "step", "first"), TICKS)
def test_the_axis_has_round_times_at_every_zoom(chrome, tmp_path, length, step, first):
    times = pa.array([0, 1_500_000_000_000], pa.timestamp("ms", "+05:30"))
    events = pa.table({"type": ["A", "B"], "t": times})
    cerflow.parse("SELECT * WHERE A").match(events, time="t").to_html(tmp_path / "page.html")
    page = opened(chrome, tmp_path / "page.html")
    page.evaluate(f"cerflow.setView(1e12, 1e12 + {length})")
    settled(page)
    places, texts = zip(*page.evaluate("cerflow.ticks()"))
    assert texts[0] == first
    assert len(places) >= 2
    if step is not None:
        assert {b - a for a, b in pairwise(places)} == {step}
        assert {(place + 5.5 * HOUR) % step for place in places} == {0}
    else:
        assert {(place + 5.5 * HOUR) % (24 * HOUR) for place in places} == {0}
    page.context.close()


def test_months_begin_at_midnight_of_the_time_zone(chrome, tmp_path):
    berlin = ZoneInfo("Europe/Berlin")
    times = pa.array([datetime(2023, 1, 1), datetime(2024, 1, 1)], pa.timestamp("ms", "Europe/Berlin"))
    events = pa.table({"type": ["A", "A"], "t": times})
    cerflow.parse("SELECT * WHERE A").match(events, time="t").to_html(tmp_path / "page.html")
    page = opened(chrome, tmp_path / "page.html")
    begin = times[0].value
    found = page.evaluate("cerflow.ticks()")
    page.context.close()
    assert len(found) >= 4
    for place, text in found:
        at = datetime.fromtimestamp((begin + place) / 1000, berlin)
        assert (at.day, at.hour, at.minute, f"{at:%Y-%m}") == (1, 0, 0, text)


def test_many_matches_are_drawn_by_their_densities(chrome, tmp_path):
    events = stream(90_000)
    path = tmp_path / "page.html"
    cerflow.parse("SELECT * WHERE (A AS first : B AS second)").match(events, time="t").to_html(path)
    page = opened(chrome, path)
    assert "one match in 75 has lines" in page.evaluate("cerflow.timing.drawn")
    # The labels of a strip are those of its lane, in their colours, and what is filtered out is not counted.
    pixel = """([lane, x]) => {
        const base = document.getElementById("base"), ratio = window.devicePixelRatio;
        const [r, g, b] = base.getContext("2d").getImageData(x * ratio, cerflow.laneY(lane) * ratio, 1, 1).data;
        return [r, g, b];
    }"""
    lanes = page.evaluate("cerflow.head.lanes[0].texts")
    assert page.evaluate(pixel, [lanes.index("A"), 400]) == [0x2F, 0x7E, 0xD8]
    assert page.evaluate(pixel, [lanes.index("B"), 400]) == [0xE8, 0x83, 0x3A]
    page.get_by_role("button", name="first", exact=True).click()
    settled(page)
    assert page.evaluate(pixel, [lanes.index("A"), 400]) != [0x2F, 0x7E, 0xD8]
    assert page.evaluate(pixel, [lanes.index("B"), 400]) == [0xE8, 0x83, 0x3A]
    page.context.close()
