"""An audit of one round of MWEM: it accepts what is measured and chosen, and rejects a twin at seven tenths.

As in `test_mechanism_audit`: the log ratio of an event's probabilities on two neighbouring tables bounds the loss from
below; at confidence 1 - 10⁻⁶ a bound above the promise is a broken promise.
"""

import math

import numpy as np
import pytest

import tabulary as tb
from tabulary.synth.mwem import MwemPlan, margin_scores
from tabulary.toolbox.choice_laws import ExponentialChoice
from tests.twins import SABOTAGED, SeededTwin, bounds

pytestmark = pytest.mark.audit

DRAWS = 200_000
DOMAIN = tb.Domain({"a": "xy", "b": "xy"})


def loss_above(first, second):
    """A lower bound of the loss, from how often an event occurred on either table."""
    return math.log(bounds(first, DRAWS)[0] / bounds(second, DRAWS)[1])


def margins(plan, counts):
    return {m: tb.Table(DOMAIN, counts).project(m).counts for m in plan.margins}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_measured_margin_keeps_its_share_and_noise_at_seven_tenths_breaks_it(relation):
    plan = MwemPlan.of(DOMAIN, "[a]", tb.PureDP(4), rounds=1, neighbours=relation)
    here = np.array([[10, 10], [10, 10]])
    near = (
        here + np.array([[1, 0], [0, 0]]) if relation == "add-remove" else here + np.array([[1, 0], [-1, 0]])
    )
    share = float(plan.share)
    exact, other = margins(plan, here)[("a",)], margins(plan, near)[("a",)]

    def bound(sampler):
        # The corner at which both cells speak for the neighbour: the loss there is the whole share.
        seen = [counts + sampler.draw(plan.noise(("a",)), (DRAWS, 2)) for counts in (other, exact)]
        corner = [(s[:, 0] >= other[0]) & (s[:, 1] <= other[1]) for s in seen]
        return loss_above(int(corner[0].sum()), int(corner[1].sum()))

    assert bound(SeededTwin()) <= share
    assert bound(SeededTwin(SABOTAGED)) > share


@pytest.mark.parametrize(("relation", "nearer"), [("add-remove", 2), ("replace", 3)])
def test_a_choice_keeps_its_share_and_one_at_seven_tenths_breaks_it(relation, nearer):
    """The neighbour brings one margin nearer to what is believed and the other away from it: scores move apart."""
    plan = MwemPlan.of(DOMAIN, "[a][b]", tb.PureDP(4), rounds=1, neighbours=relation)
    share = float(plan.share)
    here = np.array([[10, 10], [10, 10]])
    near = (
        here + np.array([[0, 0], [0, 1]]) if relation == "add-remove" else here + np.array([[-1, 0], [0, 1]])
    )
    # Margins (10, 30) and (30 - x, 10 + x): the second is a little less wrong, so that it is seldom chosen.
    believed = np.array([[10.0, 0.0], [20.0 - nearer, 10.0 + nearer]])
    scores = [margin_scores(plan, margins(plan, counts), believed) for counts in (here, near)]
    apart = scores[1] - scores[0]
    assert float(plan.rate) * (apart[1] - apart[0]) == pytest.approx(share)

    def bound(sampler):
        times = []
        for found in scores:
            choice = ExponentialChoice(plan.rate, tuple(int(found.max() - s) for s in found), (1, 1))
            times.append(int((sampler.draw(choice, DRAWS) == 1).sum()))
        return loss_above(times[1], times[0])

    assert bound(SeededTwin()) <= share
    assert bound(SeededTwin(SABOTAGED)) > share
