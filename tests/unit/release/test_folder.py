import errno
import os
from pathlib import Path

import pytest

from tabulary.errors import ReleaseError, ReleaseExists
from tabulary.release import Release, folder, staged_folder
from tests.unit.release.releases import a_release


def leftovers(parent):
    return [p.name for p in parent.iterdir()]


def failing(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def test_nothing_is_seen_at_the_target_until_everything_is_written(tmp_path):
    with staged_folder(tmp_path / "out") as staged:
        staged.write("a.txt", b"first")
        staged.write("tables/b.txt", b"second")
        assert not (tmp_path / "out").exists()
        assert not staged.published
    assert staged.published
    assert (tmp_path / "out" / "tables" / "b.txt").read_bytes() == b"second"
    assert leftovers(tmp_path) == ["out"]


def test_a_block_that_raises_publishes_nothing_and_leaves_nothing(tmp_path):
    def interrupted():
        with staged_folder(tmp_path / "out") as staged:
            staged.write("a.txt", b"first")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert leftovers(tmp_path) == []


def test_a_block_that_writes_nothing_publishes_nothing(tmp_path):
    with staged_folder(tmp_path / "out"):
        pass
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "full folder", "file", "dangling link"])
def test_whatever_is_at_the_target_stays_and_is_found_before_anything_is_done(tmp_path, kind):
    target = tmp_path / "out"
    if kind == "file":
        target.write_text("mine")
    elif kind == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
    if kind == "full folder":
        (target / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(ReleaseExists, match=r"never overwritten.*Choose another folder"),
        staged_folder(target),
    ):
        pytest.fail("the block ran")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["folder", "full folder", "file"])
def test_what_appears_at_the_target_meanwhile_is_not_replaced(tmp_path, kind):
    target = tmp_path / "out"

    def overtaken():
        with staged_folder(target) as staged:
            staged.write("a.txt", b"ours")
            if kind == "file":
                target.write_text("theirs")
            else:
                target.mkdir()
            if kind == "full folder":
                (target / "a.txt").write_text("theirs")

    with pytest.raises(ReleaseExists, match="already exists, and a release is never overwritten"):
        overtaken()
    assert leftovers(tmp_path) == ["out"]
    assert not (target / "a.txt").exists() or (target / "a.txt").read_text() == "theirs"


@pytest.mark.parametrize("kind", ["full folder", "file"])
def test_what_slips_in_at_the_very_last_moment_is_not_replaced_either(tmp_path, monkeypatch, kind):
    target = tmp_path / "out"

    def too_late(self, to):
        if kind == "file":
            target.write_text("theirs")
        else:
            target.mkdir()
            (target / "a.txt").write_text("theirs")
        return os.rename(self, to)  # noqa: PTH104 - the one that is replaced here

    monkeypatch.setattr(Path, "rename", too_late)
    with (
        pytest.raises(ReleaseExists, match="already exists, and a release is never overwritten"),
        staged_folder(target) as staged,
    ):
        staged.write("a.txt", b"ours")
    assert leftovers(tmp_path) == ["out"]


def test_two_releases_cannot_take_the_same_folder(tmp_path):
    one, other = a_release(seed=1), a_release(seed=2)

    def overtaken():
        with staged_folder(tmp_path / "out") as staged:
            other.write_into(staged)
            one.save(tmp_path / "out")

    with pytest.raises(ReleaseExists, match="already exists, and a release is never overwritten"):
        overtaken()
    assert leftovers(tmp_path) == ["out"]
    one.verify()
    assert other.folder is None


def test_a_missing_parent_is_named(tmp_path):
    with (
        pytest.raises(ReleaseError, match=r"there is no folder .*missing"),
        staged_folder(tmp_path / "missing/x"),
    ):
        pytest.fail("the block ran")


@pytest.mark.parametrize("place", ["out/x", "out/tables/x", "link/x"])
def test_nothing_is_written_into_a_release_that_would_damage_it(tmp_path, place):
    a_release().save(tmp_path / "out")
    (tmp_path / "link").symlink_to("out/tables")
    with pytest.raises(ReleaseError, match="is inside the release"), staged_folder(tmp_path / place):
        pytest.fail("the block ran")
    Release.load(tmp_path / "out")


@pytest.mark.parametrize("alone", ["manifest.json", "measurements.parquet"])
def test_a_folder_with_only_a_name_like_those_of_a_release_is_no_release(tmp_path, alone):
    (tmp_path / alone).write_text("{}")
    a_release().save(tmp_path / "out")
    Release.load(tmp_path / "out")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_place_that_cannot_be_written_is_found_before_the_block_runs(tmp_path, monkeypatch, number):
    monkeypatch.setattr(Path, "mkdir", failing(number))
    with pytest.raises(ReleaseError, match="not writable"), staged_folder(tmp_path / "out"):
        pytest.fail("the block ran")
    assert leftovers(tmp_path) == []


def test_too_little_room_is_found_before_the_block_runs(tmp_path):
    with (
        pytest.raises(ReleaseError, match=r"needs about .* Free some space"),
        staged_folder(tmp_path / "out", expected_bytes=1 << 70),
    ):
        pytest.fail("the block ran")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("after", range(8))
def test_a_disk_that_fills_up_leaves_no_release_and_no_staging_folder(tmp_path, monkeypatch, after):
    written = []
    write = folder.write_bytes

    def filling(descriptor, data):
        if len(written) == after:
            write(descriptor, data[: len(data) // 2])
            failing(errno.ENOSPC)()
        written.append(data)
        write(descriptor, data)

    monkeypatch.setattr(folder, "write_bytes", filling)
    release = a_release()
    with pytest.raises(ReleaseError, match="no room is left"):
        release.save(tmp_path / "out")
    assert leftovers(tmp_path) == []
    assert release.folder is None


def test_a_disk_that_fails_on_sync_publishes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(ReleaseError, match="Nothing was published"):
        a_release().save(tmp_path / "out")
    assert leftovers(tmp_path) == []


def test_the_published_folder_has_the_permissions_of_any_new_folder(tmp_path):
    a_release().save(tmp_path / "out")
    (tmp_path / "any").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to name a descriptor")
def test_every_file_is_on_the_disk_before_the_folder_appears(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync

    def watching(descriptor):
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), (tmp_path / "out").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watching)
    a_release(work="[sex]").save(tmp_path / "out")
    early = {Path(name).name for name, visible in synced if not visible}
    files = {"report.html", "manifest.json", "measurements.parquet", "sex.csv", "sex.parquet"}
    assert early == {*files, "tables", "release"}
    assert [name for name, visible in synced if visible] == [str(tmp_path)]
