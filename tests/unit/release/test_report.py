import re
import sys
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.errors import InvalidArgument
from tabulary.planning import plan
from tabulary.planning.comparison import compare_plans, request_of, show_error
from tabulary.release.manifest import EpsilonPlace, Imprint
from tabulary.release.report import (
    MOST_COMPARED_CELLS,
    MOST_LARGEST,
    MOST_LARGEST_OF_ONE,
    MOST_MEASURED,
    MOST_TABLES,
    report_html,
)
from tabulary.release.wording import SHRUNK_HELD, bias_words, coverage_words, rounding_words
from tests.releases import release_of
from tests.unit.release.releases import PEOPLE, a_release

IMPRINT = Imprint(date="2026-01-31", software="1.2.3")
VOID = {"meta", "br", "wbr", "line", "path", "circle", "rect"}


def page_of(release, imprint=IMPRINT):
    return report_html(release, imprint)


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
    # The hatching is on the page itself.
    assert not re.search(r"url\((?!#hatch\))|@import|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", html)


def test_names_and_labels_cannot_become_markup():
    domain = Domain({"<b>sex</b>": ["<script>alert(1)</script>", "'\"&"], "x": ["<i>", "&amp;"]})
    release = a_release(domain, "[<b>sex</b>][<b>sex</b> x]", title="<u>Title</u>")
    html = page_of(release)
    assert not {"script", "i", "u"} & {tag for tag, _ in Page(html).tags}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_every_table_has_a_caption_and_headers_with_a_scope():
    page = Page(page_of(a_release(work="[][sex][age job][sex age job]")))
    kinds = [tag for tag, _ in page.tags]
    # The tables themselves; the limits, how accurate, relative errors, the largest of them, what was measured.
    assert kinds.count("table") == kinds.count("caption") == 4 + 5
    assert all("scope" in named for tag, named in page.tags if tag == "th")


def test_every_row_of_a_table_has_the_same_width_counting_what_spans_it():
    domain = Domain({"a": "xyz", "b": "xy", "c": "xyzw"})
    for work in ("[a b c]", "[a]", "[a b]"):
        html = page_of(a_release(domain, work))
        own = html[html.index('<section id="table-1"') :]
        body = own[own.index("<tbody>") : own.index("</table>")]
        widths = [
            sum(int(s or 1) for s in re.findall(r'<t[hd](?![a-z])(?:[^>]*?colspan="(\d+)")?', row))
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, flags=re.DOTALL)
        ]
        assert len(set(widths)) == 1


def test_a_count_stands_with_its_half_width_and_a_doubtful_one_with_a_mark():
    release = counted("[sex]", {("sex",): [1234, -1]}, PEOPLE)
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
    assert "600 cells, of which not all are shown; tables/zone-by-sex.csv has all of them" in words
    # Three numbers in a row, its total included: 132 rows, and the total of all of them.
    assert "… 168 more rows, not shown here Total" in words
    assert "not all are shown" not in words_of(a_release())
    # Totals come in addition: they make no table too large.
    domain = Domain({"zone": range(200), "sex": ["F", "M"]})
    assert "400 cells, also in tables/zone-by-sex.csv" in words_of(a_release(domain, "[zone sex]"))


def test_rows_are_left_out_before_the_heading_of_the_last_block():
    domain = Domain({"zone": range(300), "job": ["none", "paid"], "sex": ["F", "M"]})
    words = section(page_of(a_release(domain, "[zone job sex]")), "table-1")
    # Two blocks of 301 rows and that of their total: 133 rows are shown, and of the last block its total.
    assert "… 770 more rows, not shown here job: Total Total" in words
    assert words.count("job: ") == 2


def test_a_table_of_a_few_more_columns_stays_a_table():
    domain = Domain({"education": range(13), "zone": range(31)})
    words = section(page_of(a_release(domain, "[education zone]")), "table-1")
    assert "zone education 0 1 2 3 4 5 6 7 8 9 10 11 12 Total" in words


def test_headers_are_folded_between_words_and_at_a_slash_and_long_ones_into_few_lines():
    domain = Domain({"sex": ["F", "M"], "origin": ["Spanish/Hispanic", "15-24", "a label " * 6 + "x"]})
    html = page_of(a_release(domain, "[sex origin]"))
    assert '<th scope="col" class="number">Spanish/<wbr>Hispanic</th>' in html
    assert '<th scope="col" class="number short">15-24</th>' in html
    assert '<th scope="col" class="number long">a label ' in html


def test_a_table_too_wide_for_a_page_is_shown_line_by_line():
    domain = Domain({"zone": range(30), "other": range(40)})
    assert "Count 95 % range" in words_of(a_release(domain, "[zone other]"))


def test_a_release_of_many_tables_shows_the_first_of_them_and_says_so():
    domain = Domain({f"attribute {i}": "xy" for i in range(12)})
    work = "".join(f'["attribute {i}" "attribute {j}"]' for i in range(12) for j in range(i))
    counts = {m: np.full((2, 2), 20) for m in combinations(domain.attributes, 2)}
    words = words_of(counted(work, counts, domain))
    assert f"This page shows the first {MOST_TABLES} tables. The other 6 are in the folder" in words


def test_the_page_explains_negative_counts_and_how_to_cite():
    words = words_of(a_release(reconstruct="none"))
    assert "Noise can make a small count negative" in words
    assert "Noise can make a small count negative" not in words_of(a_release())
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
}
WHOLE = {"method": "margins", "largest_move": 1.75, "rms_move": 0.3733, "total": 12_345}


def a_shrunk_release(rounding="none"):
    return a_release(SIZES, "[sex age][age job]", reconstruct="shrink", rounding=rounding)


def adjusted(reconstruct):
    """A release whose tables were adjusted afterwards."""
    domain = Domain({"sex": "FM", "age": "xy"})
    mechanism = {"lp": "margins", "shift": "fourier", "shrink": "residual"}.get(reconstruct, "cells")
    return a_release(domain, "[sex age]", mechanism=mechanism, reconstruct=reconstruct)


def test_the_page_of_shrunk_tables_says_that_they_are_biased_and_by_how_much():
    release = a_shrunk_release()
    words = words_of(release)
    assert bias_words(release.plan, release.face.facts) in words
    told = bias_words(release.plan, FACTS)
    assert "These tables are biased towards their base" in told
    assert "About 63 % of the expected squared error" in told
    assert "2 % of independence was mixed into all of them" in told
    assert "use the unbiased estimates, which this folder holds too" in told
    assert "their sums differ by at most 2e-07" in rounding_words(release.plan, FACTS)
    assert "Standard error as planned" in words
    assert "what the planning model expected for shrunk tables, assuming 100,000 records" in words
    assert "Standard error as published" in words


def test_the_page_of_whole_shrunk_tables_says_how_far_counts_moved():
    release = a_shrunk_release("controlled")
    assert rounding_words(release.plan, release.face.facts) in words_of(release)
    told = rounding_words(release.plan, FACTS | WHOLE)
    assert "no count changed by more than 1.75; the root mean square of the changes is 0.37" in told
    counted = rounding_words(release.plan, FACTS | WHOLE | {"method": "population"})
    assert "counted from one population of whole records" in counted


def test_shrunk_tables_without_facts_are_called_biased_without_a_number():
    told = bias_words(a_shrunk_release().plan, {})
    assert "These tables are biased towards their base" in told
    assert "%" not in told


def test_linear_tables_are_not_called_biased():
    words = words_of(a_release(reconstruct="none"))
    assert "Biased on purpose" not in words
    assert "Standard error as published" not in words
    assert "Unbiased estimates for tests" not in words


def test_residuals_are_named_by_what_was_taken_out():
    binary = Domain({"a": "xy", "b": "xy", "c": range(5)})
    words = words_of(a_release(binary, "[a b][b c]", privacy=ZCDP(1), mechanism="residual"))
    assert "Measured were parts of the tables" in words
    assert "b by c, differences from the average 5" in words


@pytest.mark.parametrize("privacy", [PureDP(1), ApproxDP(1, 1e-9), ZCDP("1/8")])
def test_the_page_shows_the_expected_error_of_every_mechanism_and_why_one_was_chosen(privacy):
    release = a_release(SIZES, "[sex age][age job]", privacy=privacy)
    words = words_of(release)
    compared = compare_plans(request_of(release.plan), planned=release.plan, shrunk=False)
    assert compared.reason in words
    for row in compared.best():
        assert show_error(row.error) in words
    for refusal in compared.refusals:
        assert refusal.reason in words


def test_a_release_of_very_many_tables_is_not_compared_and_says_how_to():
    domain = Domain({f"x{i}": "pq" for i in range(33)})
    work = "".join(f"[x{i} x{j}]" for i in range(33) for j in range(i))
    html = page_of(
        counted(work, {m: np.full((2, 2), 20) for m in combinations(domain.attributes, 2)}, domain)
    )
    words = " ".join(Page(html).text.split())
    assert "The command `tabulary plan` can compare them" in words
    assert "Expected error of every mechanism" not in html
    assert f"And {33 * 16 - MOST_MEASURED} more parts" in words


def test_a_release_of_a_very_large_table_is_not_compared_which_would_take_minutes(monkeypatch):
    def fail(*_, **__):
        pytest.fail("the mechanisms were compared")

    monkeypatch.setattr(sys.modules["tabulary.release.report"], "compare_plans", fail)
    domain = Domain({"x": range(MOST_COMPARED_CELLS + 1)})
    html = page_of(counted("[x]", {("x",): np.full(domain.shape, 20)}, domain))
    assert "With so many or so large tables" in " ".join(Page(html).text.split())


def test_a_comparison_that_fails_does_not_lose_a_release_that_is_paid_for(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(sys.modules["tabulary.release.report"], "compare_plans", fail)
    # A plan that no other test has shown, for what was compared once is remembered.
    release = a_release(work="[sex]", privacy=PureDP("17/19"))
    assert "The mechanisms could not be compared for this page." in words_of(release)


def section(html, name):
    """The words of one section of a page."""
    part = re.search(rf'<section id="{name}".*?</section>', html, flags=re.DOTALL)[0]
    return " ".join(Page(part).text.split())


def pictures(html):
    """The words that each picture says of itself, in the order of the tables."""
    tables = html[html.index('<section id="table-1"') : html.index('<section id="counted"')]
    return re.findall(r"<title>(.*?)</title><desc>(.*?)</desc>", tables)


def counted(work, counts, domain):
    planned = plan(domain, work, privacy=PureDP(1), mechanism="margins", reconstruct="none")
    return release_of(planned, counts)


def test_a_small_table_is_a_mosaic_a_larger_one_a_heat_map_and_three_attributes_are_panels():
    domain = Domain({"a": "xy", "b": "xyz", "c": range(30)})
    counts = {
        ("a",): [900, 800],
        ("a", "b"): [[500, 400, 300], [600, 300, 200]],
        ("a", "c"): np.full((2, 30), 40),
        ("a", "b", "c"): np.full((2, 3, 30), 20),
    }
    html = page_of(counted("[a][a b][a c][a b c]", counts, domain))
    titles = [title for title, _ in pictures(html)]
    assert titles == [
        "a by b: noisy counts as areas",
        "a by c: noisy counts, shaded",
        "a by b by c: noisy counts, shaded",
    ]
    assert "A panel for each b." in section(html, "table-4")
    # One attribute has a dot and a whisker in every row.
    assert html.split('<section id="table-1"')[1].split("</section>")[0].count("<circle") == 2


def test_every_picture_says_in_words_what_it_shows_and_its_numbers_are_in_a_table():
    release = a_release(work="[age job][sex age job]", mechanism="margins", reconstruct="none")
    html = page_of(release)
    assert len(pictures(html)) == 2
    assert all("Largest, " in told and "The interval reaches zero or" in told for _, told in pictures(html))
    for number, table in enumerate(release, 1):
        for count in table.counts[~table.domain.impossible(table.margin)].tolist():
            assert f"{count} ± {table.half_widths().max()}" in section(html, f"table-{number}")


def test_a_table_that_no_picture_can_show_says_why_and_where_its_numbers_are():
    domain = Domain({"a": range(60), "b": range(60)})
    words = words_of(counted("[a b]", {("a", "b"): np.zeros((60, 60), dtype=int)}, domain))
    assert "No picture of this table. A picture shows up to 50 by 50 levels" in words
    assert "All its numbers are in tables/a-by-b.csv" in words


def test_the_headings_are_in_order():
    page = Page(page_of(a_release()))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_counts_the_cells_whose_errors_are_large_beside_their_counts():
    domain = Domain({"a": range(5)})
    release = counted("[a]", {("a",): [1000, 20, 4, 1, -2]}, domain)
    width = int(release["a"].half_widths()[0])
    assert 1 < width < 4
    words = section(page_of(release), "accuracy")
    # One above a tenth and not above half, two more that are not, and one without a positive count.
    assert f"a 5 {100 * width / 4:.0f} % 4 3 2 3: 1 ± {width}" in words
    assert "of 5 possible cells, 1 has none" in words


def test_the_largest_relative_errors_are_listed_the_largest_first():
    domain = Domain({"a": range(12), "b": "xy"})
    counts = np.arange(100, 124).reshape(12, 2)
    counts[7, 1], counts[3, 0] = 9, 2
    release = counted("[a b]", {("a", "b"): counts}, domain)
    width = int(release["a", "b"].half_widths()[0, 0])
    words = section(page_of(release), "accuracy").split("The largest relative errors")[1]
    assert f"a: 3; b: x 2 ± {width} {100 * width / 2:.0f} % a: 7; b: y 9 ± {width}" in words
    # The others have errors of less than a tenth of their counts.
    assert words.count("±") == 2
    assert "The 2 positive counts whose errors are largest beside them; an error of a tenth" in words


def test_one_table_may_have_all_of_the_largest_relative_errors_and_one_of_many_has_a_few():
    domain = Domain({"a": range(12), "b": "xy", "c": "xy", "d": "xy", "e": "xy"})
    alone = page_of(counted("[a b]", {("a", "b"): np.full((12, 2), 4)}, domain))
    assert section(alone, "accuracy").split("The largest relative errors")[1].count("±") == MOST_LARGEST
    of_many = {("a", "b"): np.full((12, 2), 4)} | {(x,): [4000, 4000] for x in "bcde"}
    words = section(page_of(counted("[a b][b][c][d][e]", of_many, domain)), "accuracy")
    assert words.split("The largest relative errors")[1].count("±") == MOST_LARGEST_OF_ONE
    assert f"of each table {MOST_LARGEST_OF_ONE} at most" in words


def test_one_cell_is_spoken_of_as_one():
    domain = Domain({"a": "xy"})
    words = section(page_of(counted("[a]", {("a",): [4000, 4]}, domain)), "accuracy")
    assert "The positive count whose error is largest beside it" in words
    total = words_of(counted("[]", {(): 4}, domain))
    assert "of 1 possible cell, 0 have none" in total


def test_a_release_whose_errors_are_all_small_lists_none_of_them():
    words = section(page_of(counted("[a]", {("a",): [4000, 5000]}, Domain({"a": "xy"}))), "accuracy")
    assert "The largest relative errors" not in words


def test_cells_are_to_be_added_up_only_where_sums_are_covered():
    added = "Add such cells up before you draw a conclusion."
    assert words_of(counted("[sex]", {("sex",): [9, 1]}, PEOPLE)).count(added) == 2
    for reconstruct in ("least-squares", "lp", "shift", "shrink"):
        words = words_of(adjusted(reconstruct))
        assert added not in words
        assert "Do not rely on such a cell." in words


def test_a_table_has_one_name_on_the_whole_page():
    domain = Domain({"age group": range(3), "industry": range(10)})
    html = page_of(a_release(domain, '["age group" industry]', mechanism="margins"))
    words = " ".join(Page(html).text.split())
    # The narrower attribute goes across.
    assert '<th scope="col" colspan="4" class="across">age group</th>' in html
    assert "industry by age group" not in words + html
    assert words.count("age group by industry") >= 5


def test_a_count_is_not_parted_from_its_error():
    html = page_of(counted("[a]", {("a",): [4000, 4]}, Domain({"a": "xy"})))
    width = int(counted("[a]", {("a",): [4000, 4]}, Domain({"a": "xy"}))["a"].half_widths()[0])
    assert f'y: <span class="whole">4 ± {width}</span>' in html
    assert ".whole{white-space:nowrap}" in html


def test_the_page_says_what_may_and_may_not_be_concluded_with_the_limits_of_every_table():
    release = a_release(work="[sex][age job]", mechanism="margins", reconstruct="none")
    words = section(page_of(release), "conclusions")
    width = int(release["sex"].half_widths()[0])
    assert "What you may conclude" in words
    assert "What you may not conclude" in words
    assert 'tabulary test . "[age job]"' in words
    assert "The last is how many of its intervals may miss on average." in words
    limits = words.split("Intervals that may miss on average")[1]
    assert re.search(rf"sex {width} \d+ ± \d+ 0\.1 of 2 age by job {width} \d+ ± \d+ 0\.[23] of 5", limits)


def test_intervals_of_shrunk_tables_are_told_to_hold_as_often_as_they_did_in_trials():
    html = page_of(a_shrunk_release())
    assert coverage_words() in section(html, "accuracy")
    assert "How often they did in trials" in section(html, "reading")
    assert "with probability" not in section(html, "reading")
    assert f"that say 95 %, as {SHRUNK_HELD} of them did in trials" in section(html, "conclusions")
    assert "a probability of about 95 %" not in html
    assert "may miss" not in html


def test_the_trials_of_shrunk_tables_are_those_that_the_documentation_tells_of():
    page = Path(__file__).parents[3] / "docs" / "explanation" / "shrinkage.md"
    told = " ".join(page.read_text(encoding="utf-8").split())
    least, most = SHRUNK_HELD.split(" to ")
    assert re.search(rf"Over all cells of a population it is {least} \([^)]*\) to {most}", told)
    assert "hold the truth about 93 times in a hundred" in told
    assert "its interval *never* held the truth" in told
    assert told.startswith("# Shrinkage")


def test_the_accuracy_table_stands_where_the_page_says_it_does():
    html = page_of(adjusted("least-squares"))
    assert "the accuracy table above" in section(html, "noise")
    assert html.index('<section id="accuracy"') < html.index('<section id="noise"')


def test_an_adjusted_release_has_no_limit_for_all_cells_at_once():
    html = page_of(a_shrunk_release())
    assert "Error of all cells at once" not in section(html, "conclusions")
    assert "errs to the large side" not in section(html, "conclusions")
    assert "errs to the large side as far as these are right" in section(
        page_of(adjusted("least-squares")), "conclusions"
    )


def test_a_page_of_many_large_tables_stays_small_and_says_what_it_leaves_out():
    domain = Domain({f"attribute {i}": [f"level {j}" for j in range(20)] for i in range(12)})
    work = "".join(f'["attribute {i}" "attribute {j}"]' for i in range(12) for j in range(i))
    planned = plan(domain, work, privacy=PureDP(1), mechanism="margins", reconstruct="none")
    html = page_of(release_of(planned, {m: np.full((20, 20), 1234) for m in planned.workload}))
    assert len(html.encode()) < 3_500_000
    words = " ".join(Page(html).text.split())
    assert "400 cells, of which not all are shown; tables/attribute-0-by-attribute-1.csv" in words
    assert len(pictures(html)) == 20
    assert (
        words.count("No picture of this table. The page has room for this many pictures only.")
        == MOST_TABLES - 20
    )


def test_the_same_release_is_the_same_page():
    assert page_of(a_release()) == page_of(a_release())


def test_names_in_the_pieces_of_code_cannot_become_markup():
    domain = Domain({"<b>sex</b>": "xy", "x & y": "xy"})
    html = page_of(a_release(domain, '[<b>sex</b> "x & y"]', mechanism="margins"))
    assert "<b>sex" not in html
    assert "&lt;b&gt;sex&lt;/b&gt;" in html


WORDS = Labels(
    title="Census of nowhere",
    description="Everybody who lived there.",
    unit="persons",
    source="The office",
    notes=("A note of the publisher.",),
    variables={
        "sex": VariableLabels("Gender", levels={"F": "Women", "M": "Men"}),
        "age": VariableLabels("Age in years, completed", "At the last birthday", unit="years"),
    },
    language="en",
)
SUOMEKSI = Labels(
    title="Laskenta",
    variables={"sex": VariableLabels("Sukupuoli", levels={"F": "Naiset", "M": "Miehet"})},
    language="fi",
)


def labelled(*labels, **options):
    made = a_release(**options)
    return type(made)(made.measurement, made.face, labels=labels, dropping=made.dropping)


def test_the_page_begins_with_two_sentences_and_then_the_first_table():
    html = page_of(labelled(WORDS))
    words = " ".join(Page(html).text.split())
    assert words.startswith(
        "Census of nowhere These 3 tables show the number of persons by Gender, Age in years, completed and job "
        "(source: The office), published on 31 January 2026. Small random changes were made to the counts, so that "
        "nobody can be sure from these tables whether any one person was counted; the range after each number, ±, "
        "says how far it may be from the truth. Contents"
    )
    assert (
        html.index('<section id="table-1"')
        < html.index('<section id="counted"')
        < html.index('<details class="fold"')
    )


@pytest.mark.parametrize("privacy", [PureDP(1), ApproxDP(1, 1e-9), ZCDP("1/8")])
def test_the_parameter_of_the_promise_is_named_at_the_top_only_if_the_publisher_wants_it(privacy):
    release = a_release(privacy=privacy)
    unfolded = page_of(release).split('<details class="fold">')[0]
    assert not re.search("[εδρ]", Page(unfolded + "</main></body></html>").text)
    wanted = page_of(release, Imprint(date="2026-01-31", software="1", epsilon=EpsilonPlace.first))
    assert str(privacy).replace(" = ", "\u00a0=\u00a0") in wanted.split('id="table-1"')[0]


def test_a_place_of_the_parameter_that_is_unknown_is_refused():
    with pytest.raises(InvalidArgument, match="'folded'"):
        EpsilonPlace.named("last")


def test_what_the_promise_means_is_folded_and_what_people_read_first_is_not():
    html = page_of(a_release())
    folded = re.findall(r'<details class="fold">.*?<section id="(\w+)"', html, flags=re.DOTALL)
    assert folded == ["promise", "conclusions", "accuracy", "noise", "loading", "files"]
    assert "<details open" not in html


def test_tables_show_labels_and_their_codes_beside_them():
    html = page_of(labelled(WORDS, SUOMEKSI))
    assert '<th scope="row" class="stub short" title="F">Women</th>' in html
    assert "Gender: Women" in section(html, "table-3")
    assert "Age in years, completed by job" in section(html, "table-2")
    names = section(html, "names")
    assert "F Women Naiset" in names
    assert "sex Gender Sukupuoli" in names
    assert "At the last birthday" in names
    assert "Unit: years." in names
    assert '<td lang="fi">Naiset</td>' in html
    assert "Everybody who lived there." in section(html, "counted")
    assert "A note of the publisher." in section(html, "counted")
    assert "Names and codes" not in page_of(a_release())
    assert ", in Gender" in section(html, "conclusions")


def test_remarks_on_attributes_stand_below_each_table_that_has_them():
    html = page_of(labelled(WORDS, SUOMEKSI))
    assert "Age in years, completed, years: At the last birthday" in section(html, "table-2")
    assert "At the last birthday" not in section(html, "table-1")


def test_no_english_word_joins_the_names_of_another_language():
    html = page_of(labelled(SUOMEKSI, WORDS))
    assert ">age, job</h2>" in html
    assert "age by job" not in section(html, "table-2")


def test_a_screen_reader_finds_each_table_by_its_name():
    html = page_of(a_release())
    assert re.findall(r'<table aria-labelledby="([\w-]+)"', html) == re.findall(
        r'<h2 id="(table-\d+-title)"', html
    )


def test_every_table_has_its_totals_and_blocks_have_headings():
    release = a_release(work="[sex age job]")
    html = page_of(release)
    words = section(html, "table-1")
    for sex in ("F", "M"):
        total = release["sex"].counts[("F", "M").index(sex)]
        block = words.split(f"sex: {sex} ")[1].split(" ±")
        assert any(part.split()[-1] == f"{total:,}" for part in block[:16])
    assert f"{release[()].counts:,} ±" in words
    assert html.count('scope="rowgroup"') == 3


def test_totals_that_are_not_the_sums_of_their_parts_are_explained():
    told = "may differ from it"
    domain = Domain({"a": "xy", "b": "xyz"})
    counts = {("a", "b"): np.full((2, 3), 400), ("a",): [1300, 1100]}
    assert told in section(page_of(counted("[a b][a]", counts, domain)), "table-1")
    assert told not in words_of(a_release())


def test_every_number_after_a_count_has_a_sentence_for_everyone_below_its_table():
    html = page_of(a_release())
    for number in range(1, 4):
        assert "about 19 of 20 such ranges contain the true count" in section(html, f"table-{number}")
    assert "A standard error is the usual size of an error" in section(html, "accuracy")
    assert "p-value says how often" in section(html, "conclusions")
    assert "The standard deviation is the usual size of a draw" in section(html, "noise")
