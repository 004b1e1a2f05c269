"""The page of an attack and the report of a table: each cell with its interval, and nothing from elsewhere."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.attacks.suppression.attack import attack
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.suppress.classical_method.rules import Threshold
from tabulary.suppress.pages.attack_page import attack_html
from tabulary.suppress.pages.report import report_html, show_chance
from tabulary.suppress.pages.table_layout import TableLayout
from tabulary.suppress.pages.table_views import bar, joined, show_range
from tests.unit.release.test_report import Page

GENES = tb.Domain({"eye": ["blue", "not blue"], "hair": ["blonde", "brown", "black"]})
SUMS = {("eye",): np.array([110, 105]), ("hair",): np.array([55, 105, 55]), (): np.array(215)}
PEOPLE = np.array([[120, 130, 90], [80, 100, 70]])


def genes(people=PEOPLE):
    """Figure 1 of Nabar & Mishra: every cell is suppressed, and every sum is there."""
    return SuppressedTable(GENES, np.full((2, 3), np.nan), SUMS, people)


def words(html):
    return " ".join(Page(html).text.split())


@pytest.fixture(scope="module")
def figure():
    return attack_html(attack(genes(), rule=Threshold(5)), ["genes"])


@pytest.fixture(scope="module")
def together():
    ages = tb.Domain({"age": ["0-17", "18-64", "65+"], "district": ["north", "south"]})
    first = SuppressedTable(
        ages,
        np.array([[np.nan, np.nan], [52, 61], [np.nan, np.nan]]),
        {("age",): np.array([30, 113, 25]), ("district",): np.array([71, 97])},
    )
    adults = tb.Domain({"age": ["0-17", "18+"], "district": ["north", "south"]})
    second = SuppressedTable(adults, np.array([[np.nan, np.nan], [60, 78]]))
    found = attack(first, second, parts={"age": {"18+": ["18-64", "65+"]}})
    return attack_html(found, ["district", "adults"])


@pytest.fixture(scope="module")
def released():
    return tb.suppress.simulatable(
        [[60, 50], [70, 80]], [[25, 20], [31, 40]], 0.45, attributes=["sex", "smokes"]
    )


def pages(figure, together, released):
    return [figure, together, report_html(released), report_html(genes(), {"rule": "counts up to 5"})]


def test_every_page_is_well_formed_loads_nothing_and_runs_nothing(figure, together, released):
    for html in pages(figure, together, released):
        page = Page(html)
        assert html.startswith("<!doctype html>")
        assert len(page.ids) == len(set(page.ids))
        assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
        assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "form"}
        assert not re.search(r"url\(|@import|\son\w+=|https?://", html)


def test_every_table_has_a_caption_and_headers_with_a_scope(figure, together, released):
    for html in pages(figure, together, released):
        page = Page(html)
        kinds = [tag for tag, _ in page.tags]
        assert kinds.count("table") == kinds.count("caption") > 0
        assert all("scope" in named for tag, named in page.tags if tag == "th")


def test_pages_are_for_light_dark_and_print(figure, released):
    for html in (figure, report_html(released)):
        assert '<meta name="color-scheme" content="light dark">' in html
        assert "prefers-color-scheme:dark" in html
        assert "@media print" in html


def test_the_style_is_that_of_the_release_report(released):
    from tabulary.release.pages import page_template

    assert page_template("page.css.j2").render() in report_html(released)


def test_names_and_labels_cannot_become_markup():
    domain = tb.Domain({"<b>eye</b>": ["<script>alert(1)</script>", "'\"&"]})
    table = SuppressedTable(domain, np.array([np.nan, 4]), {(): np.array(9)})
    for html in (attack_html(attack(table), ["<u>name</u>"]), report_html(table, {"<i>": "<em>"})):
        assert not {"script", "u", "i", "em"} & {tag for tag, _ in Page(html).tags}
        # A long label may be folded after a slash.
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html.replace("/<wbr>", "/")


def test_each_suppressed_cell_shows_its_interval_and_a_bar_on_the_scale_of_its_people(figure):
    text = words(figure)
    assert "suppressed, between 0 to 55" in text
    assert "suppressed, between 5 to 105" in text
    # 5 to 105 of 130 people: the bar begins at 5/130 of the line.
    cell = re.search(r"5 to 105</span>(<svg.*?</svg>)", figure)[1]
    left, width = map(
        float, re.search(r'class="interval" x="([\d.]+)" y="2" width="([\d.]+)"', cell).groups()
    )
    line = float(re.search(r'class="track" x="0" y="5" width="([\d.]+)"', cell)[1])
    assert left / line == pytest.approx(5 / 130, abs=1e-2)
    assert width / line == pytest.approx(100 / 130, abs=1e-2)


def test_the_verdict_stands_on_top_and_warns_where_somebody_could_be_certain(figure):
    found = attack(genes(), rule=Threshold(5))
    text = words(figure)
    assert text.index(found.verdict[0]) < text.index("Published numbers")
    assert 'class="alarm"' in figure
    assert 'class="alarm"' not in attack_html(attack(genes(None)), ["genes"])


def test_both_sets_of_sensitive_cells_are_shown_with_what_follows(figure):
    text = words(figure)
    assert "counts up to 5 are sensitive, and as few cells as possible were suppressed" in text
    assert "If cells 1, 3 and 5 were sensitive" in text
    assert "If cells 2, 4 and 6 were sensitive" in text
    assert "all 100 have it" in text
    assert "by the rule 0 to 5 or 50 to 55" in text


def test_the_prior_adds_chances_and_the_probability_of_each_set():
    html = attack_html(attack(genes(), rule=Threshold(5), probability=0.4), ["genes"])
    text = words(html)
    assert "chance 0.40 → 0.77" in text
    assert "Probability above 99.9 %" in text


def test_a_disclosed_cell_is_marked_in_words_and_says_which_table_it_needs(together):
    text = words(together)
    assert "follows exactly: 11" in text
    assert "exactly with adults" in text.replace("exactlywith", "exactly with")
    assert "with district" in text
    # And how: a sum of published numbers.
    assert re.search(r"0-17, north is 11 = \[.*table 2", text)
    assert together.count('class="disclosed"') == 6
    assert text.count("Published numbers, and the interval of each suppressed number") == 2


def test_a_table_without_suppressed_cells_has_no_legend_of_bars():
    table = SuppressedTable(tb.Domain({"eye": ["blue", "brown"]}), np.array([3, 4]))
    html = attack_html(attack(table), ["eyes"])
    assert "Nothing is suppressed" in words(html)
    assert "svg" not in {tag for tag, _ in Page(html).tags}


def test_an_interval_without_an_upper_end_says_so():
    table = SuppressedTable(tb.Domain({"eye": ["blue", "brown"]}), np.array([np.nan, 4]))
    assert "0 or more" in words(attack_html(attack(table), ["eyes"]))


def test_three_attributes_go_downward_with_their_labels_once():
    domain = tb.Domain({"a": "xy", "b": "xy", "c": "xyz"})
    counts = np.arange(12.0).reshape(2, 2, 3)
    counts[0, 0, 0] = np.nan
    table = SuppressedTable(
        domain, counts, {("a", "b"): np.array([[5, 12], [21, 30]]), ("c",): np.array([20, 22, 26])}
    )
    html = attack_html(attack(table), ["cube"])
    body = re.findall(r"<tbody>(.*?)</tbody>", html, flags=re.DOTALL)[0]
    spanned, widths = [], []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, flags=re.DOTALL):
        spanned = [left - 1 for left in spanned if left > 1]
        widths.append(len(spanned) + len(re.findall(r"<t[hd]", row)))
        spanned += [int(s) for s in re.findall(r'rowspan="(\d+)"', row)]
    assert set(widths) == {2 + 3 + 1}
    assert "not published" in words(html)


def test_a_long_table_is_cut_and_says_how_much_is_missing():
    domain = tb.Domain({"zone": range(300)})
    table = SuppressedTable(domain, np.arange(300.0), {(): np.array(44850)})
    assert "The first 200 lines are shown; 101 more are in the file." in words(report_html(table))


def test_the_report_says_what_is_promised_and_that_it_is_not_differential_privacy(released):
    text = words(report_html(released))
    assert "keeps ε-semantic privacy with ε = 0.5" in text
    assert "at most δ = 0.2" in text
    assert "The prior is right" in text
    assert "Differential privacy." in text[text.index("What is not promised") :]
    assert 'tabulary suppress replay "this folder"' in text
    assert released.seed in text


def test_the_report_lists_every_decision_with_its_limit(released):
    html = report_html(released)
    section = html[html.index('id="decisions"') :]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", section, flags=re.DOTALL)
    assert len(rows) == len(released.decisions)
    for row, decision in zip(rows, released.decisions, strict=True):
        assert decision.asked in row
        assert show_chance(decision.limit) in row


def test_the_report_of_a_table_that_was_refused_says_so():
    refused = tb.suppress.simulatable([[1, 400]], [[1, 2]], [[0.5, 0.001]])
    assert "No safe binning: there is no table." in words(report_html(refused))


def test_the_report_of_classical_suppression_promises_nothing_to_people():
    text = words(report_html(genes(), {"rule": "counts up to 5"}))
    assert "That is no guarantee for any person." in text
    assert "rule: counts up to 5" in text
    assert "replay" not in text


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda r: (r[0], r[0] + r[1])), max_size=8)
)
def test_joined_ranges_hold_the_same_whole_numbers_and_have_gaps_between(ranges):
    found = joined(ranges)
    numbers = {value for low, high in ranges for value in range(low, high + 1)}
    assert {value for low, high in found for value in range(int(low), int(high) + 1)} == numbers
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(found))


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1e-3, 1e6))
def test_a_bar_is_seen_and_stays_on_its_line(one, other, top):
    for left, width in re.findall(
        r'class="interval" x="(-?[\d.]+)" y="2" width="([\d.]+)"',
        bar((min(one, other), max(one, other)), (), top),
    ):
        assert float(width) >= 3
        assert float(left) >= 0
        assert float(left) + float(width) <= 88.11


def test_a_range_is_said_in_words():
    assert show_range((1.25, 2.5)) == "1.2 to 2.5"


def test_a_grid_leaves_out_sums_that_are_not_there():
    table = SuppressedTable(GENES, np.ones((2, 3)), {("hair",): np.array([2, 2, 2])})
    grid = TableLayout(table)
    assert grid.columns == ("blonde", "brown", "black")
    assert [line[0].labels[0] for line in grid.lines] == ["blue", "not blue", "total"]
    assert [entry.is_sum for entry in grid.lines[-1]] == [True] * 3
