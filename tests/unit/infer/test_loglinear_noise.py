import numpy as np
import pytest
from scipy.optimize import minimize

import tabulary as tb
from tabulary import Domain, Table, datasets, perturb
from tabulary.errors import InvalidArgument, InvalidNoise
from tabulary.infer import CorrelatedNoise, IndependentNoise, independence, loglinear
from tabulary.infer.likelihood import NoisyCells
from tabulary.infer.models import LogLinearModel
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tests.entropy import SeededEntropy

DOMAIN = Domain({"A": "xy", "B": "xyz", "C": "xy"})
MODEL = "[AB][BC]"


def means_of(total, seed=3):
    """Expected counts in the model [AB][BC]."""
    rng = np.random.default_rng(seed)
    ab, bc = rng.uniform(1, 3, (2, 3, 1)), rng.uniform(1, 3, (1, 3, 2))
    return total * ab * bc / (ab * bc).sum()


def noisy(means, law, seed):
    rng = np.random.default_rng(seed)
    return Table(DOMAIN, rng.poisson(means) + law.sample(means.shape, SeededEntropy(seed)))


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(4), DiscreteGaussian(30), perturb.Laplace(0.4, bound=15), perturb.Normal(9, bound=9)],
)
def test_no_general_optimiser_finds_a_higher_likelihood(law):
    drawn = law.noise if hasattr(law, "noise") else law
    table = noisy(means_of(400), drawn, 5)
    fit = loglinear(table, MODEL, noise=law)
    cells = NoisyCells(table.counts, IndependentNoise(drawn, np.ones(table.shape, dtype=np.int64)))
    design = LogLinearModel.parse(MODEL, DOMAIN).design(np.arange(DOMAIN.size))

    def minus(theta):
        return -cells.log_likelihood((design @ theta).reshape(table.shape))

    start = np.linalg.lstsq(design, np.log(means_of(400)).reshape(-1))[0]
    found = minimize(minus, start, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-6)
    np.testing.assert_allclose(fit.fitted.counts.reshape(-1), np.exp(design @ found.x), rtol=1e-3)
    assert fit.g2 == pytest.approx(2 * (cells.saturated()[1].sum() - fit.log_likelihood), abs=1e-8)
    assert (fit.degrees_of_freedom, fit.nominal_degrees_of_freedom, fit.parameters) == (3, 3, 9)


def test_the_counts_behind_the_noise_have_the_margins_of_the_fit():
    # The likelihood equations: what is expected behind the noise and what is fitted agree on every generator.
    table, law = noisy(means_of(300), DiscreteLaplace(5), 8), DiscreteLaplace(5)
    fit = loglinear(table, MODEL, noise=law)
    cells = NoisyCells(table.counts, IndependentNoise(law, np.ones(table.shape, dtype=np.int64)))
    expected = cells.evaluate(np.log(fit.fitted.counts))[1]
    margins = fit.model.margins
    np.testing.assert_allclose(margins.forward(expected), margins.forward(fit.fitted.counts), rtol=1e-5)


def test_without_noise_the_aware_fit_is_the_naive_one():
    table = Table(DOMAIN, np.random.default_rng(2).poisson(means_of(500)))
    exact = IndependentNoise(DiscreteLaplace(1), np.zeros(table.shape, dtype=np.int64))
    aware, naive = loglinear(table, MODEL, noise=exact), loglinear(table, MODEL)
    np.testing.assert_allclose(aware.fitted.counts, naive.fitted.counts, rtol=1e-6)
    assert aware.g2 == pytest.approx(naive.g2, abs=1e-8)
    assert aware.x2 == pytest.approx(naive.x2, rel=1e-5)
    assert aware.aic == pytest.approx(naive.aic)


def test_two_attributes_give_the_test_of_independence():
    table = noisy(means_of(400), DiscreteLaplace(6), 4).project("A", "B")
    law = DiscreteLaplace(6)
    fit, test = loglinear(table, "[A][B]", noise=law), independence(table, noise=law)
    assert fit.g2 == pytest.approx(test.statistic, abs=1e-8)
    assert (fit.degrees_of_freedom, fit.p_value) == (test.degrees_of_freedom, pytest.approx(test.p_value))


def test_a_released_table_is_fitted_with_the_noise_that_it_states():
    law = DiscreteLaplace(6)
    table = noisy(means_of(400), law, 4)
    released = ReleasedTable(table, CellErrors(law, np.ones(table.shape, dtype=np.int64)))
    fit = loglinear(released, MODEL)
    assert fit.method == "noise-aware"
    assert fit.g2 == loglinear(table, MODEL, noise=law).g2
    assert loglinear(released, MODEL, method="naive").method == "naive"
    turned = loglinear(released.transpose(["C", "A", "B"]), MODEL)
    assert turned.g2 == pytest.approx(fit.g2, abs=1e-7)
    np.testing.assert_allclose(turned.fitted.transpose("ABC").counts, fit.fitted.counts, rtol=1e-5)


@pytest.mark.parametrize("mechanism", ["cells", "margins", "residual", "fourier", "efron-stein"])
def test_a_release_needs_nothing_but_itself_whatever_its_mechanism(mechanism):
    domain = datasets.load("autoworkers").domain
    work = tb.Workload.parse("[ABC]", domain)
    plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    released = tb.release(datasets.load("autoworkers"), plan, sampler=ExactSampler(SeededEntropy(1)))[
        "A", "B", "C"
    ]
    fit = loglinear(released, "[AB][AC][BC]")
    assert fit.method == "noise-aware"
    assert fit.degrees_of_freedom == 1
    assert np.isfinite([fit.g2, fit.x2, fit.p_value, fit.aic, fit.bic]).all()


def test_cells_that_share_noise_are_fitted_by_least_squares():
    table = noisy(means_of(2000), DiscreteLaplace(3), 9)
    variance = DiscreteLaplace(3).variance
    alone = loglinear(table, MODEL, noise=CorrelatedNoise(variance * np.eye(DOMAIN.size), table.shape))
    likely = loglinear(table, MODEL, noise=DiscreteLaplace(3))
    # Nearly the same numbers where counts are large: the normal law is then the limit of both.
    np.testing.assert_allclose(alone.fitted.counts, likely.fitted.counts, rtol=0.02)
    assert alone.g2 == alone.x2 == pytest.approx(likely.x2, rel=0.05)
    assert alone.degrees_of_freedom == 3
    shared = loglinear(table, MODEL, noise=CorrelatedNoise(variance * (np.eye(12) + 1), table.shape))
    assert shared.g2 < alone.g2
    assert "cells share their noise" in str(shared)
    nested = alone.against(
        loglinear(table, "[ABC]", noise=CorrelatedNoise(variance * np.eye(12), table.shape))
    )
    assert nested.statistic == pytest.approx(alone.g2)


def test_cells_on_the_boundary_behind_the_noise_are_reported():
    means = means_of(600)
    means[1, 0] = 0
    counts = noisy(means, DiscreteLaplace(2), 3).counts.copy()
    counts[1, 0] = [-6, -4]
    fit = loglinear(Table(DOMAIN, counts), MODEL, noise=DiscreteLaplace(2))
    assert np.array_equal(fit.boundary, np.arange(12).reshape(2, 3, 2) // 2 == 3)
    assert (fit.fitted.counts[fit.boundary] == 0).all()
    assert (fit.degrees_of_freedom, fit.nominal_degrees_of_freedom) == (2, 3)


def test_structural_zeros_stay_empty_and_take_their_degrees_of_freedom():
    domain = Domain({"A": "xy", "B": "xyz", "C": "xy"}, [{"A": "x", "B": "x", "C": "x"}])
    counts = noisy(means_of(500), DiscreteLaplace(3), 3).counts.copy()
    counts[0, 0, 0] = 0
    fit = loglinear(Table(domain, counts), MODEL, noise=DiscreteLaplace(3))
    assert fit.fitted.counts[0, 0, 0] == 0
    assert not fit.boundary.any()
    assert fit.degrees_of_freedom == fit.nominal_degrees_of_freedom == 2


def test_a_perturbation_that_depends_on_the_count_is_fitted_too():
    exact = Table(DOMAIN, np.random.default_rng(4).poisson(means_of(500)))
    released = perturb.Hellinger(10).apply(exact, sampler=ExactSampler(SeededEntropy(4)))
    fit = loglinear(released, MODEL)
    assert fit.degrees_of_freedom == 3
    assert np.isfinite([fit.g2, fit.x2, fit.p_value, fit.aic]).all()


def test_a_bootstrap_p_value_is_a_rank():
    table = noisy(means_of(60), DiscreteLaplace(3), 6)
    done = []
    fit = loglinear(
        table,
        MODEL,
        method="bootstrap",
        noise=DiscreteLaplace(3),
        repetitions=39,
        entropy=SeededEntropy(1),
        progress=lambda *at: done.append(at),
    )
    assert fit.method == "bootstrap"
    assert (fit.p_value * 40) == pytest.approx(round(fit.p_value * 40))
    assert fit.g2 == loglinear(table, MODEL, noise=DiscreteLaplace(3)).g2
    assert done[-1] == ("redrawing the table", 39, 39)


def test_a_table_that_states_no_noise_is_refused_where_noise_is_needed():
    table = noisy(means_of(60), DiscreteLaplace(3), 6)
    with pytest.raises(InvalidNoise, match="does not state its noise"):
        loglinear(table, MODEL, method="noise-aware")
    with pytest.raises(InvalidArgument, match="repetitions"):
        loglinear(table, MODEL, method="bootstrap", noise=DiscreteLaplace(3), repetitions=0)


def rejections(law, times=150):
    """How often a true model is rejected at 5 %, by the aware test and by the naive one."""
    aware = naive = 0
    for seed in range(times):
        table = noisy(means_of(1200), law, 1000 + seed)
        aware += loglinear(table, MODEL, noise=law).p_value <= 0.05
        naive += loglinear(table, MODEL).p_value <= 0.05
    return aware / times, naive / times


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(200)])
def test_a_true_model_is_rejected_at_its_level_behind_noise_and_mostly_by_who_ignores_it(law):
    # 150 tables at a level of 5 %: above 18 of them with a probability of 0.02 %. The naive test is the sabotaged twin.
    aware, naive = rejections(law)
    assert aware <= 18 / 150
    assert naive > 0.3


def test_a_false_model_is_found_out_behind_noise():
    means = means_of(1200)
    means[0, :, 0] *= 3
    rejected = sum(
        loglinear(noisy(means, DiscreteLaplace(5), seed), MODEL, noise=DiscreteLaplace(5)).p_value <= 0.05
        for seed in range(20)
    )
    assert rejected >= 18
