"""What is kept while there is room: one limit for all, the oldest goes, and each value is made once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.cache import ENTRY_BYTES, ArrayCache, Cache, CacheSection


def _array(words):
    return np.zeros(words, dtype=np.int64)


def arrays_in(*sizes):
    """Return a section of a cache that has room for arrays of these sizes."""
    return ArrayCache(Cache(sum(8 * words + ENTRY_BYTES for words in sizes)))


@given(
    st.integers(0, 4000),
    st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(0, 9), st.booleans()), max_size=40),
)
def test_what_all_owners_hold_never_exceeds_the_limit_and_every_answer_is_its_owners(room, asked):
    cache = Cache(room)
    owners = [ArrayCache(cache), ArrayCache(cache), CacheSection(cache, bytes_of=len)]

    def value(owner, words):
        return b"x" * words if owner == 2 else np.full(words, owner)

    for owner, words, put in asked:
        if put:
            owners[owner].put(words, value(owner, words))
        found = owners[owner].get(words, lambda owner=owner, n=words: value(owner, n))
        assert len(found) == words
        assert found == b"x" * words if owner == 2 else (found == owner).all()
        held = [len(b) for b in owners[2].held().values()]
        held += [array.nbytes for arrays in owners[:2] for array in arrays.held().values()]
        assert sum(held) + ENTRY_BYTES * len(held) == cache.held_bytes <= room
    for owner in owners:
        owner.clear()
    assert cache.held_bytes == 0


def test_whoever_fills_the_cache_drops_what_another_owner_used_longest_ago():
    cache = Cache(2 * ENTRY_BYTES)
    first, second = (CacheSection(cache, bytes_of=len) for _ in range(2))
    first.put("a", b"")
    second.put("a", b"")
    assert first.find("a") == b""
    second.put("b", b"")
    assert (list(first.held()), list(second.held())) == (["a"], ["b"])


def test_the_array_that_was_asked_for_longest_ago_goes_first():
    cache = arrays_in(1, 1)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: _array(1))
    assert list(cache.held()) == ["a", "c"]


def test_an_array_above_the_bound_is_handed_out_and_pushes_nothing_out():
    cache = arrays_in(2)
    cache.put("small", _array(1))
    assert cache.get("large", lambda: _array(3)).size == 3
    assert list(cache.held()) == ["small"]


def test_an_array_that_is_held_is_not_made_again():
    cache = arrays_in(2)
    first = cache.get("a", lambda: np.array([7]))
    assert cache.get("a", lambda: pytest.fail("made again")) is first


def test_nobody_can_change_what_is_held():
    cache = arrays_in(1, 1)
    for found in (cache.get("a", lambda: np.array([7])), cache.get("b", lambda: np.int64(7))):
        with pytest.raises(ValueError, match="read-only"):
            found[...] = 8


def test_threads_that_ask_together_get_one_array_that_one_of_them_made():
    cache, together, made = arrays_in(100), Barrier(8), []

    def make():
        made.append(1)
        started.wait(0.05)
        return _array(4)

    def ask():
        together.wait()
        return cache.get("a", make)

    started = Event()
    with ThreadPoolExecutor(8) as pool:
        found = [each.result() for each in [pool.submit(ask) for _ in range(8)]]
    assert len(made) == 1
    assert all(array is found[0] for array in found)


def test_all_who_wait_hear_of_a_failure_and_the_next_one_tries_again():
    cache, begun, waiting = arrays_in(100), Event(), Event()

    def fail():
        begun.set()
        waiting.wait(5)
        raise OSError("no room")

    with ThreadPoolExecutor(2) as pool:
        maker = pool.submit(cache.get, "a", fail)
        begun.wait(5)
        other = pool.submit(cache.get, "a", fail)
        waiting.set()
        for each in (maker, other):
            with pytest.raises(OSError, match="no room"):
                each.result()
    assert cache.get("a", lambda: _array(2)).size == 2


def test_it_prints_how_much_it_holds_and_forgets_when_told():
    cache = Cache(1000)
    arrays = ArrayCache(cache)
    arrays.put("a", np.array([4711]))
    assert repr(cache) == "<Cache of 1 entries, 520 of 1,000 bytes>"
    assert repr(arrays) == "<ArrayCache of 1 entries>"
    arrays.clear()
    assert repr(cache) == "<Cache of 0 entries, 0 of 1,000 bytes>"
