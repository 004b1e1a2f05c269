import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, chisquare

from tabulary.errors import InvalidDomain, InvalidPrivacy, InvalidTable, UnknownLevel
from tabulary.noise import ExactSampler
from tabulary.toolbox import RandomizedResponse
from tests.entropy import SeededEntropy

truths = st.fractions("1/1000", "999/1000", max_denominator=1000)
many = st.integers(2, 40)


def _levels(k):
    return [f"level {i}" for i in range(k)]


def _log_ratio(response):
    with localcontext(prec=60):
        ratio = response.truth / response.lie
        return Fraction((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


@given(truths, many)
def test_epsilon_is_the_logarithm_of_the_ratio_rounded_up(q, k):
    response = RandomizedResponse(_levels(k), q=q)
    exact = _log_ratio(response)
    assert exact <= response.privacy.epsilon <= exact * (1 + Fraction(1, 10**10))
    assert response.truth + (k - 1) * response.lie == 1


@given(st.fractions("1/1000", 60, max_denominator=1000), many)
def test_q_is_the_largest_that_keeps_the_promise(epsilon, k):
    response = RandomizedResponse(_levels(k), epsilon=epsilon)
    assert response.privacy.epsilon == epsilon
    assert _log_ratio(response) <= epsilon
    step = Fraction(1, 2**62)
    if response.q + step < 1:
        more = RandomizedResponse(_levels(k), q=response.q + step)
        assert _log_ratio(more) > epsilon


def test_two_levels_are_the_coin_of_the_textbook():
    coin = RandomizedResponse(["yes", "no"], q="1/2")
    assert (coin.truth, coin.lie) == (Fraction(3, 4), Fraction(1, 4))
    assert float(coin.privacy.epsilon) == pytest.approx(math.log(3), abs=1e-11)
    for q in (0.1, 0.9):
        named = float(RandomizedResponse("ab", q=q).privacy.epsilon)
        assert named == pytest.approx(math.log((1 + q) / (1 - q)), rel=1e-11)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_truth_is_told_with_the_probability_of_k_ary_response(k):
    response = RandomizedResponse(_levels(k), epsilon=1)
    assert float(response.truth) == pytest.approx(math.e / (math.e + k - 1), rel=1e-14)


@pytest.mark.parametrize("k", [2, 5])
def test_answers_follow_the_stated_law_and_a_test_would_notice_another(k):
    levels = _levels(k)
    response = RandomizedResponse(levels, q="2/5")
    n = 40_000
    answers = response.respond([levels[1]] * n, sampler=ExactSampler(SeededEntropy(3)))
    seen = [int((answers == level).sum()) for level in levels]

    def expected(q):
        return [n * ((1 - q) / k + (q if i == 1 else 0)) for i in range(k)]

    assert chisquare(seen, expected(0.4)).pvalue > 1e-6
    assert chisquare(seen, expected(0.44)).pvalue < 1e-6


def _all_answers(response, truth):
    """Every list of answers to some true values, with its exact probability."""
    k = len(response.levels)
    for answers in itertools.product(range(k), repeat=len(truth)):
        chance = math.prod(
            response.truth if a == t else response.lie for a, t in zip(answers, truth, strict=True)
        )
        yield np.bincount(answers, minlength=k), chance


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("q", ["1/3", "4/5"])
def test_estimates_and_their_variances_are_unbiased(k, q):
    response = RandomizedResponse(_levels(k), q=q)
    for truth in itertools.combinations_with_replacement(range(k), 4):
        made = [
            (response.estimate_from_counts(counts), chance)
            for counts, chance in _all_answers(response, truth)
        ]
        have = np.bincount(truth, minlength=k)
        means = sum(float(chance) * found.counts for found, chance in made)
        spread = sum(float(chance) * (found.counts - have) ** 2 for found, chance in made)
        stated = sum(float(chance) * found.standard_errors**2 for found, chance in made)
        assert means == pytest.approx(have, abs=1e-9)
        assert stated == pytest.approx(spread, rel=1e-9)


def test_the_standard_error_of_a_share_counts_the_draw_of_the_people_too():
    response, n, share = RandomizedResponse("ab", q="1/2"), 12, 0.3
    answering = float(response.lie) + 0.5 * share
    seen = np.arange(n + 1)
    chances = binom.pmf(seen, n, answering)
    found = [response.estimate_from_counts([c, n - c]) for c in seen]
    spread = sum(p * (each.shares[0] - share) ** 2 for p, each in zip(chances, found, strict=True))
    stated = sum(p * each.share_standard_errors[0] ** 2 for p, each in zip(chances, found, strict=True))
    assert stated == pytest.approx(spread, rel=1e-9)
    by_coins = sum(p * (each.standard_errors[0] / n) ** 2 for p, each in zip(chances, found, strict=True))
    # What is left is the variance of the share of those who were drawn.
    assert stated - by_coins == pytest.approx(share * (1 - share) / n, rel=1e-9)


@pytest.mark.parametrize(("q", "k"), [("1/10", 2), ("1/2", 2), ("9/10", 2), ("1/2", 5)])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_intervals_cover_how_many_have_a_level_for_any_number_of_answers(q, k, n):
    response = RandomizedResponse(_levels(k), q=q)
    p, r = float(response.truth), float(response.lie)
    intervals = [
        response.estimate_from_counts([c, n - c, *[0] * (k - 2)]).interval("level 0", 0.9)
        for c in range(n + 1)
    ]
    coverages = []
    for have in range(n + 1):
        law = np.convolve(binom.pmf(range(have + 1), have, p), binom.pmf(range(n - have + 1), n - have, r))
        coverages.append(sum(law[c] for c, (low, high) in enumerate(intervals) if low <= have <= high))
    assert min(coverages) >= 0.9


@pytest.mark.parametrize("n", [1, 5, 30])
def test_intervals_cover_the_share_of_a_population_for_any_number_of_answers(n):
    response = RandomizedResponse("ab", q="1/2")
    intervals = [response.estimate_from_counts([c, n - c]).share_interval("a", 0.9) for c in range(n + 1)]
    for share in np.linspace(0, 1, 41):
        law = binom.pmf(range(n + 1), n, 0.25 + 0.5 * share)
        assert sum(law[c] for c, (low, high) in enumerate(intervals) if low <= share <= high) >= 0.9


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000), st.data())
def test_an_interval_of_a_share_is_the_one_of_clopper_and_pearson(n, data):
    c = data.draw(st.integers(0, n))
    response = RandomizedResponse("ab", q="1/2")
    low, high = response.estimate_from_counts([c, n - c]).share_interval("a")
    lowest = beta.ppf(0.025, c, n - c + 1) if c else 0
    highest = beta.ppf(0.975, c + 1, n - c) if c < n else 1
    assert low == pytest.approx(min(max((lowest - 0.25) / 0.5, 0), 1), abs=1e-6)
    assert high == pytest.approx(min(max((highest - 0.25) / 0.5, 0), 1), abs=1e-6)


def test_many_answers_are_estimated_closely_and_their_interval_is_as_wide_as_the_normal_one():
    response = RandomizedResponse("ab", q="1/2")
    found = response.estimate_from_counts([450_000, 550_000])
    low, high = found.interval("a")
    assert found.counts.tolist() == [400_000, 600_000]
    assert (high - low) / 2 == pytest.approx(1.96 * found.standard_errors[0], rel=0.01)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=4).filter(any), truths)
def test_estimates_add_up_to_everyone_and_intervals_are_possible(counts, q):
    found = RandomizedResponse(_levels(len(counts)), q=q).estimate_from_counts(counts)
    assert found.counts.sum() == pytest.approx(sum(counts))
    assert (found.standard_errors >= 0).all()
    for level in found.levels:
        low, high = found.interval(level)
        assert 0 <= low <= high <= sum(counts)
        share_low, share_high = found.share_interval(level)
        assert 0 <= share_low <= share_high <= 1


def test_answers_are_read_from_frames_and_any_labels():
    response = RandomizedResponse(["yes", "no"], q="1/2")
    answers = response.respond(pd.Series(["yes", "no", "no"], dtype="category"))
    assert response.estimate(answers).people == 3
    assert set(RandomizedResponse([0, 1], q="1/2").respond([1, 1, 0]).tolist()) <= {0, 1}


@pytest.mark.parametrize("values", [["yes", "987654"], [None], [float("nan")], [["yes"]], []])
def test_a_value_outside_the_answers_is_refused_without_being_told(values):
    response = RandomizedResponse(["yes", "no"], q="1/2")
    with pytest.raises(UnknownLevel, match="nothing was spent") as caught:
        response.respond(values)
    assert "987654" not in str(caught.value)


def test_an_answer_that_nobody_could_give_is_refused():
    found = RandomizedResponse(["yes", "no"], q="1/2").estimate(["yes", "no"])
    with pytest.raises(InvalidDomain, match="'maybe'"):
        found.interval("maybe")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        *(({"q": q}, r"q must be from 2\*\*-40 to below 1") for q in (0, 1, -1, "1e-20")),
        ({"q": float("nan")}, "q must be a whole number, .* not nan"),
    ],
)
@pytest.mark.parametrize("levels", ["ab", "abc"])
def test_a_truth_probability_that_cannot_be_is_refused(options, reason, levels):
    with pytest.raises(InvalidPrivacy, match=reason):
        RandomizedResponse(levels, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"epsilon": "1e-15"}, "so small that no answer would say anything"),
        ({}, "give either q"),
        ({"q": "1/2", "epsilon": 1}, "give either q"),
    ],
)
def test_an_epsilon_that_cannot_be_is_refused(options, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        RandomizedResponse("ab", **options)


@pytest.mark.parametrize("levels", [[], ["only"], ["a", "a"]])
def test_a_question_needs_two_different_answers(levels):
    with pytest.raises(InvalidDomain, match="at least two answers, and no answer may be listed twice"):
        RandomizedResponse(levels, q="1/2")


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        *((counts, "2 levels need 2 counts") for counts in ([1], [1, 2, 3])),
        *((counts, "counts, whole and not negative") for counts in ([-1, 2], [0.5, 1])),
        ([0, 0], "there is no answer to estimate from"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, reason):
    with pytest.raises(InvalidTable, match=reason):
        RandomizedResponse("ab", q="1/2").estimate_from_counts(counts)
