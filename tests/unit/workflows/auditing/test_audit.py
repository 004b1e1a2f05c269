"""An audit accepts what is sound, finds what is not, and says when it could not tell."""

from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidArgument
from tabulary.mechanisms import MECHANISMS
from tabulary.noise import ExactSampler
from tabulary.workflows.auditing import audit
from tabulary.workflows.auditing.evidence import NarrowedSampler, StockedSampler, clopper_pearson
from tests.entropy import SeededEntropy
from tests.unit.workflows.auditing.test_cost import a_plan, forged

SMALL = tb.Domain({"a": "xy", "b": "xyz"})


def small_plan(mechanism="margins", relation="add-remove", privacy=None, **options):
    return tb.plan(
        SMALL, "[a][b]", privacy=privacy or tb.PureDP(1), mechanism=mechanism, neighbours=relation, **options
    )


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@pytest.mark.parametrize(
    ("relation", "privacy"),
    [("add-remove", tb.PureDP(2)), ("replace", tb.ZCDP("1/8"))],
    ids=str,
)
def test_every_mechanism_passes_and_its_twin_is_caught(mechanism, relation, privacy):
    plan = small_plan(mechanism, relation, privacy)
    report = audit(plan, draws=1_000, confidence=0.999, entropy=SeededEntropy(5))
    assert (report.verdict, report.problems) == ("holds", ())
    assert 0.5 < report.drawn.factor <= 1 < report.twin.factor


def test_noise_that_is_drawn_too_small_is_caught_by_the_draws_alone():
    report = audit(small_plan(), sampler=NarrowedSampler(ExactSampler(SeededEntropy(1))))
    assert report.verdict == "broken"
    assert report.cost.problems == ()
    assert any("the draws tell neighbouring inputs apart" in problem for problem in report.problems)


def test_a_plan_with_too_little_noise_is_caught_by_its_cost_and_by_its_draws():
    report = audit(forged(a_plan(), "1/2"), entropy=SeededEntropy(1))
    assert report.verdict == "broken"
    assert report.cost.problems
    # The noise is as this plan says. What it says is too little, and the draws show that as well.
    assert not report.drawn.broken
    assert any("the draws show a loss of at least" in problem for problem in report.problems)


def test_a_mechanism_without_noise_is_caught():
    class Silent:
        def draw(self, noise, size):
            return ExactSampler().draw(noise, size) * 0

    report = audit(small_plan(), sampler=Silent())
    assert report.verdict == "broken"
    assert report.drawn.broken


def test_one_event_that_is_too_likely_is_enough_if_one_person_changes():
    plan = small_plan("cells", privacy=tb.PureDP(3))
    report = audit(plan, sampler=NarrowedSampler(ExactSampler(SeededEntropy(1)), Fraction(1, 2)))
    assert report.drawn.people == 1
    assert any("an event alone shows" in problem for problem in report.problems)


def test_an_audit_that_misses_the_twin_is_inconclusive():
    # At this ε hardly any draw differs from zero, and a thousand cannot show how many do.
    plan = small_plan("cells", privacy=tb.PureDP(12))
    assert audit(plan, draws=1_000, entropy=SeededEntropy(1)).verdict == "inconclusive"


def test_a_small_epsilon_needs_no_more_draws_since_more_people_change():
    reports = [audit(small_plan(privacy=tb.PureDP(e)), entropy=SeededEntropy(2)) for e in ("1", "1/1000")]
    assert [report.verdict for report in reports] == ["holds", "holds"]
    assert reports[1].drawn.people > 100 * reports[0].drawn.people
    assert reports[1].drawn.draws < 2 * reports[0].drawn.draws
    assert reports[1].drawn.epsilon <= 1 / 1000


def test_people_with_several_records_are_audited_with_all_of_them():
    report = audit(small_plan(contribution=3), entropy=SeededEntropy(3))
    assert report.verdict == "holds"
    assert report.cost.cost == 1


def test_the_same_entropy_gives_the_same_report():
    first, again = (audit(small_plan(), entropy=SeededEntropy(4)).describe() for _ in range(2))
    assert first == again


def test_an_approximate_promise_is_told_as_an_epsilon_at_its_delta():
    report = audit(small_plan(privacy=tb.ApproxDP(1, 1e-9)), entropy=SeededEntropy(5))
    assert 0.6 < report.epsilon_shown(report.drawn) <= 1 < report.epsilon_shown(report.twin)


def test_a_promise_of_rho_is_told_as_rho():
    report = audit(small_plan(privacy=tb.ZCDP("1/8")), entropy=SeededEntropy(5))
    assert report.epsilon_shown(report.drawn) is None
    assert 0 < report.loss_shown(report.drawn).rho <= Fraction(1, 8) < report.loss_shown(report.twin).rho


@pytest.mark.parametrize("draws", [0, -5, 999])
def test_too_few_draws_are_refused(draws):
    with pytest.raises(InvalidArgument, match="at least 1,000 draws"):
        audit(small_plan(), draws=draws)


@pytest.mark.parametrize("confidence", [0, 1, 2, float("nan")])
def test_a_confidence_that_cannot_be_is_refused(confidence):
    with pytest.raises(InvalidArgument, match="the confidence of an audit"):
        audit(small_plan(), confidence=confidence)


def test_a_stock_of_draws_hands_none_out_twice():
    class Numbered:
        made = 0

        def draw(self, noise, size):
            self.made += size
            return np.arange(self.made - size, self.made, dtype=np.int64)

    stocked = StockedSampler(Numbered())
    seen = [int(v) for size in (3, (2, 2), 70_000, 5) for v in stocked.draw("law", size).reshape(-1)]
    assert len(set(seen)) == len(seen)


def test_bounds_of_a_probability_hold_at_the_ends():
    assert clopper_pearson(0, 10, 0.01)[0] == 0
    assert clopper_pearson(10, 10, 0.01)[1] == 1
    # The rule of three, at another error.
    assert clopper_pearson(0, 1_000, 1e-6)[1] == pytest.approx(1 - 1e-6 ** (1 / 1_000))
