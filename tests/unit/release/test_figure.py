import re
from xml.etree import ElementTree

import pytest

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.release import Release, whisker_svg
from tabulary.release.figure import Axis, Cell, show_count
from tests.unit.release.releases import a_release


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_names_every_level_and_every_count():
    release = a_release()
    table = release["age", "job"]
    shown = texts(whisker_svg(table))
    assert {"0-14", "15-64", "65+", "none", "paid, or self"} <= set(shown)
    assert f"{show_count(table['65+', 'none'])} ± {table.half_widths()[2, 0]}" in shown


def test_a_picture_escapes_what_could_be_markup():
    domain = Domain({"<a&b>": ["</text><script>alert(1)</script>", "x & y"]})
    table = a_release(domain, "[<a&b>]")["<a&b>"]
    svg = whisker_svg(table, title='Less < & > "more"')
    assert "<script>" not in svg
    assert 'Less < & > "more"' in texts(svg)


def test_each_dot_stands_inside_its_whisker_and_inside_the_picture():
    svg = whisker_svg(a_release(work="[sex age]")["sex", "age"], width=500)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    for left, right, dot in re.findall(r'd="M([\d.]+) 7v8M[\d.]+ 11H([\d.]+)M.*?cx="([\d.]+)"', svg):
        assert 0 < float(left) < float(dot) < float(right) < width


def test_a_count_that_noise_could_explain_has_an_open_dot():
    plan = a_release(work="[sex]").plan
    svg = whisker_svg(Release.from_counts(plan, {("sex",): [1, 500]})["sex"])
    drawn = svg.split("</style>")[1]
    # Once for the cell and once in the legend.
    assert drawn.count('class="dot open"') == 2
    assert "interval reaches zero" in drawn


def test_an_impossible_cell_has_a_dash_and_no_dot():
    svg = whisker_svg(a_release()["age", "job"])
    assert "–" in texts(svg)
    assert svg.count("<circle") == 5 + svg.count('<circle class="dot" cx="14" cy="0"') + svg.count(
        '<circle class="dot open" cx="14" cy="0"'
    )


@pytest.mark.parametrize("margin", [("sex", "age", "job"), ()])
def test_only_one_and_two_attributes_make_a_picture(margin):
    release = a_release(work="[][sex age job]")
    with pytest.raises(InvalidTable, match="one or two attributes"):
        whisker_svg(release[margin])


def test_a_table_of_zeros_still_has_an_axis():
    plan = a_release(work="[sex]").plan
    assert "0" in texts(whisker_svg(Release.from_counts(plan, {("sex",): [0, 0]})["sex"]))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 3), (0, 7_300), (-1e6, 12), (0, 0.4)])
def test_ticks_are_few_round_and_within_the_axis(low, high):
    ticks = Axis(low, high, 0, 100).ticks()
    assert 2 <= len(ticks) <= 11
    assert 0 in ticks
    assert all(low <= tick <= high for tick in ticks)


@pytest.mark.parametrize(
    ("count", "width", "dominated"), [(5, 5, True), (-5, 6, True), (6, 5, False), (0, 0, False)]
)
def test_noise_dominates_when_the_interval_reaches_zero(count, width, dominated):
    assert Cell(count, width).noise_dominates is dominated
