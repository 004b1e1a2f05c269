"""The documentation as a site: it is built from the pages, works by itself, and asks for nothing from elsewhere."""

import http.server
import re
import subprocess
import sys
import threading
from functools import partial

import pytest
import yaml
from playwright.sync_api import expect

from tests.browsers import PHONE, accessibility_faults, chromium_browser, window
from tests.pages import ROOT, read

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it; a broken link would have failed the build."""
    folder = tmp_path_factory.mktemp("site")
    (command,) = re.findall(r"mkdocs (build .*--strict.*)$", read("Makefile"), re.MULTILINE)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", *command.split(), "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "HOME": str(folder.parent)},
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as browser:
        yield browser


def test_every_written_page_is_in_the_menu(site):
    def named(part):
        if isinstance(part, str):
            return [part]
        return [name for each in (part.values() if isinstance(part, dict) else part) for name in named(each)]

    menu = yaml.safe_load(read("mkdocs.yml"))["nav"]
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(named(menu)) == sorted(pages)
    assert all((site / page).with_suffix(".html").exists() or page.endswith("README.md") for page in pages)


def test_the_site_holds_pages_and_pictures_and_no_programs(site):
    assert not [path for path in site.rglob("*") if path.suffix in (".py", ".pyc", ".md")]


def test_no_page_of_the_site_names_a_font_a_script_or_a_picture_from_elsewhere(site):
    outside = r"(?:<link[^>]+href|<script[^>]+src|<img[^>]+src|<iframe[^>]+src)=[\"']?(?:https?:)?//"
    for page in site.rglob("*.html"):
        assert not re.search(outside, page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), (
            sheet
        )


def test_nothing_of_a_page_is_shown_as_it_was_typed(site):
    """Tables, lists, fences and sessions that the site does not take for such come out as raw text."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        article = re.search(r"<article.*?</article>", text, re.DOTALL)
        shown = re.sub(r"<(pre|code).*?</\1>", "", article[0] if article else "", flags=re.DOTALL)
        for sign in (r"\| ---", r"```", r"&gt;&gt;&gt;", r"<blockquote", r"<p>[^<]*\n- ", r"(?<!\w)\*\*\w"):
            assert not re.search(sign, shown), f"{page.relative_to(site)}: {sign}"
        # Within code in a table a stroke needs no backslash on the site, and shows it.
        assert not re.search(r"<code>[^<]*\\\|", article[0] if article else ""), page.relative_to(site)


def test_the_menu_calls_a_page_of_the_reference_what_is_typed(site):
    menu = (site / "reference" / "python.html").read_text(encoding="utf-8")
    links = re.findall(
        r'<a href="((?:commands|python)/\w+)\.html" class="md-nav__link">(.*?)</a>', menu, re.DOTALL
    )
    named = {place: re.sub(r"<[^>]*>", "", inner).strip() for place, inner in links}
    assert named["commands/demo"] == "tabulary demo"
    assert named["python/infer"] == "tb.infer"
    for place, name in named.items():
        first, _ = read(f"docs/reference/{place}.md").split("\n", maxsplit=1)
        assert first.replace("`", "") == f"# {name}"


@pytest.mark.parametrize(
    "page",
    [
        "index.html",
        "explanation/perturbation.html",
        "reference/python/infer.html",
        "reference/python/records.html",
        "reference/commands/suppress.html",
    ],
)
def test_a_page_asks_for_nothing_from_elsewhere_and_fits_a_phone(address, browser, page):
    for look in ({}, PHONE):
        with window(browser, address, **look) as shown:
            shown.goto(f"/{page}")
            expect(shown.locator("article h1")).to_be_visible()
            width = shown.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert width[0] <= width[1], "the page is wider than its window"
            cut = "names => names.filter(name => name.getClientRects().length > 1).map(name => name.textContent)"
            assert shown.locator("td code").evaluate_all(cut) == [], "a name in a table is cut in the middle"


def test_the_search_leads_to_a_page_with_the_word(address, browser):
    with window(browser, address) as page:
        page.goto("/index.html")
        page.keyboard.press("/")
        page.keyboard.type("Fieller", delay=20)
        found = page.locator(".md-search-result__item a").first
        expect(found).to_be_visible()
        found.click()
        expect(page.locator("article")).to_contain_text("Fieller")


def test_a_reader_may_choose_the_dark(address, browser):
    with window(browser, address, color_scheme="light") as page:
        page.goto("/index.html")
        expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
        page.locator("label[for=__palette_1]").click()
        expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")


def test_a_page_is_accessible_but_for_what_the_theme_leaves_without_a_name(address, browser):
    with window(browser, address) as page:
        page.goto("/explanation/residual.html")
        faults = accessibility_faults(page)
    assert not [each for each in faults if not each.startswith("aria-dialog-name: ['.md-search']")]
