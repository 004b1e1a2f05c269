"""An audit of what comes out of every tool: it accepts the truth and rejects a sabotaged twin.

Each tool runs on two neighbouring data sets, many times. An event that is likely on one and unlikely on the other
bounds the privacy loss from below; with confidence 1 - 10⁻⁶ a bound above the promise is a broken promise. The
twin draws at seven tenths of the scale, which is ε/0.7.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import tabulary as tb
from tabulary.noise import DiscreteLaplace, ExactSampler, Tabulated
from tabulary.toolbox import (
    Bounds,
    RandomizedResponse,
    count,
    exponential_mechanism,
    laplace,
    mean,
    quantile,
    report_noisy_max,
    standard_deviation,
    total,
)
from tabulary.toolbox.choice_laws import ExponentialChoice, PermuteAndFlip
from tests.entropy import SeededEntropy

ALPHA = 1e-6
EPSILON = 1
PROMISE = tb.PureDP(EPSILON)
# Computed from the laws: the twin's bound is above 1 by over three deviations in every case, the tool's below it by
# over five. The events of added noise have a probability of about one half, those of choices are rarer.
NUMBERS = 4_000
CHOICES = 40_000

BOUNDS = Bounds(0, 4)


class Bulk:
    """Draws for many calls at once, at `factor` times the scale that is asked for."""

    def __init__(self, seed, factor=1):
        self._sampler = ExactSampler(SeededEntropy(seed))
        self._factor = Fraction(factor)
        self._drawn = {}

    def draw(self, noise, size):
        scale = noise.scale * self._factor
        held = self._drawn.get(scale, np.empty(0, dtype=np.int64))
        if held.size < size:
            held = self._sampler.draw(DiscreteLaplace(scale), 1 << 14)
        self._drawn[scale] = held[size:]
        return held[:size]


class Kept:
    """Keeps the law that a tool asked for, and makes its choice from all that follow."""

    def draw(self, noise, size):
        self.law = noise
        return np.zeros(size, dtype=np.int64)


def _bounds(successes, trials):
    """Clopper–Pearson bounds of a probability, each at confidence 1 - ALPHA / 2."""
    low = beta.ppf(ALPHA / 2, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - ALPHA / 2, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high


def _lower_bound(likely, unlikely, trials):
    """A lower bound of ε from how often an event was seen on two neighbours."""
    low, high = _bounds(likely, trials)[0], _bounds(unlikely, trials)[1]
    return math.log(low / high) if low else 0.0


def _laplace(data, neighbours, sampler):
    return laplace(sum(data), sensitivity=4, unit=1, privacy=PROMISE, neighbours=neighbours, sampler=sampler)


def _count(data, neighbours, sampler):
    flags = np.array(data) > 0
    return count(flags, privacy=PROMISE, neighbours=neighbours, sampler=sampler)


def _bounded(statistic):
    def use(data, neighbours, sampler):
        return statistic(data, BOUNDS, privacy=PROMISE, neighbours=neighbours, sampler=sampler)

    return use


# For each statistic the data that one person changes most: the record that is added, or replaced by its opposite.
NUMBER_TOOLS = {
    "laplace": _laplace,
    "count": _count,
    "total": _bounded(total),
    "mean": _bounded(mean),
    "standard deviation": _bounded(standard_deviation),
}
every_number = pytest.mark.parametrize("use", NUMBER_TOOLS.values(), ids=NUMBER_TOOLS.keys())


@every_number
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_number_keeps_its_promise_and_noise_at_seven_tenths_of_the_scale_breaks_it(use, relation):
    data = [0, 0, 0]
    near = [*data, 4] if relation == "add-remove" else [0, 0, 4]

    def bound(factor):
        def seen(people, seed):
            sampler = Bulk(seed, factor)
            return np.array([use(people, relation, sampler).measured[0] for _ in range(NUMBERS)])

        # The first number measured is the one that the record at the upper end raises.
        exact = use(data, relation, Kept()).measured[0]
        likely, unlikely = (int((seen(*each) <= exact).sum()) for each in ((data, 1), (near, 2)))
        return _lower_bound(likely, unlikely, NUMBERS)

    assert bound(1) <= EPSILON
    assert bound("7/10") > EPSILON


def _seven_tenths(law):
    return replace(law, rate=law.rate / Fraction(7, 10))


def _chosen(use, data, seed, sabotage):
    """Many choices from the law that a tool would draw one from."""
    kept = Kept()
    use(data, kept)
    assert isinstance(kept.law, ExponentialChoice | PermuteAndFlip)
    law = _seven_tenths(kept.law) if sabotage else kept.law
    return ExactSampler(SeededEntropy(seed)).draw(law, CHOICES)


def _utilities(mechanism, monotone):
    def use(utilities, sampler):
        mechanism(
            range(len(utilities)),
            utilities,
            sensitivity=1,
            privacy=PROMISE,
            monotone=monotone,
            sampler=sampler,
        )

    return use


def _quantile(relation):
    def use(data, sampler):
        quantile(data, "1/2", Bounds(0, 600), privacy=PROMISE, neighbours=relation, sampler=sampler)

    return use


# One utility falls while five rise: the exponent and the sum both turn against it. In a monotone step only the five
# rise. For noisy max two candidates do, one of them behind.
SIX, FIVE_UP, PARTED = [0] * 6, [0, 1, 1, 1, 1, 1], [-1, 1, 1, 1, 1, 1]
# Values at 100 and many candidates on either side of it, with as large a rank error below as above. One value
# more at the top, or one that moves there, makes the lower side worse and the upper one better.
MIDDLE = [100] * 4
CHOICE_TOOLS = {
    "exponential": (_utilities(exponential_mechanism, False), SIX, PARTED, 0),
    "exponential, monotone": (_utilities(exponential_mechanism, True), SIX, FIVE_UP, 0),
    "noisy max": (_utilities(report_noisy_max, False), [0, 1], [-1, 2], 0),
    "noisy max, monotone": (_utilities(report_noisy_max, True), [0, 1], [0, 2], 0),
    "quantile, add-remove": (_quantile("add-remove"), MIDDLE, [*MIDDLE, 600], 99),
    "quantile, replace": (_quantile("replace"), [*MIDDLE, 0], [*MIDDLE, 600], 99),
}


@pytest.mark.parametrize(("use", "data", "near", "last"), CHOICE_TOOLS.values(), ids=CHOICE_TOOLS.keys())
def test_a_choice_keeps_its_promise_and_one_at_seven_tenths_of_the_scale_breaks_it(use, data, near, last):
    def bound(sabotage):
        likely, unlikely = (
            int((_chosen(use, each, seed, sabotage) <= last).sum()) for seed, each in ((1, data), (2, near))
        )
        return _lower_bound(likely, unlikely, CHOICES)

    assert bound(sabotage=False) <= EPSILON
    assert bound(sabotage=True) > EPSILON


class Truthful:
    """Tells the truth as often as randomized response at ε/0.7 does."""

    def __init__(self, response, seed):
        self._sampler = ExactSampler(SeededEntropy(seed))
        self._q = RandomizedResponse(response.levels, epsilon=response.privacy.epsilon / Fraction(7, 10)).q

    def draw(self, noise, size):
        if isinstance(noise, Tabulated):
            noise = Tabulated(0, (self._q.denominator - self._q.numerator, self._q.numerator))
        return self._sampler.draw(noise, size)


@pytest.mark.parametrize("levels", ["ab", "abcd"])
def test_an_answer_keeps_its_promise_and_one_that_is_true_too_often_breaks_it(levels):
    response = RandomizedResponse(levels, epsilon=EPSILON)

    def bound(sampler):
        yes, no = (int((response.respond([value] * CHOICES, sampler=sampler) == "a").sum()) for value in "ab")
        return _lower_bound(yes, no, CHOICES)

    assert bound(ExactSampler(SeededEntropy(1))) <= EPSILON
    assert bound(Truthful(response, 1)) > EPSILON
