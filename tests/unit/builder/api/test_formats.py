"""Formats, and which of them a caller asks for."""

import csv
import io
import json
import sys
from importlib import reload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.api import formats
from tabulary.builder.api.formats import FORMATS, format_accepted, format_named
from tabulary.builder.problems import HTTPProblem
from tabulary.errors import TooManyCells
from tabulary.release import writers
from tests.parquet_files import read_parquet
from tests.workbooks import opened, read_cells, table_sheets


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("text/csv", "csv"),
        ("TEXT/CSV", "csv"),
        ("text/*", "csv"),
        ("application/vnd.apache.parquet", "parquet"),
        ("application/json;q=0.5, text/csv", "csv"),
        ("text/csv;q=0.2, application/json;q=0.1", "csv"),
        ("application/json; q=0, */*", "csv"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "json"),
        ("text/csv; charset=utf-8", "csv"),
        ("application/vnd.json-stat+json", "json-stat"),
        ("text/x-pcaxis", "px"),
        ("application/vnd.sdmx.data+csv;version=2.0.0", "sdmx-csv"),
        ("application/vnd.sdmx.data+csv", "sdmx-csv"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ],
)
def test_the_format_is_the_one_that_accept_likes_best(accept, name):
    assert format_accepted(accept).name == name


@pytest.mark.parametrize(
    "accept", ["image/png", "text/html", "application/json;q=0", "nonsense", "text/csv;q=x", "text/csv;q=nan"]
)
def test_an_accept_that_names_no_format_is_not_acceptable(accept):
    with pytest.raises(HTTPProblem, match=r"^406: A table is given as .*text/csv"):
        format_accepted(accept)


@given(st.text(max_size=200))
def test_any_header_gives_a_format_or_406(accept):
    try:
        status = 200 if format_accepted(accept) in FORMATS.values() else 500
    except HTTPProblem as refused:
        status = refused.status_code
    assert status in (200, 406)


def test_a_suffix_names_a_format_and_an_unknown_one_is_nowhere():
    assert list(FORMATS) == ["json", *writers.FORMATS]
    assert [format_named(name).name for name in FORMATS] == list(FORMATS)
    with pytest.raises(HTTPProblem, match=r"^404: There is no such format"):
        format_named("xls")


QUESTION = [("by", "region"), ("by", "sex"), ("where", "age:65+")]


def counts_in(name, data):
    """Return the counts that a file holds, by a reader of its own; None where one is withheld."""
    if name == "json":
        return json.loads(data)["count"]
    if name == "parquet":
        return read_parquet(data)["count"].to_pylist()
    if name == "xlsx":
        (sheet,) = table_sheets(opened(data))
        below = any("±" in cell.number_format for row in sheet.iter_rows() for cell in row)
        cells = read_cells(sheet, "below" if below else None)
        return [cell.count.value for cell in cells if "Total" not in (*cell.row, cell.column)]
    text = data.decode()
    if name == "json-stat":
        document = json.loads(text)
        return document["value"][:: document["size"][-1]]
    if name == "px":
        rows = text.partition("DATA=\n")[2].strip().rstrip(";").splitlines()
        found = [row.split()[0] for row in rows]
    else:
        column = {"csv": "count", "sdmx-csv": "OBS_VALUE"}[name]
        found = [row[column] for row in csv.DictReader(io.StringIO(text))]
    return [None if each in ("", '".."') else float(each) for each in found]


@pytest.mark.parametrize("dataset", ["census", "old"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_every_dataset_holds_the_same_counts(builder, dataset, name):
    path = f"/api/datasets/{dataset}/tables"
    told = builder.anyone.get(path, QUESTION).json()["count"]
    found = builder.anyone.get(f"{path}.{name}", QUESTION)
    assert found.status_code == 200
    assert counts_in(name, found.content) == pytest.approx(told, rel=1e-15)
    assert builder.anyone.get(path, QUESTION, Accept=FORMATS[name].media_type).content == found.content
    media_type = found.headers["content-type"].replace("; charset=utf-8", "")
    assert media_type == FORMATS[name].media_type
    if name != "json":
        suffix = writers.FORMATS[name].suffix
        assert (
            found.headers["content-disposition"]
            == f'attachment; filename="{dataset}-by-region-by-sex{suffix}"'
        )


def test_a_workbook_has_totals_where_they_cost_nothing(builder, fresh):
    def totals(client, dataset, question):
        (sheet,) = table_sheets(opened(client.get(f"/api/datasets/{dataset}/tables.xlsx", question).content))
        below = any("±" in cell.number_format for row in sheet.iter_rows() for cell in row)
        cells = read_cells(sheet, "below" if below else None)
        return [cell.count.value for cell in cells if "Total" in (*cell.row, cell.column)]

    told = builder.anyone.get("/api/datasets/census/tables", [("where", "age:65+")]).json()["count"]
    assert totals(builder.anyone, "census", QUESTION)[-1] == pytest.approx(told[0], rel=1e-15)
    # Some levels of an attribute are no table, cell keys give every table its own noise, and a question costs.
    assert totals(builder.anyone, "census", [*QUESTION, ("keep", "sex:F")]) == []
    assert totals(builder.anyone, "old", QUESTION) == []
    ada = fresh.analyst("ada")
    assert totals(ada, "survey", [("by", "sex")]) == []
    paid = fresh.spent("ada")
    assert totals(ada, "survey", [("by", "sex")]) == []
    assert fresh.spent("ada") == paid


def test_a_file_tells_of_whom_it_is_and_what_is_promised(builder):
    document = builder.anyone.get("/api/datasets/census/tables.json-stat", QUESTION).json()
    held = builder.service.datasets["census"]
    assert document["label"].endswith("(Age: 65+)")
    assert document["source"] == f"{held.title}, {held.answers.version}"
    assert document["note"][0] == held.answers.promise.statement
    assert document["extension"]["plan"] == builder.anyone.get("/api/datasets/census/tables").json()["plan"]
    cell_key = builder.anyone.get("/api/datasets/old/tables.json-stat", QUESTION).json()
    assert "NOT differentially private" in cell_key["note"][0]


def test_a_table_that_a_format_cannot_hold_is_refused_before_it_is_paid_for(fresh, monkeypatch):
    monkeypatch.setitem(vars(writers.FORMATS["xlsx"]), "most_cells", 1)
    ada = fresh.analyst("ada")
    before = fresh.spent("ada")
    refused = ada.get("/api/datasets/survey/tables.xlsx", [("by", "sex")])
    assert refused.status_code == 403
    assert refused.json()["type"] == "too-many-cells"
    assert fresh.spent("ada") == before
    with pytest.raises(TooManyCells, match="at most 1 cells, and this one has 2"):
        FORMATS["xlsx"].refuse(2)


def test_a_format_whose_package_is_missing_is_not_offered(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    try:
        assert list(reload(formats).FORMATS) == ["json", "csv", "parquet", "json-stat", "sdmx-csv", "px"]
    finally:
        monkeypatch.undo()
        reload(formats)
