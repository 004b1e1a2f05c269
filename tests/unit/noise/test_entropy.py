from typing import Any

import numpy as np
import pytest

from tabulary.errors import InvalidNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, SystemEntropy
from tests.entropy import ScriptedEntropy, SeededEntropy


def test_the_system_never_repeats_itself():
    words = SystemEntropy().words(10_000)
    assert words.dtype == np.uint64
    assert np.unique(words).size == words.size


def test_a_seed_replays_the_same_words_and_goes_on():
    first, second = SeededEntropy(7), SeededEntropy(7)
    assert first.words(5).tolist() == second.words(5).tolist()
    assert first.words(5).tolist() == second.words(5).tolist()
    assert SeededEntropy(7).words(5).tolist() != SeededEntropy(8).words(5).tolist()


def test_a_script_fails_when_it_runs_out():
    with pytest.raises(AssertionError, match="asked for 2 words"):
        ScriptedEntropy([1]).words(2)


class StubbornEntropy:
    """Always gives the same array, whatever is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def words(self, count: int) -> Any:
        return self.answer


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(5),
        DiscreteGaussian(5),
        DiscreteLaplace(10**6),
        RoundedGaussian(5),
        RoundedGaussian(10**6),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "answer",
    [np.zeros(1, dtype=np.uint64), np.zeros(5, dtype=np.uint64), np.zeros(4, dtype=np.int64)],
    ids=["too few", "too many", "wrong type"],
)
def test_entropy_of_the_wrong_amount_or_type_is_refused(noise, answer):
    with pytest.raises(InvalidNoise, match="4 words"):
        noise.sample(4, StubbornEntropy(answer))
