import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidPrivacy
from tabulary.toolbox import exponential_mechanism, report_noisy_max, utility_bound
from tests.unit.toolbox.samplers import Captured

ONE = tb.PureDP(1)
MECHANISMS = {"exponential": exponential_mechanism, "noisy-max": report_noisy_max}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


def _law(mechanism, utilities, **options):
    """The probabilities of all candidates, in floating point, from the law that would be drawn from."""
    sampler = Captured()
    MECHANISMS[mechanism](range(len(utilities)), utilities, sampler=sampler, **options)
    chances = np.exp(-float(sampler.law.rate) * np.array([float(x) for x in sampler.law.losses]))
    if mechanism == "exponential":
        return chances / chances.sum()
    y, weights = np.polynomial.legendre.leggauss(60)
    y, weights = (y + 1) / 2, weights / 2
    others = [
        np.prod([1 - p * y for j, p in enumerate(chances) if j != i], axis=0) for i in range(len(chances))
    ]
    return np.array([p * float(np.sum(weights * rest)) for p, rest in zip(chances, others, strict=True)])


def _worst(mechanism, utilities, moves, epsilon, **options):
    """The largest privacy loss over all neighbours of the utilities."""
    here = _law(mechanism, utilities, privacy=tb.PureDP(epsilon), **options)
    losses = []
    for move in itertools.product(moves, repeat=len(utilities)):
        there = _law(
            mechanism,
            [u + d for u, d in zip(utilities, move, strict=True)],
            privacy=tb.PureDP(epsilon),
            **options,
        )
        losses.append(float(np.abs(np.log(there / here)).max()))
    return max(losses)


@every_mechanism
@settings(max_examples=15, deadline=None)
@given(
    utilities=st.lists(st.fractions(-6, 6, max_denominator=4), min_size=2, max_size=3),
    sensitivity=st.fractions("1/4", 3, max_denominator=4),
    epsilon=st.sampled_from(["1/10", "1", "3"]),
)
def test_no_change_of_the_utilities_within_the_sensitivity_loses_more_than_epsilon(
    mechanism, utilities, sensitivity, epsilon
):
    moves = (-sensitivity, 0, sensitivity)
    lost = _worst(mechanism, utilities, moves, epsilon, sensitivity=sensitivity)
    assert lost <= float(Fraction(epsilon)) + 1e-9


@every_mechanism
@settings(max_examples=15, deadline=None)
@given(
    utilities=st.lists(st.integers(-6, 6), min_size=2, max_size=3),
    epsilon=st.sampled_from(["1/10", "1", "3"]),
)
def test_utilities_that_only_rise_cost_half(mechanism, utilities, epsilon):
    lost = _worst(mechanism, utilities, (0, 1), epsilon, sensitivity=1, monotone=True)
    assert lost <= float(Fraction(epsilon)) + 1e-9


@pytest.mark.parametrize(("mechanism", "utilities"), [("exponential", [0] + [0] * 5), ("noisy-max", [0, 14])])
def test_the_promise_is_used_up_and_utilities_that_part_would_break_a_monotone_one(mechanism, utilities):
    assert _worst(mechanism, utilities, (-1, 1), 3, sensitivity=1) > 2.8
    assert _worst(mechanism, utilities, (-1, 1), 3, sensitivity=1, monotone=True) > 3.5


@every_mechanism
def test_a_candidate_of_any_kind_can_be_chosen_by_a_function(mechanism):
    candidates = [{"depth": 3}, {"depth": 50}, {"depth": 4}]
    chosen = MECHANISMS[mechanism](
        candidates, lambda tree: tree["depth"] * 1000, sensitivity=1, privacy=tb.PureDP(2)
    )
    assert chosen.value is candidates[1]
    assert chosen.spent == tb.PureDP(2)
    assert chosen.candidates == 3


@every_mechanism
def test_fractions_and_the_integers_of_numpy_are_exact_utilities(mechanism):
    sampler = Captured()
    utilities = [Fraction(1, 3), np.int64(1), 0]
    MECHANISMS[mechanism]("abc", utilities, sensitivity="1/2", privacy=ONE, sampler=sampler)
    exponents = [sampler.law.rate * loss for loss in sampler.law.losses]
    # ε·loss/(2Δ) with Δ = 1/2 is the loss.
    assert exponents == [Fraction(2, 3), 0, 1]


@every_mechanism
@pytest.mark.parametrize("candidates", [2, 5, 1024])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_the_utility_bound_is_reached_by_the_worst_case_and_exceeded_by_none(
    mechanism, candidates, confidence
):
    bound = utility_bound(candidates, sensitivity=1, privacy=ONE, confidence=confidence, mechanism=mechanism)
    p = math.exp(-bound / 2)
    # All other candidates lie as far below the best as the bound: the chance of the best, in closed form.
    best = (
        1 / (1 + (candidates - 1) * p)
        if mechanism == "exponential"
        else (1 - (1 - p) ** candidates) / (candidates * p)
    )
    assert best == pytest.approx(confidence, abs=1e-9) or (bound == 0 and best >= confidence)


@every_mechanism
@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=6))
def test_a_shortfall_is_exceeded_no_more_often_than_stated_whatever_the_utilities(mechanism, utilities):
    chances = _law(mechanism, utilities, sensitivity=1, privacy=ONE)
    chosen = MECHANISMS[mechanism](range(len(utilities)), utilities, sensitivity=1, privacy=ONE)
    lost = max(utilities) - np.array(utilities)
    assert chances[lost > chosen.shortfall(0.9)].sum() <= 0.1 + 1e-9
    assert math.sqrt(float(chances @ lost.astype(float) ** 2)) <= chosen.standard_error + 1e-9


def test_the_textbook_bound_holds_hardly_more_often_than_a_coin_falls_on_its_head():
    m = 1000
    textbook = 2 * math.log(m)
    at = _law("exponential", [0] + [-math.ceil(textbook)] * (m - 1), sensitivity=1, privacy=ONE)
    # The next whole loss above 13.8 is 14, a little kinder than the worst case.
    assert at[0] < 0.53
    assert utility_bound(m, sensitivity=1, privacy=ONE) > textbook + 5


def test_report_noisy_max_never_loses_more_than_the_exponential_mechanism():
    for m, confidence in itertools.product((2, 10, 1000), (0.5, 0.9, 0.99)):
        bounds = [
            utility_bound(m, sensitivity=1, privacy=ONE, confidence=confidence, mechanism=mechanism)
            for mechanism in ("noisy-max", "exponential")
        ]
        assert bounds[0] <= bounds[1] + 1e-9


def test_a_single_candidate_is_chosen_and_nothing_is_lost():
    only = exponential_mechanism(["it"], [5], sensitivity=1, privacy=ONE)
    assert (only.value, only.shortfall(), only.standard_error) == ("it", 0.0, 0.0)


@every_mechanism
@pytest.mark.parametrize(
    ("candidates", "utilities", "options", "error", "says"),
    [
        ([], [], {}, InvalidArgument, "no candidate"),
        ("ab", [1], {}, InvalidArgument, "candidates need"),
        ("ab", [1, 98.7654], {}, InvalidArgument, "whole numbers or fractions"),
        ("ab", [1, float("nan")], {}, InvalidArgument, "whole numbers or fractions"),
        ("ab", [1, True], {}, InvalidArgument, "whole numbers or fractions"),
        ("ab", [1, 2], {"sensitivity": 0}, InvalidNoise, "positive"),
        ("ab", [1, 2], {"sensitivity": "?"}, InvalidNoise, "sensitivity"),
        ("ab", [1, 2], {"privacy": tb.ZCDP(1)}, InvalidPrivacy, "pure"),
        ("ab", [1, 2], {"monotone": True, "neighbours": "replace"}, InvalidArgument, "add-remove"),
        ("ab", [1, 2], {"neighbours": "swap"}, InvalidPrivacy, "neighbours"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused_without_telling_a_utility(
    mechanism, candidates, utilities, options, error, says
):
    with pytest.raises(error, match=says) as caught:
        MECHANISMS[mechanism](candidates, utilities, **{"sensitivity": 1, "privacy": ONE, **options})
    assert "98.7654" not in str(caught.value)


@pytest.mark.parametrize(
    ("candidates", "options", "reason"),
    [
        (0, {}, "at least one candidate, not 0"),
        (True, {}, "at least one candidate, not True"),
        (5, {"mechanism": "best"}, "the mechanism must be .* not 'best'"),
        (2.5, {}, "at least one candidate, not 2.5"),
    ],
)
def test_a_bound_that_cannot_be_is_refused(candidates, options, reason):
    with pytest.raises(InvalidArgument, match=reason):
        utility_bound(candidates, sensitivity=1, privacy=ONE, **options)
