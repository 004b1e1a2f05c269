import itertools
import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chisquare

from tabulary.errors import InvalidNoise
from tabulary.noise import ExactSampler
from tabulary.toolbox.choice_laws import ExponentialChoice, PermuteAndFlip, Uniform
from tests.entropy import ScriptedEntropy, SeededEntropy

rates = st.fractions(Fraction(1, 50), 20, max_denominator=50)
losses_of = st.lists(st.integers(0, 400), min_size=1, max_size=12).map(lambda u: [x - min(u) for x in u])
probabilities = st.lists(st.fractions(0, 1, max_denominator=9), min_size=0, max_size=3).map(
    lambda p: [Fraction(1), *p]
)


def _tails(rate, losses, sizes):
    """The probability of every distinct loss from the second on and all above it, to a hundred digits."""
    weights = Counter()
    for loss, size in zip(losses, sizes, strict=True):
        weights[loss] += size
    with localcontext(prec=140):
        each = [
            size * (-Decimal(loss) * rate.numerator / rate.denominator).exp()
            for loss, size in sorted(weights.items())
        ]
        return [Fraction(sum(each[j:]) / sum(each)) for j in range(1, len(each))]


@given(rates, losses_of, st.data())
def test_the_boundaries_of_an_exponential_choice_are_right_to_the_last_bit(rate, losses, data):
    sizes = data.draw(st.lists(st.integers(1, 10**9), min_size=len(losses), max_size=len(losses)))
    law = ExponentialChoice(rate, losses, sizes)
    for bits in (64, 128):
        lowest, floors = law.slots(bits)
        tails = [math.floor(tail * 2**bits) for tail in _tails(rate, losses, sizes)]
        reaching = [tail for tail in tails if tail]
        assert lowest == 0
        # Up to the first tail that does not reach the first slot; what lies beyond is a tie.
        assert list(floors) == [2**bits - 1 - tail for tail in (*reaching, *tails[len(reaching) :][:1])]


def test_a_tie_is_settled_by_the_next_word():
    law = ExponentialChoice(Fraction(1), (0, 1), (1, 1))
    (boundary,) = law.slots(64).floors
    chosen = [
        int(law.sample(1, ScriptedEntropy([*words, 0]))[0])
        for words in ([boundary - 1], [boundary, 0], [boundary, 2**64 - 1], [boundary + 1])
    ]
    assert chosen == [0, 0, 1, 1]


def test_a_candidate_far_behind_is_reached_by_enough_words_and_never_ruled_out():
    law = ExponentialChoice(Fraction(1), (0, 5000), (1, 1))
    words = [2**64 - 1] * 113
    assert law.sample(1, ScriptedEntropy([*words, 0])).tolist() == [1]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 1, 2, 7)])
def test_candidates_of_the_same_loss_are_equally_likely_and_numbered_in_their_order(sizes):
    losses = (2, 0, 2, 5)
    law = ExponentialChoice(Fraction(1, 2), losses, sizes)
    drawn = ExactSampler(SeededEntropy(1)).draw(law, 20_000)
    weights = np.repeat(np.exp(-np.array(losses) / 2), sizes)
    seen = np.bincount(drawn, minlength=sum(sizes))
    assert chisquare(seen, 20_000 * weights / weights.sum()).pvalue > 1e-6
    assert chisquare(seen, 20_000 * weights**1.1 / (weights**1.1).sum()).pvalue < 1e-6


def _in_random_order(chances):
    """The law of the first head in a random order, by enumeration."""
    law = [Fraction(0)] * len(chances)
    orders = list(itertools.permutations(range(len(chances))))
    for order in orders:
        left = Fraction(1, len(orders))
        for i in order:
            law[i] += left * chances[i]
            left *= 1 - chances[i]
    return law


def _one_of_the_heads(chances):
    """The law of one of all heads, by enumeration."""
    law = [Fraction(0)] * len(chances)
    for tosses in itertools.product((0, 1), repeat=len(chances)):
        chance = math.prod(p if head else 1 - p for p, head in zip(chances, tosses, strict=True))
        for i, head in enumerate(tosses):
            law[i] += head * chance / max(1, sum(tosses))
    return law


def _noisy_max(chances):
    """p ∫ Π (1 - p_j y) dy, the integral that report noisy max with exponential noise comes to."""
    law = []
    for i, p in enumerate(chances):
        polynomial = [Fraction(1)]
        for other in (*chances[:i], *chances[i + 1 :]):
            polynomial = [a - other * b for a, b in zip((*polynomial, 0), (0, *polynomial), strict=True)]
        law.append(p * sum(c / Fraction(power + 1) for power, c in enumerate(polynomial)))
    return law


@given(probabilities)
def test_the_first_head_one_of_the_heads_and_the_noisy_maximum_have_one_law(chances):
    assert _in_random_order(chances) == _one_of_the_heads(chances) == _noisy_max(chances)
    assert sum(_noisy_max(chances)) == 1


@pytest.mark.parametrize("utilities", [(0.0, 1.0), (3.0, 2.5, 0.0), (1.0, 1.0, 0.5, 0.0)])
def test_the_integral_is_the_one_of_utilities_with_exponential_noise(utilities):
    best = max(utilities)
    for i, u in enumerate(utilities):

        def density(x, i=i, u=u):
            others = (1 - math.exp(-(x - v)) for j, v in enumerate(utilities) if j != i)
            return math.exp(-(x - u)) * math.prod(others)

        chances = [Fraction(math.exp(v - best)) for v in utilities]
        assert quad(density, best, 60)[0] == pytest.approx(float(_noisy_max(chances)[i]), abs=1e-9)


def test_permute_and_flip_draws_its_law_and_a_test_would_notice_another():
    losses, rate = (0, 1, 1, 3), Fraction(2, 3)
    drawn = ExactSampler(SeededEntropy(2)).draw(PermuteAndFlip(rate, losses), 20_000)
    seen = np.bincount(drawn, minlength=4)

    def expected(rate):
        return [20_000 * float(p) for p in _noisy_max([Fraction(math.exp(-rate * x)) for x in losses])]

    assert chisquare(seen, expected(float(rate)), sum_check=False).pvalue > 1e-6
    assert chisquare(seen, expected(float(rate) * 1.1), sum_check=False).pvalue < 1e-6


def test_a_coin_that_is_a_tie_is_settled_by_the_next_word():
    law = PermuteAndFlip(Fraction(1), (0, 1))
    floor = math.floor(Decimal(-1).exp(Context(prec=40)) * 2**64)
    # The first candidate's coin needs no word, the second's falls on its head below e⁻¹; the last word picks the head.
    script = {(floor - 1,): 1, (floor, 0): 1, (floor, 2**64 - 1): 0, (floor + 1,): 0}
    for words, chosen in script.items():
        assert law.sample(1, ScriptedEntropy([5, *words, 1])).tolist() == [chosen]


@settings(max_examples=30)
@given(st.integers(1, 2**63))
def test_a_uniform_choice_stays_below_its_size(size):
    drawn = Uniform(size).sample(50, SeededEntropy(size % 1000))
    assert drawn.min() >= 0
    assert int(drawn.max()) < size


def test_a_word_beyond_the_last_multiple_is_drawn_again():
    # 2**64 is one more than a multiple of three.
    assert Uniform(3).sample(2, ScriptedEntropy([2**64 - 1, 7, 5])).tolist() == [2, 1]
    assert Uniform(3).sample(1, ScriptedEntropy([2**64 - 2])).tolist() == [2]
    assert Uniform(3).sample(1, ScriptedEntropy([2**64 - 1, 2**64 - 1, 4])).tolist() == [1]


def test_no_law_shows_the_losses():
    for law in (
        ExponentialChoice(Fraction(1), (0, 987654), (1, 1)),
        PermuteAndFlip(Fraction(1), (0, 987654)),
    ):
        assert "987654" not in repr(law)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: ExponentialChoice(Fraction(1), (), ()), "the best has a loss of zero"),
        (lambda: ExponentialChoice(Fraction(1), (1, 2), (1, 1)), "the best has a loss of zero"),
        (lambda: ExponentialChoice(Fraction(0), (0,), (1,)), "rate of a choice must be positive"),
        (lambda: ExponentialChoice(Fraction(1), (0, 1), (1,)), "Every run of candidates"),
        (lambda: ExponentialChoice(Fraction(1), (0, 1), (1, 0)), "Every run of candidates"),
        (lambda: PermuteAndFlip(Fraction(1), ()), "the best has a loss of zero"),
        (lambda: PermuteAndFlip(Fraction(-1), (0,)), "rate of a choice must be positive"),
        (lambda: Uniform(0), "A uniform choice needs"),
        (lambda: Uniform(2**63 + 1), "A uniform choice needs"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(make, reason):
    with pytest.raises(InvalidNoise, match=reason):
        make()
