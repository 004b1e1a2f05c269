"""What is kept: the first plan and the first tables, whole, for every later start."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import ReleaseError, ServiceError
from tabulary.planning import SimulatedErrors
from tabulary.workflows.answering.kept import kept_plan, kept_release

DOMAIN = tb.Domain({"a": "xyz", "b": "xy"})


def plan(epsilon=1, **options):
    return tb.plan(DOMAIN, "[][a][ab]", privacy=tb.PureDP(epsilon), mechanism="residual", **options)


SHRUNK = plan(reconstruct="shrink")


def release(seed=1):
    """A release that nobody measured, its total included."""
    counts = np.random.default_rng(seed).random(DOMAIN.shape) * 1e6
    tables = {(): counts.sum(), ("a",): counts.sum(axis=1), ("a", "b"): counts}
    roots = {m: np.asarray(np.sqrt(t)) for m, t in tables.items()}
    errors = {m: SimulatedErrors(root, np.asarray(2 * root)) for m, root in roots.items()}
    return tb.Release.from_counts(SHRUNK, tables, errors=errors)


def told(made):
    return [array.tobytes() for t in made for array in (t.counts, t.standard_errors, t.half_widths(0.95))]


def test_the_first_plan_is_kept_and_another_one_is_not_made(tmp_path):
    first = kept_plan(tmp_path / "kept", "x", plan)
    assert first == plan()
    assert kept_plan(tmp_path / "kept", "x", lambda: pytest.fail("made again")) == first
    assert kept_plan(tmp_path / "kept", "y", lambda: plan(2)) == plan(2)


def test_the_first_tables_are_kept_and_read_back_the_same_with_and_without_a_place(tmp_path):
    first = kept_release(tmp_path, "x", SHRUNK, release)
    assert told(kept_release(tmp_path, "x", SHRUNK, lambda: release(2))) == told(first)
    assert told(kept_release(None, "x", SHRUNK, release)) == told(first)
    assert told(first)[0] == release()[()].counts.tobytes()


@pytest.mark.parametrize("keep", [kept_plan, kept_release])
def test_processes_that_make_it_at_once_all_serve_one(tmp_path, keep):
    together = Barrier(4)

    def make(seed):
        together.wait(5)
        return plan(seed) if keep is kept_plan else release(seed)

    def ask(seed):
        if keep is kept_plan:
            return keep(tmp_path, "x", lambda: make(seed)).digest()
        return told(keep(tmp_path, "x", SHRUNK, lambda: make(seed)))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, [1, 2, 3, 4]))
    assert all(each == found[0] for each in found)
    assert [path.name for path in tmp_path.iterdir()] == ["plan-x" if keep is kept_plan else "tables-x"]


def test_what_is_damaged_or_belongs_to_another_plan_is_refused(tmp_path):
    kept_plan(tmp_path, "x", plan)
    (tmp_path / "plan-x" / "plan.json").write_text("{}")
    with pytest.raises(ServiceError, match="Remove that folder"):
        kept_plan(tmp_path, "x", plan)
    (tmp_path / "plan-x" / "plan.json").write_bytes(b"\xff")
    with pytest.raises(ServiceError, match="Remove that folder"):
        kept_plan(tmp_path, "x", plan)
    kept_release(tmp_path, "x", SHRUNK, release)
    with pytest.raises(ServiceError, match="Remove that folder"):
        kept_release(tmp_path, "x", plan(2, reconstruct="shrink"), release)
    table = tmp_path / "tables-x" / "tables" / "a.csv"
    table.write_bytes(table.read_bytes().replace(b"1", b"2"))
    with pytest.raises(ServiceError, match="Remove that folder"):
        kept_release(tmp_path, "x", SHRUNK, release)
    shutil.rmtree(tmp_path / "tables-x")
    assert told(kept_release(tmp_path, "x", SHRUNK, release))


def test_nothing_half_made_is_kept(tmp_path):
    def fail():
        raise ReleaseError("the disk is full")

    for keep in (lambda: kept_plan(tmp_path, "x", fail), lambda: kept_release(tmp_path, "x", SHRUNK, fail)):
        with pytest.raises(ReleaseError, match="full"):
            keep()
    assert not list(tmp_path.iterdir())
