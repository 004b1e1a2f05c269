"""The covering margins, the store and the compiled counters."""

import threading
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.confidential import counting, store
from tabulary.confidential.counting import count
from tabulary.confidential.cover import SUPER_CELLS, cover
from tabulary.confidential.store import CHUNK_ROWS, Codes, Store
from tabulary.core.domain import Domain
from tabulary.errors import UnreadableSource

LEVELS = st.lists(st.integers(1, 9), min_size=1, max_size=7)


@settings(deadline=None)
@given(LEVELS, st.data())
def test_every_wanted_margin_is_held_once_by_one_that_fits(levels: list[int], data: st.DataObject) -> None:
    domain = Domain({f"a{i}": range(n) for i, n in enumerate(levels)})
    margins = [m for k in range(4) for m in combinations(domain.attributes, k)]
    wanted = data.draw(st.lists(st.sampled_from(margins), min_size=1, unique=True))
    cap = data.draw(st.integers(1, 500))
    found = cover(domain, wanted, cells=cap)
    assert sorted(m for larger in found for m in larger.holds) == sorted(wanted)
    for larger in found:
        assert all(set(m) <= set(larger.margin) for m in larger.holds)
        assert domain.cells(larger.margin) <= cap or larger.margin in wanted


def test_many_small_margins_need_few_covering_ones() -> None:
    domain = Domain({f"a{i}": range(2 + i % 9) for i in range(20)})
    pairs = list(combinations(domain.attributes, 2))
    assert len(cover(domain, pairs)) < len(pairs) / 8


def test_a_margin_above_the_cap_holds_the_wanted_ones_within_it() -> None:
    domain = Domain({"a": range(200), "b": range(200), "c": range(3)})
    (found,) = cover(domain, [("a", "b"), ("a",), ()])
    assert domain.cells(("a", "b")) > SUPER_CELLS
    assert found.margin == ("a", "b")
    assert set(found.holds) == {("a", "b"), ("a",), ()}


def filled(levels: list[int], rows: int, *, memory_bytes: int) -> tuple[Domain, Store, list[np.ndarray]]:
    generator = np.random.default_rng(8)
    columns = [generator.integers(0, n, rows) for n in levels]
    kept = Store(levels, memory_bytes=memory_bytes)
    # In pieces that never end where a chunk does.
    for start in range(0, rows, 50_021):
        kept.append([c[start : start + 50_021].astype(np.uint32) for c in columns])
    kept.finish()
    return Domain({f"a{i}": range(n) for i, n in enumerate(levels)}), kept, columns


@pytest.mark.parametrize("memory_bytes", [1 << 30, 0, 1_000_000], ids=["memory", "file", "memory then file"])
@pytest.mark.parametrize("rows", [1, CHUNK_ROWS, 2 * CHUNK_ROWS + 1, 200_003])
def test_records_in_memory_and_in_a_file_give_the_same_counts(memory_bytes: int, rows: int) -> None:
    # One, two and four bytes a code, in a margin that mixes them and lies above the cap.
    levels = [3, 300, 2, 70_000, 5]
    domain, kept, columns = filled(levels, rows, memory_bytes=memory_bytes)
    wanted = [(), ("a0",), ("a0", "a1", "a2"), ("a0", "a3"), ("a1", "a4"), ("a2", "a4")]
    counted = count(kept, domain, wanted)
    for margin in wanted:
        shape = domain.shape_of(margin)
        index = np.zeros(rows, dtype=np.int64)
        for attribute in margin:
            index = index * len(domain.levels_of(attribute)) + columns[domain.position(attribute)]
        assert np.array_equal(
            counted[margin], np.bincount(index, minlength=np.prod(shape, dtype=int)).reshape(shape)
        )
    assert kept.on_disk == (memory_bytes == 0 or (memory_bytes == 1_000_000 and rows > CHUNK_ROWS))
    kept.close()


def test_counters_are_emptied_before_they_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, kept, columns = filled([3, 2], 300_000, memory_bytes=1 << 30)
    monkeypatch.setattr(counting, "ROWS_PER_EMPTYING", 2 * CHUNK_ROWS)
    counted = count(kept, domain, [("a0",)])
    assert np.array_equal(counted["a0",], np.bincount(columns[0]))


def test_a_full_disk_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Store([3], memory_bytes=0)

    class Full:
        def close(self) -> None: ...
        def flush(self) -> None:
            raise OSError("no space left")

    monkeypatch.setattr(store.tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(UnreadableSource, match="do not fit in the temporary folder"):
        kept.append([np.zeros(CHUNK_ROWS, np.uint8)])


def test_progress_is_told_while_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, kept, _ = filled([3, 2], 3 * CHUNK_ROWS, memory_bytes=1 << 30)
    monkeypatch.setattr(counting, "SECONDS_BETWEEN_REPORTS", 0.001)
    told: list[int] = []
    told_twice = threading.Event()
    read = kept.read

    def read_slowly() -> Iterator[tuple[int, tuple[Codes, Codes, Codes]]]:
        for chunk in read():
            yield chunk
            assert told_twice.wait(60), "nothing was told while the threads were counting"

    def tell(what: str, done: int, total: int) -> None:
        told.append(done)
        if len(told) == 2:
            told_twice.set()

    monkeypatch.setattr(kept, "read", read_slowly)
    count(kept, domain, [("a0",), ("a1",)], progress=tell, super_cells=1)
    assert told == sorted(told)
    assert told[0] < 100
    assert told[-1] == 100
