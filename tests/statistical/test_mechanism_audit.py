"""An audit of what comes out of a mechanism: it accepts the truth and rejects a sabotaged twin.

Two neighbouring tables are measured many times. An event that is likely on one and unlikely on the other
bounds the privacy loss from below; with confidence 1 - 10⁻⁶ a bound above the promise is a broken promise.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.privacy import gaussian_delta
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler
from tests.samplers import SabotagedSampler

ALPHA = 1e-6
REPETITIONS = 20_000
DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])


def _bounds(successes, trials):
    """Clopper–Pearson bounds of a probability, each at confidence 1 - ALPHA / 2."""
    low = beta.ppf(ALPHA / 2, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - ALPHA / 2, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high


def _losses(plan, sampler):
    """The privacy loss that an observer would compute, on either of the two worst neighbours."""
    counts = np.full(DOMAIN.shape, 10)
    near = counts.copy()
    near[0, 0] += 1
    if plan.neighbours.relation == "replace":
        near[1, 1] -= 1
    margins = [part.margin for part in plan.measured]
    tallies = [Tally.from_table(tb.Table(DOMAIN, c), margins) for c in (counts, near)]
    centres = [np.concatenate([t.exact(m).reshape(-1) for m in margins]) for t in tallies]
    noises = [p.noise for p in plan.measured for _ in range(DOMAIN.cells(p.margin))]

    def log_likelihood(values, centre):
        # The claimed noise: an observer reads it in the manifest.
        if plan.norm == "L1":
            return -sum(abs(v - c) / float(n.scale) for v, c, n in zip(values, centre, noises, strict=True))
        return -sum(
            (v - c) ** 2 / (2 * float(n.variance_parameter))
            for v, c, n in zip(values, centre, noises, strict=True)
        )

    losses = []
    for tally in tallies:
        drawn = [measure(tally, plan, sampler).values for _ in range(REPETITIONS)]
        flat = np.array([np.concatenate([v.reshape(-1) for v in values]) for values in drawn]).T
        losses.append(log_likelihood(flat, centres[1]) - log_likelihood(flat, centres[0]))
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
    plan = tb.plan(DOMAIN, "[a][b]", privacy=tb.PureDP(1), mechanism=mechanism, neighbours=relation)
    assert _pure_epsilon_lower_bound(plan, ExactSampler()) <= 1
    assert _pure_epsilon_lower_bound(plan, SabotagedSampler("7/10")) > 1


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
