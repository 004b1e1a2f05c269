"""The workbook, read by openpyxl."""

import datetime
import io
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tabulary.release.arrangement import ArrangedTable
from tabulary.release.publication import DOUBT, IMPOSSIBLE, NO_NUMBER, Publication, Status
from tabulary.release.sheet import lines, page_breaks, sheet_names
from tabulary.release.svg import rounded_up
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.workbook import CONTENTS, MOST_CELLS, PROMISE, Chapter, workbook_bytes, xlsx_bytes
from tests.unit.release.publications import (
    a_publication,
    large_publication,
    publications,
    with_all_totals,
    withheld_publication,
)
from tests.workbooks import opened, read_cells, table_sheets

either_place = pytest.mark.parametrize("place", list(ErrorPlace))


def nearly(number):
    """Return a number to sixteen digits, which is what a workbook holds."""
    return pytest.approx(number, rel=1e-15, abs=0)


def a_book(*tables, **options):
    return opened(workbook_bytes(tables, **{"title": "A survey", **options}))


def arranged_cells(published):
    """Return what a reader should find, from the top left: count, half-width and status of each cell."""
    table = ArrangedTable.of(published)
    halves = (
        [None] * table.counts.size if table.half_widths is None else table.half_widths.reshape(-1).tolist()
    )
    return list(
        zip(table.counts.reshape(-1).tolist(), halves, table.status.reshape(-1).tolist(), strict=True)
    )


def check_cells(sheet, published, place):
    shown = None if published.errors is None else place.value
    found = list(read_cells(sheet, shown))
    expected = arranged_cells(published)
    assert len(found) == len(expected)
    for cell, (count, half, status) in zip(found, expected, strict=True):
        if status == Status.withheld:
            assert cell.count.value == NO_NUMBER
            continue
        assert cell.count.value == nearly(count)
        assert cell.count.data_type == "n"
        assert (DOUBT in cell.count.number_format) == (status == Status.unreliable)
        assert cell.count.font.italic == (status == Status.unreliable)
        assert (IMPOSSIBLE in cell.count.number_format) == (status == Status.impossible)
        if shown is not None:
            assert cell.half.value == (None if status == Status.impossible else nearly(rounded_up(half)))
            assert cell.half.value is None or "±" in cell.half.number_format


@settings(max_examples=40)
@given(publications(), st.sampled_from(ErrorPlace))
def test_every_number_stands_in_its_place_with_its_error_and_its_sign(published, place):
    (sheet,) = table_sheets(a_book(published, errors=place))
    check_cells(sheet, published, place)


@settings(max_examples=40)
@given(publications(), st.sampled_from(ErrorPlace))
def test_totals_stand_beside_and_below_what_they_sum(published, place):
    totalled = with_all_totals(published)
    (sheet,) = table_sheets(a_book(totalled, errors=place))
    check_cells(sheet, totalled, place)


@settings(max_examples=40)
@given(publications())
def test_every_number_stands_under_its_own_labels(published):
    (sheet,) = table_sheets(a_book(published))
    table = ArrangedTable.of(published)
    order = table.arrangement.order
    found = read_cells(sheet, None if published.errors is None else "below")
    for cell, place in zip(found, np.ndindex(*table.counts.shape), strict=True):
        labels = [table.labels(a)[i] for a, i in zip(order, place, strict=True)]
        if table.arrangement.blocks:
            (first,) = table.arrangement.blocks
            assert cell.block == f"{published.label(first)}: {labels.pop(0)}"
        if table.arrangement.columns:
            assert cell.column == labels.pop()
        assert list(cell.row) == (labels or [""])


def test_the_half_width_of_a_negative_estimate_is_not_cut_at_zero():
    table = Table(Domain({"sex": ["F", "M"]}), [120, -200])
    published = Publication.of(ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1]))))
    (sheet,) = table_sheets(a_book(published))
    assert [(cell.count.value, cell.half.value) for cell in read_cells(sheet)] == [(120, 9), (-200, 9)]


def test_a_table_of_four_attributes_has_a_block_for_each_pair_of_levels_and_one_of_totals():
    domain = Domain({"a": "xy", "b": "pqr", "c": "12345", "d": "kl"})
    counts = np.arange(60).reshape(domain.shape)
    (sheet,) = table_sheets(a_book(with_all_totals(Publication(domain, counts, None))))
    found = {(c.block, c.row, c.column): c.count.value for c in read_cells(sheet, None)}
    blocks = [f"a: {a}, b: {b}" for a in "xy" for b in "pqr"]
    assert list(dict.fromkeys(block for block, _, _ in found)) == [*blocks, "a: Total, b: Total"]
    assert found["a: x, b: q", ("3",), "l"] == counts[0, 1, 2, 1]
    assert found["a: x, b: q", ("Total",), "Total"] == counts[0, 1].sum()
    assert found["a: Total, b: Total", ("3",), "l"] == counts[:, :, 2, 1].sum()


def test_half_widths_are_rounded_up_as_in_the_report():
    table = Table(Domain({"sex": ["F", "M"]}), [120, 400])
    errors = CellErrors(DiscreteLaplace(3), np.array([1, 1]))
    published = replace(Publication.of(ReleasedTable(table, errors)), widths=np.array([9.01, 49.2]))
    (sheet,) = table_sheets(a_book(published))
    halves = [cell.half for cell in read_cells(sheet)]
    assert [half.value for half in halves] == [9.1, 50]
    assert [half.number_format for half in halves] == ['"±"#,##0.0', '"±"#,##0']


@pytest.mark.parametrize("levels", range(20, 60, 3))
def test_no_page_has_notes_without_a_row_of_their_table(levels):
    domain = Domain({"a": range(levels)})
    notes = [f"Note {number}." for number in range(6)]
    (sheet,) = table_sheets(a_book(Publication(domain, np.arange(levels), None, notes=notes)))
    last = max(cell.count.row for cell in read_cells(sheet, None))
    assert all(page.id < last for page in sheet.row_breaks.brk)


def test_a_title_that_is_too_long_for_the_head_of_a_page_ends_with_an_ellipsis():
    (sheet,) = table_sheets(a_book(a_publication(), title="A survey " * 20))
    assert sheet.oddHeader.left.text.endswith("…")


def test_the_same_tables_give_the_same_bytes_and_another_day_other_bytes():
    def written(day):
        return workbook_bytes([a_publication()], title="A survey", date=datetime.date(2026, 11, day))

    assert written(18) == written(18) != written(19)
    with zipfile.ZipFile(io.BytesIO(written(18))) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert opened(written(18)).properties.created == datetime.datetime(2026, 11, 18)


def test_a_label_that_looks_like_a_formula_is_text_everywhere():
    odd = "=1+1"
    words = Labels(
        title=odd,
        description="+1",
        source="@x",
        notes=("=2+2",),
        unit="=people",
        variables={"a": VariableLabels("=A1", levels={"1": odd, "2": "http://x.org"}, notes=("=3",))},
    )
    domain = Domain({"a": ["1", "2"], "=b": ["=4", "mailto:x"], "c": ["-5", "7"], "d": "xy"})
    for attributes in (("a",), ("a", "=b"), ("a", "=b", "c"), domain.attributes):
        part = domain.project(attributes)
        published = Publication(part, np.ones(part.shape, int), None, words=words, notes=("=5",))
        for table in (published, with_all_totals(published)):
            book = a_book(table, title=odd, about=["=6"], promise=[Chapter("=7", ("=8",))])
            for sheet in book.worksheets:
                cells = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
                assert {cell.data_type for cell in cells} <= {"s", "n"}
                assert all(cell.hyperlink is None or cell.hyperlink.location for cell in cells)


def test_the_contents_lead_to_every_table_and_back():
    tables = [a_publication(), withheld_publication(), a_publication(title="It's all/some: [2026]?")]
    book = a_book(*tables, about=["Published on 2026-11-18."])
    assert book.sheetnames[0] == CONTENTS
    assert book.sheetnames[-1] == PROMISE
    targets = [
        cell.hyperlink.location
        for row in book[CONTENTS].iter_rows()
        for cell in row
        if cell.hyperlink is not None
    ]
    named = [target.removesuffix("!A1")[1:-1].replace("''", "'") for target in targets]
    assert named == book.sheetnames[1:]
    for sheet in book.worksheets[1:]:
        links = [cell.hyperlink.location for row in sheet.iter_rows() for cell in row if cell.hyperlink]
        assert links == [f"'{CONTENTS}'!A1"]


def test_the_contents_say_what_every_sign_means():
    book = a_book(a_publication(), withheld_publication(), about=["Who and when."])
    said = [cell.value for cell in book[CONTENTS]["A"] if cell.value]
    assert said[:2] == ["A survey", "Who and when."]
    assert [text[0] for text in said if ": " in text] == ["±", DOUBT, IMPOSSIBLE, NO_NUMBER[0]]


def test_a_sheet_says_heading_unit_source_and_notes():
    words = Labels(
        source="A register",
        unit="persons",
        variables={"age": VariableLabels("Age", description="In years.", notes=("At midnight.",))},
    )
    (sheet,) = table_sheets(a_book(a_publication(words=words)))
    said = [cell.value for cell in sheet["A"] if cell.value]
    assert said[:2] == [
        "Table 1. Persons by Age and job",
        "Number of persons. Source: A register, 2026",
    ]
    assert said[-3:] == ["Age: In years.", "Age: At midnight.", "A promise."]


def test_the_last_sheet_says_what_is_promised_in_plain_text():
    book = a_book(a_publication(), promise=[Chapter(PROMISE, ("One.", "Two.")), Chapter("Who", ("Three.",))])
    said = [cell.value for cell in book[PROMISE]["A"] if cell.value]
    assert said == [PROMISE, "Back to the contents", "One.", "Two.", "Who", "Three."]


@either_place
def test_every_sheet_prints_on_a4_with_its_head_on_each_page(place):
    book = a_book(with_all_totals(a_publication()), large_publication(30), title="Men & women", errors=place)
    for sheet in book.worksheets:
        assert int(sheet.page_setup.paperSize) == 9
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert int(sheet.page_setup.fitToHeight) == 0
        assert sheet.oddHeader.left.text == "Men && women"
        assert "&P" in sheet.oddFooter.center.text
    narrow, wide = table_sheets(book)
    assert narrow.page_setup.fitToWidth in (None, 1)
    assert narrow.page_setup.orientation == "portrait"
    assert wide.page_setup.orientation == "landscape"
    assert int(wide.page_setup.fitToWidth) > 1
    assert wide.print_title_cols
    for sheet in (narrow, wide):
        first, last = (int(row) for row in sheet.print_title_rows.replace("$", "").split(":"))
        assert last + 1 == int("".join(filter(str.isdigit, sheet.freeze_panes)))
        assert last - first == 1


def test_long_labels_are_folded_and_their_rows_are_high_enough():
    area = "Chicago City (South)--South Shore, Hyde Park, Woodlawn, Grand Boulevard & Douglas, and the rest of it"
    domain = Domain({"area": [area, "Ellis County"], "sex": ["F", "M"]})
    counts = np.array([[1200, 1300], [12, 15]])
    published = Publication(domain, counts, (counts / 10, counts - 5, counts + 5))
    for place in ErrorPlace:
        (sheet,) = table_sheets(a_book(published, errors=place))
        (label,) = [cell for cell in sheet["A"] if cell.value == area]
        assert label.alignment.wrap_text
        width = sheet.column_dimensions["A"].width
        assert width < 50
        rows = range(label.row, label.row + (2 if place is ErrorPlace.below else 1))
        assert sum(sheet.row_dimensions[row].height for row in rows) >= 12 * lines(area, width) > 24


def test_names_of_sheets_are_short_and_different():
    odd = [["x" * 40], ["x" * 40], ["a[b]:c*d?e/f\\g"], ["'quoted'"], ["History"], ["😀" * 40], [""], ["?"]]
    names = sheet_names([*odd, ["x" * 40] * 3, [*"abcdefghijklmnop"], ["a", "b" * 40, "c" * 40]])
    assert names[-1] == f"11 a, {'b' * 10}…, {'c' * 11}…"
    assert all(len(name.encode("utf-16-le")) // 2 <= 31 for name in names)
    assert len({name.lower() for name in names}) == len(names)
    assert not any(set(name) & set("[]:*?/\\") or name[-1] == "'" for name in names)


@given(
    st.lists(st.tuples(st.floats(5, 60), st.booleans(), st.booleans()), min_size=1, max_size=60),
    st.floats(0, 50),
)
def test_no_page_is_too_high_and_pages_end_where_they_may(rows, repeated):
    heights = [height for height, _, _ in rows]
    ends = {row: block for row, (_, end, block) in enumerate(rows) if end and row}
    breaks = page_breaks(heights, ends, room=200, repeated=repeated)
    assert breaks == sorted(set(breaks))
    assert set(breaks) <= ends.keys()
    for start, end in pairwise([0, *breaks, len(rows)]):
        high = sum(heights[start:end]) + (repeated if start else 0)
        # Only what may not be parted is higher than a page.
        assert high <= 200 + 1e-9 or not any(start < row < end for row in ends)


def test_a_page_is_filled_before_it_ends():
    assert page_breaks([10] * 9, dict.fromkeys(range(1, 9), False), room=40, repeated=10) == [4, 7]


def test_a_new_block_begins_a_page_if_the_last_is_fairly_full():
    ends = {**dict.fromkeys(range(1, 9), False), 3: True}
    assert page_breaks([10] * 9, ends, room=50, repeated=0) == [3, 8]
    ends = {**dict.fromkeys(range(1, 9), False), 2: True}
    assert page_breaks([10] * 9, ends, room=50, repeated=0) == [5]


@either_place
def test_no_page_ends_between_a_number_and_its_half_width(place):
    (sheet,) = table_sheets(a_book(with_all_totals(large_publication(3)), errors=place))
    breaks = {found.id for found in sheet.row_breaks.brk}
    assert breaks
    halves = {cell.row for row in sheet.iter_rows() for cell in row if "±" in cell.number_format}
    numbers = {cell.row for row in sheet.iter_rows() for cell in row if cell.number_format.endswith("#,##0")}
    # A break stands behind the row that it names, counted from one.
    assert breaks <= (halves if place is ErrorPlace.below else numbers)
    assert not any(row + 1 in halves - numbers for row in breaks)


def test_hundreds_of_tables_fit_one_workbook():
    book = a_book(*[a_publication(title=f"Table of place {number}") for number in range(300)])
    assert len(book.sheetnames) == 302


def test_a_label_longer_than_a_cell_is_refused():
    published = Publication(Domain({"sex": ["x" * 40_000]}), np.array([1]), None)
    with pytest.raises(InvalidTable, match="32,767"):
        xlsx_bytes(published)


def test_errors_stand_below_or_beside_and_nowhere_else():
    assert ErrorPlace.named("beside") is ErrorPlace.beside
    with pytest.raises(InvalidArgument, match='"below" or "beside"'):
        ErrorPlace.named("above")


@pytest.mark.parametrize("shape", [(MOST_CELLS,), (MOST_CELLS, 1, 1, 1), (1, 1, 1, MOST_CELLS), (316, 316)])
def test_the_largest_table_fits_a_sheet_in_any_arrangement(shape):
    domain = Domain({f"a{axis}": range(size) for axis, size in enumerate(shape)})
    published = Publication(domain, np.zeros(shape, int), None)
    levels = {a: [*domain.levels_of(a), "_T"] for a in domain.attributes}
    wider = Domain(levels)
    totalled = replace(published, domain=wider, counts=np.zeros(wider.shape, int))
    assert totalled.cells <= MOST_CELLS
    table = ArrangedTable.of(totalled)
    rows = len(list(table.blocks())) * (1 + 2 * sum(1 for _ in table.lines()))
    assert rows < 1_048_576 - 10_000
    assert 2 * table.width + len(table.arrangement.rows) < 16_384


def test_the_workbook_of_one_table_has_its_words_and_its_promise():
    book = opened(xlsx_bytes(a_publication()))
    assert book.sheetnames == [CONTENTS, "1 Age, job", PROMISE]
    assert [cell.value for cell in book[CONTENTS]["A"] if cell.value][:2] == [
        "People by Age and job",
        "A survey, 2026",
    ]
    assert "A promise." in [cell.value for cell in book[PROMISE]["A"]]
