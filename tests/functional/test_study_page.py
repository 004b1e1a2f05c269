"""The page of a study in a real browser: on a screen, on a phone and on paper."""

import pytest

from tabulary.studies.own_data import PlanStudy
from tabulary.studies.running import run
from tests.browsers import PHONE, accessibility_faults, chromium_browser, wider_than_its_window, window
from tests.own_plans import leave_undrawn, write_people, write_plan

pytestmark = pytest.mark.slow

HERE = "http://127.0.0.1:9"
# A sheet of A4 between margins of 14 mm, at 96 dots to the inch.
SHEET = {"viewport": {"width": 688, "height": 1000}}
TABLET = {"viewport": {"width": 600, "height": 900}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("study")
    write_people(place)
    study = PlanStudy.of(
        write_plan(place, mechanism='reconstruct = "shrink"'),
        quick=True,
        mechanisms=["shrunk", "margins"],
        tests=["[age job]", "[sex age]"],
    )
    with pytest.MonkeyPatch.context() as patched:
        leave_undrawn(patched, svg=True)
        run(study, place / "out", processes=1)
    return place / "out"


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


def _opened(page, folder):
    body = (folder / "index.html").read_bytes()
    page.route(f"{HERE}/", lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
    page.goto("/")


def test_the_page_has_no_fault_of_access_by_day_or_by_night(browser, folder):
    with window(browser, HERE, java_script_enabled=True) as page:
        _opened(page, folder)
        assert accessibility_faults(page) == []
        assert not page.locator(".every-page").is_visible()


@pytest.mark.parametrize("screen", [TABLET, PHONE], ids=["tablet", "phone"])
def test_neither_a_digest_nor_large_letters_make_the_page_wider_than_its_window(screen, browser, folder):
    with window(browser, HERE, **screen) as page:
        _opened(page, folder)
        assert wider_than_its_window(page) == []


def test_no_table_is_cut_and_no_name_broken_at_each_word(browser, folder):
    with window(browser, HERE, viewport={"width": 1000, "height": 900}) as page:
        _opened(page, folder)
        wide = "each => each.scrollWidth > each.clientWidth"
        assert not any(page.locator(".scroll").evaluate_all(f"all => all.map({wide})"))
        lines = page.locator("tbody .words").evaluate_all(
            "all => all.map(each => each.clientHeight / parseFloat(getComputedStyle(each).lineHeight))"
        )
        assert len(lines) > 10
        # Two lines with the space around them.
        assert max(lines) < 3


def test_every_sheet_of_paper_says_confidential_beside_the_text(browser, folder):
    with window(browser, HERE, **SHEET) as page:
        _opened(page, folder)
        page.emulate_media(media="print")
        mark = page.locator(".every-page")
        # What is fixed is printed on every sheet.
        assert mark.evaluate("each => getComputedStyle(each).position") == "fixed"
        assert mark.inner_text() == "CONFIDENTIAL"
        box = mark.bounding_box()
        assert box["x"] >= 0
        for part in ("header", "main", "footer"):
            assert box["x"] + box["width"] <= page.locator(part).bounding_box()["x"], part
        assert wider_than_its_window(page) == []
