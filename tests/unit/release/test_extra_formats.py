"""Releases that hold their tables in more formats than CSV and Parquet."""

import json
import sys

import pytest

from tabulary.errors import InvalidArgument, ReleaseDamaged, TooManyCells
from tabulary.release import Release, expected_bytes
from tabulary.release.manifest import canonical_bytes, digest_of, fingerprint
from tabulary.release.verify import read_release
from tabulary.release.writers import FORMATS
from tests.unit.release.releases import a_release, same_tables

EXTRA = ("xlsx", "json-stat", "sdmx-csv", "px")
ENDINGS = {"xlsx": ".xlsx", "json-stat": ".json-stat.json", "sdmx-csv": ".sdmx.csv", "px": ".px"}


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
        for name in EXTRA:
            assert table[name] == f"tables/{stem}{ENDINGS[name]}"
            assert manifest["files"][table[name]] == fingerprint((folder / table[name]).read_bytes())


def test_the_files_are_what_the_writers_make_of_the_loaded_tables(folder):
    release = Release.load(folder)
    for table in manifest_of(folder)["tables"]:
        for name in EXTRA:
            written = FORMATS[name].write(release.publication(tuple(table["margin"])))
            assert (folder / table[name]).read_bytes() == written


def test_such_a_release_loads_and_verifies(folder):
    release = Release.load(folder)
    assert same_tables(release, a_release())
    release.verify(expected_digest=manifest_of(folder)["digest"])


def test_it_loads_where_the_packages_of_its_formats_are_missing(folder, monkeypatch):
    for package in ("xlsxwriter", "pysdmx"):
        monkeypatch.setitem(sys.modules, package, None)
    Release.load(folder).verify()


def test_a_release_without_further_formats_names_none(tmp_path):
    a_release().save(tmp_path / "plain")
    a_release().save(tmp_path / "both", formats=["csv", "parquet"])
    for name in ("plain", "both"):
        manifest = manifest_of(tmp_path / name)
        assert manifest["formats"] == []
        assert manifest["tables"][0].keys() == {"margin", "cells", "numbers", "columns", "csv", "parquet"}
    assert (tmp_path / "plain" / "manifest.json").read_bytes() == (
        tmp_path / "both" / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize("name", EXTRA)
def test_a_changed_or_missing_file_is_found(folder, name):
    file = folder / f"tables/sex{ENDINGS[name]}"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ReleaseDamaged, match=f"tables/sex{ENDINGS[name]} has been changed"):
        read_release(folder)
    file.unlink()
    with pytest.raises(ReleaseDamaged, match=f"tables/sex{ENDINGS[name]} is missing"):
        read_release(folder)


def test_a_file_of_a_format_that_the_manifest_does_not_name_is_found(tmp_path):
    a_release().save(tmp_path / "out", formats=["px"])
    (tmp_path / "out/tables/sex.xlsx").write_bytes(b"PK")
    with pytest.raises(ReleaseDamaged, match=r"tables/sex\.xlsx is not part of this release"):
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


def test_an_unknown_format_leaves_no_folder(tmp_path):
    with pytest.raises(InvalidArgument, match="no format 'pdf'"):
        a_release().save(tmp_path / "out", formats=["pdf"])
    assert not (tmp_path / "out").exists()


def test_a_table_too_large_for_a_format_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(vars(FORMATS["xlsx"]), "most_cells", 1)
    with pytest.raises(TooManyCells, match="Excel holds tables of at most 1 cells"):
        a_release().save(tmp_path / "out", formats=["xlsx"])
    assert not (tmp_path / "out").exists()
