"""The windows in which pages are tested notice what goes wrong in them."""

import pytest

from tests import browsers
from tests.browsers import accessibility_faults, chromium_browser, tab_to, wider_than_its_window, window

pytestmark = pytest.mark.slow

HERE = "http://127.0.0.1:9"
STRICT = {"Content-Security-Policy": "default-src 'none'", "Content-Type": "text/html; charset=utf-8"}


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        ("<script>1</script>", STRICT, "console"),
        ('<p style="color: red">', STRICT, "console"),
        ("<script>nothing.at.all</script>", {}, "exception"),
        ("<script>console.warn('look')</script>", {}, "look"),
        ('<img src="http://elsewhere.example/a.png" alt="">', {}, "elsewhere.example"),
    ],
)
def test_a_window_fails_for_what_went_wrong_in_it(browser, body, headers, said):
    with pytest.raises(AssertionError, match=said), window(browser, HERE) as page:
        _show(page, body, headers)


def test_a_window_fails_for_a_status_that_was_not_foreseen(browser):
    with pytest.raises(AssertionError, match="status 403"), window(browser, HERE) as page:
        _show(page, "<p>No.", {}, status=403)
    with window(browser, HERE, refused={403}) as page:
        _show(page, "<p>No.", {}, status=403)


def test_a_fault_of_access_and_a_page_that_is_too_wide_are_found(browser):
    with window(browser, HERE) as page:
        dark = "<style>@media (prefers-color-scheme: dark) { p { color: #222; background: #000 } }</style>"
        _show(page, f'{dark}<input><p style="width: 5000px">Wide.', {})
        assert {fault.split(":")[0] for fault in accessibility_faults(page)} >= {"label", "color-contrast"}
        assert wider_than_its_window(page)
        with pytest.raises(AssertionError, match="not reached"):
            tab_to(page, page.locator("p"), most=4)


def test_a_missing_browser_fails_with_the_way_to_install_one(monkeypatch):
    monkeypatch.setattr(browsers.shutil, "which", lambda name: None)
    with pytest.raises(AssertionError, match="apt-get install --yes chromium"):
        browsers.chromium()


def _show(page, body, headers, status=200):
    written = f"<!doctype html><html lang=en><title>A page</title>{body}"
    page.route(
        f"{HERE}/",
        lambda route: route.fulfill(
            status=status, body=written, headers={"Content-Type": "text/html; charset=utf-8", **headers}
        ),
    )
    page.goto("/")
