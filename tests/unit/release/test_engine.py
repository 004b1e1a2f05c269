"""Releases that name the engine which counted their records."""

import json

import pytest

from tabulary.errors import InvalidTable, ReleaseDamaged
from tabulary.release import Release
from tabulary.release.manifest import canonical_bytes, digest_of, is_engine
from tests.unit.release.releases import a_release, same_tables


def counted_by(engine):
    made = a_release(work="[sex]")
    return Release(made.measurement, engine=engine)


@pytest.fixture
def folder(tmp_path):
    counted_by("spark").save(tmp_path / "out")
    return tmp_path / "out"


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_bytes())


def resealed(folder, change):
    """Change the manifest the way a forger would: canonical, with a digest that fits."""
    manifest = manifest_of(folder)
    change(manifest)
    (folder / "manifest.json").write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))


def test_the_manifest_names_the_engine_and_a_loaded_release_knows_it(folder):
    manifest = manifest_of(folder)
    assert manifest["software"].keys() == {"name", "version", "engine"}
    assert manifest["software"]["engine"] == "spark"
    assert Release.load(folder).engine == "spark"


def test_a_loaded_release_is_saved_again_with_its_engine(folder, tmp_path):
    Release.load(folder).save(tmp_path / "again", formats=["px"])
    again = manifest_of(tmp_path / "again")
    assert again["software"]["engine"] == "spark"
    assert again["formats"] == ["px"]
    assert same_tables(Release.load(tmp_path / "again"), Release.load(folder))


def test_two_engines_make_manifests_that_differ_in_the_name_alone(folder, tmp_path):
    counted_by("compiled").save(tmp_path / "other")
    one, other = manifest_of(folder), manifest_of(tmp_path / "other")
    assert {name for name in one if one[name] != other[name]} == {"software", "digest"}
    assert one["software"] | {"engine": "compiled"} == other["software"]


def test_a_release_of_a_table_names_no_engine(tmp_path):
    a_release(work="[sex]").save(tmp_path / "out")
    assert manifest_of(tmp_path / "out")["software"]["engine"] is None
    assert Release.load(tmp_path / "out").engine is None


@pytest.mark.parametrize("engine", [3, "", "Spark", "spark 4", "<b>", ["spark"], "x" * 41, "spark\n"])
def test_a_manifest_whose_engine_is_no_name_is_found(folder, engine):
    resealed(folder, lambda manifest: manifest["software"].update(engine=engine))
    with pytest.raises(ReleaseDamaged, match="does not name the engine"):
        Release.load(folder)


@pytest.mark.parametrize(
    "change", [lambda software: software.pop("engine"), lambda software: software.update(machine="m1")]
)
def test_a_manifest_without_its_engine_or_with_more_than_that_is_found(folder, change):
    resealed(folder, lambda manifest: change(manifest["software"]))
    with pytest.raises(ReleaseDamaged, match="does not state its date and software"):
        Release.load(folder)


def test_an_engine_changed_in_the_file_alone_is_found(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"spark"', '"duckdb"'))
    with pytest.raises(ReleaseDamaged, match="digest"):
        Release.load(folder)


@pytest.mark.parametrize("engine", ["Spark", "", "postgresql://reader:secret@db/census"])
def test_an_engine_is_named_by_one_word(engine):
    assert not is_engine(engine)
    with pytest.raises(InvalidTable, match="one word"):
        counted_by(engine)
