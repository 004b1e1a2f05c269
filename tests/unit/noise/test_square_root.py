"""The law by plain summation in decimal arithmetic, its draws against it, and what it never tells."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidNoise
from tabulary.noise import ExactSampler, SquareRootLaplace, law_from_description, noise_from_description
from tabulary.noise.inversion import Inversion
from tabulary.noise.root_blocks import RootBlocks
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.unit.noise.decimals import decimal

LEVEL = 1e-6
DRAWS = 100_000
LAST_WORD = 2**64 - 1

SOME_OF_EVERY_SIZE = [
    *((Fraction(1, 2**20), a) for a in (0, 7, 2**50)),
    *((Fraction(1, 200), a) for a in (0, 100, 10**9)),
    *((Fraction(1, 4), a) for a in (0, 10, 1000, 10**12)),
    *((Fraction(7, 3), a) for a in (1, 500)),
    *((Fraction(50), a) for a in (0, 3, 10**6)),
    *((Fraction(2**20), a) for a in (0, 5, 2**50)),
]
every_size = pytest.mark.parametrize(("rate", "centre"), SOME_OF_EVERY_SIZE, ids=str)
# Narrow enough for every value to be summed by itself.
NARROW = [("1/2", 0), ("1/2", 7), ("1", 2500), ("3/4", 16), ("3/4", 40), ("5", 1), ("5", 1000), ("50", 3)]
every_narrow_law = pytest.mark.parametrize(
    ("rate", "centre"), [(Fraction(rate), centre) for rate, centre in NARROW], ids=str
)


def brute(rate: Fraction, centre: int) -> tuple[list[Decimal], Decimal]:
    """The weights of 0, 1, 2, … to 40 digits, and an upper bound of all that is left out."""
    with localcontext(prec=40):
        root, c = Decimal(centre).sqrt(), decimal(rate)
        last = int((root + 85 / c) ** 2) + 1
        found = [(-c * abs(Decimal(b).sqrt() - root)).exp() for b in range(last + 1)]
        edge = Decimal(last).sqrt()
        # The integral of exp(-c√x) from `last` on.
        rest = 2 / c**2 * (c * edge + 1) * (c * (root - edge)).exp()
        return found, rest


@every_narrow_law
def test_the_moments_and_probabilities_are_those_of_plain_summation(rate, centre):
    weights, rest = brute(rate, centre)
    law = SquareRootLaplace(rate, centre)
    with localcontext(prec=40):
        total = sum(weights)
        assert rest / total < Decimal("1e-30")
        mean = sum(b * w for b, w in enumerate(weights)) / total
        variance = sum((b - mean) ** 2 * w for b, w in enumerate(weights)) / total
        probabilities, below = [], []
        running = Decimal(0)
        for weight in weights:
            running += weight
            probabilities.append(float(weight / total))
            below.append(float(running / total))
    assert law.normaliser == pytest.approx(float(total), rel=1e-13)
    assert law.mean == pytest.approx(float(mean), rel=1e-13)
    assert law.variance == pytest.approx(float(variance), rel=1e-12)
    b = np.arange(len(weights))
    np.testing.assert_allclose(law.pmf(b), probabilities, rtol=1e-12)
    np.testing.assert_allclose(law.cdf(b), below, rtol=1e-12)
    # A few at a time are cut into other runs than all of them.
    few = b[:: max(1, b.size // 50)]
    np.testing.assert_allclose(law.cdf(few), np.array(below)[few], rtol=1e-12)


@pytest.mark.parametrize("rate", [Fraction(1, 2**20), Fraction(1, 1000), Fraction(1, 200), Fraction(1, 50)])
def test_a_wide_law_about_zero_has_the_moments_of_its_zeta_expansion(rate):
    """Σ b**k·exp(-c√b) = 2·(2k + 1)!/c**(2k + 2) + [k = 0] + Σ (-c)**n/n! · ζ(-k - n/2), no sum over b at all."""
    c = float(rate)
    law = SquareRootLaplace(rate, 0)
    # ζ(0) = -1/2, ζ(-1/2), ζ(-1) = -1/12, ζ(-3/2), ζ(-2) = 0.
    half, three_halves = -0.20788622497735457, -0.02548520188983304
    total = 2 / c**2 + 0.5 - c * half - c**2 / 24 - c**3 / 6 * three_halves
    first = 12 / c**4 - 1 / 12 - c * three_halves
    assert law.normaliser == pytest.approx(total, rel=1e-13)
    assert law.mean == pytest.approx(first / total, rel=1e-13)
    assert law.variance == pytest.approx(240 / c**6 / total - (first / total) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("rate", "centre"), [("1/100", 0), ("1/100", 10**6), (1, 10**6), (50, 10**9)], ids=str
)
def test_a_small_rate_or_a_large_count_is_biased_upwards_by_six_over_the_squared_rate(rate, centre):
    law = SquareRootLaplace(rate, centre)
    assert law.mean - centre == pytest.approx(6 / float(law.rate) ** 2, rel=1e-3)


@every_size
def test_the_distribution_function_rises_by_the_probabilities_from_zero_to_one(rate, centre):
    law = SquareRootLaplace(rate, centre)
    spread = math.ceil(3 * law.variance**0.5)
    b = np.unique(np.linspace(max(0, centre - spread), centre + spread, 101).astype(np.int64))
    np.testing.assert_allclose(law.cdf(b) - law.cdf(b - 1), law.pmf(b), rtol=1e-4, atol=1e-15)
    assert (np.diff(law.cdf(b)) >= 0).all()
    assert law.cdf(-1) == law.pmf(-1) == law.pmf(-(2**60)) == 0
    assert float(law.cdf(2**62)) == pytest.approx(1, abs=1e-13)


@given(
    rate=st.fractions(min_value=Fraction(1, 10), max_value=20, max_denominator=50),
    centre=st.integers(min_value=0, max_value=300),
    b=st.integers(min_value=0, max_value=2_000),
)
def test_the_log_probability_falls_by_the_rate_for_each_unit_of_the_root(rate, centre, b):
    law = SquareRootLaplace(rate, centre)
    fall = math.log(float(law.pmf(centre)) / float(law.pmf(b)))
    assert fall == pytest.approx(float(rate) * abs(math.sqrt(b) - math.sqrt(centre)), rel=1e-9, abs=1e-9)


@given(
    rate=st.fractions(min_value=Fraction(1, 10), max_value=3, max_denominator=50),
    count=st.integers(min_value=0, max_value=100),
)
def test_one_record_more_moves_no_log_probability_by_more_than_twice_the_rate(rate, count):
    b = np.arange(5_000)
    ratio = np.log(SquareRootLaplace(rate, count).pmf(b) / SquareRootLaplace(rate, count + 1).pmf(b))
    assert np.abs(ratio).max() <= 2 * float(rate) + 1e-9


def test_the_promise_is_much_larger_than_what_large_counts_need():
    def loss(count: int) -> float:
        b = np.arange(5_000)
        laws = (SquareRootLaplace(1, count + more) for more in (0, 1))
        return float(np.abs(np.subtract(*(np.log(law.pmf(b)) for law in laws))).max())

    assert loss(0) > 1
    assert loss(100) < 0.1


def fit(draws: np.ndarray, rate: Fraction, centre: int) -> float:
    """The p-value of Pearson's chi-square over some two hundred bins of about equal probability.

    The law is summed plainly in doubles here, so that it shares no line with the package.
    """
    root, c = math.sqrt(centre), float(rate)
    values = np.arange(int(max(0.0, root - 45 / c) ** 2), int((root + 45 / c) ** 2) + 2)
    law = np.exp(-c * np.abs(values - centre) / np.maximum(np.sqrt(values) + root, 1))
    law /= law.sum()
    bins = np.minimum((np.cumsum(law) * 200).astype(int), 199)
    expected = np.bincount(bins, law, minlength=200) * draws.size
    places = np.clip(draws - values[0], 0, values.size - 1)
    observed = np.bincount(bins[places], minlength=200)
    small = expected < 5
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    filled = expected > 0
    statistic = float(np.sum((observed[filled] - expected[filled]) ** 2 / expected[filled]))
    return float(stats.chi2.sf(statistic, filled.sum() - 1))


@pytest.mark.parametrize(
    ("rate", "centre"),
    [
        (Fraction(1, 20), 12),
        (Fraction(1, 4), 0),
        (Fraction(1, 4), 10),
        (Fraction(3, 4), 1),
        (Fraction(3, 4), 100),
        (Fraction(3, 4), 10_000),
        (Fraction(3), 5),
        (Fraction(50), 10_000),
    ],
    ids=str,
)
def test_draws_fit_their_law_and_not_one_of_another_rate(rate, centre):
    draws = SquareRootLaplace(rate, centre).sample(DRAWS, SeededEntropy(21))
    assert fit(draws, rate, centre) > LEVEL
    sabotaged = SquareRootLaplace(rate * Fraction(7, 10), centre).sample(DRAWS, SeededEntropy(22))
    assert fit(sabotaged, rate, centre) < LEVEL


def test_draws_about_the_next_count_do_not_fit():
    neighbour = SquareRootLaplace(Fraction(3, 4), 1).sample(DRAWS, SeededEntropy(23))
    assert fit(neighbour, Fraction(3, 4), 0) < LEVEL


@pytest.mark.parametrize(("rate", "centre"), [(Fraction(1, 4), 10), (Fraction(3), 10**6)], ids=str)
def test_draws_that_skip_the_last_coin_do_not_fit(rate, centre, monkeypatch):
    """So the fit sees what the coin is for: inside a block the proposals are flat and the law is not."""
    monkeypatch.setattr(RootBlocks, "keep", lambda blocks, places, values, entropy: places == places)
    draws = SquareRootLaplace(rate, centre).sample(DRAWS, SeededEntropy(24))
    assert fit(draws, rate, centre) < LEVEL


@every_size
def test_draws_have_the_stated_mean_and_variance(rate, centre):
    law = SquareRootLaplace(rate, centre)
    draws = law.sample(DRAWS, SeededEntropy(25))
    assert draws.min() >= 0
    shifts = (draws - centre).astype(float)
    bias, spread = law.mean - centre, law.variance**0.5
    # An integer differs from the centre with a probability of at most its mean squared distance.
    if law.variance + bias**2 < 1e-5:
        assert np.count_nonzero(shifts) <= 8
        return
    # Above 2**40 the mean itself is rounded by up to 2**-3.
    assert abs(shifts.mean() - bias) <= 6 * spread / math.sqrt(DRAWS) + 2 * math.ulp(law.mean)
    # The kurtosis is largest for a wide law about zero: with E bᵏ = (2k + 1)!/c**(2k) it is below 38.
    assert abs(np.mean((shifts - bias) ** 2) / law.variance - 1) <= 6 * math.sqrt(38 / DRAWS)


def middle_of(place: int, blocks: RootBlocks) -> int:
    """A word in the middle of the stretch of a place."""
    lowest, floors = blocks.slots(64)
    index = place - lowest
    return (floors[index - 1] + floors[index]) // 2


@pytest.mark.parametrize(("place", "offset"), [(-2, 0), (-1, 2), (0, 0), (0, 12), (1, 5), (9, 0)])
def test_a_draw_is_the_chosen_value_of_the_chosen_block(place, offset):
    """One word for the block, the first bits of one for the value, one for the coin: all ones always keep."""
    blocks = RootBlocks(Fraction(1, 2), 10)
    first, end = blocks.ends(place)
    bits = (end - first - 1).bit_length()
    script = [middle_of(place, blocks), offset << (64 - bits), LAST_WORD]
    entropy = ScriptedEntropy(script)
    assert SquareRootLaplace(Fraction(1, 2), 10).sample(1, entropy).tolist() == [first + offset]
    assert entropy.left == 0


def test_a_value_behind_the_end_of_its_block_is_proposed_anew():
    # Block 0 holds thirteen values, and four bits count to sixteen.
    blocks = RootBlocks(Fraction(1, 2), 10)
    centre = middle_of(0, blocks)
    for beyond in (13, 15):
        entropy = ScriptedEntropy([centre, beyond << 60, centre, 1 << 60, LAST_WORD])
        assert SquareRootLaplace(Fraction(1, 2), 10).sample(1, entropy).tolist() == [6]
        assert entropy.left == 0


def test_a_value_that_the_coin_does_not_keep_is_proposed_anew():
    blocks = RootBlocks(Fraction(1, 2), 10)
    centre = middle_of(0, blocks)
    # A first number of zero lies below x, and a second of nearly one above x/2.
    entropy = ScriptedEntropy([centre, 12 << 60, 0, LAST_WORD, centre, 5 << 60, LAST_WORD])
    assert SquareRootLaplace(Fraction(1, 2), 10).sample(1, entropy).tolist() == [10]
    assert entropy.left == 0


@pytest.mark.parametrize(("rate", "centre"), [(Fraction(1, 4), 10), (Fraction(50), 0)], ids=str)
def test_the_tail_has_no_end(rate, centre):
    """All bits of the block are one, for longer and longer: the draw moves outward without a limit."""
    law, blocks, seen = SquareRootLaplace(rate, centre), RootBlocks(rate, centre), []
    for words in range(1, 6):
        uniform = [*[LAST_WORD] * words, 2**63]
        place = Inversion(blocks.slots).draw(1, ScriptedEntropy(uniform)).item()
        entropy = ScriptedEntropy([*uniform, 0, LAST_WORD])
        seen.append(law.sample(1, entropy).item())
        assert entropy.left == 0
        assert seen[-1] == blocks.ends(place)[0]
    assert seen == sorted(set(seen))


def test_zero_can_be_drawn_however_far_it_is():
    law = SquareRootLaplace(5, 400)
    # P(0) is about exp(-100), between 2**-128 and 2**-192.
    entropy = ScriptedEntropy([0, 0, 0, 0, LAST_WORD])
    assert law.sample(1, entropy).tolist() == [0]
    assert entropy.left == 0


@every_size
def test_a_sample_has_the_size_that_was_asked_for(rate, centre):
    law = SquareRootLaplace(rate, centre)
    for size, shape in ((0, (0,)), (3, (3,)), ((2, 0), (2, 0)), ((2, 3, 4), (2, 3, 4)), ((), ())):
        drawn = law.sample(size, SeededEntropy(1))
        assert drawn.shape == shape
        assert drawn.dtype == np.int64
    with pytest.raises(InvalidNoise, match="the size of a sample must be non-negative whole numbers"):
        law.sample(-1, SeededEntropy(1))


def test_the_same_entropy_gives_the_same_draws():
    law = SquareRootLaplace("1/4", 10)
    drawn = ExactSampler(SeededEntropy(5)).draw(law, 70_000)
    assert np.array_equal(drawn, law.sample(70_000, SeededEntropy(5)))


class CountingEntropy(SeededEntropy):
    spent = 0

    def words(self, count):
        self.spent += count
        return super().words(count)


@settings(deadline=None, max_examples=25)
@given(
    rate=st.fractions(min_value=Fraction(1, 200), max_value=50, max_denominator=200),
    centre=st.one_of(st.integers(0, 40), st.integers(0, 10**6)),
)
def test_a_draw_costs_a_few_words(rate, centre):
    entropy = CountingEntropy(6)
    SquareRootLaplace(rate, centre).sample(2_000, entropy)
    assert entropy.spent / 2_000 < 8


@pytest.mark.parametrize(
    ("given_value", "meant"), [(3, Fraction(3)), ("1/3", Fraction(1, 3)), (0.1, Fraction(1, 10))]
)
def test_a_rate_is_the_fraction_its_writer_meant(given_value, meant):
    law = SquareRootLaplace(given_value, np.int64(4))
    assert law == SquareRootLaplace(meant, 4)
    assert hash(law) == hash(SquareRootLaplace(meant, 4))
    assert type(law.centre) is int


@pytest.mark.parametrize(
    "rate",
    [0, -1, float("nan"), float("inf"), True, None, "one", Fraction(1, 2**20 + 1), 2**20 + 1, 10**400],
    ids=lambda value: str(value)[:20],
)
def test_a_rate_that_cannot_be_is_refused(rate):
    with pytest.raises(InvalidNoise, match="rate"):
        SquareRootLaplace(rate, 3)


def test_a_rate_out_of_range_is_told_the_range_and_the_remedy():
    with pytest.raises(
        InvalidNoise, match=r"between 2\*\*-20 and 2\*\*20.*Nothing was drawn.*another budget"
    ):
        SquareRootLaplace("1e-9", 3)


@pytest.mark.parametrize("centre", [-8_121, 2**50 + 8_121, True, 8_121.0, "8121", None, [8_121]], ids=repr)
def test_a_centre_that_cannot_be_is_refused_without_being_repeated(centre):
    with pytest.raises(
        InvalidNoise, match=r"count: a whole number from 0 to 2\*\*50.*Nothing was drawn"
    ) as told:
        SquareRootLaplace(1, centre)
    assert "8121" not in str(told.value)
    assert str(2**50 + 8_121) not in str(told.value)


def test_neither_the_law_nor_its_description_shows_the_count():
    law = SquareRootLaplace("1/4", 8_121)
    assert "8121" not in repr(law) + str(law) + str(law.describe())
    assert law.describe() == SquareRootLaplace("1/4", 3).describe()


def test_a_probability_between_the_integers_is_refused():
    for method in (SquareRootLaplace(1, 3).pmf, SquareRootLaplace(1, 3).cdf):
        with pytest.raises(InvalidNoise, match="integers"):
            method([0.5])


@every_size
def test_a_description_survives_json_and_comes_back_about_any_count(rate, centre):
    law = SquareRootLaplace(rate, centre)
    described = json.loads(json.dumps(law.describe()))
    assert law_from_description(described, centre=centre) == law
    assert law_from_description(described, centre=8) == SquareRootLaplace(rate, 8)


def test_a_law_that_replaces_counts_is_no_noise_that_a_plan_could_add():
    with pytest.raises(InvalidNoise, match="unknown"):
        noise_from_description(SquareRootLaplace("1/4", 8).describe())


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ({}, "family None is unknown"),
        ({"family": "square-root-laplace"}, "is described by the keys"),
        ({"family": "discrete-laplace", "scale": "4"}, "family 'discrete-laplace' is unknown"),
        ({"family": "square-root-laplace", "rate": "1/4", "centre": "3"}, "is described by the keys"),
        ({"family": "square-root-laplace", "rate": 0.25}, "must be an exact fraction"),
        ({"family": "square-root-laplace", "rate": "0.25"}, "must be an exact fraction"),
        ({"family": "square-root-laplace", "rate": "0"}, "must lie between"),
        ({"family": "square-root-laplace", "rate": "1e9"}, "must be an exact fraction"),
        (None, "must be a mapping, not a NoneType"),
    ],
    ids=repr,
)
def test_a_description_that_is_not_understood_is_refused(description, reason):
    with pytest.raises(InvalidNoise, match=reason):
        law_from_description(description, centre=3)
