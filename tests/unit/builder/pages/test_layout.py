"""A table as it stands on a page: headers, cells, rounding, marks and notes."""

from math import prod
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.builder.pages.choices import Choices, Names, Show
from tabulary.builder.pages.layout import BuiltTable
from tabulary.cellkey import CellKeyTable
from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.table import Table
from tabulary.noise import DiscreteGaussian, DiscreteLaplace
from tabulary.planning import CellErrors, StatedErrors
from tabulary.release import ReleasedTable
from tabulary.release.publication import IMPOSSIBLE, NO_NUMBER
from tabulary.workflows.answering.answers import TableAnswer

LEVELS = {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "a&b=c": ["=1+1", "<b>"], "one": ["only"]}
VARIABLES = {
    "sex": VariableLabels("Sex", levels={"F": "Women", "M": "Men"}),
    "age": VariableLabels("Age in years"),
    "a&b=c": VariableLabels("Odd & old"),
    "one": VariableLabels("One"),
}


def released(by, counts=None, noise=None, zeros=()):
    """Return a table with the same noise in every possible cell."""
    domain = Domain({a: LEVELS[a] for a in by}, zeros)
    if counts is None:
        counts = np.arange(domain.size).reshape(domain.shape) * 37 + 200
    possible = np.asarray(~domain.impossible(domain.attributes))
    errors = CellErrors(noise or DiscreteLaplace(3), np.asarray(possible, dtype=np.int64))
    return ReleasedTable(Table(domain, np.where(possible, counts, 0)), errors)


def view_of(chosen, table=None, **answer):
    """Return the view of a table that was chosen."""
    table = released(chosen.by) if table is None else table
    return BuiltTable.of(TableAnswer(table, None, None, **answer), chosen, Labels(variables=VARIABLES))


def grid_of_headers(view):
    """Return what a browser makes of the rows: in each slot the header that covers it, or the cell."""
    slots, height = {}, len(view.head) + len(view.body)
    lines = [*view.head, *((*row.heads, *row.cells) for row in view.body)]
    for y, line in enumerate(lines):
        x = 0
        for item in line:
            while (y, x) in slots:
                x += 1
            wide, high = getattr(item, "colspan", 1), getattr(item, "rowspan", 1)
            for covered in ((y + down, x + right) for down in range(high) for right in range(wide)):
                assert covered not in slots, "nothing stands on anything else"
                slots[covered] = item
            x += wide
    width = 1 + max(x for _, x in slots)
    assert sorted(slots) == [(y, x) for y in range(height) for x in range(width)], "no slot is left empty"
    return slots


@st.composite
def choices(draw, **given_choices):
    names = draw(st.permutations(list(LEVELS)))
    names = names[: draw(st.integers(0, 4))]
    cut = draw(st.integers(0, len(names)))
    return Choices(
        rows=tuple(names[:cut]),
        columns=tuple(names[cut:]),
        totals=draw(st.booleans()),
        show=draw(st.sampled_from(Show)),
        names=draw(st.sampled_from(Names)),
        **given_choices,
    )


@settings(max_examples=60)
@given(choices())
def test_every_cell_stands_under_and_beside_the_headers_of_its_own_levels(chosen):
    view = view_of(chosen)
    slots = grid_of_headers(view)
    cells = 0
    for (y, x), cell in slots.items():
        if not hasattr(cell, "levels"):
            continue
        cells += not cell.total
        above = {id(slots[i, x]): slots[i, x].label for i in range(len(view.head))}
        beside = {id(h): h.label for i in range(x) if not hasattr(h := slots[y, i], "levels")}
        named = [
            level if chosen.names is Names.codes else VARIABLES[a].level(level)
            for a, level in parse_qsl(cell.levels)
        ]
        for label in named:
            assert label in above.values() or label in beside.values()
        assert cell.total == (len(named) < len(chosen.by))
    assert cells == prod(len(LEVELS[a]) for a in chosen.by) == len(view.row_labels) * len(view.column_labels)


@settings(max_examples=30)
@given(choices())
def test_every_header_has_a_scope_and_a_label_but_for_the_corner(chosen):
    view = view_of(chosen)
    for header in (header for line in view.head for header in line):
        assert (header.scope, bool(header.label)) in {("col", True), ("", False)}
    for header in (header for row in view.body for header in row.heads):
        assert (header.scope, bool(header.label)) == ("row", True)


@settings(max_examples=30)
@given(choices())
def test_a_cell_is_picked_by_its_levels_and_a_total_by_those_that_are_left(chosen):
    view = view_of(chosen)
    picked = [dict(parse_qsl(cell.levels)) for row in view.body for cell in row.cells]
    assert len({tuple(each.items()) for each in picked}) == len(picked), "no two cells have one name"
    for row in view.body:
        for cell in row.cells:
            levels = dict(parse_qsl(cell.levels))
            assert list(levels) == [a for a in chosen.by if a in levels], "in the order of the table"
            assert all(level in LEVELS[a] for a, level in levels.items())


def test_a_sum_of_some_levels_cannot_be_picked():
    chosen = Choices(rows=("sex",), columns=("age",), keep=(("age", ("0-14", "65+")),))
    view = view_of(chosen, released(("sex", "age")).select({"age": ["0-14", "65+"]}))
    assert [cell.levels for cell in view.body[0].cells] == ["sex=F&age=0-14", "sex=F&age=65%2B", None]
    assert [cell.levels for cell in view.body[-1].cells] == ["age=0-14", "age=65%2B", None]
    assert "Totals and shares cover only the levels that are shown." in view.notes


def test_totals_are_left_out_where_they_are_not_wanted_or_would_say_a_cell_again():
    both = Choices(rows=("sex",), columns=("age",))
    assert (len(view_of(both).body), len(view_of(both).body[0].cells)) == (3, 4)
    without = view_of(Choices(rows=("sex",), columns=("age",), totals=False))
    assert (len(without.body), len(without.body[0].cells)) == (2, 3)
    assert not any(cell.total for row in without.body for cell in row.cells)
    rows = view_of(Choices(rows=("age",)))
    assert [len(row.cells) for row in rows.body] == [1] * 4
    columns = view_of(Choices(columns=("age",)))
    assert [len(row.cells) for row in columns.body] == [4]
    assert [len(row.cells) for row in view_of(Choices()).body] == [1]


def test_names_are_those_of_the_custodian_or_the_codes():
    chosen = Choices(rows=("sex",), columns=("age",))
    assert [row.heads[0].label for row in view_of(chosen).body] == ["Women", "Men", "Total"]
    assert view_of(chosen).head[0][1].label == "Age in years"
    codes = view_of(Choices(rows=("sex",), columns=("age",), names=Names.codes))
    assert [row.heads[0].label for row in codes.body] == ["F", "M", "Total"]
    assert codes.head[0][1].label == "age"


def test_a_caption_says_what_of_whom():
    chosen = Choices(rows=("age",), where=(("sex", "F"),), show=Show.column_percent)
    table = released(("age",))
    assert view_of(chosen, table).caption == "Per cent of the column by Age in years (rows), only Sex: Women"
    assert view_of(Choices(), released(())).caption == "Count"


def test_noise_dominates_where_the_interval_reaches_zero_whatever_is_shown():
    table = released(("age",), [9, 10, -4])
    assert table.half_widths().tolist() == [9, 9, 9]
    view = view_of(Choices(rows=("age",), totals=False), table)
    assert [row.cells[0].doubt for row in view.body] == [True, False, True]
    assert view.has_doubt
    assert view.body[0].cells[0].words == "9, give or take 9: noise dominates"
    assert view.body[2].cells[0].text == "−4"
    assert "~ and shading: noise dominates, the interval reaches zero." in view.notes
    large = view_of(Choices(rows=("age",), totals=False), released(("age",)))
    assert not large.has_doubt
    assert not any("noise dominates" in note for note in large.notes)


def test_what_cannot_be_is_a_dash_and_never_in_doubt():
    table = released(("sex", "age"), zeros=[{"sex": "M", "age": "0-14"}])
    view = view_of(Choices(rows=("sex",), columns=("age",)), table)
    cell = view.body[1].cells[0]
    assert (cell.text, cell.half, cell.doubt, cell.value) == (IMPOSSIBLE, "", False, None)
    assert cell.words == "zero, because this combination cannot occur"
    assert any(note.startswith(f"{IMPOSSIBLE}:") for note in view.notes)


def test_what_is_withheld_has_no_number_and_cell_keys_have_no_errors():
    domain = Domain({"age": LEVELS["age"]})
    table = CellKeyTable(domain, np.ma.MaskedArray([120, 3, 40], [0, 1, 0]), {})
    view = view_of(Choices(rows=("age",)), table)
    assert [row.cells[0].text for row in view.body] == ["120", NO_NUMBER, "40", NO_NUMBER]
    assert not any(row.cells[0].half or row.cells[0].doubt for row in view.body)
    assert not view.has_errors
    assert view.body[1].cells[0].words == "no number is given"
    assert "..: withheld." in view.notes
    assert view.notes[0].startswith("The error of a number is not given")
    assert any("perturbed separately" in note for note in view.notes)


def test_a_share_of_what_may_be_nobody_is_not_told():
    view = view_of(
        Choices(rows=("sex",), columns=("age",), show=Show.row_percent),
        released(("sex", "age"), [[1, -2, 1], [90, 80, 70]]),
    )
    assert [cell.text for cell in view.body[0].cells] == [NO_NUMBER] * 4
    assert any("total may be zero" in note for note in view.notes)


def test_a_reconstructed_table_says_what_it_is_and_what_its_errors_bound():
    domain = Domain({a: LEVELS[a] for a in ("sex", "age")})
    errors = StatedErrors(np.full((2, 3), 10.0), np.full((2, 3), 20.0))
    table = ReleasedTable(Table(domain, np.full((2, 3), 100.0)), errors)
    view = view_of(Choices(rows=("sex",), columns=("age",)), table, reconstructed=True)
    assert view.body[0].cells[-1].half == "60"
    assert any("made non-negative" in note and "unbiased estimates" in note for note in view.notes)
    assert any("at most" in note for note in view.notes)
    shares = view_of(
        Choices(rows=("sex",), columns=("age",), show=Show.row_percent), table, reconstructed=True
    )
    assert any("assume the worst" in note for note in shares.notes)


@pytest.mark.parametrize(
    ("sigma", "count", "text", "unit"),
    [
        (0.4, 1240, "1,240.0", "one decimal"),
        (18, 1240, "1,240", "whole numbers"),
        (180, 1246, "1,250", "multiples of 10"),
        (1800, 124_318, "124,300", "multiples of 100"),
    ],
)
def test_numbers_are_rounded_to_what_their_errors_justify_and_a_note_says_so(sigma, count, text, unit):
    noise = DiscreteGaussian.from_sigma(sigma)
    view = view_of(Choices(rows=("sex",), totals=False), released(("sex",), [count, 90_000], noise))
    assert view.body[0].cells[0].text == text
    assert f"Numbers are rounded here to {unit}, as their errors justify" in "".join(view.notes)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1e5), min_size=3, max_size=3),
)
def test_a_rounded_number_is_near_and_a_rounded_half_width_never_too_short(counts, widths):
    errors = StatedErrors(np.array(widths) / 2, np.array(widths))
    table = ReleasedTable(Table(Domain({"age": LEVELS["age"]}), counts), errors)
    view = view_of(Choices(rows=("age",), totals=False), table)
    unit = max(1.0, min(widths) / 10)
    for row, count, width in zip(view.body, counts, widths, strict=True):
        (cell,) = row.cells
        assert "-" not in cell.text
        assert cell.text not in ("−0", "−0.0")
        shown = float(cell.text.replace(",", "").replace("−", "-"))
        half = float(cell.half.replace(",", ""))
        assert abs(shown - count) <= unit / 2 + 1e-6
        assert width - 1e-3 * unit <= half <= width + unit + 1e-6
        assert (cell.value, cell.lower, cell.upper) == (count, count - width, count + width)


def test_percentages_have_a_sign_and_no_more_than_one_decimal():
    view = view_of(Choices(rows=("sex",), columns=("age",), show=Show.row_percent))
    for cell in (cell for row in view.body for cell in row.cells):
        number, sign = cell.text.split("\u00a0")
        assert sign == "%"
        assert len(number.partition(".")[2]) <= 1
    assert [row.cells[-1].text for row in view.body] == ["100.0\u00a0%"] * 3
    assert any("Fieller" in note for note in view.notes)


def test_shares_of_a_side_that_is_not_there_say_so():
    view = view_of(Choices(rows=("age",), show=Show.row_percent))
    assert {row.cells[0].text for row in view.body} == {"100.0\u00a0%"}
    assert any("every share is 100" in note for note in view.notes)


def test_the_size_of_a_table_does_not_count_its_totals():
    assert view_of(Choices(rows=("sex",), columns=("age",))).size == "6 cells, 2 × 3"
    assert view_of(Choices(rows=("age",))).size == "3 cells"
    assert view_of(Choices()).size == "1 cell"
    cells = view_of(Choices(rows=("sex",), columns=("age",))).cells()
    assert [len(line) for line in cells] == [3, 3]
    assert not any(cell.total for line in cells for cell in line)
