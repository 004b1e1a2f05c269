"""The two attacks of Rinott, O'Keefe, Shlomo & Skinner (2018), section 2.2: what succeeds, and what does not."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from tabulary.attacks.differencing import averaging, demonstration_ptable, differencing
from tabulary.cellkey import KeyedRecords, PTable, RecordKeys, perturb, record_keys
from tabulary.core.domain import Domain
from tabulary.core.proportion import Proportion
from tabulary.errors import InvalidArgument, InvalidPrivacy
from tabulary.noise import DiscreteLaplace, ExactSampler
from tests.entropy import SeededEntropy

SURE = 1 - 1e-6


def is_compatible(share, probability):
    low, high = share.interval(SURE)
    return low <= probability <= high


def chance_to_differ(ptable, workers):
    """P(n + 1 + V' ≠ n + V) for independent perturbations V of n and V' of n + 1."""
    small, large = (ptable.probabilities(min(c, ptable.last)) for c in (workers, workers + 1))
    return 1 - float(sum(p * large.get(v - 1, 0) for v, p in small.items()))


@pytest.mark.parametrize("workers", [2, 40])
def test_cell_keys_give_bob_away_as_often_as_the_perturbations_differ_and_never_wrongly(workers):
    keys, *_ = differencing(trials=40_000, workers=workers, entropy=SeededEntropy(workers))
    assert keys.wrong.times == 0
    expected = chance_to_differ(demonstration_ptable(), workers)
    assert expected > 0.7
    assert is_compatible(keys.found, expected)
    assert not is_compatible(keys.found, expected - 0.03)
    assert keys.bound is None


def test_the_attack_on_cell_keys_works_on_tables_as_they_are_published():
    """From records to published counts: nothing of the study's arithmetic is used."""
    domain = Domain({"salary": ["below", "above"], "employed": ["a day", "longer"]})
    ptable = demonstration_ptable()
    differed = {"above": 0, "below": 0}
    for bob in differed:
        for trial in range(60):
            keys = record_keys(41, ptable.modulus, SeededEntropy(1000 * trial + len(bob)))
            columns = {
                "salary": ["above"] * 40 + [bob],
                "employed": ["longer"] * 40 + ["a day"],
                "record_key": keys.tolist(),
            }
            with KeyedRecords.from_frame(
                pa.table(columns), domain, keys=RecordKeys(modulus=ptable.modulus)
            ) as records:
                everybody = perturb(records, ["salary"], ptable)[0]["above"]
                longer = perturb(records, ["salary", "employed"], ptable)[0]["above", "longer"]
            differed[bob] += everybody != longer
    assert differed["below"] == 0
    assert is_compatible(Proportion(differed["above"], 60), chance_to_differ(ptable, 40))
    assert differed["above"] > 30


@pytest.mark.parametrize("epsilon", ["1/4", 1, 3])
def test_differential_privacy_holds_the_best_attacker_within_the_bound(epsilon):
    trials = 60_000
    _, same, best = differencing(trials=trials, epsilon=epsilon, entropy=SeededEntropy(7))
    loss = float(DiscreteLaplace(epsilon).scale)
    assert best.bound == same.bound == pytest.approx((math.exp(loss) - 1) / (math.exp(loss) + 1))
    spread = 2.5 / math.sqrt(trials)
    assert abs(same.advantage) <= best.bound + spread
    assert best.advantage <= best.bound + spread
    # The one query with Bob in it costs half of ε, and the best attacker gains exactly what that allows.
    assert abs(best.advantage - math.tanh(loss / 4)) < spread
    assert best.wrong.times > 0


def test_noise_of_the_wrong_scale_breaks_the_bound():
    """The sabotaged twin: at twice the loss, what the best attacker gains is more than ε allows."""
    trials, epsilon = 60_000, 1
    above = np.arange(trials) % 2 == 0
    noisy = above + ExactSampler(SeededEntropy(3)).draw(DiscreteLaplace("1/4"), trials)
    gained = (noisy[above] > 0).mean() - (noisy[~above] > 0).mean()
    assert gained > math.tanh(epsilon / 2) + 2.5 / math.sqrt(trials)


def test_fresh_perturbations_average_out_and_cell_keys_do_not():
    fresh, keys, _ = averaging(answers=100, trials=3_000, entropy=SeededEntropy(2))
    unchanged = float(demonstration_ptable().probabilities(2)[0])
    assert is_compatible(fresh.once, unchanged)
    assert fresh.averaged.rate > 0.99
    assert keys.averaged == keys.once
    assert is_compatible(keys.averaged, unchanged)


def test_a_shared_budget_does_not_average_out():
    chances = []
    for answers in (4, 25, 100):
        *_, private = averaging(answers=answers, trials=3_000, entropy=SeededEntropy(answers))
        # The mean of k draws of scale k has the variance of the noise at k, divided by k: about 2k.
        spread = math.sqrt(DiscreteLaplace(answers).variance / answers)
        expected = 1 - 2 * stats.norm.sf(0.5 / spread)
        low, high = private.averaged.interval(SURE)
        assert low - 0.03 < expected < high + 0.03
        chances.append(private.averaged.rate)
    assert chances[0] > chances[1] > chances[2]
    assert chances[2] < 0.08


def test_an_averaging_attack_that_did_not_share_the_budget_would_succeed():
    """The sabotaged twin: ε for each of the answers, and a hundred of them give the count away."""
    noise = ExactSampler(SeededEntropy(5)).draw(DiscreteLaplace(1), (1_000, 400))
    assert (2 * np.abs(noise.sum(axis=1)) < 400).mean() > 0.99


def test_wilson_intervals_hold_the_rate_and_never_leave_the_unit_interval():
    for times, trials in ((0, 10), (10, 10), (3, 7), (500, 1000)):
        low, high = Proportion(times, trials).interval(0.95)
        expected = stats.binomtest(times, trials).proportion_ci(0.95, method="wilson")
        assert (low, high) == pytest.approx((expected.low, expected.high))
        assert 0 <= low <= times / trials <= high <= 1


def test_the_attack_works_against_any_table_that_perturbs_at_all():
    ptable = PTable.from_rows([{0: 1}, {0: 1}, {-1: "1/2", 1: "1/2"}], modulus=256)
    keys, *_ = differencing(trials=4_000, workers=5, ptable=ptable, entropy=SeededEntropy(4))
    assert keys.wrong.times == 0
    # The answers n ± 1 and n + 1 ± 1 never agree: Bob is found every time.
    assert keys.found.rate == 1


@pytest.mark.parametrize("wrong", [{"trials": 1}, {"trials": 2.5}, {"workers": True}])
def test_a_study_of_nothing_is_refused(wrong):
    with pytest.raises(InvalidArgument, match=f"`{next(iter(wrong))}` is a whole number from 2 on"):
        differencing(**wrong)
    with pytest.raises(InvalidArgument, match="`answers` is a whole number from 2 on"):
        averaging(answers=0)
    with pytest.raises(InvalidArgument, match="3 times out of 2"):
        Proportion(3, 2)
    with pytest.raises(InvalidPrivacy, match="epsilon must be positive"):
        differencing(trials=10, epsilon=-1)
