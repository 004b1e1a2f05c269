"""The error bounds of the two papers: as Table 8 prints them, and in simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest

import tabulary as tb
from tabulary import datasets
from tabulary.noise import DiscreteLaplace, ExactSampler
from tabulary_papers.bounds import (
    dmt_theorem_5_bound,
    quantile_bound,
    yfr_theorem_1_bound,
    yfr_theorem_3_bound,
)
from tabulary_papers.published import published_fourier
from tests.entropy import SeededEntropy


def workload(name):
    found = datasets.describe(name)
    return tb.Workload.parse(found.model, found.table.domain)


def printed(constant, sets, delta):
    """A bound as Table 8 prints it: constant · log(sets/δ) + sets."""
    return pytest.approx(constant * math.log(sets / delta) + sets, rel=1e-12)


@pytest.mark.parametrize("delta", [0.01, 0.5])
@pytest.mark.parametrize(
    ("name", "margin", "sets", "constant"),
    [
        ("fungus", "AD", 12, 384),
        # Table 8 prints 704, which is for margins of two attributes; the model has one of four.
        ("autoworkers", "BF", 22, 704),
        ("autoworkers", "ABCE", 22, 2816),
        # Table 8 prints 1856 for 29 sets; there are 30.
        ("rochdale", "ACE", 30, 1920),
    ],
)
def test_theorem_1_gives_the_bounds_of_table_8(name, margin, sets, constant, delta):
    for epsilon, times in (("1/100", 100), (1, 1), (2, 1 / 2)):
        found = yfr_theorem_1_bound(workload(name), tuple(margin), epsilon, failure=delta)
        assert found == printed(constant * times, sets, delta)


def test_theorem_3_gives_the_bounds_of_table_8():
    for epsilon, constant in (("1/100", 8450), (1, 84.5), (2, 42.25)):
        found = yfr_theorem_3_bound(workload("journey-to-work"), ("A", "C"), epsilon, failure=0.05)
        assert found == printed(constant, 169, 0.05)


def test_theorem_5_has_a_quarter_of_the_constant_of_theorem_1():
    work = workload("fungus")
    first = yfr_theorem_1_bound(work, ("A", "B"), 1, failure=0.05) - 12
    fifth = dmt_theorem_5_bound(work, ("A", "B"), 1, failure=0.05) - 12
    assert first == pytest.approx(4 * fifth)


@pytest.mark.parametrize("name", ["fungus", "autoworkers", "rochdale"])
def test_the_quantile_of_the_noise_drawn_is_below_every_published_bound(name):
    work = workload(name)
    options = {"privacy": tb.PureDP(1), "mechanism": "fourier"}
    linear = tb.plan(work.domain, work, reconstruct="none", **options)
    program = tb.plan(work.domain, work, reconstruct="lp", rounding="nearest", **options)
    for margin in work:
        bounds = [
            quantile_bound(linear, margin, failure=0.05),
            quantile_bound(program, margin, failure=0.05),
            dmt_theorem_5_bound(work, margin, 1, failure=0.05),
            yfr_theorem_1_bound(work, margin, 1, failure=0.05),
        ]
        assert bounds == sorted(bounds)
        assert bounds[0] < bounds[2] / 4


class LouderSampler:
    """Draws noise of ten times the scale that it was asked for."""

    def __init__(self, sampler):
        self.sampler = sampler

    def draw(self, noise, size):
        return self.sampler.draw(replace(noise, scale=10 * noise.scale), size)


def violations(bounds, repetitions, sampler, *, epsilon):
    """How often some margin of the rounded solution is further from the truth than its bound."""
    table = tb.Table(tb.Domain(dict.fromkeys("ABCD", "01")), np.arange(16).reshape(2, 2, 2, 2) % 5 * 8)
    failed = 0
    for _ in range(repetitions):
        found = published_fourier(table, "[AB][BC][CD]", epsilon, paper="DMT", sampler=sampler).solve()
        distances = {
            m: np.abs(found.margins[m].counts - table.project(m).counts).sum() for m in found.margins
        }
        failed += any(distances[m] > bounds[m] for m in bounds)
    return failed / repetitions


def bounds_in_simulation(failure, epsilon):
    domain = tb.Domain(dict.fromkeys("ABCD", "01"))
    work = tb.Workload.parse("[AB][BC][CD]", domain)
    plan = tb.plan(
        domain, work, privacy=tb.PureDP(epsilon), mechanism="fourier", reconstruct="lp", rounding="nearest"
    )
    assert {part.noise for part in plan.measured} == {DiscreteLaplace(8 / plan.loss.epsilon)}
    published = {m: dmt_theorem_5_bound(work, m, epsilon, failure=failure) for m in work}
    drawn = {m: quantile_bound(plan, m, failure=failure) for m in work}
    return published, drawn


@pytest.mark.parametrize("repetitions", [60, pytest.param(600, marks=pytest.mark.audit)])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_margins_stay_within_theorem_5_and_the_quantile_as_often_as_promised(repetitions, epsilon):
    for bounds in bounds_in_simulation(0.3, epsilon):
        sampler = ExactSampler(SeededEntropy(8))
        assert violations(bounds, repetitions, sampler, epsilon=epsilon) <= 0.3
        # The same bounds do not hold for a mechanism that adds ten times the noise.
        assert violations(bounds, repetitions, LouderSampler(sampler), epsilon=epsilon) > 0.3
