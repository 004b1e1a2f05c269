"""Releases that hold their tables in more formats than CSV and Parquet."""

import datetime
import json
import sys

import pytest

from tabulary.cli.app import run
from tabulary.core.domain import Domain
from tabulary.core.labels import LONGEST, Labels, VariableLabels
from tabulary.errors import InvalidArgument, ReleaseDamaged, TooManyCells
from tabulary.release import Release, expected_bytes
from tabulary.release.arrangement import ArrangedTable
from tabulary.release.manifest import Imprint, canonical_bytes, digest_of, fingerprint
from tabulary.release.promise import promise_of
from tabulary.release.release_workbook import workbook_of
from tabulary.release.svg import rounded_up
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.totals import with_totals
from tabulary.release.verify import read_release
from tabulary.release.who_is_counted import who_is_counted
from tabulary.release.writers import FORMATS
from tests.unit.release.releases import a_release, same_tables
from tests.workbooks import opened, read_cells, table_sheets

EXTRA = ("xlsx", "json-stat", "sdmx-csv", "px")
ENDINGS = {"json-stat": ".json-stat.json", "sdmx-csv": ".sdmx.csv", "px": ".px"}
FILES = {"xlsx": "tables.xlsx", **{name: f"tables/sex{ending}" for name, ending in ENDINGS.items()}}


@pytest.fixture
def folder(tmp_path):
    a_release(title="A survey").save(tmp_path / "out", formats=EXTRA)
    return tmp_path / "out"


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_bytes())


def resealed(folder, change):
    """Change the manifest the way a forger would: canonical, with fingerprints and a digest that fit."""
    manifest = manifest_of(folder)
    change(manifest)
    for name in manifest["files"]:
        if (folder / name).is_file():
            manifest["files"][name] = fingerprint((folder / name).read_bytes())
    (folder / "manifest.json").write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))


def test_every_table_is_there_in_every_format_and_the_manifest_names_it(folder):
    manifest = manifest_of(folder)
    assert manifest["formats"] == list(EXTRA)
    for table, stem in zip(manifest["tables"], ("sex", "age-by-job", "sex-by-age-by-job"), strict=True):
        assert "xlsx" not in table
        for name in ENDINGS:
            assert table[name] == f"tables/{stem}{ENDINGS[name]}"
            assert manifest["files"][table[name]] == fingerprint((folder / table[name]).read_bytes())


def test_the_files_are_what_the_writers_make_of_the_loaded_tables(folder):
    release = Release.load(folder)
    for table in manifest_of(folder)["tables"]:
        for name in ENDINGS:
            written = FORMATS[name].write(release.publication(tuple(table["margin"])))
            assert (folder / table[name]).read_bytes() == written


def test_all_tables_stand_in_one_workbook_of_the_day_of_the_release(folder):
    manifest = manifest_of(folder)
    data = (folder / "tables.xlsx").read_bytes()
    assert manifest["files"]["tables.xlsx"] == fingerprint(data)
    assert not list((folder / "tables").glob("*.xlsx"))
    day = datetime.date.fromisoformat(manifest["date"])
    release = Release.load(folder)
    imprint = Imprint(manifest["date"], "any version", EXTRA)
    assert workbook_of(release, imprint, ErrorPlace.below) == data
    book = opened(data)
    assert book.properties.created.date() == day
    assert book.properties.title == "A survey"
    for margin, sheet in zip(release.margins, table_sheets(book), strict=True):
        published = release.publication(margin, totals=True)
        found = [(c.count.value, c.half.value) for c in read_cells(sheet)]
        table = ArrangedTable.of(published)
        assert [count for count, _ in found] == table.counts.reshape(-1).tolist()
        halves = [half for _, half in found if half is not None]
        assert halves == [rounded_up(half) for half in table.half_widths[table.status != "z"].tolist()]


def test_totals_of_a_workbook_add_up_to_the_last_unit(folder):
    sheet = table_sheets(opened((folder / "tables.xlsx").read_bytes()))[-1]
    counts = {(c.block, c.row, c.column): c.count.value for c in read_cells(sheet)}
    blocks, rows, columns = (list(dict.fromkeys(key)) for key in zip(*counts, strict=True))
    assert [blocks[-1], rows[-1], columns[-1]] == ["sex: Total", ("Total",), "Total"]
    for block in blocks:
        for row in rows:
            assert sum(counts[block, row, column] for column in columns[:-1]) == counts[block, row, "Total"]
        for column in columns:
            assert sum(counts[block, row, column] for row in rows[:-1]) == counts[block, ("Total",), column]
    for row in rows:
        for column in columns:
            assert sum(counts[block, row, column] for block in blocks[:-1]) == counts[blocks[-1], row, column]


def test_errors_stand_beside_the_numbers_if_the_publisher_wants_it(tmp_path):
    a_release().save(tmp_path / "out", formats=["xlsx"], errors="beside")
    (first, *_) = table_sheets(opened((tmp_path / "out/tables.xlsx").read_bytes()))
    halves = [cell.half.value for cell in read_cells(first, "beside")]
    stated = with_totals(a_release(), "sex").half_widths().tolist()
    assert halves == list(map(rounded_up, stated))
    with pytest.raises(InvalidArgument, match='"below" or "beside"'):
        a_release().save(tmp_path / "other", formats=["xlsx"], errors="above")
    assert not (tmp_path / "other").exists()


def test_a_workbook_says_who_when_and_what_is_promised(folder):
    book = opened((folder / "tables.xlsx").read_bytes())
    front = " ".join(cell.value for cell in book.worksheets[0]["A"] if cell.value)
    day = datetime.date.fromisoformat(manifest_of(folder)["date"])
    assert f"published on {day.day} {day:%B %Y}." in front
    assert "ε" not in front
    promised = [cell.value for cell in book.worksheets[-1]["A"] if cell.value]
    promise = promise_of(Release.load(folder).plan)
    counted = who_is_counted(Release.load(folder))
    for words in (promise.statement, *promise.meaning, promise.protected, *promise.not_promised, *counted):
        assert words in promised


def test_a_workbook_tells_how_its_own_face_was_made(tmp_path):
    a_release().rebuild(reconstruct="none").save(tmp_path / "out", formats=["xlsx"])
    promised = [
        cell.value for cell in opened((tmp_path / "out/tables.xlsx").read_bytes()).worksheets[-1]["A"]
    ]
    assert any("Nothing was rounded, clipped or adjusted" in words for words in promised if words)


def test_such_a_release_loads_and_verifies(folder):
    release = Release.load(folder)
    assert same_tables(release, a_release())
    release.verify(expected_digest=manifest_of(folder)["digest"])


def test_it_loads_where_the_packages_of_its_formats_are_missing(folder, monkeypatch):
    for package in ("xlsxwriter", "pysdmx"):
        monkeypatch.setitem(sys.modules, package, None)
    checked = Release.load(folder).verify()
    assert checked.remade
    assert {name.rpartition(".")[0].rpartition(".")[2] for name in checked.files} == {"tables", "sdmx"}


@pytest.mark.parametrize("errors", ["below", "beside"])
@pytest.mark.parametrize("epsilon", ["folded", "first"])
def test_every_file_for_readers_is_made_again_with_the_same_bytes(tmp_path, errors, epsilon):
    a_release(title="A survey").save(tmp_path / "out", formats=EXTRA, errors=errors, epsilon=epsilon)
    checked = Release.load(tmp_path / "out").verify()
    assert checked.remade
    assert checked.files == ()
    assert "other bytes" not in str(checked)


@pytest.mark.parametrize("name", ["report.html", *FILES.values()])
def test_a_file_for_readers_that_does_not_follow_from_the_tables_is_named_though_it_was_sealed_again(
    folder, name
):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    resealed(folder, lambda manifest: None)
    checked = Release.load(folder).verify()
    assert checked.files == (name,)
    assert f"came out with other bytes: {name}." in str(checked)


def test_words_that_were_changed_in_the_manifest_alone_are_noticed_in_what_shows_them(folder, capsys):
    resealed(folder, lambda manifest: manifest["labels"][0].update(title="Another survey"))
    checked = Release.load(folder).verify()
    assert {"report.html", "tables.xlsx"} <= set(checked.files)
    assert run(["verify", str(folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "every file has the bytes that the manifest states" in said
    assert "and every claim is correct" not in said


def test_a_release_without_further_formats_names_none(tmp_path):
    a_release().save(tmp_path / "plain")
    a_release().save(tmp_path / "both", formats=["csv", "parquet"])
    for name in ("plain", "both"):
        manifest = manifest_of(tmp_path / name)
        assert manifest["formats"] == []
        assert manifest["tables"][0].keys() == {
            "margin",
            "cells",
            "numbers",
            "farthest_from_estimate",
            "columns",
            "csv",
            "parquet",
        }
    assert (tmp_path / "plain" / "manifest.json").read_bytes() == (
        tmp_path / "both" / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize("name", EXTRA)
def test_a_changed_or_missing_file_is_found(folder, name):
    file = folder / FILES[name]
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ReleaseDamaged, match=f"{FILES[name]} has been changed"):
        read_release(folder)
    file.unlink()
    with pytest.raises(ReleaseDamaged, match=f"{FILES[name]} is missing"):
        read_release(folder)


def test_a_file_of_a_format_that_the_manifest_does_not_name_is_found(tmp_path):
    a_release().save(tmp_path / "out", formats=["px"])
    for name in ("tables.xlsx", "tables/sex.xlsx"):
        (tmp_path / "out" / name).write_bytes(b"PK")
        with pytest.raises(ReleaseDamaged, match=f"{name} is not part of this release"):
            read_release(tmp_path / "out")


@pytest.mark.parametrize(
    "formats",
    [None, "px", ["px", "px"], ["px", "xlsx"], ["csv"], ["pdf"], [["px"]], ["px", 1], {"px": 1}],
)
def test_formats_that_are_not_stated_as_tabulary_does_are_found_in_a_folder_sealed_again(folder, formats):
    resealed(folder, lambda manifest: manifest.update(formats=formats))
    with pytest.raises(ReleaseDamaged, match="'formats' does not name"):
        read_release(folder)


def test_a_manifest_without_its_formats_is_found(folder):
    resealed(folder, lambda manifest: manifest.pop("formats"))
    with pytest.raises(ReleaseDamaged, match="lacks field 'formats'"):
        read_release(folder)


def test_the_expected_size_is_enough_for_all_formats(folder):
    written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert written <= expected_bytes(a_release().plan, EXTRA)


def test_the_longest_labels_are_expected_and_can_be_verified(tmp_path):
    domain = Domain({"area": range(300), "sex": ["F", "M"]})
    areas = {str(i): f"{i} {'é' * (LONGEST - 4)}" for i in range(300)}
    labels = [
        Labels(
            "A survey",
            notes=("n" * LONGEST,),
            variables={"area": VariableLabels("Area", levels=areas)},
            language=tag,
        )
        for tag in ("en", "fi")
    ]
    made = Release(a_release(domain, "[area sex]").measurement, labels=labels)
    made.save(tmp_path / "out", formats=EXTRA)
    written = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert written <= expected_bytes(made.plan, EXTRA, labels)
    assert Release.load(tmp_path / "out").translations == tuple(labels)


def test_an_unknown_format_leaves_no_folder(tmp_path):
    with pytest.raises(InvalidArgument, match="no format 'pdf'"):
        a_release().save(tmp_path / "out", formats=["pdf"])
    assert not (tmp_path / "out").exists()


def test_a_table_too_large_for_a_format_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(vars(FORMATS["xlsx"]), "most_cells", 1)
    with pytest.raises(TooManyCells, match="Excel holds tables of at most 1 cells"):
        a_release().save(tmp_path / "out", formats=["xlsx"])
    assert not (tmp_path / "out").exists()
