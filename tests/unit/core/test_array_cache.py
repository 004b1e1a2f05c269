"""Arrays that are kept while there is room: the bound holds, the oldest goes, and each is made once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.array_cache import BoundedCache


def _array(words):
    return np.zeros(words, dtype=np.int64)


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 5), st.booleans())))
def test_what_is_held_never_exceeds_the_bound_and_every_answer_is_right(room, asked):
    cache = BoundedCache(8 * room)
    for words, put in asked:
        if put:
            cache.put(words, _array(words))
        assert cache.get(words, lambda n=words: _array(n)).size == words
        assert sum(array.nbytes for array in cache.held().values()) <= 8 * room


def test_the_array_that_was_asked_for_longest_ago_goes_first():
    cache = BoundedCache(16)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: _array(1))
    assert list(cache.held()) == ["a", "c"]


def test_an_array_above_the_bound_is_handed_out_and_pushes_nothing_out():
    cache = BoundedCache(16)
    cache.put("small", _array(1))
    assert cache.get("large", lambda: _array(3)).size == 3
    assert list(cache.held()) == ["small"]


def test_an_array_that_is_held_is_not_made_again():
    cache = BoundedCache(16)
    first = cache.get("a", lambda: np.array([7]))
    assert cache.get("a", lambda: pytest.fail("made again")) is first


def test_nobody_can_change_what_is_held():
    cache = BoundedCache(16)
    for found in (cache.get("a", lambda: np.array([7])), cache.get("b", lambda: np.int64(7))):
        with pytest.raises(ValueError, match="read-only"):
            found[...] = 8


def test_threads_that_ask_together_get_one_array_that_one_of_them_made():
    cache, together, made = BoundedCache(1 << 10), Barrier(8), []

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
    cache, begun, waiting = BoundedCache(1 << 10), Event(), Event()

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
    cache = BoundedCache(64)
    cache.put("a", np.array([4711]))
    assert repr(cache) == "<BoundedCache of 1 arrays, 8 of 64 bytes>"
    cache.clear()
    assert repr(cache) == "<BoundedCache of 0 arrays, 0 of 64 bytes>"
