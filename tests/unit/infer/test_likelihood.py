"""The noisy Poisson likelihood against a plain sum, its derivatives against differences, its maxima against grids."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.infer.count_likelihoods import CountLikelihoods
from tabulary.infer.independence import two_way_design
from tabulary.infer.likelihood import NoisyCells, fit_log_linear
from tabulary.infer.table_noise import IndependentNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, Tabulated, Truncated
from tabulary.perturb import Custom, Hellinger, Laplace, MaxEntropy, Normal
from tests.entropy import SeededEntropy
from tests.unit.infer.brute_force import log_chances, moments

LAWS = {
    "laplace": (DiscreteLaplace(10), 1, None),
    "sum of laplace": (DiscreteLaplace(5), 3, None),
    "gaussian": (DiscreteGaussian(50), 1, None),
    "sum of wide gaussians": (DiscreteGaussian(50), 4, None),
    "sum of narrow gaussians": (DiscreteGaussian(1), 4, None),
    "rounded gaussian": (RoundedGaussian(9), 1, None),
    "sum of rounded gaussians": (RoundedGaussian(9), 3, None),
    "truncated laplace": (Truncated(DiscreteLaplace(10), 10), 1, None),
    "sum of truncated": (Truncated(DiscreteLaplace(10), 10), 3, None),
    "normal perturbation": (Normal(1, bound=8).noise, 1, None),
    "with gaps": (Tabulated(-2, (3, 0, 1, 5, 0, 2)), 1, None),
    "laplace from 0": (DiscreteLaplace(10), 1, 0),
    "truncated from 2": (Truncated(DiscreteLaplace(10), 10), 1, 2),
    "gaussian from 2": (DiscreteGaussian(50), 1, 2),
    "by count": (MaxEntropy(2, bound=5, nonnegative=True), 1, None),
    "by count from 1": (Custom([{0: 1}, {-1: "1/4", 0: "1/2", 1: "1/4"}]), 1, 1),
}
every_law = pytest.mark.parametrize(("law", "terms", "minimum"), LAWS.values(), ids=LAWS)


def cells_of(law, terms, minimum, values):
    return NoisyCells(values, IndependentNoise(law, np.full(len(values), terms), minimum))


@every_law
def test_one_pass_gives_the_likelihood_and_both_moments(law, terms, minimum):
    met = 0
    for x in (-4, 0, 1, 2, 17, 60):
        if not np.isfinite(log_chances(law, terms, x, minimum)).any() or (
            minimum is not None and x < minimum
        ):
            continue
        for mean in (0.3, 4.0, 30.0, 80.0):
            exact = moments(law, terms, x, mean, minimum)
            if not math.isfinite(exact[0]):
                continue
            found = cells_of(law, terms, minimum, [x]).evaluate(np.log([mean]))
            assert [float(part[0]) for part in found] == pytest.approx(exact, rel=1e-9, abs=1e-9)
            met += 1
    assert met >= 8


@every_law
def test_the_chances_of_all_counts_are_those_of_the_law(law, terms, minimum):
    counts = np.arange(200)
    noise = IndependentNoise(law, np.array([terms]), minimum)
    for x in (3, 17):
        found = CountLikelihoods(noise).log_chances(x, terms, counts)
        exact = log_chances(law, terms, x, minimum)[:200]
        seen = exact > -600
        assert found[seen] == pytest.approx(exact[seen], abs=1e-6)


@pytest.mark.parametrize("square", [5_000, 10**6])
def test_a_wide_rounded_gaussian_is_a_gaussian_with_a_twelfth_more_variance(square):
    law = RoundedGaussian(square)
    counts = np.arange(0, int(8 * square**0.5), int(square**0.5) // 3)
    found = CountLikelihoods(IndependentNoise(law, np.array([1]))).log_chances(0, 1, counts)
    assert found == pytest.approx(np.log(law.pmf(counts)), abs=1e-6)


@every_law
@settings(max_examples=20)
@given(x=st.integers(2, 40), log_mean=st.floats(-2, 4))
def test_the_derivatives_in_the_log_mean_are_those_of_the_moments(law, terms, minimum, x, log_mean):
    cells = cells_of(law, terms, minimum, [x] * 3)
    step = 1e-4
    logarithms, expected, variances = cells.evaluate([log_mean - step, log_mean, log_mean + step])
    if not np.isfinite(logarithms).all():
        return
    mean = math.exp(log_mean)
    slope = (logarithms[2] - logarithms[0]) / (2 * step)
    curve = (logarithms[2] - 2 * logarithms[1] + logarithms[0]) / step**2
    assert expected[1] - mean == pytest.approx(slope, rel=1e-5, abs=1e-5)
    assert variances[1] - mean == pytest.approx(curve, rel=1e-3, abs=1e-3)


@every_law
def test_the_best_mean_of_a_cell_is_better_than_every_mean_of_a_grid(law, terms, minimum):
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 200, 3_000)])
    with np.errstate(divide="ignore"):
        log_grid = np.log(grid)
    for x in (2, 3, 17, 60):
        cells = cells_of(law, terms, minimum, [x])
        means, best = cells.saturated()
        values = cells_of(law, terms, minimum, [x] * grid.size).evaluate(log_grid)[0]
        assert best[0] >= values.max() - 1e-10
        assert cells.evaluate(np.log(np.maximum(means, 1e-300)))[0] == pytest.approx(best, abs=1e-9)


@given(st.integers(-80, 0))
def test_a_value_that_is_not_positive_is_best_explained_by_nobody(x):
    means, best = cells_of(DiscreteLaplace(10), 1, None, [x]).saturated()
    assert means[0] == 0
    assert best[0] == pytest.approx(math.log(float(DiscreteLaplace(10).pmf(x))))


def test_no_tail_is_cut_however_badly_a_mean_fits():
    """At these distances the probabilities themselves are no floats."""
    scale, far = 10, 30_000
    cells = cells_of(DiscreteLaplace(scale), 1, None, [far])
    value, expected, variance = (float(part[0]) for part in cells.evaluate(np.log([5.0])))
    # Tilted by the slope of the law the counts are Poisson again, far from where x lies.
    tilt = math.exp(1 / scale)
    assert expected == pytest.approx(5 * tilt, rel=1e-9)
    assert variance == pytest.approx(5 * tilt, rel=1e-9)
    assert value == pytest.approx(math.log(math.tanh(0.5 / scale)) - far / scale + 5 * (tilt - 1), rel=1e-12)
    for law, terms in ((DiscreteGaussian(100), 1), (DiscreteLaplace(10), 4), (RoundedGaussian(100), 2)):
        parts = cells_of(law, terms, None, [far, -far]).evaluate(np.log([5.0, 5.0]))
        assert all(np.isfinite(part).all() for part in parts)


def test_large_counts_keep_their_digits():
    """Of exact counts the best likelihood is that of the mode of a Poisson law, by Stirling's formula."""
    n = 10**12
    best = NoisyCells([n]).saturated()[1][0]
    assert best == pytest.approx(-math.log(2 * math.pi * n) / 2 - 1 / (12 * n), rel=1e-14)


def test_hellinger_perturbation_has_a_likelihood_too():
    law = Hellinger(4)
    value, expected, _ = (float(part[0]) for part in cells_of(law, 1, None, [9]).evaluate(np.log([6.0])))
    exact = moments(law, 1, 9, 6.0)
    assert value == pytest.approx(exact[0], abs=1e-9)
    assert expected == pytest.approx(exact[1], rel=1e-9)


def test_values_that_the_noise_cannot_make_are_refused():
    with pytest.raises(InvalidTable, match="noise"):
        cells_of(Truncated(DiscreteLaplace(1), 3), 1, None, [-4])
    with pytest.raises(InvalidTable, match="minimum"):
        cells_of(DiscreteLaplace(1), 1, 0, [-1])
    with pytest.raises(InvalidTable, match="negative"):
        NoisyCells([-1])
    with pytest.raises(InvalidTable, match="whole"):
        NoisyCells([0.5])
    with pytest.raises(InvalidNoise, match="cells"):
        NoisyCells([1, 2], IndependentNoise(DiscreteLaplace(1), np.array([1])))


def test_sums_of_draws_that_are_too_wide_to_list_are_refused():
    with pytest.raises(InvalidNoise, match="wide"):
        cells_of(DiscreteLaplace(10**6), 2, None, [5])
    with pytest.raises(InvalidNoise, match="too many values"):
        cells_of(Truncated(DiscreteLaplace(10), 30_000), 9, None, [5])


def test_cells_of_several_tables_keep_their_own_laws():
    parts = [
        cells_of(Truncated(DiscreteLaplace(10), 10), 1, None, [5, 30]),
        cells_of(DiscreteLaplace(5), 3, None, [7]),
        NoisyCells([4]),
    ]
    together = NoisyCells.joined(parts)
    log_means = np.log([6.0, 20.0, 9.0, 3.0])
    apart = np.concatenate(
        [p.evaluate(m)[0] for p, m in zip(parts, np.split(log_means, [2, 3]), strict=True)]
    )
    assert together.evaluate(log_means)[0] == pytest.approx(apart)
    chosen = np.array([False, True, True, False])
    assert together.at(chosen).evaluate(log_means[chosen])[0] == pytest.approx(apart[chosen])
    assert together.at(chosen).saturated()[0] == pytest.approx(together.saturated()[0][chosen])


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(10), DiscreteGaussian(100), Truncated(DiscreteLaplace(10), 10)],
    ids=lambda a: type(a).__name__,
)
def test_the_fit_is_the_optimum_of_a_general_optimiser(law):
    shape = (4, 3)
    generator = np.random.default_rng(1)
    means = np.exp(3.5 + generator.uniform(-0.5, 0.5, (4, 1)) + generator.uniform(-0.5, 0.5, 3))
    counts = generator.poisson(means) + law.sample(shape, SeededEntropy(3))
    cells = cells_of(law, 1, None, counts.reshape(-1))
    design = two_way_design(shape)
    fit = fit_log_linear(cells, design)
    reduced = np.delete(design, 0, axis=1)
    start = np.linalg.lstsq(reduced, fit.log_means + 0.1 * generator.standard_normal(12), rcond=None)[0]
    peer = optimize.minimize(
        lambda theta: -cells.log_likelihood(reduced @ theta), start, method="BFGS", options={"gtol": 1e-7}
    )
    assert fit.log_likelihood == pytest.approx(-peer.fun, abs=1e-6)
    assert fit.rank == 6


def test_exact_counts_are_fitted_as_by_their_margins():
    counts = np.array([[10, 20], [30, 40], [7, 1]])
    fit = fit_log_linear(NoisyCells(counts.reshape(-1)), two_way_design((3, 2)))
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    assert fit.means.reshape(3, 2) == pytest.approx(expected, rel=1e-6)


def test_a_row_that_holds_nobody_goes_to_zero_and_not_to_an_error():
    counts = np.array([[60, 45, 52], [-30, -12, -41], [40, 55, 47]])
    fit = fit_log_linear(cells_of(DiscreteLaplace(10), 1, None, counts.reshape(-1)), two_way_design((3, 3)))
    assert fit.means.reshape(3, 3)[1] == pytest.approx(0, abs=1e-6)
    assert np.isfinite(fit.log_likelihood)


@settings(max_examples=40)
@given(st.lists(st.integers(-60, 60), min_size=9, max_size=9))
def test_noise_that_drowns_the_counts_still_has_a_fit(values):
    cells = cells_of(DiscreteLaplace(15), 1, None, values)
    fit = fit_log_linear(cells, two_way_design((3, 3)))
    assert fit.log_likelihood <= cells.saturated()[1].sum() + 1e-9


def test_an_offset_fixes_shares_and_leaves_the_total():
    fit = fit_log_linear(NoisyCells([30, 80, 90]), np.ones((3, 1)), offset=np.log([0.2, 0.3, 0.5]))
    assert fit.means == pytest.approx([40, 60, 100])
    assert fit.rank == 1


def test_a_start_elsewhere_leads_to_the_same_fit():
    cells = cells_of(DiscreteLaplace(3), 1, None, [40, 55, 61, 30])
    design = two_way_design((2, 2))
    fits = [fit_log_linear(cells, design, start=start) for start in (None, np.full(4, 1.0), np.full(4, 6.0))]
    assert [fit.log_likelihood for fit in fits] == pytest.approx([fits[0].log_likelihood] * 3, abs=1e-8)


def test_a_design_that_does_not_fit_its_cells_is_refused():
    with pytest.raises(InvalidTable, match="row for each"):
        fit_log_linear(NoisyCells([1, 2]), np.ones((3, 1)))


def test_perturbations_are_read_as_their_noise():
    assert cells_of(Laplace(0.5).noise, 1, None, [3]).log_likelihood([1.0]) == pytest.approx(
        cells_of(DiscreteLaplace(2), 1, None, [3]).log_likelihood([1.0])
    )
