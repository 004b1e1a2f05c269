import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.workload import Workload
from tabulary.errors import InvalidTable
from tabulary.planning.comparison import compare_plans, show_error
from tabulary.planning.face import Face
from tabulary.planning.request import Request
from tabulary.release import whisker_svg
from tabulary.release.comparison_bars import comparison_svg
from tabulary.release.figure import Cell
from tabulary.release.palette import COLOURS, INK, SOFT
from tabulary.release.svg import STYLE, Axis, legend_entries, show_count, told_apart
from tests.releases import release_of
from tests.unit.release.releases import a_release


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_names_every_level_and_every_count():
    release = a_release(reconstruct="none")
    table = release["age", "job"]
    shown = texts(whisker_svg(table))
    assert {"0-14", "15-64", "65+", "none", "paid, or self"} <= set(shown)
    assert f"{show_count(table['65+', 'none'])} ± {table.half_widths()[2, 0]}" in shown


def test_a_picture_says_in_words_what_it_shows():
    plan = a_release(work="[sex]", reconstruct="none").plan
    picture = ElementTree.fromstring(whisker_svg(release_of(plan, {("sex",): [1, 500]})["sex"]))
    told = picture.find("{http://www.w3.org/2000/svg}desc").text
    assert "Largest, M: 500" in told
    assert "Smallest, F: 1" in told
    assert "The interval reaches zero or lies below it in 1." in told


def test_the_pictures_have_the_colours_of_the_charts():
    assert all(colour in STYLE for colour in (INK, SOFT, COLOURS[0]))


def test_a_picture_escapes_what_could_be_markup():
    domain = Domain({"<a&b>": ["</text><script>alert(1)</script>", "x & y"]})
    table = a_release(domain, "[<a&b>]")["<a&b>"]
    svg = whisker_svg(table, title='Less < & > "more"')
    assert "<script>" not in svg
    assert 'Less < & > "more"' in texts(svg)


def test_each_dot_stands_inside_its_whisker_and_inside_the_picture():
    svg = whisker_svg(a_release(work="[sex age]", reconstruct="none")["sex", "age"], width=500)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    for left, right, dot in re.findall(r'd="M([\d.]+) 7v8M[\d.]+ 11H([\d.]+)M.*?cx="([\d.]+)"', svg):
        assert 0 < float(left) < float(dot) < float(right) < width


def test_a_count_that_noise_could_explain_has_an_open_dot():
    plan = a_release(work="[sex]", reconstruct="none").plan
    svg = whisker_svg(release_of(plan, {("sex",): [1, 500]})["sex"])
    drawn = svg.split("</style>")[1]
    # Once for the cell and once in the legend.
    assert drawn.count('class="dot open"') == 2
    assert "interval reaches zero or lies below it" in drawn


def test_an_impossible_cell_has_a_dash_and_no_dot():
    svg = whisker_svg(a_release(reconstruct="none")["age", "job"])
    assert "–" in texts(svg)
    assert svg.count("<circle") == 5 + svg.count('<circle class="dot" cx="14" cy="0"') + svg.count(
        '<circle class="dot open" cx="14" cy="0"'
    )


def test_a_legend_that_is_too_long_for_one_line_has_two():
    entries = [("count and 95 % interval", ""), ("interval reaches zero or lies below it", "")]
    assert legend_entries(40, entries, width=720)[1] == 40
    drawn, last = legend_entries(40, entries, width=400)
    assert last > 40
    assert f'y="{last:g}"' in drawn


@given(
    st.lists(st.text("ab c", min_size=1, max_size=20), min_size=1, max_size=30, unique=True),
    st.integers(8, 24),
)
def test_labels_that_are_cut_stay_different(labels, longest):
    names = told_apart(labels, longest)
    assert len(set(names)) == len(labels)
    assert max(map(len, names)) <= longest


def test_labels_are_cut_only_where_they_are_too_long():
    assert told_apart(["north", "south"], 8) == ("north", "south")
    assert told_apart(["north of it all", "south"], 8) == ("north o…", "south")
    # The same at both ends.
    assert told_apart(["region one of it", "region two of it"], 8) == ("1. regi…", "2. regi…")


@pytest.mark.parametrize("margin", [("sex", "age", "job"), ()])
def test_only_one_and_two_attributes_make_a_picture(margin):
    release = a_release(work="[][sex age job]", reconstruct="none")
    with pytest.raises(InvalidTable, match="one or two attributes"):
        whisker_svg(release[margin])


def test_a_table_of_zeros_still_has_an_axis():
    plan = a_release(work="[sex]", reconstruct="none").plan
    assert "0" in texts(whisker_svg(release_of(plan, {("sex",): [0, 0]})["sex"]))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 3), (0, 7_300), (-1e6, 12), (0, 0.4)])
def test_ticks_are_few_round_and_within_the_axis(low, high):
    ticks = Axis(low, high, 0, 100).ticks()
    assert 2 <= len(ticks) <= 11
    assert 0 in ticks
    assert all(low <= tick <= high for tick in ticks)


@pytest.mark.parametrize(
    ("count", "width", "dominated"),
    [(5, 5, True), (-5, 6, True), (-9, 6, True), (6, 5, False), (0, 0, False)],
)
def test_noise_dominates_when_the_interval_reaches_zero_or_lies_below_it(count, width, dominated):
    assert Cell(count, width).noise_dominates is dominated


def compared(privacy=None, **options):
    domain = Domain({"sex": ["F", "M"], "age": range(20), "job": range(30), "town": range(40)})
    return compare_plans(
        Request(Workload.k_way(domain, 2), privacy or PureDP(1), Neighbours(), max_cells=10_000, **options)
    )


def bars(svg):
    """The kind and the length of each bar, from the top."""
    drawn = svg.split("</style>")[-1].split('<rect class="paper"')[1]
    found = re.findall(r'<rect class="([^"]*)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    return [(kind, float(width)) for kind, _, width in found]


@pytest.mark.parametrize("privacy", [PureDP(1), ApproxDP(1, 1e-9)])
def test_a_comparison_shows_every_mechanism_with_its_error_and_fills_the_chosen_one(privacy):
    comparison = compared(privacy)
    svg = comparison_svg(comparison)
    shown = " ".join(texts(svg))
    for row in comparison.best():
        assert row.name in shown
        assert show_error(row.error) in shown
    for refusal in comparison.refusals:
        assert refusal.name in shown
    filled = [number for number, (kind, _) in enumerate(bars(svg)) if kind == "bar chosen"]
    assert filled == [comparison.best().index(comparison.chosen)]
    noise = "" if privacy == PureDP(1) else f" ({comparison.chosen.noise})"
    assert f"{comparison.chosen.name}{noise}, chosen" in shown


def test_bars_are_as_long_as_their_errors_until_they_are_cut():
    comparison = compared()
    rows, drawn = comparison.best(), bars(comparison_svg(comparison))
    unit = drawn[0][1] / rows[0].error
    whole = [row for row in rows if row.error <= 6 * rows[0].error]
    assert 1 < len(whole) < len(rows)
    for row, (_, length) in zip(rows, drawn, strict=True):
        # The shortest is drawn to a hundredth, and so are six times of it.
        assert length == pytest.approx(unit * min(row.error, 6 * rows[0].error), abs=0.04)
    cuts = comparison_svg(comparison).split("</style>")[1].count('class="cut"')
    # Once for each bar and once in the legend.
    assert cuts == len(rows) - len(whole) + 1


def test_what_a_model_expects_is_dashed_and_says_so():
    comparison = compared(face=Face("shrink", "none"), objective="shrink")
    svg = comparison_svg(comparison)
    assert [kind for kind, _ in bars(svg)].count("bar modelled chosen") == 1
    assert "expected by a model, not a guarantee" in svg
    assert "dasharray" in STYLE


def test_a_comparison_can_be_heard():
    comparison = compared()
    picture = ElementTree.fromstring(comparison_svg(comparison))
    assert picture.get("role") == "img"
    described = picture.find("{http://www.w3.org/2000/svg}desc").text
    assert f"{comparison.chosen.name} {show_error(comparison.chosen.error)}, chosen" in described
    for refusal in comparison.refusals:
        assert f"{refusal.name} not possible" in described


def test_one_possible_mechanism_still_makes_a_picture():
    comparison = compared()
    alone = replace(comparison, candidates=(comparison.chosen,))
    assert len(bars(comparison_svg(alone))) == 1
