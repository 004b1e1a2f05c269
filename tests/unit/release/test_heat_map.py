import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.release import heat_map_svg
from tabulary.release.heat_map import MOST_PANELS, MOST_SIDE, fits_a_heat_map
from tabulary.release.svg import CHARACTER
from tests.releases import release_of
from tests.unit.release.releases import a_release

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg, kind):
    """The corners of the cells in all paths of one kind."""
    paths = re.findall(rf'<path {kind}[^>]*d="([^"]*)"', svg.split("</style>")[-1])
    return [corner for path in paths for corner in re.findall(r"M([\d.]+ [\d.]+)h[\d.]+v", path)]


def table_of(counts, attributes=("row", "column")):
    """A released table of these counts."""
    counts = np.asarray(counts)
    sizes = zip(attributes, counts.shape, strict=True)
    domain = Domain({a: [f"{a} {i}" for i in range(n)] for a, n in sizes})
    planned = a_release(domain, f"[{' '.join(attributes)}]", mechanism="margins", reconstruct="none").plan
    return release_of(planned, {domain.attributes: counts})[attributes]


def test_every_count_stands_in_its_cell_with_its_half_width():
    table = table_of([[1200, 7], [-3, 55]])
    width = int(table.half_widths()[0, 0])
    shown = texts(heat_map_svg(table))
    for count in ("1,200", "7", "−3", "55"):
        assert f"{count} ± {width}" in shown
    assert {"row 0", "row 1", "column 0", "column 1"} <= set(shown)


def test_a_cell_whose_interval_reaches_zero_is_hatched_and_no_other():
    table = table_of([[500, 0], [1, -40]])
    svg = heat_map_svg(table)
    hatched = boxes(svg, 'fill="url\\(#hatch\\)"')
    # Three cells, one of them far below zero, and the sample of the legend stands elsewhere.
    assert len(hatched) == 3
    assert "hatched: the interval reaches zero or lies below it" in texts(svg)
    assert boxes(heat_map_svg(table_of([[500, 600], [700, 800]])), 'fill="url\\(#hatch\\)"') == []


def test_the_line_under_a_count_is_as_long_as_its_error_is_beside_it():
    table = table_of([[10, 20], [40, 1]])
    width = int(table.half_widths()[0, 0])
    svg = heat_map_svg(table)
    full = float(re.search(r'<path class="track" d="M[\d.]+ [\d.]+h([\d.]+)', svg)[1])
    lines = re.search(r'<path class="error" d="([^"]*)"', svg)[1]
    lengths = [float(length) / full for length in re.findall(r"h([\d.]+)", lines)]
    assert lengths == pytest.approx([min(1, width / count) for count in (10, 20, 40, 1)], abs=0.01)


def test_a_larger_count_has_a_stronger_shade_and_a_negative_one_the_faintest():
    svg = heat_map_svg(table_of([[900, 400], [100, -100]]))
    drawn = svg.split("</style>")[1]
    found = {}
    for shade, path in re.findall(r'<path class="shade" fill-opacity="([\d.]+)" d="([^"]*)"', drawn):
        for corner in re.findall(r"M([\d.]+) ([\d.]+)h[\d.]+v", path):
            found[float(corner[1]), float(corner[0])] = float(shade)
    # From top to bottom and from left to right, without the sample of the legend.
    shades = [shade for _, shade in sorted(found.items())][:4]
    assert shades == sorted(shades, reverse=True)
    assert shades[0] > shades[1] > shades[2] > shades[3]


def test_an_impossible_cell_has_a_dash_and_no_shade():
    table = a_release(mechanism="margins", reconstruct="none")["age", "job"]
    svg = heat_map_svg(table)
    assert texts(svg).count("–") == 2
    assert "impossible by definition" in texts(svg)
    assert len(boxes(svg, 'class="shade"')) == 5


def test_a_third_attribute_makes_panels_that_share_one_scale():
    counts = np.arange(12).reshape(3, 2, 2) * 100 + 100
    svg = heat_map_svg(table_of(counts, ("year", "row", "column")))
    shown = texts(svg)
    assert re.findall(r'class="strong">(.*?)</text>', svg) == [f"year {i}" for i in range(3)]
    assert "A panel for each year." in shown
    assert len(boxes(svg, 'class="shade"')) == 12
    # The rows are named once for all panels of a line.
    assert shown.count("row 0") == 1
    assert shown.count("column 0") == 3


@pytest.mark.parametrize(
    "levels",
    [
        ["North East", "North West", "Midlands", "South", "London"],
        [f"Local authority districts of the region number {i} of 5" for i in range(5)],
        [f"{i}: one of the many districts that begin and end in the same way" for i in range(5)],
    ],
)
def test_panels_can_be_told_apart_however_long_their_names_are(levels):
    domain = Domain({"region of usual residence": levels, "age": "xy", "sex": "FM"})
    table = a_release(
        domain, '["region of usual residence" age sex]', mechanism="margins", reconstruct="none"
    )[domain.attributes]
    svg = heat_map_svg(table)
    names = re.findall(r'class="strong">(.*?)</text>', svg)
    assert len(set(names)) == len(names) == 5
    assert not any("region of usual" in name for name in names)
    assert "A panel for each region of usual residence." in texts(svg)


def test_panels_of_two_attributes_are_headed_by_both_levels():
    table = table_of(np.arange(16).reshape(2, 2, 2, 2), ("year", "sex", "row", "column"))
    shown = texts(heat_map_svg(table))
    assert "A panel for each combination of year and sex." in shown
    assert {"year 0, sex 0", "year 1, sex 0"} <= set(shown)


def test_a_panel_is_as_wide_as_its_name():
    domain = Domain(
        {"district": [f"a district with a long name, {i}" for i in range(4)], "a": "xy", "b": "xy"}
    )
    svg = heat_map_svg(
        a_release(domain, "[district a b]", mechanism="margins", reconstruct="none")[domain.attributes]
    )
    heads = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="strong">(.*?)</text>', svg)
    for (left, line, name), (right, other, _) in pairwise(heads):
        assert line != other or float(right) - float(left) > CHARACTER * len(name)


def test_panels_have_their_numbers_in_several_lines_if_they_have_no_room_in_one():
    counts = np.full((3, 5, 6), 1_234)
    svg = heat_map_svg(table_of(counts, ("year", "row", "column")))
    assert texts(svg).count("1,234") == counts.size
    heights = set(re.findall(r'y="([\d.]+)" class="strong"', svg))
    assert len(heights) > 1
    # Twelve panels of thirty rows would be a picture that nobody can read on paper.
    high = heat_map_svg(table_of(np.full((12, 30, 12), 1_234), ("year", "row", "column")))
    assert "1,234" not in texts(high)
    assert float(re.search(r'viewBox="0 0 \d+ (\d+)"', svg)[1]) < 1_600


def test_a_large_table_is_drawn_without_numbers():
    svg = heat_map_svg(table_of(np.full((40, 45), 300)))
    assert len(boxes(svg, 'class="shade"')) == 40 * 45
    assert not any("±" in words for words in texts(svg))
    assert "error beside the count (full line: as large)" not in texts(svg)


def test_names_stand_upright_where_they_are_too_long_to_lie():
    domain = Domain({"a": ["x", "y"], "b": [f"a rather long label {i}" for i in range(12)]})
    assert "rotate(-90)" in heat_map_svg(
        a_release(domain, "[a b]", mechanism="margins", reconstruct="none")["a", "b"]
    )
    assert "rotate(-90)" not in heat_map_svg(table_of([[1, 2], [3, 4]]))


@pytest.mark.parametrize(
    "shape", [(MOST_SIDE + 1, 2), (2, MOST_SIDE + 1), (MOST_PANELS + 1, 2, 2), (MOST_PANELS,)]
)
def test_what_would_show_nothing_is_refused(shape):
    table = table_of(np.zeros(shape, dtype=int), tuple("abc")[: len(shape)])
    assert not fits_a_heat_map(table)
    with pytest.raises(InvalidTable, match="a heat map shows two attributes"):
        heat_map_svg(table)


def test_a_picture_says_in_words_what_it_shows():
    picture = ElementTree.fromstring(heat_map_svg(table_of([[500, 0], [1, 900]]), title="Cases"))
    assert picture.get("role") == "img"
    assert picture.find(f"{SVG}title").text == "Cases: noisy counts, shaded"
    told = picture.find(f"{SVG}desc").text
    assert "Largest, row 1, column 1: 900" in told
    assert "Smallest, row 0, column 1: 0" in told
    assert "The interval reaches zero or lies below it in 2." in told


def test_a_picture_escapes_what_could_be_markup():
    domain = Domain({"<a>": ["</text><script>", "x & y"], "b": ["1", "2"], "c": ["</title>", "d"]})
    svg = heat_map_svg(
        a_release(domain, "[<a> b c]", mechanism="margins", reconstruct="none")["<a>", "b", "c"], title="<b>"
    )
    ElementTree.fromstring(svg)
    assert "<script>" not in svg


def test_one_that_stands_alone_brings_its_style_and_one_on_a_page_does_not():
    table = table_of([[5, 0], [1, 9]])
    assert 'id="hatch"' in heat_map_svg(table)
    assert "<style>" in heat_map_svg(table)
    within = heat_map_svg(table, standalone=False)
    assert 'id="hatch"' not in within
    assert "<style>" not in within


def test_everything_is_drawn_inside_the_picture():
    svg = heat_map_svg(table_of(np.arange(60).reshape(3, 4, 5) * 1000, ("year", "row", "column")))
    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", svg):
        assert 0 <= float(x) <= width
        assert 0 <= float(y) <= height
