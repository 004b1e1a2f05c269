"""Whatever is done to a release folder, verification finds it, and never reads what is not the release's."""

import json
import os
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulary.errors import ReleaseDamaged, ReleaseError
from tabulary.release import Release
from tabulary.release.formats import csv_bytes, parquet_bytes
from tabulary.release.manifest import canonical_bytes, digest_of, fingerprint
from tests.unit.release.releases import a_release


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "out"
    a_release(mechanism="margins", title="A title").save(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "out")


FILES = [
    "manifest.json",
    "measurements.parquet",
    "report.html",
    *(f"tables/{s}.{e}" for s in ("sex", "age-by-job") for e in ("csv", "parquet")),
]


def damage(folder):
    with pytest.raises(ReleaseDamaged, match="is not as it was published") as found:
        Release.load(folder)
    return str(found.value)


def rewritten(folder, change):
    """Change the manifest the way a forger would: canonical, with a digest that fits."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    for name in manifest["files"]:
        if (folder / name).is_file() and ".." not in name:
            manifest["files"][name] = fingerprint((folder / name).read_bytes())
    path.write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))


def unchanged(manifest):
    """Seal the folder again as it is."""


def test_the_folder_is_sound_to_begin_with(folder):
    Release.load(folder)
    rewritten(folder, unchanged)
    Release.load(folder)


@pytest.mark.parametrize("name", FILES)
def test_any_changed_byte_is_found(folder, name):
    data = (folder / name).read_bytes()
    # Both ends and a fixed sample: a hash does not care which byte, but a reader of headers might.
    places = random.Random(7).sample(range(len(data)), min(len(data), 12))
    for place in [0, len(data) - 1, *places]:
        changed = bytearray(data)
        changed[place] ^= 1
        (folder / name).write_bytes(changed)
        assert name in damage(folder)
    (folder / name).write_bytes(data)
    Release.load(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["cut", "longer", "empty", "gone"])
def test_a_file_of_another_length_or_none_is_found(folder, name, how):
    data = (folder / name).read_bytes()
    if how == "gone":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes({"cut": data[:-1], "longer": data + b"\n", "empty": b""}[how])
    assert name in damage(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("  ", "\t"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace('"schema"', '"schema": "other", "schema"', 1),
        lambda text: json.dumps(json.loads(text)),
    ],
)
def test_a_manifest_that_means_the_same_in_other_bytes_is_found(folder, change):
    path = folder / "manifest.json"
    path.write_bytes(change(path.read_bytes().decode()).encode())
    assert "manifest.json is not" in damage(folder)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000, b'"\\ud800"']
)
def test_a_manifest_that_is_no_manifest_is_refused(folder, content):
    (folder / "manifest.json").write_bytes(content)
    assert "manifest.json" in damage(folder)


@pytest.mark.parametrize("name", [".DS_Store", "tables/more.csv", "tables/Sex.csv", "notes/readme.txt"])
def test_a_file_too_many_is_found(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("hello")
    assert name.split("/")[0] in damage(folder)


def test_an_empty_folder_too_many_is_found(folder):
    (folder / "tables" / "more").mkdir()
    assert "tables/more" in damage(folder)


@pytest.mark.parametrize("name", [*FILES, "tables"])
def test_a_link_in_the_place_of_a_file_is_found_even_if_it_leads_to_the_same_bytes(folder, name, tmp_path):
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert name in damage(folder)


def test_a_pipe_in_the_place_of_a_file_is_found_and_does_not_block(folder):
    (folder / "report.html").unlink()
    os.mkfifo(folder / "report.html")
    assert "report.html is not a plain file" in damage(folder)


def test_all_problems_are_listed_with_what_to_do(folder):
    (folder / "report.html").unlink()
    (folder / "extra.txt").write_text("hello")
    (folder / "tables" / "sex.csv").write_text("changed")
    message = damage(folder)
    for name in ("report.html is missing", "extra.txt is not part", "tables/sex.csv"):
        assert name in message
    assert message.endswith("download it again from its publisher.")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "tables/../../x.csv", "tables/\x00.csv", "manifest.json"]
)
def test_a_manifest_that_names_a_file_outside_is_refused_and_the_file_is_not_read(folder, name, monkeypatch):
    def point_outside(manifest):
        manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
        manifest["tables"][0]["csv"] = name

    rewritten(folder, point_outside)
    opened = []
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path, **more: opened.append(str(path)) or real(path, **more))
    message = damage(folder)
    assert "not part of this release" in message
    assert all(path.startswith(str(folder)) and ".." not in path for path in opened)


def forge(folder, name, change):
    """Change one table in both of its formats, and seal the folder again."""
    parquet = folder / f"tables/{name}.parquet"
    table = change(pq.read_table(parquet))
    parquet.write_bytes(parquet_bytes(table))
    (folder / f"tables/{name}.csv").write_bytes(csv_bytes(table))
    rewritten(folder, unchanged)


def with_column(table, name, values):
    index = table.column_names.index(name)
    return table.set_column(
        index, table.schema.field(name), pa.chunked_array([pa.array(values, table.schema.field(name).type)])
    )


def column(table, name):
    return table.column(name).to_pylist()


def test_a_forged_standard_error_is_found_in_a_folder_sealed_again(folder):
    forge(folder, "sex", lambda t: with_column(t, "standard_error", [0.5, 0.5]))
    assert "column 'standard_error' is not what the plan and the measurements give" in damage(folder)


def test_a_forged_interval_is_found_in_a_folder_sealed_again(folder):
    forge(folder, "sex", lambda t: with_column(t, "lower_95", [x + 1 for x in column(t, "lower_95")]))
    assert "column 'lower_95' is not what the plan and the measurements give" in damage(folder)


def test_labels_in_another_order_are_found_in_a_folder_sealed_again(folder):
    forge(folder, "sex", lambda t: t.take([1, 0]))
    assert "does not have the columns, labels and order of its table" in damage(folder)


def test_a_row_too_few_is_found_in_a_folder_sealed_again(folder):
    forge(folder, "sex", lambda t: t.slice(0, 1))
    assert "is not the table on [sex]" in damage(folder)


def test_a_count_in_an_impossible_cell_is_found_in_a_folder_sealed_again(folder):
    forge(folder, "age-by-job", lambda t: with_column(t, "count", [5] * 6))
    assert "declares impossible" in damage(folder)


def test_real_numbers_in_the_place_of_whole_ones_are_found_in_a_folder_sealed_again(folder):
    def real(table):
        for name in ("count", "lower_95", "upper_95"):
            index = table.column_names.index(name)
            table = table.set_column(index, name, table.column(name).cast(pa.float64()))
        return table

    forge(folder, "sex", real)
    assert "real numbers, but whole numbers were promised" in damage(folder)


def test_missing_metadata_is_found_in_a_folder_sealed_again(folder):
    forge(folder, "sex", lambda t: t.replace_schema_metadata(None))
    assert "tables/sex.parquet does not hold the same table as tables/sex.csv" in damage(folder)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_formats_that_differ_are_found_in_a_folder_sealed_again(folder, ending):
    table = pq.read_table(folder / "tables/sex.parquet")
    more = [x + 1 for x in column(table, "count")]
    lower, upper = ([x + 1 for x in column(table, n)] for n in ("lower_95", "upper_95"))
    moved = with_column(with_column(with_column(table, "count", more), "lower_95", lower), "upper_95", upper)
    (folder / f"tables/sex.{ending}").write_bytes(
        csv_bytes(moved) if ending == "csv" else parquet_bytes(moved)
    )
    rewritten(folder, unchanged)
    assert "tables/sex.parquet does not hold the same table as tables/sex.csv" in damage(folder)


def test_a_file_that_is_not_parquet_is_found_in_a_folder_sealed_again(folder):
    (folder / "tables/sex.parquet").write_bytes(b"PAR1 nothing of the kind PAR1")
    rewritten(folder, unchanged)
    assert "tables/sex.parquet does not hold the same table as tables/sex.csv" in damage(folder)


def smaller_noise(manifest):
    manifest["plan"]["measured"][0]["noise"]["scale"] = "1/2"


def better_promise(manifest):
    manifest["plan"]["privacy"]["epsilon"] = "1/100"


def better_words(manifest):
    manifest["promise"]["statement"] = "This release is perfectly private."


def better_errors(manifest):
    manifest["expected_errors"][0]["standard_error"] /= 2


def another_plan_digest(manifest):
    manifest["plan_digest"] = "0" * 64


def a_table_less(manifest):
    del manifest["tables"][0]


def a_margin_less(manifest):
    del manifest["plan"]["workload"][0]


def another_level(manifest):
    manifest["plan"]["domain"]["attributes"][0]["levels"][0] = "f"


def another_confidence(manifest):
    manifest["confidence"] = 0.99


def a_field_more(manifest):
    manifest["exact_counts"] = [1, 2]


def no_labels(manifest):
    del manifest["labels"]


def a_precise_time(manifest):
    manifest["date"] = "2026-01-31T10:11:12"


def files_as_a_list(manifest):
    manifest["files"] = {"report.html": [1, 2]}


def a_plan_of_another_kind(manifest):
    manifest["plan"] = ["not", {"a": "plan"}]


@pytest.mark.parametrize(
    "claim",
    [
        smaller_noise,
        better_promise,
        better_words,
        better_errors,
        another_plan_digest,
        a_table_less,
        a_margin_less,
        another_level,
        another_confidence,
        a_field_more,
        no_labels,
        a_precise_time,
        a_plan_of_another_kind,
    ],
    ids=lambda claim: claim.__name__,
)
def test_a_false_claim_is_found_in_a_folder_sealed_again(folder, claim):
    rewritten(folder, claim)
    damage(folder)


def test_a_plan_for_tables_beyond_memory_is_refused_at_once(folder):
    def enormous(manifest):
        for attribute in manifest["plan"]["domain"]["attributes"][:2]:
            attribute["levels"] += [f"level {i}" for i in range(5_000)]

    rewritten(folder, enormous)
    assert "tables with more cells than may be read" in damage(folder)


def test_a_plan_for_tables_larger_than_the_files_is_refused_at_once(folder):
    def large(manifest):
        for attribute in manifest["plan"]["domain"]["attributes"][1:]:
            attribute["levels"] += [f"level {i}" for i in range(1_000)]

    rewritten(folder, large)
    assert "more cells than the files have bytes" in damage(folder)


def test_fingerprints_of_another_kind_are_refused(folder):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    files_as_a_list(manifest)
    path.write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))
    assert "does not state the length and SHA-256" in damage(folder)


def test_a_newer_schema_is_not_called_damage(folder):
    def newer(manifest):
        manifest["schema"] = "tabulary-release/5"

    rewritten(folder, newer)
    with pytest.raises(ReleaseError, match="this version of Tabulary reads 'tabulary-release/1'") as found:
        Release.load(folder)
    assert not isinstance(found.value, ReleaseDamaged)


def test_a_whole_folder_forged_consistently_is_found_by_the_published_digest_alone(folder, tmp_path):
    published = Release.load(folder).digest
    forged = a_release(mechanism="margins", title="A title", seed=2)
    forged.save(tmp_path / "forged")
    Release.load(tmp_path / "forged")
    with pytest.raises(ReleaseDamaged, match="not the expected"):
        Release.load(tmp_path / "forged", expected_digest=published)
