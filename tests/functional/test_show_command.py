"""`tabulary show` in every format, and `[output] formats` of a plan file."""

import json
import subprocess
import sys

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.cli.show import Form
from tabulary.release.svg import rounded_up
from tabulary.release.totals import with_totals
from tabulary.release.writers import FORMATS
from tests.parquet_files import read_parquet
from tests.workbooks import opened, read_cells, table_sheets

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
levels = ["young", "old"]
[privacy]
epsilon = 1
[tables]
margins = "[sex age][sex]"
[mechanism]
name = "margins"
[output]
title = "A survey"
formats = ["xlsx", "px", "json-stat", "sdmx-csv"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("show")
    rows = ["sex,age", *["F,young"] * 300, *["M,old"] * 200]
    (place / "people.csv").write_text("\n".join(rows) + "\n")
    (place / "plan.toml").write_text(PLAN)
    assert run(["release", str(place / "plan.toml"), "-o", str(place / "out")]) == 0
    return place / "out"


def test_the_formats_of_a_plan_file_are_written_beside_the_tables_and_verified(folder):
    names = {path.name for path in (folder / "tables").iterdir()}
    each = [form.suffix for form in FORMATS.values() if form.whole is None]
    assert names == {f"{stem}{suffix}" for stem in ("sex", "sex-by-age") for suffix in each}
    assert (folder / "tables.xlsx").is_file()
    assert run(["verify", str(folder)]) == 0
    document = json.loads((folder / "tables" / "sex.json-stat.json").read_bytes())
    assert document["source"] == "A survey"
    assert document["value"][::4] == tb.Release.load(folder)["sex",].counts.tolist()


def test_every_format_of_a_table_can_be_shown():
    assert [form.value for form in Form] == ["table", *FORMATS]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_goes_to_a_file_or_to_another_program(folder, tmp_path, name, capsysbinary):
    file = tmp_path / "table"
    assert run(["show", str(folder), "sex", "age", "--format", name, "-o", str(file)]) == 0
    capsysbinary.readouterr()
    assert run(["show", str(folder), "sex", "age", "--format", name]) == 0
    assert capsysbinary.readouterr().out == file.read_bytes()
    if name not in ("csv", "parquet", "xlsx"):
        assert (folder / "tables" / f"sex-by-age{FORMATS[name].suffix}").read_bytes() == file.read_bytes()


def test_a_pipe_takes_a_format_that_is_not_text(folder):
    command = [sys.executable, "-m", "tabulary", "show", str(folder), "sex", "--format", "parquet"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert read_parquet(data)["count"].to_pylist() == tb.Release.load(folder)["sex",].counts.tolist()


def test_the_order_and_the_confidence_are_those_that_were_asked_for(folder, capsysbinary):
    assert run(["show", str(folder), "age", "sex", "--format", "xlsx", "--confidence", "0.9"]) == 0
    (sheet,) = table_sheets(opened(capsysbinary.readouterr().out))
    cells = list(read_cells(sheet))
    totalled = with_totals(tb.Release.load(folder), ("age", "sex"))
    assert [c.row for c in cells[::3]] == [("young",), ("old",), ("Total",)]
    assert [c.count.value for c in cells] == totalled.counts.reshape(-1).tolist()
    stated = totalled.half_widths(0.9).reshape(-1).tolist()
    assert [c.half.value for c in cells] == list(map(rounded_up, stated))


def test_a_release_without_a_workbook_gets_one_when_it_is_rebuilt(folder, tmp_path):
    target = tmp_path / "beside"
    asked = ["--format", "xlsx", "--errors", "beside"]
    assert run(["rebuild", str(folder), "-o", str(target), *asked]) == 0
    sheets = table_sheets(opened((target / "tables.xlsx").read_bytes()))
    halves = [[cell.half.value for cell in read_cells(sheet, "beside")] for sheet in sheets]
    assert [len(each) for each in halves] == [9, 3]
    assert all(half > 0 for each in halves for half in each)


def test_what_is_not_text_does_not_go_to_a_terminal(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["show", str(folder), "sex", "--format", "xlsx"]) == 2
    said = capsys.readouterr()
    assert "-o" in said.err
    assert said.out == ""
    assert run(["show", str(folder), "sex", "--format", "px"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sex", "-o", "table.xlsx"], "needs --format"),
        (["--format", "px"], "for one table"),
        (["sex", "--format", "px", "-o", "nowhere/table.px"], "Make it first"),
        (["sex", "--format", "pdf"], "pdf"),
    ],
)
def test_a_format_that_has_nowhere_to_go_is_refused(folder, capsys, arguments, words):
    assert run(["show", str(folder), *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_file_that_is_there_is_never_overwritten(folder, tmp_path, capsys):
    (tmp_path / "table.px").write_text("mine")
    assert run(["show", str(folder), "sex", "--format", "px", "-o", str(tmp_path / "table.px")]) == 2
    assert (tmp_path / "table.px").read_text() == "mine"


def test_perturbed_tables_refuse_formats_that_they_are_not_written_in(folder, tmp_path, capsys):
    plan = folder.parent / "plan.toml"
    assert run(["perturb", str(plan), "-o", str(tmp_path / "out")]) == 2
    assert "written as CSV" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
