"""The report of a release in a real browser, on paper, on a phone, and what it tells its readers to run."""

import html
import re
import shlex

import numpy as np
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tests.browsers import PHONE, accessibility_faults, chromium_browser, wider_than_its_window, window

pytestmark = pytest.mark.slow

HERE = "http://127.0.0.1:9"
# A sheet of A4 between margins of 14 mm, at 96 dots to the inch.
SHEET = {"viewport": {"width": 688, "height": 1000}}
WORK = "[sex][region sex][sex employment][occupation education][sex employment birth_country]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    records = tb.Records.from_arrow(tb.datasets.people(5_000, seed=3), tb.datasets.people_domain())
    with records:
        plan = tb.plan(records.domain, WORK, privacy=tb.PureDP(1), mechanism="margins", reconstruct="none")
        release = tb.release(records, plan)
    release.save(tmp_path_factory.mktemp("report") / "people")
    return release.folder


# Names as long as official ones are, and numbers as wide as they come.
CROWDED = tb.Domain(
    {
        "region of usual residence": ["North East", "North West", "Midlands", "South", "Greater London area"],
        "age group": ["0-14", "15-64", "65+"],
        "industry": [
            "agriculture, forestry and fishing",
            "manufacturing",
            "construction",
            "retail and hospitality",
        ],
        "economic activity": ["economically active", "economically inactive"],
    }
)
CROWDED_WORK = (
    '["region of usual residence" "age group" industry]["age group" industry "economic activity"]'
    '["age group" industry]["region of usual residence" "age group" industry "economic activity"]'
)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    counts = np.random.default_rng(1).integers(100_000, 1_000_000, CROWDED.shape)
    counts[0] = 3
    plan = tb.plan(CROWDED, CROWDED_WORK, privacy=tb.PureDP("1/100"), mechanism="margins", reconstruct="none")
    release = tb.release(tb.Table(CROWDED, counts), plan)
    release.save(tmp_path_factory.mktemp("crowded") / "people")
    return release.folder


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    domain = tb.datasets.people_domain()
    with tb.Records.from_arrow(tb.datasets.people(2_000, seed=3), domain) as records:
        release = tb.release(records, tb.plan(domain, "[region sex]", privacy=tb.PureDP(1)))
    release.save(tmp_path_factory.mktemp("wanted") / "people", epsilon="first")
    return release.folder


_UNFOLDED = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def _opened(page, folder):
    body = (folder / "report.html").read_bytes()
    page.route(f"{HERE}/", lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
    page.goto("/")


def test_the_report_asks_for_nothing_and_has_no_fault_of_access_by_day_or_by_night(browser, folder):
    # A window fails for a request to another place, and for anything in its console.
    with window(browser, HERE, java_script_enabled=True) as page:
        _opened(page, folder)
        assert accessibility_faults(page) == []
        assert wider_than_its_window(page) == []


def test_the_folded_parts_have_no_fault_of_access_either(browser, folder):
    with window(browser, HERE, java_script_enabled=True) as page:
        _opened(page, folder)
        page.evaluate(_UNFOLDED)
        assert accessibility_faults(page) == []
        assert wider_than_its_window(page) == []


def test_the_report_fits_a_phone(browser, folder, crowded):
    for release in (folder, crowded):
        with window(browser, HERE, **PHONE) as page:
            _opened(page, release)
            assert wider_than_its_window(page) == []
            page.evaluate(_UNFOLDED)
            assert wider_than_its_window(page) == []


def test_the_totals_of_a_table_of_three_columns_are_in_sight_on_a_phone(browser, folder):
    with window(browser, HERE, **PHONE) as page:
        _opened(page, folder)
        found = page.evaluate(
            """() => [...document.querySelectorAll(".one-table .scroll")]
                .filter(box => box.querySelectorAll("thead th.number").length === 3)
                .map(box => [box.ariaLabel, box.scrollWidth, box.clientWidth])"""
        )
        assert found
        assert [name for name, needed, there in found if needed > there] == []


def test_pictures_in_rows_are_left_out_where_they_would_be_out_of_sight(browser, folder):
    for look, shown in ((DESK, True), (PHONE, False)):
        with window(browser, HERE, **look) as page:
            _opened(page, folder)
            assert page.locator(".one-table th.glyph").first.is_visible() is shown
            assert page.locator(".one-table td.glyph").first.is_visible() is shown


def test_the_first_column_stays_in_sight_when_a_table_is_scrolled_on_a_phone(browser, crowded):
    with window(browser, HERE, **PHONE) as page:
        _opened(page, crowded)
        left = page.evaluate(
            """() => {
                const box = document.querySelector(".one-table .scroll");
                box.scrollLeft = 150;
                const head = box.querySelector("tbody th.stub").getBoundingClientRect();
                return [box.scrollLeft, head.left - box.getBoundingClientRect().left, head.width];
            }"""
        )
        assert left[0] > 0
        assert abs(left[1]) < 2
        # The numbers have more than half of the screen.
        assert left[2] < 180


_SEEN_FIRST = """() => {
    const high = window.innerHeight;
    const table = document.querySelector(".one-table table");
    const seen = [...table.querySelectorAll("tbody td")]
        .filter((each) => each.getBoundingClientRect().bottom <= high && /[0-9]/.test(each.textContent));
    const words = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(walk.currentNode);
        const place = range.getBoundingClientRect();
        if (place.height > 0 && place.top < high) words.push(walk.currentNode.textContent);
    }
    return [table.querySelector("thead").getBoundingClientRect().bottom, seen.length, words.join(" ")];
}"""
DESK = {"viewport": {"width": 1280, "height": 800}}


@pytest.mark.parametrize("look", [DESK, PHONE], ids=["desk", "phone"])
def test_the_first_table_is_on_the_first_screen_and_the_parameter_of_the_promise_is_not(
    browser, folder, crowded, look
):
    for release in (folder, crowded):
        with window(browser, HERE, **look) as page:
            _opened(page, release)
            head, numbers, words = page.evaluate(_SEEN_FIRST)
            assert head < look["viewport"]["height"]
            assert numbers >= 3
            assert "so that nobody can be sure" in words
            assert "ε" not in words
            assert "differential" not in words


def test_the_parameter_is_on_the_first_screen_of_a_publisher_who_wants_it(browser, wanted):
    with window(browser, HERE, **PHONE) as page:
        _opened(page, wanted)
        _, numbers, words = page.evaluate(_SEEN_FIRST)
        assert numbers >= 3
        assert "ε\u00a0=\u00a01" in words


def test_a_link_opens_the_folded_part_that_it_leads_to(browser, folder):
    with window(browser, HERE) as page:
        _opened(page, folder)
        assert not page.locator("#promise").is_visible()
        page.locator("nav summary").click()
        page.locator('nav a[href="#promise"]').click()
        page.locator("#promise").wait_for(state="visible")


def test_the_keyboard_opens_a_folded_part(browser, folder):
    with window(browser, HERE) as page:
        _opened(page, folder)
        page.locator(".fold summary").first.focus()
        page.keyboard.press("Enter")
        page.locator("#promise").wait_for(state="visible")


def test_the_report_fits_a_sheet_of_paper_with_every_table_and_picture_whole(browser, folder):
    with window(browser, HERE, **SHEET) as page:
        _opened(page, folder)
        page.emulate_media(media="print")
        assert wider_than_its_window(page) == []
        tallest = page.evaluate(
            "() => Math.max(...[...document.querySelectorAll('figure svg')].map((each) => each.clientHeight))"
        )
        assert 100 < tallest <= 265 / 25.4 * 96
        assert not page.locator("nav").is_visible()
        # Folded on the screen, printed all the same.
        for part in ("promise", "conclusions", "accuracy", "noise", "loading", "files"):
            assert page.evaluate(f"() => document.querySelector('#{part} > *').checkVisibility()")
        page.emulate_media(media="screen")
        assert not page.evaluate("() => document.querySelector('#promise > *').checkVisibility()")


def test_the_hatching_of_a_picture_is_found_on_the_page(browser, folder):
    with window(browser, HERE) as page:
        _opened(page, folder)
        hatched = page.locator('figure [fill="url(#hatch)"]')
        assert hatched.count() > 0
        assert page.locator("pattern#hatch").count() == 1


_COLLIDING = """() => [...document.querySelectorAll("figure svg")].flatMap((picture) => {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
    // Lines of type may touch; a third of a line is a collision.
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5;
    const out = (a) => a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1;
    return texts.flatMap(([words, place], i) => [
        ...(out(place) ? [`${words} leaves its picture`] : []),
        ...texts.slice(i + 1).filter(([, other]) => over(place, other)).map(([other]) => `${words} | ${other}`),
    ]);
})"""


@pytest.mark.parametrize("type_face", ["system-ui", "DejaVu Sans", "Arial"])
def test_no_words_of_a_picture_run_into_others_whatever_the_type_is(browser, folder, crowded, type_face):
    for release in (folder, crowded):
        with window(browser, HERE) as page:
            _opened(page, release)
            page.add_style_tag(content=f".table-picture{{font-family:'{type_face}',sans-serif !important}}")
            assert page.locator("figure svg").count() > 3
            assert page.evaluate(_COLLIDING) == []


def test_a_table_of_long_names_fits_the_page(browser, crowded):
    with window(browser, HERE) as page:
        _opened(page, crowded)
        wide = page.evaluate(
            """() => [...document.querySelectorAll(".one-table .scroll")]
                .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.ariaLabel)"""
        )
        assert wide == []


def _pieces(folder, language):
    page = (folder / "report.html").read_text(encoding="utf-8")
    found = re.findall(rf'<pre[^>]*><code class="language-{language}">(.*?)</code></pre>', page, re.DOTALL)
    return [html.unescape(each) for each in found]


def test_every_piece_of_python_on_the_page_runs_in_the_folder_as_it_is_printed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    tables = []
    for piece in _pieces(folder, "python"):
        names = {}
        exec(compile(piece, "report.html", "exec"), names)
        if "unbiased" in names:
            tables.append(names["unbiased"].counts.reshape(-1).tolist())
        elif "measured" in names:
            assert list(names["measured"]) == ["part", "cell", "value"]
            assert len(names["parts"]) == names["measured"]["part"].nunique()
        else:
            frame = names.get("frame", names.get("table"))
            tables.append(frame["count"].tolist())
    # This release is published as it was measured: both faces are the same.
    assert len(tables) == 4
    assert tables.count(tables[0]) == 4


def test_every_piece_of_r_on_the_page_names_files_of_the_folder(folder):
    pieces = _pieces(folder, "r")
    names = re.findall(r'"([^"]*\.(?:csv|parquet|json))"', " ".join(pieces))
    assert (len(pieces), len(names)) == (3, 4)
    assert all((folder / name).is_file() for name in names)


def test_the_command_on_the_page_runs_in_the_folder_as_it_is_printed(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    (command,) = re.findall(r"<code>(tabulary test .*?)</code>", page)
    assert run(shlex.split(command)[1:]) == 0
    assert "noise-aware" in capsys.readouterr().out
