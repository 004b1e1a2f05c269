import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tabulary.confidential.engines.spark.packing import Packing
from tabulary.confidential.store import code_type

some_levels = st.lists(st.integers(1, 100_000) | st.integers(1, 20), min_size=1, max_size=60)


@given(some_levels, st.integers(0, 2**32))
def test_what_is_packed_is_what_is_unpacked(levels, seed):
    packing = Packing.of(levels)
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, n, 50, endpoint=True) for n in levels]
    words = [np.zeros(50, dtype=np.int64) for _ in range(packing.count)]
    for column, word, shift in zip(codes, packing.words, packing.shifts, strict=True):
        words[word] |= column << shift
    found = [np.zeros(50, dtype=code_type(n)) for n in levels]
    packing.unpack(words, found)
    for column, unpacked in zip(codes, found, strict=True):
        assert np.array_equal(unpacked, column)


@given(some_levels)
def test_no_word_is_negative_and_none_is_empty(levels):
    packing = Packing.of(levels)
    most = [0] * packing.count
    for word, shift, mask in zip(packing.words, packing.shifts, packing.masks, strict=True):
        assert most[word] & (mask << shift) == 0
        most[word] |= mask << shift
    assert all(0 < filled < 2**63 for filled in most)


def test_twenty_small_columns_take_two_words():
    assert Packing.of([2, 3, 4, 5, 6, 7, 8, 10, 12, 20, 2, 3, 4, 5, 6, 8, 9, 2, 15, 18]).count == 2
