"""An audit of the adaptive choice of margins: it accepts both kinds of draw and rejects a twin at seven tenths.

As in `test_mechanism_audit`: an event that is likely on one of two neighbouring tables and unlikely on the other
bounds the loss from below; at confidence 1 - 10⁻⁶ a bound above the promise is a broken promise. How the draws add up
is no matter of chance, and is tested with the plan.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.core.privacy import gaussian_delta
from tabulary.synth.adaptive import AdaptivePlan, chosen, measured
from tests.twins import SABOTAGED, SeededTwin, bounds

pytestmark = pytest.mark.audit

REPETITIONS = 6_000
# The twin's event has probability 0.0136: its bound then lies near 2.2, and one broken promise is a bound above 2.
CHOICES = 10_000
DOMAIN = tb.Domain({"a": "xy", "b": "xy"})


class Believed:
    """A model by its tables."""

    def __init__(self, tables):
        self.tables = tables

    def table(self, margin):
        return self.tables[margin]


def neighbours_of(relation, records=1):
    """Two tables by one attribute each, on ten records a cell and on a neighbour of them."""
    counts = np.full((2, 2), 10)
    near = counts.copy()
    near[0, 0] += records
    if relation == "replace":
        near[1, 1] -= records
    return [{("a",): table.sum(axis=1), ("b",): table.sum(axis=0)} for table in (counts, near)]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_first_tables_keep_their_share_and_noise_at_seven_tenths_breaks_it(relation):
    """A person of five records, so that noise is many whole numbers wide and ε falls on none of the few losses."""
    near = tb.Neighbours(relation, records=5)
    plan = AdaptivePlan.of(DOMAIN, "[a][b]", tb.ZCDP(Fraction(5, 9)), rounds=2, memory=2**20, neighbours=near)
    # Two tables at nine tenths of a part: ρ = 1/2.
    epsilon, rho = 0.5, Fraction(1, 2)
    exact = neighbours_of(relation, 5)
    flat = [np.concatenate(list(tables.values())) for tables in exact]
    spread = 2 * float(plan.noise(plan.share).variance_parameter)
    assert ((flat[1] - flat[0]) ** 2).sum() / spread == pytest.approx(float(rho))

    def bound(sampler):
        above = []
        for tables in exact:
            seen = np.array(
                [
                    np.concatenate([measured(plan, tables, m, plan.share, sampler).counts for m in tables])
                    for _ in range(REPETITIONS)
                ]
            )
            loss = (((seen - flat[0]) ** 2).sum(axis=1) - ((seen - flat[1]) ** 2).sum(axis=1)) / spread
            above.append(int((loss > epsilon).sum()))
        return bounds(above[1], REPETITIONS)[0] - math.exp(epsilon) * bounds(above[0], REPETITIONS)[1]

    allowed = gaussian_delta(epsilon, rho) * 1.05
    assert bound(SeededTwin()) <= allowed
    assert bound(SeededTwin(SABOTAGED)) > allowed


def test_a_choice_keeps_its_share_and_one_at_seven_tenths_breaks_it():
    """ρ = 1/2 allows a loss of range 2, and so none above 2. The model errs so that scores move against each other."""
    plan = AdaptivePlan.of(DOMAIN, "[a][b]", tb.ZCDP(10), rounds=2, memory=2**20)
    share = Fraction(5)
    model = Believed({("a",): np.array([24.0, 20.0]), ("b",): np.array([19.0, 20.0])})

    def bound(sampler):
        times = []
        for tables in neighbours_of("add-remove"):
            drawn = [chosen(plan, tables, model, plan.candidates, share, sampler) for _ in range(CHOICES)]
            times.append(drawn.count(("b",)))
        return math.log(bounds(times[1], CHOICES)[0] / bounds(times[0], CHOICES)[1])

    assert bound(SeededTwin()) <= 2
    assert bound(SeededTwin(SABOTAGED)) > 2
