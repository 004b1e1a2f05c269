"""The pages of a table builder are for everyone: no fault for axe-core, no need for colour or a wide screen."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

import tabulary as tb
from tabulary.builder.release_folders import ReleaseFolders
from tests.browsers import PHONE, accessibility_faults, chromium_browser, wider_than_its_window, window
from tests.builders import GENEROUS, service
from tests.serving import served

pytestmark = pytest.mark.slow

PAGES = {
    "/": 200,
    "/datasets/census": 200,
    "/datasets/census?rows=sex&columns=age&where=region:North": 200,
    "/datasets/census?rows=region&columns=job:+kind": 200,
    "/datasets/census/table?rows=sex&columns=age&where=region:North": 200,
    "/datasets/census/table?rows=region&rows=sex&columns=age&show=row-percent&chart=heat": 200,
    "/datasets/census/table?rows=sex&columns=age&chart=bars&names=codes&test=independence": 200,
    "/datasets/census/table?rows=sex&columns=age&test=difference&first=sex:F&second=sex:M": 200,
    "/datasets/census/table": 200,
    "/datasets/survey/table?rows=sex": 200,
    "/datasets/old/table?rows=region&rows=age&columns=sex": 200,
    "/datasets/census/table?rows=region&columns=job:+kind": 403,
    "/nowhere": 404,
}


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(service(tmp_path_factory.mktemp("builder"))) as answering:
        yield answering


def test_no_page_has_a_serious_fault_of_access_by_day_or_by_night(browser, address):
    with window(browser, address, refused={403, 404}) as page:
        for path, status in PAGES.items():
            assert page.goto(path).status == status, path
            assert accessibility_faults(page) == [], path


def test_no_page_scrolls_sideways_on_a_phone(browser, address):
    with window(browser, address, refused={403, 404}, **PHONE) as page:
        for path in PAGES:
            page.goto(path)
            assert wider_than_its_window(page) == [], path
            # What is under a thumb is large enough for it (WCAG 2.2, 2.5.8), links within a sentence aside.
            assert page.evaluate(_SMALL) == [], path


_SMALL = """() => [...document.querySelectorAll("button, a.button, select, input[type=radio], input[type=checkbox]")]
    .filter((each) => each.checkVisibility())
    .map((each) => [each, (each.closest("label") ?? each).getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
    .map(([each]) => each.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def wordy(tmp_path_factory):
    """The address of a release whose levels have names of real length."""
    areas = [f"Middlesex County--Waltham City, Lexington, Burlington & Lincoln Towns, {i}" for i in range(9)]
    races = [
        *(f"Native Hawaiian and Other Pacific Islander alone, {i}" for i in range(6)),
        "American Indian tribes specified; or American Indian or Alaska Native, not specified and no other races",
    ]
    domain = tb.Domain({"area": areas, "race": races})
    folder = tmp_path_factory.mktemp("wordy") / "people"
    counted = tb.Table(domain, np.full(domain.shape, 500))
    tb.release(counted, tb.plan(domain, "[area race]", privacy=tb.PureDP(1))).save(folder)
    with served(replace(ReleaseFolders.of([folder]), limits=GENEROUS).open()) as answering:
        yield answering


@pytest.mark.parametrize("screen", [PHONE, {"viewport": {"width": 1280, "height": 800}}])
def test_long_names_leave_room_for_the_numbers_and_stay_in_their_frames(browser, wordy, screen):
    with window(browser, wordy, **screen) as page:
        page.goto("/datasets/people/table?rows=area&columns=race&test=independence")
        assert wider_than_its_window(page) == []
        region = page.locator(".region").bounding_box()
        assert page.locator(".region thead").bounding_box()["height"] < region["height"] / 2
        frame = page.locator("section:has(#real)").bounding_box()
        for select in page.locator("section:has(#real) select").all():
            box = select.bounding_box()
            assert box["x"] + box["width"] < frame["x"] + frame["width"]


def test_a_wide_table_scrolls_in_its_own_frame_on_a_phone(browser, address):
    with window(browser, address, **PHONE) as page:
        page.goto("/datasets/census/table?rows=sex&columns=age&columns=region")
        region = page.locator(".region")
        assert region.evaluate("each => each.scrollWidth > each.clientWidth")
        region.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.activeElement.scrollLeft > 0")
        assert wider_than_its_window(page) == []


def test_a_table_is_built_on_a_phone(browser, address):
    with window(browser, address, **PHONE) as page:
        page.goto("/")
        page.get_by_role("link", name="Census 2026").tap()
        for variable, where in (("Sex", "Rows"), ("Age", "Columns")):
            group = page.get_by_role("group", name=variable, exact=True)
            group.get_by_role("radio", name=where, exact=True).tap()
        expect(page.locator("#forecast")).to_contain_text("6 cells")
        page.get_by_role("button", name="Show the table").tap()
        expect(page.get_by_role("table")).to_be_visible()


def test_every_header_says_what_it_is_the_header_of(browser, address):
    with window(browser, address) as page:
        page.goto("/datasets/census/table?rows=region&rows=sex&columns=age")
        table = page.get_by_role("table")
        scopes = table.locator("th").evaluate_all("all => all.map((each) => each.scope)")
        assert set(scopes) <= {"col", "colgroup", "row", "rowgroup"}
        assert {"col", "row"} <= set(scopes)
        # An empty corner is no header.
        assert "" not in [text.strip() for text in table.locator("th").all_inner_texts()]
        assert table.locator("caption").inner_text()


def test_the_headings_and_the_landmarks_are_in_order(browser, address):
    with window(browser, address) as page:
        for path in ("/", "/datasets/census", "/datasets/census/table?rows=sex&columns=age"):
            page.goto(path)
            levels = page.locator("h1, h2, h3, h4").evaluate_all(
                "all => all.map((h) => Number(h.tagName[1]))"
            )
            assert levels[0] == 1
            assert levels.count(1) == 1
            assert all(after <= before + 1 for before, after in pairwise(levels))
            for role in ("banner", "main", "contentinfo"):
                assert page.get_by_role(role).count() == 1


def test_what_moves_stands_still_for_whoever_asks(browser, address):
    with window(browser, address, reduced_motion="reduce") as page:
        page.goto("/datasets/census/table?rows=sex&columns=age")
        moving = page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((each) => {
                const style = getComputedStyle(each);
                return parseFloat(style.transitionDuration) > 0.01 || parseFloat(style.animationDuration) > 0.01;
            }).map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert moving == []


def test_pages_are_kept_to_themselves_by_their_policy(browser, address):
    with window(browser, address) as page:
        for path in ("/", "/datasets/census", "/datasets/census/table?rows=sex"):
            policy = page.goto(path).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert page.locator("[style], style, script:not([src])").count() == 0
