"""Folders from a stranger that are made to fill the memory, the disk or the day of whoever looks at them."""

import json
import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from tabulary.errors import ReleaseDamaged
from tabulary.release import Release
from tabulary.release import folder as folder_module
from tabulary.release.bounds import MOST_MANIFEST_BYTES
from tabulary.release.folder import hash_plain_file, list_folder, read_plain_file
from tabulary.release.manifest import canonical_bytes, digest_of, fingerprint
from tests.memory import at_most
from tests.unit.release.releases import a_release
from tests.unit.release.test_parquet_check import a_bomb, packed

pytestmark = pytest.mark.slow

EXTRA = {
    "xlsx": "tables.xlsx",
    "px": "tables/sex.px",
    "sdmx-csv": "tables/sex.sdmx.csv",
    "json-stat": "tables/sex.json-stat.json",
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "out"
    a_release(mechanism="margins", title="A title").save(folder, formats=EXTRA)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "out")


def refusal(folder, *, mebibytes=64):
    with at_most(mebibytes), pytest.raises(ReleaseDamaged, match="is not as it was published") as found:
        Release.load(folder)
    return str(found.value)


def resealed(folder, change=lambda manifest: None):
    """Change the manifest the way a forger would: canonical, with fingerprints and a digest that fit."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name in manifest["files"]:
        manifest["files"][name] = fingerprint((folder / name).read_bytes())
    change(manifest)
    path.write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))


def test_a_parquet_file_that_unpacks_to_gigabytes_is_refused(folder):
    (folder / "tables/sex.parquet").write_bytes(a_bomb(64 << 20))
    resealed(folder)
    assert "tables/sex.parquet does not hold the same table as tables/sex.csv" in refusal(folder)


def test_a_parquet_file_with_a_label_of_a_hundred_megabytes_is_refused(folder):
    path = folder / "tables/sex.parquet"
    table = pq.read_table(path)
    labels = table.column("sex").combine_chunks()
    vast = type(labels).from_arrays(labels.indices, ["x" * (100 << 20), "M"], ordered=True)
    path.write_bytes(packed(table.set_column(0, table.schema.field("sex"), vast), write_statistics=False))
    resealed(folder)
    assert "tables/sex.parquet does not hold the same table as tables/sex.csv" in refusal(folder)


def test_the_command_refuses_a_bomb_within_a_bound_of_memory(folder):
    (folder / "tables/sex.parquet").write_bytes(a_bomb(64 << 20))
    resealed(folder)
    run = (
        "import resource, sys; from tabulary.cli.app import run; code = run(['verify', sys.argv[1]]);"
        # What a process took itself: ru_maxrss counts the memory of who started it, too.
        "own = open('/proc/self/status').read().split('VmHWM:')[1].split()[0];"
        "print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    said = subprocess.run([sys.executable, "-c", run, folder], capture_output=True, text=True, check=False)
    assert said.returncode == 2, said.stderr
    assert "does not hold the same table" in " ".join(said.stderr.split())
    own, child = map(int, said.stdout.split())
    assert max(own, child) < 700 * 1_024


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 1_000_000,
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        # Written out with two spaces a level, this would be gigabytes.
        b"[" * 400 + b"[]," * 300_000 + b"[]" + b"]" * 400,
        b'{"a": ' + b"1" * 1_000_000 + b"}",
        b'{"a": 1e999999999}',
        b'{"a": -Infinity}',
    ],
    ids=["open", "lists", "objects", "wide", "digits", "exponent", "infinity"],
)
def test_a_manifest_that_is_nested_or_counts_without_end_is_refused(folder, content):
    (folder / "manifest.json").write_bytes(content)
    assert "manifest.json is not a JSON object as Tabulary writes it" in refusal(folder, mebibytes=600)


def test_a_manifest_beyond_the_cap_is_not_read(folder):
    os.truncate(folder / "manifest.json", MOST_MANIFEST_BYTES + 1)
    assert "not a plain file of at most 67,108,864 bytes" in refusal(folder)


def test_a_manifest_of_far_too_many_keys_is_refused(folder):
    resealed(folder, lambda manifest: manifest.update({f"k{i}": 0 for i in range(100_000)}))
    assert "and 99," in refusal(folder, mebibytes=600)


def of(levels, margin=None, parts=None):
    """A plan for one table on attributes with so many levels."""

    def change(manifest):
        plan, names = manifest["plan"], [f"a{i}" for i in range(len(levels))]
        plan["domain"] = {
            "attributes": [
                {"name": name, "levels": [str(i) for i in range(count)]}
                for name, count in zip(names, levels, strict=True)
            ],
            "structural_zeros": [],
        }
        plan["workload"] = [{"attributes": names if margin is None else margin, "weight": "1"}]
        for part in plan["measured"]:
            part["attributes"] = names if parts is None else parts

    return change


def measuring(levels):
    """A plan for one small table that measures one vast one."""

    def change(manifest):
        del manifest["plan"]["measured"][1:]
        manifest["plan"]["sensitivity"]["value"] = "1"
        of(levels, ["a0"])(manifest)

    return change


def tied(manifest):
    of([100] * 4, ["a0"], ["a0"])(manifest)
    ends = [{f"a{i}": ["0"], f"a{i + 1}": ["1"]} for i in range(3)]
    manifest["plan"]["domain"]["structural_zeros"] = ends


def residuals(manifest):
    of([1] * 60, ["a0"], [f"a{i}" for i in range(60)])(manifest)
    part = {**manifest["plan"]["measured"][0], "query": "residuals", "centred": []}
    manifest["plan"] |= {"mechanism": "residual", "measured": [part] * 5_000}
    manifest["plan"]["workload"] = [{"attributes": [f"a{i}" for i in range(17)], "weight": "1"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of([2] * 40), "tables with more cells than may be read"),
        (of([300, 300, 300]), "tables with more cells than may be read"),
        (of([1] * 60), "more sets of attributes below its tables"),
        (of([1] * 2_000, ["a0"], ["a0"]), "more attributes than may be read"),
        (
            lambda m: m["plan"].update(workload=[m["plan"]["workload"][0]] * 60_000),
            "more tables than may be read",
        ),
        (tied, "combinations that its structural zeros tie together"),
        (residuals, "more sets of attributes that its parts tell about"),
        (of([3_000, 3_000]), "more cells than the files have bytes"),
        (measuring([10] * 30), "it measures more numbers than may be read"),
        (measuring([3_000, 3_000]), "it is too short for the numbers of the plan"),
    ],
    ids=[
        *("binary", "cells", "one-level", "attributes", "tables", "tied", "parts", "bytes"),
        *("measured", "measurements"),
    ],
)
def test_a_plan_that_calls_for_more_than_anyone_can_compute_is_refused_by_arithmetic(folder, change, words):
    resealed(folder, change)
    assert words in refusal(folder, mebibytes=200)


@pytest.mark.parametrize("name", ["tables/sex.csv", "tables/sex.parquet", "report.html", "tables/sex.px"])
def test_a_file_of_a_terabyte_is_not_read_though_it_is_as_stated(folder, name, monkeypatch):
    # A file full of nothing takes no room on the disk, and a terabyte in memory.
    os.truncate(folder / name, 1 << 40)

    def stated(manifest):
        manifest["files"][name] = {"bytes": 1 << 40, "sha256": "0" * 64}

    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    stated(manifest)
    path.write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))
    assert f"of {name}, more than the plan can fill. It was not read." in refusal(folder)


@pytest.mark.parametrize("form", EXTRA)
def test_files_of_further_formats_are_hashed_and_never_parsed(folder, form, monkeypatch):
    for package in ("xlsxwriter", "openpyxl", "pysdmx", "zipfile"):
        monkeypatch.setitem(sys.modules, package, None)
    (folder / EXTRA[form]).write_bytes(b"PK\x03\x04" + b"[" * 100_000)
    resealed(folder)
    with at_most(64):
        Release.load(folder)


def test_a_folder_of_thousands_of_files_is_not_listed_to_its_end(folder):
    for i in range(1_100):
        (folder / f"tables/{i}").touch()
    with pytest.raises(ReleaseDamaged, match="more than its manifest lists"):
        Release.load(folder)
    with pytest.raises(ReleaseDamaged, match="more than 10 files"):
        list_folder(folder, "tables", most=10)


@pytest.mark.parametrize("name", ["manifest.json", "report.html", "tables/sex.csv", "tables/sex.parquet"])
def test_a_pipe_a_device_or_a_link_in_the_place_of_a_file_is_refused_and_nothing_waits_for_it(folder, name):
    for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir):
        (folder / name).unlink()
        put(folder / name)
        assert f"{name} is not a plain file" in refusal(folder)
        (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()
        (folder / name).write_bytes(b"")


def test_a_second_name_of_the_same_file_is_a_plain_file(folder, tmp_path):
    os.link(folder / "report.html", tmp_path / "again")
    Release.load(folder)


def test_a_file_that_grows_while_it_is_read_is_not_taken(tmp_path, monkeypatch):
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 10)
    before = os.lstat(path)
    path.write_bytes(b"x" * 15)
    monkeypatch.setattr(folder_module.os, "lstat", lambda _: before)
    assert read_plain_file(path, most=10) is None
    assert hash_plain_file(path, length=10) is None


def test_a_pipe_that_takes_the_place_of_a_file_after_the_look_is_not_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    before = os.lstat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(folder_module.os, "lstat", lambda _: before)
    assert read_plain_file(path, most=10) is None
