"""All formats together: what each is called and needs, and CSV and Parquet read back."""

import csv
import io
import json
import sys

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings

from tabulary.core.domain import Domain
from tabulary.core.long_form import value_name
from tabulary.errors import InvalidArgument, MissingExtra, TooManyCells
from tabulary.release.publication import Publication
from tabulary.release.writers import ALWAYS, FORMATS, extra_formats
from tests.parquet_files import read_parquet
from tests.unit.release.publications import (
    a_publication,
    cells,
    large_publication,
    publications,
    withheld_publication,
)

every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))


def named(published):
    return [value_name(name, published.domain.attributes) for name in (*published.measures, "status")]


@given(publications())
def test_csv_holds_every_number_label_and_status(published):
    head, *rows = csv.reader(io.StringIO(FORMATS["csv"].write(published).decode(), newline=""))
    assert head == [*published.domain.attributes, *named(published)]
    width = len(published.domain.attributes)
    assert [tuple(row[:width]) for row in rows] == [at for at, _, _ in cells(published)]
    assert [row[-1] for row in rows] == [mark for _, _, mark in cells(published)]
    found = [[float(text) if text else None for text in row[width:-1]] for row in rows]
    assert found == [list(numbers.values()) for _, numbers, _ in cells(published)]


@given(publications())
def test_parquet_holds_every_number_label_and_status(published):
    table = read_parquet(FORMATS["parquet"].write(published))
    *measures, status = named(published)
    assert table.column_names == [*published.domain.attributes, *measures, status]
    for place, attribute in enumerate(published.domain.attributes):
        assert table[attribute].to_pylist() == [at[place] for at, _, _ in cells(published)]
    for name, column in zip(published.measures, measures, strict=True):
        assert table[column].to_pylist() == [numbers[name] for _, numbers, _ in cells(published)]
    assert table[status].to_pylist() == [mark for _, _, mark in cells(published)]


@pytest.mark.parametrize("published", [a_publication(), withheld_publication(), large_publication()])
def test_duckdb_reads_the_same_parquet(published, tmp_path):
    (tmp_path / "table.parquet").write_bytes(FORMATS["parquet"].write(published))
    rows = duckdb.execute("from read_parquet(?)", [str(tmp_path / "table.parquet")]).fetchall()
    assert rows == [(*at, *numbers.values(), mark) for at, numbers, mark in cells(published)]


def test_parquet_says_what_it_is_in_its_own_metadata():
    table = read_parquet(FORMATS["parquet"].write(a_publication()))
    about = json.loads(table.schema.metadata[b"tabulary"])
    assert about["margin"] == ["age", "job"]
    assert about["title"] == "People by Age and job"
    assert about["plan"] == "5f3a"
    assert about["notes"][0] == "A promise."


@every_format
def test_the_same_table_is_the_same_bytes(form):
    assert form.write(a_publication()) == form.write(a_publication())


@settings(max_examples=10, deadline=None)
@given(publications())
def test_every_format_can_write_any_table(published):
    for form in FORMATS.values():
        assert form.write(published)


@pytest.mark.parametrize("name", ["csv", "parquet", "json-stat", "sdmx-csv", "px"])
def test_a_hundred_thousand_cells_can_be_written(name):
    data = FORMATS[name].write(large_publication(1_000))
    rows = {
        "parquet": lambda: read_parquet(data).num_rows,
        "json-stat": lambda: len(json.loads(data)["value"]) // 4,
        "px": lambda: data.partition(b"DATA=\n")[2].count(b"\n"),
    }
    assert rows.get(name, lambda: data.count(b"\n") - 1)() == 100_000


@pytest.mark.audit
def test_a_hundred_thousand_cells_fit_a_workbook():
    assert len(FORMATS["xlsx"].write(large_publication(1_000))) > 200_000


@every_format
def test_the_total_can_be_written(form):
    assert form.write(Publication(Domain({}), np.array(1000), None))


def test_names_endings_and_media_types_are_used_once():
    for field in ("name", "title", "suffix", "media_type"):
        assert len({getattr(form, field) for form in FORMATS.values()}) == len(FORMATS)
    text = [form for form in FORMATS.values() if not form.is_binary]
    for form in text:
        form.write(a_publication()).decode()


@pytest.mark.parametrize(
    ("name", "package"), [("xlsx", "xlsxwriter"), ("sdmx-csv", "pysdmx"), ("sdmx-csv", "pandas")]
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert not FORMATS[name].is_installed
    with pytest.raises(MissingExtra, match=rf"{package}.*pip install 'tabulary\[formats\]'"):
        FORMATS[name].write(a_publication())
    assert all(form.is_installed for form in FORMATS.values() if not form.packages)


def test_a_table_that_a_format_cannot_hold_is_refused_before_it_is_made():
    form = FORMATS["xlsx"]
    form.refuse(form.most_cells)
    with pytest.raises(TooManyCells, match="Choose CSV or Parquet"):
        form.refuse(form.most_cells + 1)
    FORMATS["csv"].refuse(10**9)


def test_extra_formats_are_those_that_not_every_release_has():
    assert extra_formats(ALWAYS) == ()
    assert extra_formats(["px", "px", "xlsx"]) == ("xlsx", "px")
    with pytest.raises(InvalidArgument, match="no format 'pdf'"):
        extra_formats(["px", "pdf"])
