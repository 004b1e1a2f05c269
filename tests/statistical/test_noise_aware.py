"""Do the tests keep their level, and find what is there? ROSS Table 3 rerun, and noise that the paper does not try.

ROSS is Rinott, O'Keefe, Shlomo & Skinner (2018). Of its Table 3 all powers are shares of 1,000 tables, ours and
theirs, so two honest runs differ by about two points, and four are allowed. A level near 5 % is known to 0.7 points
from 1,000 tables and to 0.5 from 2,000, which is what a dozen bounds of 3 % and 7 % need to hold but for bad luck.
Every test that accepts the noise-aware answer also shows a twin that does not know the noise, or not its law, and is
found out.
"""

import numpy as np
import pytest

import tabulary as tb
from tabulary.infer import IndependentNoise, goodness_of_fit, independence
from tabulary.infer.bootstrap import bootstrap_test
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.hypothesis import LogLinearHypothesis
from tabulary.infer.independence import naive_test, two_way_design
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Truncated
from tests.entropy import SeededEntropy

LEVEL = 0.05
TABLES = 1_000
TABLES_FOR_A_LEVEL = 2_000

pytestmark = pytest.mark.audit


def independent_means(generator, shape, eta):
    rows, columns = (generator.uniform(-0.5, 0.5, side) for side in shape)
    return np.exp(eta + rows[:, np.newaxis] + columns)


def hypothesis_of(law, shape):
    noise = IndependentNoise(law, np.ones(shape, dtype=np.int64))
    return LogLinearHypothesis((noise,), two_way_design(shape), np.ones(int(np.prod(shape)), dtype=np.bool_))


def rejections(law, shape, means_of, seed, tables=TABLES):
    """Return how often each test rejects: on exact counts, naive, by χ² as in the paper, and as we do."""
    generator, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    hypothesis = hypothesis_of(law, shape)
    possible = np.ones(shape, dtype=np.bool_)
    found = np.zeros(4)
    for _ in range(tables):
        exact = generator.poisson(means_of(generator))
        released = exact + law.sample(shape, entropy)
        fit = hypothesis.fitted(released)
        found += np.array(
            [
                naive_test("exact", exact.astype(np.float64), possible).rejects(LEVEL),
                naive_test("naive", released.astype(np.float64), possible).rejects(LEVEL),
                upper_tail(fit.statistic, fit.degrees_of_freedom) <= LEVEL,
                hypothesis.test("aware", fit).rejects(LEVEL),
            ]
        )
    return found / tables


# ε, m: what Table 3 prints for independent attributes (naive), and for dependent ones the mean statistic on exact
# counts and the powers on exact counts, naive, and by the likelihood ratio.
TABLE_3 = {
    (10, 10): (0.867, 118.8, 0.793, 0.996, 0.510),
    (10, 7): (0.533, 124.8, 0.873, 0.983, 0.733),
    (2, 10): (0.254, 118.3, 0.821, 0.913, 0.763),
    (2, 7): (0.187, 119.6, 0.813, 0.910, 0.769),
}
every_setting = pytest.mark.parametrize("setting", TABLE_3, ids=lambda s: f"ε=1/{s[0]} m={s[1]}")
SHAPE = (10, 10)


@every_setting
def test_table_3_of_independent_attributes_fools_the_naive_test_and_not_the_aware_one(setting):
    scale, bound = setting
    law = Truncated(DiscreteLaplace(scale), bound)
    exact, naive, _, aware = rejections(
        law,
        SHAPE,
        lambda g: independent_means(g, SHAPE, 4),
        seed=100 * scale + bound,
        tables=TABLES_FOR_A_LEVEL,
    )
    assert 0.03 <= exact <= 0.07
    assert 0.03 <= aware <= 0.07
    # Seven tables of eight in the first setting. With ε = 1/10 and m = 7 it is 0.57 of 5,000 tables, where 0.533 is
    # printed: the paper's naive statistics exceed 81 by a tenth less than ours, so its noise or its counts differ a
    # little from what it says. The printed share is therefore held where it is far from the steep part.
    if setting == (10, 10):
        assert naive == pytest.approx(TABLE_3[setting][0], abs=0.04)
    assert naive > 2 * 0.07


@every_setting
def test_table_3_of_dependent_attributes_has_the_printed_powers(setting):
    """The printed factor 0.7 of the interactions cannot be: it gives exact counts a mean statistic of 275 and a power
    of 1. The factor that gives them the printed mean statistic is 0.31 or so, and then the other powers follow.
    """
    scale, bound = setting
    _, mean_statistic, *powers = TABLE_3[setting]
    # Noncentrality grows with the square of the factor; 0.314 gives 38.0 more than the 81.6 of independence.
    factor = 0.314 * ((mean_statistic - 81.6) / 38.0) ** 0.5

    def dependent(generator):
        interactions = np.exp(factor * generator.uniform(-0.5, 0.5, SHAPE))
        return independent_means(generator, SHAPE, 4) * interactions

    law = Truncated(DiscreteLaplace(scale), bound)
    exact, naive, paper, aware = rejections(law, SHAPE, dependent, seed=33)
    assert [exact, naive, paper] == pytest.approx(powers, abs=0.04)
    # With its level nearer to 5 % the reference law of the noise changes the power by no more than that allows.
    assert aware >= paper - 0.06


@pytest.mark.parametrize(
    ("law", "shape", "eta"),
    [
        (DiscreteLaplace(10), (10, 10), 4.0),
        (DiscreteLaplace(10), (6, 8), 6.0),
        (DiscreteGaussian(100), (10, 10), 4.0),
    ],
    ids=["wide laplace", "laplace", "gaussian"],
)
def test_noise_without_a_bound_keeps_the_level(law, shape, eta):
    _, naive, _, aware = rejections(law, shape, lambda g: independent_means(g, shape, eta), seed=34)
    assert 0.025 <= aware <= 0.07
    assert naive > 0.5


def test_chi_squared_would_reject_most_true_hypotheses_behind_wide_laplace_noise():
    """Why the reference law is that of the noise: by χ² the aware test is as wrong as the naive one."""
    law = DiscreteLaplace(10)
    _, _, paper, aware = rejections(law, SHAPE, lambda g: independent_means(g, SHAPE, 4), seed=35, tables=400)
    assert paper > 0.5
    assert aware <= 0.08


@pytest.mark.parametrize(
    ("mechanism", "shape", "privacy", "eta"),
    [
        ("residual", (5, 6), tb.PureDP("1/4"), 4.0),
        ("residual", (5, 6), tb.ZCDP("1/32"), 4.0),
        ("efron-stein", (6, 5), tb.PureDP(1), 5.0),
        ("fourier", (4, 4), tb.PureDP("1/2"), 5.0),
    ],
    ids=str,
)
def test_noise_that_cells_share_keeps_the_level_in_dense_tables(mechanism, shape, privacy, eta):
    domain = tb.Domain({"a": range(shape[0]), "b": range(shape[1])})
    plan = tb.plan(domain, "[a b]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    generator, sampler = np.random.default_rng(36), ExactSampler(SeededEntropy(36))
    aware = naive = 0
    for _ in range(TABLES_FOR_A_LEVEL):
        exact = tb.Table(domain, generator.poisson(independent_means(generator, shape, eta)))
        released = tb.release(exact, plan, sampler=sampler)["a", "b"]
        aware += independence(released).rejects(LEVEL)
        naive += independence(released, "naive").rejects(LEVEL)
    assert 0.03 <= aware / TABLES_FOR_A_LEVEL <= 0.07
    assert naive / TABLES_FOR_A_LEVEL > 0.10


def test_the_bootstrap_keeps_the_level_where_counts_are_as_small_as_their_noise():
    law, shape = DiscreteLaplace(2), (3, 3)
    hypothesis = hypothesis_of(law, shape)
    generator, entropy = np.random.default_rng(37), SeededEntropy(37)
    tables, repetitions = 300, 59
    rejected = {0.05: 0, 0.2: 0}
    for _ in range(tables):
        released = generator.poisson(independent_means(generator, shape, 1.5)) + law.sample(shape, entropy)
        test = bootstrap_test(
            "independence", hypothesis, hypothesis.fitted(released), repetitions=repetitions, entropy=entropy
        )
        for level in rejected:
            rejected[level] += test.rejects(level)
    # Three standard errors of 300 tables.
    assert 0.2 - 0.07 <= rejected[0.2] / tables <= 0.2 + 0.07
    assert rejected[0.05] / tables <= 0.05 + 0.04


def test_goodness_of_fit_of_all_cells_keeps_its_level_behind_wide_noise():
    law, shares, n = DiscreteLaplace(5), np.array([0.4, 0.3, 0.2, 0.1]), 300
    generator, entropy = np.random.default_rng(38), SeededEntropy(38)
    aware = wilks = unknown = 0
    for _ in range(TABLES):
        released = generator.multinomial(n, shares) + law.sample(4, entropy)
        found = goodness_of_fit(released, n, shares.tolist(), law)
        aware += found.rejects(LEVEL)
        wilks += upper_tail(found.statistic, 3) <= LEVEL
        unknown += goodness_of_fit(released, None, shares.tolist(), law).rejects(LEVEL)
    assert aware <= 0.07 * TABLES
    assert unknown <= 0.07 * TABLES
    assert aware >= 0.015 * TABLES
    assert wilks > aware


def test_figure_4_simulated_is_figure_4_computed():
    """Critical value and power of the likelihood ratio of one count, printed as 3.36 and 0.95 from 500 values."""
    law = Truncated(DiscreteLaplace(2), 5)
    generator = np.random.default_rng(39)
    released = generator.binomial(80, 0.5, 500) + law.sample(500, SeededEntropy(39))
    values, times = np.unique(released, return_counts=True)

    def statistics(p0):
        each = [goodness_of_fit(int(x), 80, p0, law, method="chi-squared").statistic for x in values]
        return np.repeat(each, times)

    critical = np.quantile(statistics(0.5), 0.95, method="inverted_cdf")
    # The statistic takes few values about there: 2.64, 3.36, 4.15.
    assert critical == pytest.approx(3.36, abs=0.8)
    assert np.mean(statistics(0.7) > 3.36) == pytest.approx(0.95, abs=0.03)
