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


def test_the_report_fits_a_phone(browser, folder):
    with window(browser, HERE, **PHONE) as page:
        _opened(page, folder)
        assert wider_than_its_window(page) == []


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
        frame = names.get("frame", names["table"])
        tables.append(frame["count"].tolist())
    assert len(tables) == 3
    assert tables[0] == tables[1] == tables[2]


def test_every_piece_of_r_on_the_page_names_files_of_the_folder(folder):
    pieces = _pieces(folder, "r")
    names = re.findall(r'"(tables/[^"]*)"', " ".join(pieces))
    assert len(pieces) == len(names) == 2
    assert all((folder / name).is_file() for name in names)


def test_the_command_on_the_page_runs_in_the_folder_as_it_is_printed(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    (command,) = re.findall(r"<code>(tabulary test .*?)</code>", page)
    assert run(shlex.split(command)[1:]) == 0
    assert "noise-aware" in capsys.readouterr().out
