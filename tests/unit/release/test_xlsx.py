"""XLSX, read by openpyxl."""

import io
import zipfile

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings

from tabulary.core.domain import Domain
from tabulary.core.long_form import value_name
from tabulary.errors import InvalidTable
from tabulary.release.publication import Publication
from tabulary.release.xlsx import xlsx_bytes
from tests.unit.release.publications import a_publication, cells, publications, withheld_publication


def nearly(number):
    """Return a number to sixteen digits, which is what a workbook holds."""
    return None if number is None else pytest.approx(number, rel=1e-15, abs=0)


def opened(published, **options):
    return openpyxl.load_workbook(io.BytesIO(xlsx_bytes(published)), **options)


@settings(max_examples=40)
@given(publications())
def test_every_cell_is_there_with_its_numbers_labels_and_status(published):
    head, *rows = opened(published)["Cells"].iter_rows(values_only=True)
    width = len(published.domain.attributes)
    names = [value_name(n, published.domain.attributes) for n in (*published.measures, "status")]
    assert list(head) == [*published.domain.attributes, *names]
    assert [row[:width] for row in rows] == [at for at, _, _ in cells(published)]
    assert [row[-1] for row in rows] == [mark for _, _, mark in cells(published)]
    found = [value for row in rows for value in row[width:-1]]
    assert found == [nearly(number) for _, numbers, _ in cells(published) for number in numbers.values()]


@settings(max_examples=40)
@given(publications())
def test_the_sheet_for_people_holds_the_counts_in_their_places(published):
    rows = list(opened(published)["Table"].iter_rows(min_row=5, values_only=True))
    down, across = published.domain.shape[:-1], published.domain.shape[-1:]
    deep, wide = len(down), across[0] if across else 1
    lines = rows[: int(np.prod(down, dtype=int))]
    found = [value for row in lines for value in row[deep : deep + wide]]
    told = [numbers["count"] for _, numbers, _ in cells(published)]
    assert found == [".." if count is None else nearly(count) for count in told]
    assert [row[:deep] for row in lines] == [at[:-1] for at, _, _ in cells(published)][::wide]


def test_a_label_that_looks_like_a_formula_is_text():
    published = Publication(Domain({"sex": ["=1+1", "http://x.org"]}), np.array([1, 2]), None)
    for sheet in opened(published).worksheets:
        kinds = {cell.data_type for row in sheet.iter_rows() for cell in row if cell.value is not None}
        assert kinds <= {"s", "n"}
        assert all(cell.hyperlink is None for row in sheet.iter_rows() for cell in row)


def test_a_doubted_number_is_in_italics_and_grey_and_others_are_not():
    sheet = opened(a_publication())["Table"]
    assert [sheet.cell(7, column).font.italic for column in (2, 3)] == [False, True]
    assert sheet.cell(7, 3).font.color.rgb == "FF595959"


def test_labels_are_shown_to_people_and_codes_to_programs():
    book = opened(a_publication())
    assert [book["Table"].cell(row, 1).value for row in (4, 5, 6)] == ["Age", "Children", "15-64"]
    assert [book["Cells"].cell(row, 1).value for row in (1, 2)] == ["age", "0-14"]
    notes = [row[0] for row in book["Notes"].iter_rows(values_only=True)]
    assert notes[:3] == ["People by Age and job", "A survey, 2026", "A promise."]
    assert opened(withheld_publication())["Table"].cell(5, 2).value == ".."


def test_a_workbook_does_not_tell_when_it_was_written():
    with zipfile.ZipFile(io.BytesIO(xlsx_bytes(a_publication()))) as archive:
        assert {each.date_time[0] for each in archive.infolist()} == {1980}
        core = archive.read("docProps/core.xml").decode()
    assert core.count("1980-01-01T00:00:00Z") == 2


def test_a_label_that_no_cell_can_hold_is_refused():
    published = Publication(Domain({"sex": ["F" * 40_000]}), np.array([1]), None)
    with pytest.raises(InvalidTable, match="32,767"):
        xlsx_bytes(published)


def test_a_table_too_wide_for_a_sheet_is_in_long_form():
    domain = Domain({"zone": range(16_385)})
    book = opened(Publication(domain, np.arange(16_385), None), read_only=True)
    assert "too wide" in book["Table"].cell(2, 1).value
    assert sum(1 for _ in book["Cells"].iter_rows()) == 16_386
