"""Suppression beside noise on one table."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidPlan
from tabulary.noise import ExactSampler
from tabulary.studies.suppression import SUPPRESSION, against_noise
from tests.entropy import SeededEntropy

HAIR = tb.datasets.describe("hair-eye-gene")


def test_nothing_is_suppressed_and_nothing_distorted_where_noise_distorts_as_figure_4_shows():
    """Figure 4 has two of nine cells off by more than a quarter, with a root mean square error of about ten."""
    found = against_noise(HAIR, repetitions=10, sampler=ExactSampler(SeededEntropy(4)))
    exact, fourier, cells = found
    assert (exact.method, exact.suppressed, exact.released, exact.distorted.times) == (SUPPRESSION, 0, 9, 0)
    assert exact.root_mean_square == 0
    printed = np.array([[103, 20, 38], [33, 91, 1], [44, 42, 77]]) - HAIR.table.counts
    assert np.sqrt(np.mean(printed**2)) == pytest.approx(9.89, abs=0.01)
    assert 9 < fourier.root_mean_square < 18
    assert 0.2 < fourier.distorted.rate < 0.6
    # Noise on each count would have served this table far better than noise on its coefficients.
    assert cells.root_mean_square == pytest.approx(np.sqrt(2 * 4), rel=0.25)
    assert cells.distorted.rate < fourier.distorted.rate / 4


def test_the_last_perturbed_table_is_kept_to_be_looked_at():
    _, fourier = against_noise(
        HAIR, mechanisms=["fourier"], repetitions=1, sampler=ExactSampler(SeededEntropy(1))
    )
    assert fourier.table.shape == (3, 3)
    assert not np.array_equal(fourier.table.counts, HAIR.table.counts)


def test_data_without_people_or_without_a_repetition_are_refused():
    with pytest.raises(InvalidPlan, match="hair-eye-gene"):
        against_noise(tb.datasets.describe("rochdale"))
    with pytest.raises(InvalidPlan, match="repetitions"):
        against_noise(HAIR, repetitions=0)
