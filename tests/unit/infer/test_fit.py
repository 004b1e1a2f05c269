"""Goodness of fit of released counts: one count of a known total, and all cells of a classification."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable
from tabulary.infer import CorrelatedNoise, IndependentNoise, goodness_of_fit, noise_of
from tabulary.infer.binomial import OneCount
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.multinomial import ManyCounts
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Tabulated, Truncated
from tabulary.perturb import Custom, Laplace, MaxEntropy
from tabulary.planning import StatedErrors
from tests.entropy import SeededEntropy

LAWS = {
    "laplace": DiscreteLaplace(3),
    "truncated": Truncated(DiscreteLaplace(2), 5),
    "gaussian": DiscreteGaussian(9),
    "with gaps": Tabulated(-2, (3, 0, 1, 5, 0, 2)),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def one_draw(law, cells=1):
    return IndependentNoise(law, np.ones(cells, dtype=np.int64))


def likelihood(law, x, n, p):
    counts = np.arange(n + 1)
    return float(stats.binom.pmf(counts, n, p) @ law.pmf(x - counts))


@every_law
@pytest.mark.parametrize("x", [0, 3, 11, 20])
def test_the_statistic_of_one_count_is_the_ratio_of_the_paper(law, x):
    n, p0 = 20, 0.4
    shares = np.linspace(1e-9, 1 - 1e-9, 4_001)
    best = max(likelihood(law, x, n, p) for p in shares)
    found = goodness_of_fit(x, n, p0, law)
    assert found.statistic == pytest.approx(2 * math.log(best / likelihood(law, x, n, p0)), abs=1e-4)
    assert found.degrees_of_freedom == 1


@every_law
@pytest.mark.parametrize("p0", [0.2, 0.5])
def test_the_exact_p_value_is_the_probability_of_all_that_fits_no_better(law, p0):
    n = 15
    values = np.arange(-90, n + 91)
    single = OneCount(n, one_draw(law))
    chances, statistics = [], []
    for value in values.tolist():
        chance = likelihood(law, value, n, p0)
        chances.append(chance)
        statistics.append(single.statistic(value, p0) if chance > 0 else math.inf)
    for x in (0, 4, 9, 15):
        found = goodness_of_fit(x, n, p0, law, method="exact")
        no_better = np.array(statistics) >= found.statistic - 1e-9
        assert found.p_value == pytest.approx(float(np.array(chances)[no_better].sum()), abs=1e-9)
        assert found.method == "exact"


def test_of_one_exact_count_the_p_value_is_that_of_the_likelihood_ratio_test():
    n, p0, x = 30, 0.3, 14
    counts = np.arange(n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = stats.binom.logpmf(counts, n, counts / n) - stats.binom.logpmf(counts, n, p0)
    expected = stats.binom.pmf(counts, n, p0)[ratios >= ratios[x] - 1e-12].sum()
    found = goodness_of_fit(x, n, p0)
    assert found.statistic == pytest.approx(2 * ratios[x])
    assert found.p_value == pytest.approx(expected)


@settings(max_examples=25)
@given(st.integers(-5, 65), st.sampled_from([0.2, 0.5, 0.9]))
def test_p_values_of_one_count_are_probabilities(x, p0):
    found = goodness_of_fit(x, 60, p0, DiscreteLaplace(4))
    assert 0 <= found.p_value <= 1
    assert found.statistic >= 0


def test_exact_p_values_are_uniform_or_cautious():
    """P(p ≤ u) ≤ u for every u, which no approximation promises."""
    n, p0, law = 40, 0.3, Truncated(DiscreteLaplace(3), 9)
    values = range(-9, n + 10)
    chances = np.array([likelihood(law, x, n, p0) for x in values])
    p_values = np.array([goodness_of_fit(x, n, p0, law).p_value for x in values])
    for level in (0.01, 0.05, 0.1, 0.5):
        assert chances[p_values <= level].sum() <= level + 1e-9


def test_a_count_of_many_people_is_tested_exactly_too():
    found = goodness_of_fit(50_440, 10**5, 0.5, DiscreteLaplace(100))
    assert found.method == "exact"
    # The standard deviation of count and noise together is 212.
    assert 0.02 < found.p_value < 0.08


def test_a_tiny_p_value_keeps_its_digits():
    assert goodness_of_fit(60, 60, 0.5).p_value == pytest.approx(2.0**-59, rel=1e-9)


@given(st.integers(0, 600))
@settings(max_examples=10)
def test_how_far_laplace_noise_goes_beyond_the_total_says_nothing_of_the_share(distance):
    """There P(x | a) is geometric in x whatever a is, so all such values are equally surprising."""
    law = DiscreteLaplace(5)
    found, first = goodness_of_fit(10 + distance, 10, 0.5, law), goodness_of_fit(10, 10, 0.5, law)
    assert found.statistic == pytest.approx(first.statistic, abs=1e-7)
    assert found.p_value == pytest.approx(first.p_value, rel=1e-7)


def test_a_minimum_is_part_of_the_law():
    law = DiscreteLaplace(3)
    raised = IndependentNoise(law, np.array([1]), 0)
    plain = goodness_of_fit(0, 20, 0.05, law)
    found = goodness_of_fit(0, 20, 0.05, raised)
    assert found.p_value > plain.p_value * 0.5
    assert 0 < found.p_value <= 1


def test_a_law_that_depends_on_the_count_is_listed():
    law = MaxEntropy(2, bound=5, nonnegative=True)
    found = goodness_of_fit(9, 20, 0.4, law)
    assert found.method == "exact"
    assert 0 < found.p_value <= 1


# All cells.


def brute_likelihood(law, x, n, p):
    total, expected = 0.0, np.zeros(len(x))
    for counts in itertools.product(range(n + 1), repeat=len(x)):
        if sum(counts) == n:
            chance = float(stats.multinomial.pmf(counts, n, p)) * float(
                np.prod(law.pmf(np.array(x) - counts))
            )
            total += chance
            expected += chance * np.array(counts)
    return total, expected / total


@every_law
@pytest.mark.parametrize("p", [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05], [0.01, 0.01, 0.98]])
def test_the_likelihood_of_all_cells_is_the_sum_over_all_tables_with_the_total(law, p):
    x, n = [4, 1, 5], 9
    value, expected, _ = ManyCounts(np.array(x), n, one_draw(law, 3)).log_likelihood(np.array(p))
    total, means = brute_likelihood(law, x, n, p)
    assert value == pytest.approx(math.log(total), abs=1e-9)
    assert expected == pytest.approx(means, abs=1e-9)
    assert expected.sum() == pytest.approx(n)


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(3), Truncated(DiscreteLaplace(2), 5)], ids=["laplace", "truncated"]
)
def test_the_best_shares_are_those_of_a_general_optimiser(law):
    counts = ManyCounts(np.array([14, 2, 22, 9]), 45, one_draw(law, 4))

    def loss(theta):
        shares = np.exp(theta - theta.max())
        return -counts.log_likelihood(shares / shares.sum())[0]

    peer = optimize.minimize(
        loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 20_000}
    )
    assert counts.best() == pytest.approx(-peer.fun, abs=1e-6)


def test_of_exact_counts_it_is_the_classical_test():
    observed, shares = [52, 20, 28], [0.5, 0.25, 0.25]
    peer = stats.power_divergence(observed, 100 * np.array(shares), lambda_="log-likelihood")
    for n in (100, None):
        found = goodness_of_fit(observed, n, shares, method="chi-squared")
        assert found.statistic == pytest.approx(peer.statistic, abs=1e-7)
        assert found.p_value == pytest.approx(peer.pvalue, abs=1e-7)
        assert found.degrees_of_freedom == 2


def test_a_known_total_says_more_than_an_estimated_one():
    """Released counts that add up to far more than n: noise, if n is known; nothing, if it is not."""
    x, shares, law = [75, 45, 40], [0.5, 0.25, 0.25], DiscreteLaplace(10)
    known, unknown = goodness_of_fit(x, 100, shares, law), goodness_of_fit(x, None, shares, law)
    assert known.statistic != pytest.approx(unknown.statistic, abs=0.01)
    assert known.degrees_of_freedom == unknown.degrees_of_freedom == 2


def test_other_shares_are_found_out_behind_noise():
    assert goodness_of_fit([700, 150, 150], 1_000, ["1/2", "1/4", "1/4"], Laplace("1/10")).p_value < 1e-6
    assert goodness_of_fit([700, 150, 150], None, ["1/2", "1/4", "1/4"], Laplace("1/10")).p_value < 1e-6


def test_heavy_noise_is_judged_by_its_own_law_and_not_by_chi_squared():
    found = goodness_of_fit([130, 62, 10], 200, ["1/2", "1/4", "1/4"], DiscreteLaplace(15))
    assert found.p_value > upper_tail(found.statistic, 2)


# What is refused.


@pytest.mark.parametrize(
    ("x", "n", "p0", "reason"),
    [
        (5, None, 0.5, "only if the total is known"),
        (5, 0, 0.5, "the total of the counts must be a positive whole number"),
        (5, 10.5, 0.5, "the total of the counts must be a positive whole number"),
        (5, 10, 0, "strictly between 0 and 1"),
        (5, 10, 1, "strictly between 0 and 1"),
        (5, 10, "a half", "the share p0 must be .* not 'a half'"),
        (5, 10, math.nan, "the share p0 must be .* not nan"),
        (5.5, 10, 0.5, "these counts are not whole numbers"),
        ([5, 6], 11, 0.5, "the shares p0 must be a list of 2 numbers"),
        ([5, 6], 11, [0.5, 0.4], "add up to 0.9, not to 1"),
        ([5, 6], 11, [0.0, 1.0], "every share to be tested must be positive"),
        ([5, 6], 11, [0.2, 0.3, 0.5], "the shares p0 must be a list of 2 numbers"),
        ([5], 5, [1.0], "at least two cells"),
    ],
)
def test_what_is_no_count_total_or_share_is_refused(x, n, p0, reason):
    with pytest.raises(InvalidTable, match=reason):
        goodness_of_fit(x, n, p0, DiscreteLaplace(1))


def test_counts_that_the_noise_cannot_make_of_the_total_are_refused():
    law = Truncated(DiscreteLaplace(1), 3)
    with pytest.raises(InvalidTable, match="noise"):
        goodness_of_fit(14, 10, 0.5, law)
    with pytest.raises(InvalidTable, match="with the total n"):
        goodness_of_fit([20, 20], 10, [0.5, 0.5], law)


@pytest.mark.parametrize("n", [100, None])
def test_shared_noise_that_is_not_shared_gives_pearsons_statistic_of_large_counts(n):
    counts, shares = [48.0, 22.0, 30.0], [0.5, 0.25, 0.25]
    found = goodness_of_fit(counts, n, shares, CorrelatedNoise(1e-6 * np.eye(3), (3,)))
    pearson = sum((x - 100 * p) ** 2 / (100 * p) for x, p in zip(counts, shares, strict=True))
    assert found.statistic == pytest.approx(pearson, rel=1e-3)
    assert (found.degrees_of_freedom, found.method) == (2, "noise-aware")


def test_noise_on_the_total_alone_says_nothing_against_shares_of_a_known_total():
    # The same error in every cell, and shares that it leaves as they are.
    noise = CorrelatedNoise(np.full((4, 4), 400.0) + 1e-6 * np.eye(4), (4,))
    counts = 250.0 + 40 * np.ones(4)
    assert goodness_of_fit(counts, 1000, [0.25] * 4, noise).p_value > 0.99


def test_a_released_table_is_tested_by_its_unbiased_face():
    domain = tb.Domain({"a": range(4)})
    plan = tb.plan(domain, "[a]", privacy=tb.ZCDP("1/50"), mechanism="residual", reconstruct="none")
    counts = tb.Table(domain, [300, 200, 310, 190])
    linear = tb.release(counts, plan, sampler=ExactSampler(SeededEntropy(1)))["a",]
    published = tb.Table(domain, [250, 250, 250, 250])
    official = tb.ReleasedTable(published, StatedErrors(np.ones(4), np.ones(4)), linear)
    for n in (1000, None):
        found = goodness_of_fit(official, n, ["1/4"] * 4)
        assert found.rejects()
        assert found == goodness_of_fit(linear.counts, n, ["1/4"] * 4, noise_of(linear))


@pytest.mark.parametrize("mechanism", ["margins", "residual"])
@pytest.mark.parametrize("n", [1000, None])
def test_the_share_of_a_structural_zero_is_left_out(mechanism, n):
    domain = tb.Domain({"job": ["none", "paid", "own"]}, structural_zeros=[{"job": "none"}])
    plan = tb.plan(domain, "[job]", privacy=tb.ZCDP("1/50"), mechanism=mechanism, reconstruct="none")
    counts = tb.Table(domain, [0, 700, 300])
    table = tb.release(counts, plan, sampler=ExactSampler(SeededEntropy(1)))["job",]
    fits = goodness_of_fit(table, n, ["1/11", "7/11", "3/11"])
    assert fits.degrees_of_freedom == 1
    assert not fits.rejects()
    assert goodness_of_fit(table, n, ["1/3"] * 3).rejects()


def test_an_unknown_method_and_noise_of_other_counts_are_refused():
    with pytest.raises(InvalidArgument, match="not 'bayes'"):
        goodness_of_fit(5, 10, 0.5, method="bayes")
    with pytest.raises(InvalidArgument, match="a single count"):
        goodness_of_fit([5, 5], 10, [0.5, 0.5], method="exact")
    with pytest.raises(InvalidNoise, match="describes"):
        goodness_of_fit([5, 5], 10, [0.5, 0.5], CorrelatedNoise(np.eye(3), (3,)))
    with pytest.raises(InvalidArgument, match="one method"):
        goodness_of_fit([5, 5], 10, [0.5, 0.5], CorrelatedNoise(np.eye(2), (2,)), method="chi-squared")
    with pytest.raises(InvalidNoise, match="describes"):
        goodness_of_fit([5, 5], 10, [0.5, 0.5], one_draw(DiscreteLaplace(1), 3))


def test_a_custom_perturbation_is_a_noise():
    assert 0 < goodness_of_fit(4, 10, 0.5, Custom({-1: "1/4", 0: "1/2", 1: "1/4"})).p_value <= 1
