"""What is kept: the first plan and the first tables, whole and sealed, for every later start."""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import ReleaseError, ServiceError
from tabulary.workflows.answering import artifacts
from tabulary.workflows.answering.artifacts import Artifacts, seal_key
from tests.releases import release_of

DOMAIN = tb.Domain({"a": "xyz", "b": "xy"})
KEY = seal_key(bytes(range(32)))


def plan(epsilon=1, **options):
    return tb.plan(DOMAIN, "[][a][ab]", privacy=tb.PureDP(epsilon), mechanism="residual", **options)


SHRUNK = plan(reconstruct="shrink")


def release(seed=1):
    """A release that nobody measured, its total included."""
    counts = np.random.default_rng(seed).integers(0, 10**6, DOMAIN.shape)
    return release_of(SHRUNK, {(): counts.sum(), ("a",): counts.sum(axis=1), ("a", "b"): counts})


def told(made):
    return [array.tobytes() for t in made for array in (t.counts, t.standard_errors, t.half_widths(0.95))]


class Store(Artifacts):
    """What is kept of one edition, and the warnings that it gave."""

    def __init__(self, folder, purpose="census 2026", key=KEY):
        self.__dict__["warnings"] = []
        super().__init__(folder, key, purpose, self.warnings.append)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "kept")


def not_again():
    pytest.fail("made again")


def keep_both(store, seed=1):
    return store.plan("all tables", plan).digest(), told(store.release(SHRUNK, lambda: release(seed)))


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_first_plan_is_kept_and_another_one_is_not_made(store):
    first = store.plan("x", plan)
    assert first == plan()
    assert store.plan("x", not_again) == first
    assert store.plan("y", lambda: plan(2)) == plan(2)
    assert store.warnings == []


def test_the_first_tables_are_kept_and_read_back_the_same_with_and_without_a_place(store):
    first = store.release(SHRUNK, release)
    assert told(store.release(SHRUNK, not_again)) == told(first)
    assert told(Artifacts(None, KEY, "census 2026", not_again).release(SHRUNK, release)) == told(first)
    assert told(first)[0] == release()[()].counts.tobytes()


@pytest.mark.parametrize("keep", ["plan", "release"])
def test_processes_that_make_it_at_once_all_serve_one(store, keep):
    together = Barrier(4)

    def make(seed):
        together.wait(5)
        return plan(seed) if keep == "plan" else release(seed)

    def ask(seed):
        if keep == "plan":
            return store.plan("x", lambda: make(seed)).digest()
        return told(store.release(SHRUNK, lambda: make(seed)))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, [1, 2, 3, 4]))
    assert all(each == found[0] for each in found)
    assert len(list(store.folder.iterdir())) == 1


def test_a_changed_byte_in_any_file_is_found_named_and_made_anew(store):
    known = keep_both(store)
    kinds = [path.relative_to(store.folder) for path in files(store.folder)]
    assert {path.suffix for path in kinds} == {".json", ".html", ".csv", ".parquet", ""}
    for number, kind in enumerate(kinds, start=1):
        content = bytearray((store.folder / kind).read_bytes())
        content[len(content) // 2] ^= 1
        (store.folder / kind).write_bytes(content)
        assert keep_both(store) == known, kind
        assert len(store.warnings) == number, kind
        assert repr(str(store.folder / kind.parts[0])) in store.warnings[-1]
    assert keep_both(Store(store.folder)) == known
    assert [path.relative_to(store.folder) for path in files(store.folder)] == kinds


@pytest.mark.parametrize("gone", ["seal", "plan.json", "release/manifest.json", "release/tables/a.csv"])
def test_a_missing_seal_or_file_is_found_and_made_anew(store, gone):
    known = keep_both(store)
    for path in store.folder.glob(f"*/{gone}"):
        path.unlink()
    assert keep_both(store) == known
    assert len(store.warnings) == (2 if gone == "seal" else 1)
    assert any(words in store.warnings[0] for words in ("has no seal", "lacks its", "is damaged"))


@pytest.mark.parametrize("kind", ["plan", "tables"])
def test_what_belongs_to_another_dataset_is_found_in_its_place(store, kind):
    other = Store(store.folder, "survey 2026")
    known, others = keep_both(store), keep_both(other, seed=2)
    (mine,) = {each.name for each in store.folder.glob(f"{kind}-*")} - {
        each.name for each in _copy_of(other, seed=2).glob(f"{kind}-*")
    }
    (theirs,) = {each.name for each in store.folder.glob(f"{kind}-*")} - {mine}
    for source, target in ((theirs, "aside"), (mine, theirs), ("aside", mine)):
        (store.folder / source).rename(store.folder / target)
    assert keep_both(store) == known
    assert keep_both(other, seed=2) == others
    assert len(store.warnings) == len(other.warnings) == 1
    assert "from elsewhere" in store.warnings[0]


def _copy_of(store, seed):
    """Return a folder with what one edition alone keeps."""
    alone = store.folder.with_name("alone")
    keep_both(Store(alone, store.purpose), seed)
    return alone


def test_a_forged_release_whose_own_digests_all_agree_is_found(store):
    known = keep_both(store)
    (place,) = store.folder.glob("tables-*")
    shutil.rmtree(place / "release")
    release(seed=2).save(place / "release")
    assert told(tb.Release.load(place / "release")) != known[1]
    assert keep_both(store) == known
    # Nor does a seal help that was made without the key.
    for forged in (hashlib.sha256((place / "release" / "manifest.json").read_bytes()).hexdigest(), "0" * 64):
        shutil.rmtree(place / "release")
        release(seed=2).save(place / "release")
        (place / "seal").write_text(forged)
        assert keep_both(store) == known
    assert len(store.warnings) == 3
    assert all("does not fit its seal" in each for each in store.warnings)


def test_what_was_sealed_for_another_plan_or_with_another_key_is_not_served(store):
    first = store.release(SHRUNK, release)
    (place,) = store.folder.iterdir()
    stranger = Store(store.folder, key=seal_key(bytes(32)))
    assert told(stranger.release(SHRUNK, lambda: release(2))) != told(first)
    (theirs,) = set(store.folder.iterdir()) - {place}
    shutil.rmtree(place)
    theirs.rename(place)
    assert told(store.release(SHRUNK, release)) == told(first)
    assert "from elsewhere" in store.warnings[0]


@pytest.mark.parametrize("put", ["file", "link"])
def test_what_is_no_folder_is_made_anew(store, tmp_path, put):
    known = keep_both(store)
    for place in list(store.folder.iterdir()):
        shutil.move(place, tmp_path / place.name)
        if put == "file":
            place.write_text("nothing")
        else:
            place.symlink_to(tmp_path / "nowhere")
    assert keep_both(store) == known
    assert len(store.warnings) == 2


def test_workers_that_find_the_same_damage_at_once_all_serve_one_and_warn_once(store):
    known = keep_both(store)
    for path in files(store.folder):
        path.write_bytes(b"")
    together = Barrier(4)
    workers = [Store(store.folder) for _ in range(4)]

    def make(seed):
        together.wait(5)
        return release(seed)

    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda one, seed: told(one.release(SHRUNK, lambda: make(seed))), workers, [1, 2, 3, 4])
        )
    assert all(each == found[0] for each in found)
    assert sum(len(one.warnings) for one in workers) == 1
    assert not [path for path in store.folder.iterdir() if path.name.startswith(".")]
    assert store.plan("all tables", plan).digest() == known[0]


def test_what_another_worker_has_made_anew_in_the_meantime_is_left_alone(store):
    store.release(SHRUNK, release)
    for path in files(store.folder):
        path.write_bytes(b"")
    faster = Store(store.folder)

    def make():
        faster.release(SHRUNK, lambda: release(2))
        return release(3)

    assert told(store.release(SHRUNK, make)) == told(faster.release(SHRUNK, not_again))
    assert (len(store.warnings), len(faster.warnings)) == (0, 1)


def test_a_damaged_plan_that_cannot_be_made_anew_is_left_where_it_is(store):
    def refuse():
        raise ServiceError("version '2026' was opened with another plan. Nothing was spent.")

    store.plan("all tables", plan)
    (damaged,) = store.folder.glob("plan-*/plan.json")
    damaged.write_text("{}")
    with pytest.raises(ServiceError, match=r"does not fit its seal.*cannot be made again.*another plan"):
        store.plan("all tables", refuse)
    assert damaged.read_text() == "{}"
    assert store.warnings == []


def test_what_is_damaged_again_and_again_is_refused(store, monkeypatch):
    monkeypatch.setattr(
        artifacts, "plan_from_description", lambda described: plan_that_fails(json.dumps(described))
    )
    with pytest.raises(ServiceError, match="damaged again"):
        store.plan("all tables", plan)


def plan_that_fails(described):
    raise ValueError(described)


def test_what_may_not_be_read_is_refused_and_left_alone(store, monkeypatch):
    def closed(path, **_):
        raise PermissionError(13, "Permission denied")

    store.plan("all tables", plan)
    monkeypatch.setattr(artifacts, "read_plain_file", closed)
    with pytest.raises(ServiceError, match="Permission denied"):
        store.plan("all tables", plan)
    monkeypatch.undo()
    assert store.plan("all tables", not_again) == plan()


def test_nothing_half_made_is_kept(store):
    def fail():
        raise ReleaseError("the disk is full")

    for keep in (lambda: store.plan("x", fail), lambda: store.release(SHRUNK, fail)):
        with pytest.raises(ReleaseError, match="full"):
            keep()
    assert not store.folder.exists()
