import re
from xml.etree import ElementTree

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.release import mosaic_svg
from tabulary.release.mosaic import MOST_COLUMNS, MOST_ROWS, reads_as_mosaic
from tests.releases import release_of
from tests.unit.release.releases import a_release
from tests.unit.release.test_heat_map import SVG, table_of, texts

COUNTS = np.array([[400, 300, 100], [200, 500, 500]])


def tiles(svg):
    """Left, top, width and height of every tile, strip after strip."""
    drawn = svg.split("</style>")[-1].split("From left to right")[0]
    found = re.findall(
        r'<rect class="shade" fill-opacity="[\d.]+" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"',
        drawn,
    )
    return [tuple(map(float, each)) for each in found]


def test_the_area_of_a_tile_is_its_count():
    drawn = tiles(mosaic_svg(table_of(COUNTS)))
    # The gap between two tiles is two wide.
    areas = np.array([(width + 2) * height for _, _, width, height in drawn])
    assert areas / areas.sum() == pytest.approx(COUNTS.reshape(-1) / COUNTS.sum(), rel=0.01)


def test_a_strip_is_as_high_as_its_level_is_frequent():
    drawn = tiles(mosaic_svg(table_of(COUNTS)))
    assert drawn[0][3] / drawn[3][3] == pytest.approx(800 / 1200, rel=0.01)


def test_a_whisker_shows_how_far_the_edge_of_its_tile_would_move():
    table = table_of(COUNTS)
    svg = mosaic_svg(table)
    drawn = tiles(svg)
    strip = sum(width + 2 for _, _, width, _ in drawn[:3])
    reach = strip * int(table.half_widths()[0, 0]) / 800
    ends = re.findall(r'class="reach" d="M([\d.]+) [\d.]+v6M[\d.]+ [\d.]+H([\d.]+)', svg)
    left, right = map(float, ends[0])
    edge = drawn[0][0] + drawn[0][2] + 1
    assert (left, right) == pytest.approx((edge - reach, edge + reach), abs=0.1)
    assert len([each for each in ends if each != ("0", "26")]) == 6


def test_a_mosaic_names_its_strips_and_its_tiles_and_writes_numbers_where_they_fit():
    table = table_of(COUNTS)
    shown = texts(mosaic_svg(table))
    assert {"row 0", "row 1", "column 0", "column 1", "column 2"} <= set(shown)
    assert f"400 ± {int(table.half_widths()[0, 0])}" in shown


def test_a_tile_whose_interval_reaches_zero_is_hatched_and_an_impossible_cell_has_none():
    svg = mosaic_svg(table_of([[400, 300, 1], [200, 500, 500]]))
    assert svg.split("</style>")[1].count("url(#hatch)") == 2
    assert len(tiles(mosaic_svg(a_release(mechanism="margins", reconstruct="none")["age", "job"]))) == 5


def test_a_negative_count_has_no_area():
    drawn = tiles(mosaic_svg(table_of([[400, -30], [200, 500]])))
    assert drawn[1][2] == 0


@pytest.mark.parametrize(
    ("counts", "reads"),
    [
        (COUNTS, True),
        (np.full((MOST_ROWS, MOST_COLUMNS), 900), True),
        (np.full((MOST_ROWS + 1, 2), 900), False),
        (np.full((2, MOST_COLUMNS + 1), 900), False),
        # A sliver of a strip, strips that are noise, tiles too thin for their numbers, nobody in a strip.
        ([[5000, 5000], [20, 20]], False),
        ([[1, 2], [0, 1]], False),
        ([[90000, 30, 30, 30], [90000, 30, 30, 30]], False),
        ([[500, 500], [-1, 0]], False),
    ],
)
def test_a_table_is_drawn_as_a_mosaic_only_where_that_reads(counts, reads):
    assert reads_as_mosaic(table_of(counts)) is reads


def test_three_attributes_and_an_empty_strip_are_refused():
    for table in (
        a_release(mechanism="margins", reconstruct="none")["sex", "age", "job"],
        table_of([[500, 500], [-1, 0]]),
    ):
        with pytest.raises(InvalidTable, match="a mosaic needs two attributes"):
            mosaic_svg(table)


def test_levels_that_begin_alike_are_told_apart():
    domain = Domain({"a": "xy", "b": [f"manufacture of products of kind {i}" for i in range(3)]})
    planned = a_release(domain, "[a b]", mechanism="margins", reconstruct="none").plan
    shown = texts(mosaic_svg(release_of(planned, {("a", "b"): COUNTS})["a", "b"]))
    assert len({name for name in shown if name.startswith("manu") and "…" in name}) == 3


def test_a_mosaic_says_in_words_what_it_shows():
    picture = ElementTree.fromstring(mosaic_svg(table_of(COUNTS)))
    assert picture.get("role") == "img"
    assert picture.find(f"{SVG}title").text == "row by column: noisy counts as areas"
    assert "Largest, row 1, column 1: 500" in picture.find(f"{SVG}desc").text


def test_a_whisker_that_leaves_the_picture_has_no_end():
    # The interval of the last tile is wider than the room beside it.
    svg = mosaic_svg(table_of([[9, 9], [9, 9]]))
    width = float(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    ends = [
        float(end) for end in re.findall(r'class="reach" d="M[\d.]+ [\d.]+v6M[\d.]+ [\d.]+H([\d.]+)', svg)
    ]
    assert max(ends) <= width
