"""How residuals are measured: from few tables, with one call of the sampler for each law of noise."""

import numpy as np

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.residuals import residual_values
from tabulary.mechanisms import measure
from tabulary.noise import DiscreteGaussian, ExactSampler

DOMAIN = tb.Domain({f"x{i}": range(3) for i in range(8)})


class CountingSampler:
    """Notes which laws were asked for, and adds nothing."""

    def __init__(self):
        self.asked = []

    def draw(self, noise, size):
        self.asked.append(noise)
        return np.zeros(size, dtype=np.int64)


def _measured(sampler):
    counts = np.random.default_rng(0).poisson(2, DOMAIN.shape)
    plan = tb.plan(DOMAIN, tb.Workload.k_way(DOMAIN, 2), privacy=tb.ZCDP(1), mechanism="residual")
    table = tb.Table(DOMAIN, counts)
    return table, plan, measure(Tally.from_table(table, plan.counted), plan, sampler)


def test_each_law_of_noise_is_asked_for_once():
    sampler = CountingSampler()
    _, plan, _ = _measured(sampler)
    assert len(plan.measured) == 1 + 8 + 28
    assert len(sampler.asked) == len(set(sampler.asked)) == len({part.noise for part in plan.measured})


def test_every_part_is_that_of_its_own_table():
    table, plan, bare = _measured(CountingSampler())
    for part, values in zip(plan.measured, bare.values, strict=True):
        exact = residual_values(table.project(part.margin).counts, range(len(part.margin)))
        assert (values == exact).all()


def test_noise_of_a_hundred_million_is_drawn_like_any_other():
    noise = DiscreteGaussian.from_sigma(10**8)
    drawn = ExactSampler().draw(noise, 100_000).astype(float)
    # Five standard errors of a variance.
    assert abs(drawn.var() / noise.variance - 1) < 5 * np.sqrt(2 / drawn.size)
