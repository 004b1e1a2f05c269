"""A table of ten thousand cells is shown without freezing the page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browsers import chromium_browser, window
from tests.commuters import CELLS, TABLE, commuters
from tests.serving import served

pytestmark = pytest.mark.slow


def test_a_table_of_ten_thousand_cells_is_whole_and_the_page_answers_to_a_click(tmp_path):
    with (
        served(commuters(tmp_path)) as address,
        chromium_browser() as browser,
        window(browser, address) as page,
    ):
        page.goto(TABLE)
        # Found by what they are called in the page: to ask for roles is to ask all ten thousand for theirs.
        cells = page.locator("main table tbody td")
        assert cells.count() == CELLS == 10_000
        # A page that has frozen answers to none of these.
        page.locator("button[data-act=pick]").click()
        cells.nth(101).click()
        cells.nth(1).click()
        expect(page.locator("button[value=difference]")).to_be_focused()
        page.locator("main a", has_text="Pivot").click()
        expect(page).to_have_url(re.compile("rows=work&columns=home"))
        expect(page.locator("main table tbody tr").last).to_contain_text("w99")
        assert cells.count() == CELLS
        assert _listeners(page, "main table tbody td") == []


def _listeners(page, selector):
    """What listens at one element itself: with ten thousand of them, that has to be nothing."""
    session = page.context.new_cdp_session(page)
    found = session.send("Runtime.evaluate", {"expression": f"document.querySelector('{selector}')"})
    listening = session.send("DOMDebugger.getEventListeners", {"objectId": found["result"]["objectId"]})
    return [each["type"] for each in listening["listeners"]]
