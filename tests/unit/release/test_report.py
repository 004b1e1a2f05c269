import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.release import Release
from tabulary.release.manifest import Imprint
from tabulary.release.report import MOST_TABLES, report_html
from tests.unit.release.releases import a_release

IMPRINT = Imprint(title="", date="2026-01-31", software="1.2.3")
VOID = {"meta", "br", "line", "path", "circle", "rect"}


def page_of(release, imprint=IMPRINT):
    return report_html(release.plan, tuple(release), imprint)


class Page(HTMLParser):
    """The tags, identifiers and links of a page, with every tag closed in its turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.tags.append((tag, named))
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if "href" in named else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.text += " " if tag in ("th", "td") else ""

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.text += data


def words_of(release):
    return " ".join(Page(page_of(release)).text.split())


@pytest.mark.parametrize("privacy", [PureDP(1), ApproxDP(1, 1e-9), ZCDP("1/8")])
def test_the_page_is_well_formed_and_its_links_lead_somewhere(privacy):
    page = Page(page_of(a_release(privacy=privacy)))
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_page_loads_nothing_and_runs_nothing():
    html = page_of(a_release())
    tags = {tag for tag, _ in Page(html).tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert not re.search(r"url\(|@import|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", html)


def test_names_and_labels_cannot_become_markup():
    domain = Domain({"<b>sex</b>": ["<script>alert(1)</script>", "'\"&"], "x": ["<i>", "&amp;"]})
    release = a_release(domain, "[<b>sex</b>][<b>sex</b> x]")
    html = page_of(release, Imprint(title="<u>Title</u>", date="2026-01-31", software="1"))
    assert not {"script", "i", "u"} & {tag for tag, _ in Page(html).tags}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_every_table_has_a_caption_and_headers_with_a_scope():
    page = Page(page_of(a_release(work="[][sex][age job][sex age job]")))
    kinds = [tag for tag, _ in page.tags]
    assert kinds.count("table") == kinds.count("caption") == 4 + 2
    assert all("scope" in named for tag, named in page.tags if tag == "th")


def test_every_row_of_a_table_has_the_same_width_counting_what_spans_it():
    domain = Domain({"a": "xyz", "b": "xy", "c": "xyzw"})
    for work in ("[a b c]", "[a]", "[a b]"):
        html = page_of(a_release(domain, work))
        body = re.findall(r"<tbody>(.*?)</tbody>", html, flags=re.DOTALL)[-1]
        spanned, widths = [], []
        for row in re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL):
            spanned = [left - 1 for left in spanned if left > 1]
            spans = [int(s) for s in re.findall(r'rowspan="(\d+)"', row)]
            widths.append(len(spanned) + len(re.findall(r"<t[hd]", row)))
            spanned += spans
        assert len(set(widths)) == 1


def test_a_count_stands_with_its_half_width_and_a_doubtful_one_with_a_mark():
    plan = a_release(work="[sex]").plan
    release = Release.from_counts(plan, {("sex",): [1234, -1]})
    width = release["sex"].half_widths()[0]
    words = words_of(release)
    assert f"1,234 ± {width}" in words
    assert f"~−1 ± {width}" in words


def test_an_impossible_cell_is_a_dash_with_a_legend():
    assert "– impossible by definition" in words_of(a_release())
    assert "impossible by definition" not in words_of(a_release(work="[sex]"))


def test_a_large_table_is_cut_and_says_where_the_rest_is():
    domain = Domain({"zone": range(300), "sex": ["F", "M"]})
    words = words_of(a_release(domain, "[zone sex]"))
    assert "600 cells, of which the first 400 are shown; tables/zone-by-sex.csv has all of them" in words
    assert "the first 400 are shown" not in words_of(a_release())


def test_a_table_too_wide_for_a_page_is_shown_line_by_line():
    domain = Domain({"zone": range(30), "other": range(40)})
    assert "Count 95 % interval" in words_of(a_release(domain, "[zone other]"))


def test_a_release_of_many_tables_shows_the_first_of_them_and_says_so():
    domain = Domain({f"attribute {i}": "xy" for i in range(12)})
    work = "".join(f'["attribute {i}" "attribute {j}"]' for i in range(12) for j in range(i))
    words = words_of(a_release(domain, work, mechanism="margins"))
    assert f"This page shows the first {MOST_TABLES} tables. The other 6 are in the folder" in words


def test_the_page_explains_negative_counts_and_how_to_cite():
    words = words_of(a_release())
    assert "Noise can make a small count negative" in words
    assert "How to cite" in words
    assert "released 2026-01-31 with Tabulary 1.2.3" in words


@pytest.mark.parametrize(
    ("mechanism", "words"), [("cells", "agree with each other exactly"), ("margins", "measured by itself")]
)
def test_the_page_says_how_the_tables_were_measured(mechanism, words):
    assert words in words_of(a_release(mechanism=mechanism))


@pytest.mark.parametrize(
    ("privacy", "words"),
    [(PureDP(1), "discrete Laplace, scale 1"), (ZCDP("1/2"), "discrete Gaussian, σ² = 1")],
)
def test_the_page_names_the_law_of_the_noise(privacy, words):
    assert words in words_of(a_release(work="[sex]", privacy=privacy))


def test_the_template_is_part_of_the_package():
    assert (files("tabulary.release") / "templates" / "report.html.j2").is_file()
