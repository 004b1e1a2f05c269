"""An audit of what comes out of every mechanism: it accepts the truth and rejects a sabotaged twin.

The audit is the one that `tabulary audit` runs; here it runs on every mechanism, relation and promise, with more draws.
"""

from fractions import Fraction

import pytest

import tabulary as tb
from tabulary.mechanisms import MECHANISMS
from tabulary.noise import ExactSampler, RoundedGaussian
from tabulary.planning import Plan, Residuals
from tabulary.planning.calibration import calibrated
from tabulary.workflows.auditing import audit
from tabulary.workflows.auditing.evidence import NarrowedSampler

DRAWS = 8_000
DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})
PROMISES = [tb.PureDP(2), tb.PureDP("1/10"), tb.ZCDP("1/8"), tb.ApproxDP("1/4", "1/9")]

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])
every_promise = pytest.mark.parametrize("promise", PROMISES, ids=str)


@pytest.mark.audit
@every_mechanism
@both_relations
@every_promise
def test_the_promise_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(mechanism, relation, promise):
    plan = tb.plan(DOMAIN, "[a][b]", privacy=promise, mechanism=mechanism, neighbours=relation)
    report = audit(plan, draws=DRAWS)
    assert (report.verdict, report.problems) == ("holds", ())
    # With this many draws the loss is known to a sixth from below.
    assert report.drawn.factor > 0.84
    assert report.twin.factor > 1.15


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["margins", "residual"])
def test_noise_that_is_a_tenth_too_small_is_found_with_more_draws(mechanism):
    plan = tb.plan(DOMAIN, "[a][b]", privacy=tb.PureDP(2), mechanism=mechanism)
    sampler = NarrowedSampler(ExactSampler(), Fraction(9, 10))
    assert audit(plan, draws=50_000, sampler=sampler).verdict == "broken"


@pytest.mark.audit
@both_relations
@pytest.mark.parametrize("loss", [tb.PureDP(2), tb.ZCDP("1/8")], ids=str)
def test_the_promise_of_counts_and_centred_parts_holds_and_a_smaller_scale_breaks_it(relation, loss):
    # Parts on two levels and on three, which `auto` might not choose.
    near, both = tb.Neighbours(relation), ("a", "b")
    parts = calibrated(
        DOMAIN, [Residuals(both), Residuals(both, both)], [Fraction(2), Fraction(1)], near, loss
    )
    plan = Plan(DOMAIN, tb.Workload(DOMAIN, [both]), loss, loss, near, "residual", parts)
    assert audit(plan, draws=DRAWS).verdict == "holds"


def test_an_approximate_promise_of_these_plans_is_kept_by_rounded_gaussian_noise():
    plan = tb.plan(DOMAIN, "[a][b]", privacy=PROMISES[-1])
    assert isinstance(plan.measured[0].noise, RoundedGaussian)
