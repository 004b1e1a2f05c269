"""Labels of a plan file in every place that shows a table: several languages, totals, and texts that try to be code."""

import csv
import io
import json
import re

import openpyxl
import pytest
from rich.cells import cell_len

import tabulary as tb
from tabulary.cli.app import run
from tabulary.release.writers import FORMATS

EVIL = [
    "=1+1",
    "@SUM(A1)",
    "<script>alert('x')</script>",
    'a "quoted", name; with = and #',
    "[bold]:warning:[/bold]",
    "سكان المدينة",
    "Los Angeles County (North/Unincorporated)--Castaic PUMA; California, and Mono, Alpine & Inyo Counties--West",
]

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
label = {{ en = "Sex", fi = "Sukupuoli" }}
names = {{ F = {{ en = "Female", fi = "Nainen" }}, M = {{ en = "Male", fi = "Mies" }} }}
[domain.area]
levels = ["a0", "a1", "a2", "a3", "a4", "a5", "a6"]
label = "=Area"
names = {names}
notes = ["Areas of 2020."]
[privacy]
epsilon = 2
[tables]
margins = "[area sex]"
[output]
title = {{ en = "A survey", fi = "Kysely" }}
unit = {{ en = "persons", fi = "henkilöä" }}
source = "Statistics Demo"
notes = ["Nobody was asked."]
total = {{ en = "Total", fi = "Yhteensä" }}
languages = ["en", "fi"]
formats = ["px", "json-stat", "sdmx-csv"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("labels")
    rows = [
        "sex,area",
        *(f"{sex},a{area}" for area in range(7) for sex in "FM" for _ in range(40 + 30 * area)),
    ]
    (place / "people.csv").write_text("\n".join(rows) + "\n")
    names = "{ " + ", ".join(f"a{i} = {json.dumps(name)}" for i, name in enumerate(EVIL)) + " }"
    (place / "plan.toml").write_text(PLAN.format(names=names), encoding="utf-8")
    assert run(["release", str(place / "plan.toml"), "-o", str(place / "out")]) == 0
    return place / "out"


def shown(capsys, folder, *options):
    """Return what the command prints, on one line."""
    capsys.readouterr()
    assert run(["show", str(folder), *options]) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr("tabulary.cli.printed_table.output.width", 300)


def test_a_release_keeps_its_labels_in_every_language(folder):
    release = tb.Release.load(folder)
    assert release.languages == ("en", "fi")
    assert release.labels.level("area", "a0") == "=1+1"
    assert release.in_language("fi").level("sex", "F") == "Nainen"
    assert run(["verify", str(folder)]) == 0


def test_a_table_for_people_has_labels_beside_codes_and_totals_with_their_errors(folder, capsys):
    said = shown(capsys, folder, "sex")
    release = tb.Release.load(folder)
    assert "Female (F)" in said
    total = release[()]
    assert f"±{total.half_widths()[()]:,.0f}" in said.split("Total")[1]
    assert f"{total.counts[()]:,.0f}" in said.split("Total")[1]
    assert "Source: Statistics Demo" in said
    assert "Nobody was asked." in said


def test_labels_are_printed_as_they_are_written(folder, capsys):
    said = shown(capsys, folder, "area", "sex")
    assert all(f"{name} (a{i})" in said for i, name in enumerate(EVIL))
    assert "=Area: Areas of 2020." in said


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("margin", [["area", "sex"], ["area"], ["sex"], ["[]"]])
def test_nothing_of_a_table_is_cut_off_in_a_narrow_terminal(folder, capsys, monkeypatch, margin, width):
    monkeypatch.setattr("tabulary.cli.printed_table.output.width", width)
    lines = shown(capsys, folder, *margin).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert not any("…" in line for line in lines)
    assert {line[-1] for line in lines if line.startswith("│")} == {"│"}


@pytest.mark.parametrize("width", [48, 60, 80, 120])
def test_no_number_is_broken_in_a_narrow_terminal(folder, capsys, monkeypatch, width):
    whole = set(re.findall(r"[\d,]+ ±[\d.]+", shown(capsys, folder, "sex", "area")))
    monkeypatch.setattr("tabulary.cli.printed_table.output.width", width)
    printed = shown(capsys, folder, "sex", "area")
    pieces = set(re.findall(r"±[\d.]+|[\d,]+(?= +[│±])", printed))
    assert {piece for each in whole for piece in each.split()} <= pieces


def test_codes_stand_for_labels_that_do_not_fit_and_a_key_names_them(folder, capsys, monkeypatch):
    monkeypatch.setattr("tabulary.cli.printed_table.output.width", 80)
    printed = shown(capsys, folder, "sex", "area")
    assert re.search(r"sex \\ area +┃ +a0 ┃", printed)
    assert "Sex: Female (F); Male (M)" in printed


def test_another_language_or_codes_alone_on_request(folder, capsys):
    finnish = shown(capsys, folder, "area", "sex", "--language", "fi")
    assert "Nainen (F)" in finnish
    assert "Yhteensä" in finnish
    codes = shown(capsys, folder, "area", "sex", "--codes")
    assert "Female" not in codes
    assert "_T" in codes


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--language", "sv"], "no labels in 'sv'"), (["--codes", "--language", "fi"], "Choose one of them")],
)
def test_a_language_that_is_not_there_is_refused(folder, capsys, options, said):
    assert run(["show", str(folder), "sex", *options]) != 0
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["csv", "sdmx-csv"])
def test_totals_come_as_a_level_of_their_own_on_request(folder, capsys, name):
    release = tb.Release.load(folder)
    sex, value = ("sex", "count") if name == "csv" else ("SEX", "OBS_VALUE")
    plain = list(csv.DictReader(io.StringIO(shown(capsys, folder, "sex", "--format", name))))
    assert [row[sex] for row in plain] == ["F", "M"]
    totalled = list(csv.DictReader(io.StringIO(shown(capsys, folder, "sex", "--format", name, "--totals"))))
    assert [row[sex] for row in totalled] == ["F", "M", "_T"]
    assert float(totalled[-1][value]) == release[()].counts[()]


def test_every_format_holds_labels_as_text_with_their_codes(folder, capsysbinary):
    def written(name, *options):
        capsysbinary.readouterr()
        assert run(["show", str(folder), "area", "--format", name, *options]) == 0
        return capsysbinary.readouterr().out

    labels = dict(zip([f"a{i}" for i in range(7)], EVIL, strict=True))
    rows = list(csv.DictReader(io.StringIO(written("csv").decode())))
    # A CSV file holds codes: no label can become a formula there.
    assert [row["area"] for row in rows] == list(labels)
    rows = list(csv.DictReader(io.StringIO(written("sdmx-csv").decode())))
    assert [(row["AREA"], row["AREA_LABEL"]) for row in rows] == list(labels.items())
    document = json.loads(written("json-stat", "--language", "fi"))
    assert document["dimension"]["area"]["category"]["label"] == labels
    assert document["extension"]["language"] == "fi"
    px = written("px").decode()
    assert 'LANGUAGES="en",\n"fi";' in px
    assert all(name.replace('"', "'") in px for name in EVIL)
    assert {"px", "json-stat", "sdmx-csv", "xlsx", "csv", "parquet"} <= set(FORMATS)
    book = openpyxl.load_workbook(io.BytesIO(written("xlsx")))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {name for name in EVIL if any(name in str(cell.value) for cell in cells)} == set(EVIL)
    assert not [cell for cell in cells if cell.data_type == "f"]
