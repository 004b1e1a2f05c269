"""Pictures of a table: what they draw, what they say, and what they leave to the style sheet."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.builder.pages.charts import MOST_BARS, MOST_SIDE, bars_svg, heat_map_svg
from tabulary.builder.pages.choices import Choices, Show
from tabulary.builder.pages.layout import BuiltTable
from tabulary.cellkey import CellKeyTable
from tabulary.core.domain import Domain
from tabulary.core.labels import Labels
from tabulary.core.table import Table
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tabulary.release.svg import shortened
from tabulary.workflows.answering.answers import TableAnswer

PICTURES = pytest.mark.parametrize("draw", [heat_map_svg, bars_svg], ids=["heat", "bars"])
SVG = "{http://www.w3.org/2000/svg}"


def view_of(levels, counts, *, columns=(), show=Show.counts, keyed=False):
    """Return the view of a table with these levels, the attributes of columns last."""
    domain = Domain(levels)
    if keyed:
        table = CellKeyTable(domain, counts, {})
    else:
        errors = CellErrors(DiscreteLaplace(3), np.ones(domain.shape, dtype=np.int64))
        table = ReleasedTable(Table(domain, counts), errors)
    rows = tuple(a for a in levels if a not in columns)
    chosen = Choices(rows=rows, columns=columns, show=show)
    return BuiltTable.of(TableAnswer(table, None, None), chosen, Labels())


def two_way(counts=((120, 44, 4), (98, -2, 310)), **given_words):
    levels = {"sex": ["F", "M"], "age": ["young", "middle", "old"]}
    return view_of(levels, np.ma.asarray(counts), columns=("age",), **given_words)


def drawn(picture, kind):
    """Return the elements of a picture with a class, legends left out."""
    root = ElementTree.fromstring(picture)
    in_legend = {id(e) for g in root.iter(f"{SVG}g") if "transform" in g.attrib for e in g.iter()}
    return [e for e in root.iter() if kind in e.get("class", "").split() and id(e) not in in_legend]


def texts(picture):
    return [e.text for e in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@PICTURES
def test_a_picture_has_no_script_no_style_and_nothing_from_elsewhere(draw):
    picture = draw(two_way())
    assert not re.search(r"<script|<style|style=|\son\w+=|href|<image|#[0-9a-f]{3}\b", picture)
    assert set(re.findall(r"url\(([^)]*)\)", picture)) <= {"#hatch"}


@PICTURES
def test_a_picture_says_in_words_what_it_shows(draw):
    root = ElementTree.fromstring(draw(two_way()))
    assert root.get("role") == "img"
    named = [root.find(f"{SVG}{tag}") for tag in ("title", "desc")]
    assert named[0].text.startswith("Count by sex (rows) and age (columns): ")
    assert "Largest: M, old, 310, give or take 9." in named[1].text
    assert "Smallest: M, middle, −2, give or take 9: noise dominates." in named[1].text
    assert "Hatched, because noise dominates: 2 of 6." in named[1].text


def test_a_heat_map_has_a_number_in_every_cell_and_a_stronger_shade_for_a_larger_one():
    picture = heat_map_svg(two_way())
    squares = [e for e in drawn(picture, "shade") if e.get("height") == "25"]
    shades = [float(e.get("fill-opacity")) for e in squares]
    assert len(shades) == 6
    values = [120, 44, 4, 98, 0, 310]
    assert np.argsort(shades).tolist() == np.argsort(values).tolist()
    assert max(shades) == 0.5, "what is written on it can be read"
    assert {"120", "44", "4", "98", "−2", "310"} <= set(texts(picture))


def test_bars_have_the_length_of_their_numbers_and_whiskers_over_their_intervals():
    view = two_way()
    picture = bars_svg(view)
    bars = drawn(picture, "bar")
    lengths = [float(bar.get("width")) for bar in bars]
    values = [cell.value for line in view.cells() for cell in line]
    scale = lengths[0] / values[0]
    assert lengths == pytest.approx([abs(v) * scale for v in values], abs=0.03)
    zero = float(bars[0].get("x"))
    whiskers = drawn(picture, "reach")
    assert len(whiskers) == 6
    for path, value in zip(whiskers, values, strict=True):
        left, right = re.fullmatch(r"M([\d.]+) .*H([\d.]+)M.*", path.get("d")).groups()
        assert float(left) == pytest.approx(zero + (value - 9) * scale, abs=0.05)
        assert float(right) == pytest.approx(zero + (value + 9) * scale, abs=0.05)
    assert "120 ± 9" in texts(picture)


@PICTURES
def test_what_noise_dominates_is_hatched_and_the_legend_says_so(draw):
    picture = draw(two_way())
    assert len(drawn(picture, "doubt")) == 2
    assert any("noise dominates" in text for text in texts(picture))
    calm = draw(two_way([[120, 44, 80], [98, 70, 310]]))
    assert not drawn(calm, "doubt")
    assert not any("noise dominates" in text for text in texts(calm))


@PICTURES
def test_a_picture_without_errors_has_no_whiskers_and_draws_nothing_that_is_withheld(draw):
    counts = np.ma.MaskedArray([[120, 44, 4], [98, 0, 310]], [[0, 0, 1], [0, 0, 0]])
    picture = draw(two_way(counts, keyed=True))
    assert not drawn(picture, "reach")
    assert ".." in texts(picture)
    shaded = [e for e in drawn(picture, "shade") if e.get("fill-opacity") == "0"]
    assert len(shaded) == (draw is heat_map_svg)


@PICTURES
@pytest.mark.parametrize(
    ("levels", "columns"),
    [
        ({}, ()),
        ({"a": ["x"]}, ()),
        ({"a": ["x", "y"]}, ("a",)),
        ({"a": "pq", "b": "rs", "c": "tu"}, ("b", "c")),
    ],
)
@pytest.mark.parametrize("value", [0, 77, -30])
def test_tables_of_any_shape_are_drawn_within_their_frame(draw, levels, columns, value):
    domain = Domain(levels)
    picture = draw(view_of(levels, np.full(domain.shape, value), columns=columns))
    root = ElementTree.fromstring(picture)
    wide, high = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        for name, limit in (("x", wide), ("y", high), ("x1", wide), ("y2", high)):
            if element.get(name) and element.get("transform") is None:
                assert -8 <= float(element.get(name)) <= limit
    number = str(value).replace("-", "−")
    assert sum(text.split(" ±")[0] == number for text in texts(picture)) >= domain.size


@PICTURES
@settings(max_examples=25)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=40),
        min_size=2,
        max_size=4,
        unique=True,
    )
)
def test_labels_of_any_kind_are_words_and_never_markup(draw, labels):
    labels = [label.strip() or "blank" for label in labels]
    if len(set(labels)) < len(labels):
        return
    view = view_of({"a": ["x"]}, np.array([70]))
    view = BuiltTable(
        **{
            **view.__dict__,
            "row_labels": tuple((label,) for label in labels),
            "body": view.body[:1] * len(labels),
        }
    )
    picture = draw(view)
    shown = set(texts(picture))
    for label in labels:
        assert shortened(label) in shown


@PICTURES
def test_per_cent_are_drawn_with_their_sign(draw):
    picture = draw(two_way(show=Show.row_percent))
    assert any(text.startswith("71.4\u00a0%") for text in texts(picture))
    assert "0\u00a0%" in texts(picture)


def test_of_a_large_table_the_first_rows_and_columns_are_drawn_and_it_says_so():
    levels = {"a": [f"a{i}" for i in range(70)], "b": [f"b{i}" for i in range(150)]}
    view = view_of(levels, np.full((70, 150), 200), columns=("b",))
    heat, bars = heat_map_svg(view), bars_svg(view)
    assert len([e for e in drawn(heat, "shade") if e.get("height") == "25"]) == MOST_SIDE**2
    assert len(drawn(bars, "bar")) == MOST_BARS
    said = "The picture shows the first 50 of 70 rows and the first 50 of 150 columns. The table has all of them."
    assert said in texts(heat)
    assert said in ElementTree.fromstring(heat).find(f"{SVG}desc").text
    assert (
        "The picture shows the first 1 of 70 rows and the first 120 of 150 columns. The table has all of them."
        in texts(bars)
    )


def test_numbers_that_do_not_fit_into_a_heat_map_are_told_when_pointed_at():
    levels = {"a": ["x", "y"], "b": [f"b{i}" for i in range(50)]}
    picture = heat_map_svg(view_of(levels, np.full((2, 50), 1_234_567), columns=("b",)))
    assert "1,234,567" not in texts(picture)
    root = ElementTree.fromstring(picture)
    told = [e.text for e in root.iter(f"{SVG}title")]
    assert "y, b49: 1,234,567, give or take 9" in told
