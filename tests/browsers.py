"""A real Chromium on this machine, and windows in it that tell everything that went wrong in them."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 15_000
"""Milliseconds until a condition that does not come true fails its test. No success takes this long."""

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
"""A narrow phone, as options of a window."""

# Nothing of a test leaves this machine, even where a page would like to.
_ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
# A status is told by the response itself.
_STATUS = "Failed to load resource: the server responded with a status of"
_WITHIN = ("data:", "blob:", "about:")


def chromium() -> str:
    """Return the path of a Chromium; fail and say how to have one."""
    for name in CHROMIUMS:
        if found := shutil.which(name):
            return found
    raise AssertionError(
        f"no browser: none of {', '.join(CHROMIUMS)} is on the path, and what pages do is shown in a real one. "
        "Install one: sudo apt-get install --yes chromium"
    )


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """Yield a Chromium without windows. It keeps an event loop in this thread: no test beside it may run another."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        browser = playwright.chromium.launch(executable_path=chromium(), args=[_ALONE])
        yield browser
        browser.close()


@contextmanager
def window(
    browser: Browser, address: str, *, refused: Collection[int] = (), **options: Any
) -> Iterator[Page]:
    """Yield a window with a memory of its own; at its end, fail if anything went wrong in it.

    That is an error or a warning in the console, such as the content policy gives, an exception of a script, a request
    to any other place, and a status of 400 or more that is not among `refused`. `options` are Playwright's.
    """
    context = browser.new_context(base_url=address, **options)
    context.set_default_timeout(PATIENCE)
    wrong: list[str] = []

    def requested(request: Request) -> None:
        if not request.url.startswith((f"{address}/", *_WITHIN)):
            wrong.append(f"asked elsewhere: {request.url}")

    def answered(response: Response) -> None:
        if response.status >= 400 and response.status not in refused:
            wrong.append(f"status {response.status}: {response.url}")

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_STATUS):
            wrong.append(f"{message.type} in the console: {message.text}")

    context.on("request", requested)
    context.on("response", answered)
    context.on("console", said)
    context.on("weberror", lambda error: wrong.append(f"exception: {error.error}"))
    page = context.new_page()
    try:
        yield page
        # What was said until now has arrived once the page has answered.
        page.evaluate("0")
    finally:
        context.close()
    assert not wrong, "\n".join(wrong)


def tab_to(page: Page, target: Locator, *, most: int = 150) -> None:
    """Press Tab until an element has the focus; fail if it never gets it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{target} is not reached by {most} tabs")


def accessibility_faults(page: Page) -> list[str]:
    """Return what axe-core holds to be a serious or a critical fault of a page as it stands, by day and by night.

    By night it looks at the contrast alone: nothing but colours differs.
    """
    page.emulate_media(color_scheme="light")
    found = Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += page.evaluate("axe.run({ runOnly: ['color-contrast'], resultTypes: ['violations'] })")[
        "violations"
    ]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def wider_than_its_window(page: Page) -> list[str]:
    """Return what makes a page scroll sideways: nothing, or the elements that stand out."""
    found: list[str] = page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= width) return [];
            return [...document.querySelectorAll("body *")]
                .filter((each) => each.getBoundingClientRect().right > width + 1)
                .map((each) => each.outerHTML.slice(0, 120));
        }"""
    )
    return found
