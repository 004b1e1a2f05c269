import re
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.planning import SimulatedErrors, plan, plan_from_description
from tabulary.planning.comparison import compare_plans, request_of, show_error
from tabulary.release import Release
from tabulary.release.manifest import Imprint
from tabulary.release.report import MOST_MEASURED, MOST_TABLES, report_html
from tests.unit.release.releases import a_release

IMPRINT = Imprint(title="", date="2026-01-31", software="1.2.3")
VOID = {"meta", "br", "line", "path", "circle", "rect"}


def page_of(release, imprint=IMPRINT):
    return report_html(release.plan, tuple(release), imprint, release.reconstruction)


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


SIZES = Domain({"sex": ["F", "M"], "age": range(20), "job": range(30)})
FACTS = {
    "bias_share": 0.634,
    "largest_difference": 2e-7,
    "independence_mixed_in": 0.02,
    "errors": "simulated, bias included",
    "repetitions": 50,
}
WHOLE = {"method": "margins", "largest_move": 1.75, "rms_move": 0.3733, "total": 12_345}


def a_shrunk_release(facts=FACTS, rounding="none"):
    planned = plan(SIZES, "[sex age][age job]", privacy=PureDP(1), reconstruct="shrink", rounding=rounding)
    shapes = {margin: SIZES.shape_of(margin) for margin in planned.workload}
    kind = float if rounding == "none" else int
    errors = {m: SimulatedErrors(np.full(s, 3.0), np.full(s, 6.0)) for m, s in shapes.items()}
    counts = {m: np.full(s, 20, dtype=kind) for m, s in shapes.items()}
    return Release.from_counts(planned, counts, errors=errors, reconstruction=facts)


def test_the_page_of_shrunk_tables_says_that_they_are_biased_and_by_how_much():
    words = words_of(a_shrunk_release())
    assert "These tables are biased towards their base" in words
    assert "about 63 % is bias" in words
    assert "simulated from this release alone, in 50 repetitions" in words
    assert 'reconstruct = "none"' in words
    assert "2 % of independence was mixed into all of them" in words
    assert "their sums differ by 2e-07 at most" in words
    assert "Standard error as planned" in words
    assert "what the planning model expected of shrunk tables of about 100,000 records" in words
    assert "Standard error as published" in words
    assert "This release has none: its tables were made non-negative" in words


def test_the_page_of_whole_shrunk_tables_says_how_far_counts_moved():
    words = words_of(a_shrunk_release(FACTS | WHOLE, "controlled"))
    assert "no count moved by more than 1.75, and 0.37 is the root mean square" in words
    counted = words_of(a_shrunk_release(FACTS | WHOLE | {"method": "population"}, "controlled"))
    assert "counted from one population of whole records" in counted


def test_a_page_without_facts_of_the_shrinkage_still_says_that_it_is_biased():
    words = words_of(a_shrunk_release({}))
    assert "These tables are biased towards their base" in words
    assert "%" not in words[words.index("Biased on purpose") :].split("What was measured")[0]


def test_linear_tables_are_not_called_biased():
    words = words_of(a_release())
    assert "Biased on purpose" not in words
    assert "as published" not in words


def test_residuals_are_named_by_what_was_taken_out():
    binary = Domain({"a": "xy", "b": "xy", "c": range(5)})
    planned = plan(binary, "[a b][b c]", privacy=ZCDP(1), mechanism="residual")
    release = Release.from_counts(planned, {m: np.zeros(binary.shape_of(m)) for m in planned.workload})
    words = words_of(release)
    assert "Measured were parts of the tables" in words
    assert "b by c, differences from the average 5" in words


@pytest.mark.parametrize("privacy", [PureDP(1), ApproxDP(1, 1e-9), ZCDP("1/8")])
def test_the_page_shows_the_expected_error_of_every_mechanism_and_why_one_was_chosen(privacy):
    planned = plan(SIZES, "[sex age][age job]", privacy=privacy)
    release = Release.from_counts(
        planned,
        {m: np.zeros(SIZES.shape_of(m), dtype=int if planned.whole else float) for m in planned.workload},
    )
    words = words_of(release)
    compared = compare_plans(request_of(planned), planned=planned, shrunk=False)
    assert compared.reason in words
    for row in compared.best():
        assert show_error(row.error) in words
    for refusal in compared.refusals:
        assert refusal.reason in words


def test_why_is_derived_from_the_plan_that_a_reader_of_the_folder_has():
    release = a_release()
    again = plan_from_description(release.plan.describe())
    assert report_html(again, tuple(release), IMPRINT, release.reconstruction) == page_of(release)


def test_a_release_of_very_many_tables_is_not_compared_and_says_how_to():
    domain = Domain({f"x{i}": "pq" for i in range(33)})
    work = "".join(f"[x{i} x{j}]" for i in range(33) for j in range(i))
    html = page_of(a_release(domain, work, mechanism="margins"))
    words = " ".join(Page(html).text.split())
    assert "`tabulary plan --compare` does" in words
    assert "Expected error of every mechanism" not in html
    assert f"And {33 * 16 - MOST_MEASURED} more parts" in words


def test_a_comparison_that_fails_does_not_lose_a_release_that_is_paid_for(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(sys.modules["tabulary.release.report"], "compare_plans", fail)
    # A plan that no other test has shown, for what was compared once is remembered.
    release = a_release(work="[sex]", privacy=PureDP("17/19"))
    assert "The mechanisms could not be compared for this page." in words_of(release)
