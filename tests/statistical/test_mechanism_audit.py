"""An audit of what comes out of a mechanism: it accepts the truth and rejects a sabotaged twin.

Two neighbouring tables are measured many times. An event that is likely on one and unlikely on the other
bounds the privacy loss from below; with confidence 1 - 10⁻⁶ a bound above the promise is a broken promise.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.privacy import gaussian_delta
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler, RoundedGaussian
from tabulary.planning import Plan
from tabulary.planning.calibration import calibrated
from tests.samplers import ConstantSampler, SabotagedSampler

ALPHA = 1e-6
# Computed for the weakest case, Fourier coefficients: the twin is then missed by over seven deviations.
REPETITIONS = 40_000
DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])


def _bounds(successes, trials):
    """Clopper–Pearson bounds of a probability, each at confidence 1 - ALPHA / 2."""
    low = beta.ppf(ALPHA / 2, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - ALPHA / 2, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high


def _tally(plan, counts):
    return Tally.from_table(tb.Table(DOMAIN, counts), plan.counted)


def _flat(plan, tally, sampler):
    return np.concatenate([v.reshape(-1) for v in measure(tally, plan, sampler).values])


def _scales(plan):
    """The scale, or the variance, of every measured number."""
    sizes = [math.prod(plan.shape_of(part)) for part in plan.measured]
    each = [float(p.noise.scale if plan.norm == "L1" else p.noise.variance_parameter) for p in plan.measured]
    return np.repeat(each, sizes)


def _worst_neighbour(plan, counts):
    """The neighbouring table that the noise hides least, among all of them."""

    def cost(near):
        moved = np.abs(_flat(plan, _tally(plan, near), ConstantSampler()) - bare)
        return (moved / _scales(plan)).sum() if plan.norm == "L1" else (moved**2 / _scales(plan)).sum() / 2

    bare = _flat(plan, _tally(plan, counts), ConstantSampler())
    cells = [np.array(cell) for cell in np.ndindex(*DOMAIN.shape)]
    neighbours = []
    for here in cells:
        near = counts.copy()
        near[tuple(here)] += 1
        if plan.neighbours.relation == "add-remove":
            neighbours.append(near)
            continue
        for there in cells:
            moved = near.copy()
            moved[tuple(there)] -= 1
            neighbours.append(moved)
    return max(neighbours, key=cost)


def _losses(plan, sampler):
    """The privacy loss that an observer would compute, on either of the two worst neighbours."""
    counts = np.full(DOMAIN.shape, 10)
    tallies = [_tally(plan, counts), _tally(plan, _worst_neighbour(plan, counts))]
    centres = [_flat(plan, tally, ConstantSampler()) for tally in tallies]
    scales = _scales(plan)

    def log_likelihood(values, centre):
        # The claimed noise: an observer reads it in the manifest.
        distance = np.abs(values - centre)
        return -(distance / scales if plan.norm == "L1" else distance**2 / (2 * scales)).sum(axis=1)

    losses = []
    for tally in tallies:
        drawn = np.array([_flat(plan, tally, sampler) for _ in range(REPETITIONS)])
        losses.append(log_likelihood(drawn, centres[1]) - log_likelihood(drawn, centres[0]))
    return losses


def _pure_epsilon_lower_bound(plan, sampler):
    without, within = _losses(plan, sampler)
    largest = float(plan.loss.epsilon)
    # The event of the largest loss, up to rounding in the sum of likelihoods.
    seen = [int((loss >= largest - 1e-9).sum()) for loss in (without, within)]
    low = _bounds(seen[1], REPETITIONS)[0]
    high = _bounds(seen[0], REPETITIONS)[1]
    return math.log(low / high) if low else 0.0


def _delta_lower_bound(plan, sampler, epsilon):
    without, within = _losses(plan, sampler)
    low = _bounds(int((within > epsilon).sum()), REPETITIONS)[0]
    high = _bounds(int((without > epsilon).sum()), REPETITIONS)[1]
    return low - math.exp(epsilon) * high


@pytest.mark.audit
@every_mechanism
@both_relations
def test_the_pure_promise_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(mechanism, relation):
    plan = tb.plan(DOMAIN, "[a][b]", privacy=tb.PureDP(2), mechanism=mechanism, neighbours=relation)
    assert _pure_epsilon_lower_bound(plan, ExactSampler()) <= 2
    assert _pure_epsilon_lower_bound(plan, SabotagedSampler("7/10")) > 2


@pytest.mark.audit
@every_mechanism
@both_relations
def test_the_gaussian_promise_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(mechanism, relation):
    rho, epsilon = "1/8", 0.25
    plan = tb.plan(DOMAIN, "[a][b]", privacy=tb.ZCDP(rho), mechanism=mechanism, neighbours=relation)
    # Discrete Gaussians of this size are as close to continuous ones as an audit can see.
    allowed = gaussian_delta(epsilon, rho) * 1.05
    assert _delta_lower_bound(plan, ExactSampler(), epsilon) <= allowed
    assert _delta_lower_bound(plan, SabotagedSampler("7/10"), epsilon) > allowed


def _centred_plan(loss, relation):
    """A plan of counts and of centred values, on two levels and on three, which `auto` might not choose.

    Few numbers, because the event of the largest loss asks all of them to fall on one side. Computed from the
    binomial laws of both counts: the twin's bound is above 2 but for one run in a million, in both relations.
    With all four sets of the closure centred it would be missed in every other run.
    """
    near = tb.Neighbours(relation)
    both = ("a", "b")
    parts = calibrated(
        DOMAIN, [both, both], [Fraction(2), Fraction(1)], near, loss, query="residuals", centred=[(), both]
    )
    return Plan(DOMAIN, tb.Workload(DOMAIN, [both]), loss, loss, near, "residual", parts)


@pytest.mark.audit
@both_relations
def test_the_pure_promise_of_centred_parts_holds_and_a_smaller_scale_breaks_it(relation):
    plan = _centred_plan(tb.PureDP(2), relation)
    assert _pure_epsilon_lower_bound(plan, ExactSampler()) <= 2
    assert _pure_epsilon_lower_bound(plan, SabotagedSampler("7/10")) > 2


@pytest.mark.audit
@both_relations
def test_the_gaussian_promise_of_centred_parts_holds_and_a_smaller_scale_breaks_it(relation):
    plan = _centred_plan(tb.ZCDP("1/8"), relation)
    allowed = gaussian_delta(0.25, "1/8") * 1.05
    assert _delta_lower_bound(plan, ExactSampler(), 0.25) <= allowed
    assert _delta_lower_bound(plan, SabotagedSampler("7/10"), 0.25) > allowed


@pytest.mark.audit
@every_mechanism
def test_the_approximate_promise_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(mechanism):
    promise = tb.ApproxDP("1/4", "1/9")
    plan = tb.plan(DOMAIN, "[a][b]", privacy=promise, mechanism=mechanism)
    assert isinstance(plan.measured[0].noise, RoundedGaussian)
    assert _delta_lower_bound(plan, ExactSampler(), 0.25) <= 1 / 9
    assert _delta_lower_bound(plan, SabotagedSampler("7/10"), 0.25) > 1 / 9
