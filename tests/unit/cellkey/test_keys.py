"""Record keys: fresh ones, and those that repeat beyond chance."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabulary.cellkey import RecordKeys, record_keys
from tabulary.cellkey.keys import coinciding_pairs, is_beyond_chance
from tabulary.errors import InvalidArgument, InvalidNoise
from tests.entropy import ScriptedEntropy, SeededEntropy


@pytest.mark.parametrize("modulus", [2, 3, 256, 1000])
def test_fresh_keys_are_uniform(modulus):
    keys = record_keys(200_000, modulus, SeededEntropy(modulus))
    counts = np.bincount(keys, minlength=modulus)
    assert stats.chisquare(counts).pvalue > 1e-4
    # The same test notices keys of which one half of the range is a little likelier.
    leaning = np.where(keys % 50 == 0, keys // 2, keys)
    assert modulus < 4 or stats.chisquare(np.bincount(leaning, minlength=modulus)).pvalue < 1e-4


def test_a_word_beyond_the_last_whole_multiple_is_drawn_again():
    # 2**64 = 3 · 6148914691236517205 + 1: the last word alone would favour key 0.
    entropy = ScriptedEntropy([5, 2**64 - 1, 7])
    assert record_keys(2, 3, entropy).tolist() == [2, 1]
    assert entropy.left == 0


def test_the_widest_keys_fit():
    keys = record_keys(1000, 2**62, SeededEntropy(1))
    assert keys.min() >= 0
    assert keys.max() > 2**61
    assert len(set(keys.tolist())) == 1000


@pytest.mark.parametrize("count", [-1, 1.0, True, "3"])
def test_a_number_of_keys_to_draw_is_a_whole_number(count):
    with pytest.raises(InvalidArgument, match="the number of record keys must be a whole number"):
        record_keys(count, 256)


def test_record_keys_are_whole_with_a_modulus_or_decimal_with_digits():
    assert RecordKeys(modulus=4096).column == "record_key"
    assert RecordKeys(digits=10).modulus == 10**10
    for wrong in ({}, {"modulus": 256, "digits": 3}):
        with pytest.raises(InvalidArgument, match="a modulus, if they are whole numbers, or digits"):
            RecordKeys(**wrong)
    for digits in (0, 16, True):
        with pytest.raises(InvalidArgument, match="1 to 15 digits"):
            RecordKeys(digits=digits)
    with pytest.raises(InvalidNoise, match=r"from 2 to 2\*\*62"):
        RecordKeys(modulus=1)
    with pytest.raises(InvalidArgument, match="the column of record keys"):
        RecordKeys("", modulus=256)


@given(st.lists(st.integers(0, 5)))
def test_coinciding_pairs_are_the_pairs_that_coincide(keys):
    expected = sum(a == b for a, b in combinations(keys, 2))
    assert coinciding_pairs(np.array(keys, dtype=np.int64)) == expected


@pytest.mark.parametrize(
    ("records", "modulus"),
    [
        (2, 2),
        (10, 2),
        (1000, 2),
        (10, 10),
        (50, 256),
        (300, 256),
        (100_000, 256),
        (5_000, 4096),
        (5_000, 10**6),
    ],
)
def test_honest_keys_stay_well_within_what_chance_allows(records, modulus):
    drawn = record_keys(500 * records if records < 10_000 else 20 * records, modulus, SeededEntropy(records))
    for keys in drawn.reshape(-1, records):
        assert not is_beyond_chance(coinciding_pairs(keys), records, modulus)


@pytest.mark.parametrize(("records", "modulus"), [(4, 2), (5, 3), (6, 2), (7, 2), (4, 4)])
def test_the_bound_is_no_tighter_than_one_in_a_hundred_million(records, modulus):
    """Every outcome of a few records, weighed exactly: what is refused has less than that probability."""
    refused = 0
    for outcome in np.ndindex(*(modulus,) * records):
        refused += is_beyond_chance(coinciding_pairs(np.array(outcome)), records, modulus)
    assert refused / modulus**records < 1e-8


@pytest.mark.parametrize(
    ("records", "modulus", "doubled"),
    # How many records must stand there twice to be noticed: the more keys, the fewer.
    [(1_000_000, 256, 450_000), (1_000_000, 4096, 100_000), (100_000, 10**8, 100), (1_000_000, 2**62, 2)],
)
def test_doubled_records_are_noticed(records, modulus, doubled):
    keys = record_keys(records, modulus, SeededEntropy(doubled))
    assert not is_beyond_chance(coinciding_pairs(keys), records, modulus)
    keys[-doubled:] = keys[:doubled]
    assert is_beyond_chance(coinciding_pairs(keys), records, modulus)


@pytest.mark.parametrize("modulus", [256, 4096, 10**8, 2**62])
def test_a_constant_key_is_noticed_at_any_number_of_keys(modulus):
    assert is_beyond_chance(coinciding_pairs(np.full(30, 7)), 30, modulus)
