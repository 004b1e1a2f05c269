"""Laplace noise on the scale of square roots: its law, its true privacy and how poor it is."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.core.domain import Domain
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidPrivacy, InvalidTable
from tabulary.noise import ExactSampler
from tabulary.perturb import Laplace, Normal
from tabulary.perturb.hellinger import Hellinger
from tests.entropy import SeededEntropy

LEVEL = 1e-6
EPSILONS = ["1/5", "1/2", "1", "3", "10", "200"]
every_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)
counts = st.integers(0, 3_000)


def weight(epsilon, a, b):
    return math.exp(-float(Fraction(epsilon)) * abs(math.sqrt(b) - math.sqrt(a)) / 2)


def direct_delta(law, epsilon, originals):
    """δ by the definition: Σ max(0, p - e^ε p') over all values, both ways round, over pairs of counts."""
    worst = 0.0
    for a in originals:
        rows = [law.row(a), law.row(a + 1)]
        start = min(row.lowest for row in rows)
        both = np.zeros((2, max(row.lowest + row.probabilities.size for row in rows) - start))
        for line, row in zip(both, rows, strict=True):
            line[row.lowest - start :][: row.probabilities.size] = row.probabilities
        for one, other in (both, both[::-1]):
            worst = max(worst, math.fsum(np.maximum(0.0, one - math.exp(epsilon) * other)))
    return worst


@given(counts, counts, st.sampled_from(EPSILONS))
def test_probabilities_fall_with_the_distance_of_the_roots(a, b, epsilon):
    law = Hellinger(epsilon)
    ratio = law.transition(a, b) / law.transition(a, a)
    assert ratio == pytest.approx(weight(epsilon, a, b), rel=1e-9, abs=1e-17)


@every_epsilon
@pytest.mark.parametrize("a", [0, 1, 7, 40_000])
def test_a_row_lists_all_of_the_law_but_what_it_says_is_left_out(epsilon, a):
    row = Hellinger(epsilon).row(a)
    assert math.fsum(row.probabilities) == pytest.approx(1, abs=1e-12)
    assert 0 < row.left_out < 1e-16
    assert row.lowest >= 0
    # Beyond both ends of the list, the first value that is not listed is hardly ever published.
    for outside in (row.lowest - 1, row.lowest + row.probabilities.size):
        if outside >= 0:
            assert weight(epsilon, a, outside) < math.exp(-41.9)


def test_nothing_negative_is_published_and_every_zero_may_change():
    law = Hellinger(1)
    assert law.row(0).lowest == law.row(9).lowest == 0
    assert law.transition(3, -1) == 0
    assert law.transition(0, 0) < 1


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3", "10"])
@pytest.mark.parametrize("at", [0.0, 0.05, 0.3, 0.9, 2.0])
def test_delta_is_that_of_the_definition(epsilon, at):
    # For these ε the worst pair lies among the first.
    law = Hellinger(epsilon)
    direct = direct_delta(law, at, range(4))
    assert direct - 1e-14 <= law.delta_at(at) <= direct + 1e-9


def test_the_worst_pair_of_a_wide_law_is_found_however_far_it_is_from_zero():
    law = Hellinger("1/10")
    found = law.delta_at(0)
    assert found == pytest.approx(direct_delta(law, 0.0, [253, 254, 255]), rel=1e-9)
    assert found > 1.1 * direct_delta(law, 0.0, [0, 30, 64])


@given(counts, st.floats(0, 3), st.sampled_from(["1/2", "1", "3", "10"]))
@settings(max_examples=40, deadline=None)
def test_no_pair_of_counts_however_large_has_more_than_the_stated_delta(a, at, epsilon):
    law = Hellinger(epsilon)
    assert direct_delta(law, at, [a]) <= law.delta_at(at) + 1e-13


@given(counts, st.floats(0, 3), st.sampled_from(["1/2", "1", "3", "10"]))
@settings(max_examples=40, deadline=None)
def test_a_pair_of_counts_has_no_more_delta_than_the_bound_that_ends_the_search(a, at, epsilon):
    law = Hellinger(epsilon)
    step = float(Fraction(epsilon)) / 2 * (math.sqrt(a + 1) - math.sqrt(a))
    bound = max(0.0, 1 - math.exp(at - 2 * step)) / (1 + math.exp(-step))
    assert direct_delta(law, at, [a]) <= bound + 1e-13


@every_epsilon
def test_the_true_pure_epsilon_is_the_largest_log_ratio_and_below_the_named_one(epsilon):
    law = Hellinger(epsilon)
    rows = [law.row(a) for a in range(8)]
    largest = max(
        abs(math.log(here.probability(b) / there.probability(b)))
        for here, there in pairwise(rows)
        for b in range(here.lowest + here.probabilities.size)
        if here.probability(b) > 0 and there.probability(b) > 0
    )
    assert law.epsilon_at(0) == pytest.approx(largest, rel=1e-8)
    assert float(law.epsilon) / 2 <= law.epsilon_at(0) < float(law.epsilon)


@every_epsilon
def test_less_than_the_true_epsilon_does_not_hold_without_a_delta(epsilon):
    law = Hellinger(epsilon)
    true = law.epsilon_at(0)
    assert law.delta_at(true) == 0
    assert law.delta_at(0.999 * true) > 0


def test_it_promises_the_named_epsilon_and_no_delta():
    assert Hellinger("3/2").privacy() == PureDP("3/2")
    assert Hellinger("3/2").delta == Hellinger("3/2").truncation_delta == 0
    assert round(Hellinger(1).epsilon_at(0), 4) == 0.9236


@every_epsilon
def test_delta_falls_with_epsilon_and_stays_within_zero_and_one(epsilon):
    found = [Hellinger(epsilon).delta_at(at) for at in np.linspace(0, 12, 40)]
    assert all(1 >= one >= other >= 0 for one, other in pairwise(found))


@given(st.integers(0, 500), st.sampled_from(["1/2", "3", "10"]), st.sampled_from([None, 0, 1, 4]))
@settings(max_examples=40, deadline=None)
def test_bias_and_variance_are_those_of_the_rows(a, epsilon, minimum):
    law = Hellinger(epsilon)
    row = law.row(a)
    values = np.maximum(row.values, minimum or 0).astype(float)
    mean = math.fsum(row.probabilities * values)
    spread = math.fsum(row.probabilities * (values - mean) ** 2)
    assert law.bias(a, minimum=minimum) == pytest.approx(mean - a, rel=1e-8, abs=1e-8)
    assert law.variance(a, minimum=minimum) == pytest.approx(spread, rel=1e-8, abs=1e-8)


def test_the_bias_is_that_of_the_docstring_at_every_count_and_the_variance_has_no_end():
    law = Hellinger("1/2")
    assert [law.bias(a) for a in (0, 10, 1_000, 100_000)] == pytest.approx([24 / 0.25] * 4, rel=0.05)
    assert law.variance(10**6) > 50 * law.variance(10**4) > 1_000 * law.variance(10)


def test_it_is_far_worse_than_the_other_laws_of_table_2():
    def within(law, a, distance):
        row = law.row(a).at_least(0)
        return sum(row.probability(b) for b in range(a - distance, a + distance + 1))

    # ε = 0.5: of a Hellinger-type law hardly one value in seven is within ±4 of the original.
    assert max(within(Hellinger(0.5), a, 4) for a in range(6)) == pytest.approx(0.149, abs=5e-4)
    assert min(within(Laplace(0.5, bound=7), a, 4) for a in range(6)) == pytest.approx(0.92, abs=5e-3)
    assert min(within(Normal(0.5, bound=10), a, 4) for a in range(6)) == pytest.approx(0.69, abs=5e-3)
    # ε = 1.5: one in two, where the others have nearly all.
    assert max(within(Hellinger(1.5), a, 4) for a in range(6)) == pytest.approx(0.552, abs=5e-4)
    assert min(within(Normal(1.5, bound=12), a, 4) for a in range(6)) == pytest.approx(0.88, abs=5e-3)
    for a in range(6):
        for distance in range(5):
            for epsilon in (0.5, 1.5):
                assert within(Hellinger(epsilon), a, distance) < within(
                    Laplace(epsilon, bound=7), a, distance
                ) * (0.62 if epsilon == 1.5 else 0.17)


def chi_square(observed, law, original):
    """The p-value of published counts under a law, over twenty classes of about equal probability."""
    row = law.row(original)
    below = np.cumsum(row.probabilities)
    edges = np.unique(np.searchsorted(below, np.arange(1, 20) / 20))
    expected = np.diff(below[edges], prepend=0.0, append=1.0)
    places = np.searchsorted(edges, observed - row.lowest, side="left")
    found = np.bincount(places, minlength=expected.size)
    return float(stats.chisquare(found, expected * observed.size).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("original", [0, 5, 400])
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_published_tables_follow_the_law_and_not_one_of_another_epsilon(epsilon, original):
    domain = Domain({"place": [f"{i}" for i in range(15)], "age": [f"{i}" for i in range(100)]})
    table = Table(domain, np.full((15, 100), original))
    law, twin = Hellinger(epsilon), Hellinger(Fraction(epsilon) / Fraction(7, 10))
    seed = ExactSampler(SeededEntropy(7 + original))
    assert chi_square(law.apply(table, sampler=seed).counts.ravel(), law, original) > LEVEL
    sabotaged = twin.apply(table, sampler=seed).counts.ravel()
    assert chi_square(sabotaged, law, original) < LEVEL


def test_a_table_of_many_counts_is_published_with_its_errors():
    domain = Domain(
        {"age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
        structural_zeros=[{"age": "0-14", "job": "paid"}],
    )
    law = Hellinger(2)
    original = Table(domain, [[7, 0], [0, 12_000], [3, 1]])
    published = law.apply(original, sampler=ExactSampler(SeededEntropy(3)))
    assert published.counts.min() >= 0
    assert published["0-14", "paid"] == 0
    assert published.standard_errors[0, 1] == 0
    # The published count stands for the original one.
    assert published.standard_errors[1, 1] == pytest.approx(law.variance(published["15-64", "paid"]) ** 0.5)
    lower, upper = published.interval(0.95)
    assert (lower <= published.counts).all()
    assert (upper >= published.counts).all()
    assert published.privacy == PureDP(2)


def test_what_is_drawn_is_what_is_added_and_does_not_show_the_count():
    law = Hellinger(1)
    drawn = law.drawn(31)
    assert drawn.sample(4_000, SeededEntropy(1)).min() >= -31
    assert (drawn.sample(4_000, SeededEntropy(1)) < 0).any()
    assert "31" not in repr(drawn)


def test_it_says_what_it_is():
    law = Hellinger("3/2")
    assert law.describe() == {"family": "hellinger", "epsilon": "3/2"}
    assert str(law) == "Hellinger-type perturbation, ε = 1.5"
    assert law == Hellinger(1.5)
    assert (law.bound, law.sensitivity, law.settled) == (None, 1, None)


@pytest.mark.parametrize("epsilon", [0.01, "1/21", 1001, 10**6])
def test_an_epsilon_that_cannot_be_listed_or_hides_nothing_is_refused(epsilon):
    with pytest.raises(InvalidNoise, match=r"from 0\.05 to 1000, .* Nothing was drawn\. Choose another ε"):
        Hellinger(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "reason"),
    [
        *((epsilon, "epsilon must be positive") for epsilon in (0, -1)),
        *((epsilon, "epsilon must be a whole number") for epsilon in (math.nan, math.inf, "one", None, True)),
    ],
)
def test_what_is_no_epsilon_is_refused(epsilon, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        Hellinger(epsilon)


@pytest.mark.parametrize("count", [-1, 1.5, True, None])
def test_what_is_no_count_is_refused(count):
    for of in (Hellinger(1).bias, Hellinger(1).variance, Hellinger(1).entropy):
        with pytest.raises(InvalidTable, match="a whole number, and not negative"):
            of(count)


def test_a_row_too_long_to_be_listed_is_refused_without_naming_the_count():
    law = Hellinger("1/20")
    with pytest.raises(InvalidNoise, match="more values than can be listed") as refused:
        law.row(10_000_019)
    assert "10" not in str(refused.value)
    assert law.variance(10_000_019) > 0
    assert law.bias(10_000_019) == pytest.approx(24 * 400, rel=1e-3)
