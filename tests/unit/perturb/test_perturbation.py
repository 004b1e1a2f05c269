"""What every perturbation tells of itself, against sums over its transition probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import ExactSampler
from tabulary.perturb import Custom, Laplace, MaxEntropy, Normal, Row
from tabulary.perturb.perturbation import rounded_up
from tabulary.perturb.published import draw
from tests.entropy import SeededEntropy
from tests.unit.perturb.brute_force import mean_of, published

LAWS = [
    Laplace("3/2", bound=7),
    Laplace(3),
    Laplace(2, bound=9, sensitivity=3),
    Normal("1/2", bound=10),
    Custom(
        [{0: "3/4", 2: "1/4"}, {-1: "1/2", 0: "1/4", 4: "1/4"}, {-2: "1/6", -1: "1/6", 0: "1/3", 1: "1/3"}]
    ),
    MaxEntropy(3, bound=5, nonnegative=True, js=2),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=str)
every_minimum = pytest.mark.parametrize("minimum", [None, 0, 2, 30])
every_original = pytest.mark.parametrize("original", [0, 1, 2, 6, 25])
every_loss = pytest.mark.parametrize("loss", ["l1", "l2", "l3"])


def loss_of(loss, original):
    """The losses of Rinott et al. (2018), section 4.2, for one count."""
    return {
        "l1": lambda b: abs(b - original),
        "l2": lambda b: (b - original) ** 2,
        "l3": lambda b: abs(math.sqrt(b) - math.sqrt(original)),
    }[loss]


@every_law
@every_original
def test_the_transition_probabilities_of_a_count_sum_to_one(law, original):
    row = law.row(original)
    assert mean_of(published(law, original), lambda b: 1) == pytest.approx(1, rel=1e-12)
    assert all(
        law.transition(original, int(b)) == p for b, p in zip(row.values, row.probabilities, strict=True)
    )
    assert law.transition(original, int(row.values[0]) - 1) == 0
    assert law.transition(original, int(row.values[-1]) + 1) == 0


@every_law
@every_original
@every_minimum
def test_bias_and_variance_are_those_of_the_published_value(law, original, minimum):
    values = published(law, original, minimum=minimum)
    mean = mean_of(values, lambda b: b)
    assert law.bias(original, minimum=minimum) == pytest.approx(mean - original, abs=1e-10)
    spread = mean_of(values, lambda b: (b - mean) ** 2)
    assert law.variance(original, minimum=minimum) == pytest.approx(spread, rel=1e-10, abs=1e-10)


@every_law
@every_original
@every_minimum
def test_entropy_is_that_of_the_published_value(law, original, minimum):
    values = published(law, original, minimum=minimum)
    expected = -math.fsum(p * math.log(p) for p in values.values())
    assert law.entropy(original, minimum=minimum) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_law
@every_original
@every_loss
@every_minimum
def test_expected_losses_are_sums_over_the_published_values(law, original, loss, minimum):
    values = published(law, original, minimum=minimum)
    if loss == "l3" and min(values) < 0:
        with pytest.raises(InvalidNoise, match="minimum=0"):
            law.expected_loss(loss, original, minimum=minimum)
        return
    expected = mean_of(values, loss_of(loss, original))
    assert law.expected_loss(loss, original, minimum=minimum) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@every_law
@every_loss
@pytest.mark.parametrize("minimum", [0, 3])
def test_expected_losses_are_what_draws_lose_on_average(law, loss, minimum):
    original = 4
    drawn = draw(law, np.full(100_000, original), ExactSampler(SeededEntropy(17)))
    values = np.maximum(original + drawn, minimum)
    lost = np.array([loss_of(loss, original)(int(b)) for b in values])
    # Five standard errors of the mean, so the seeded run is far from chance and a wrong formula is not.
    allowed = 5 * lost.std() / math.sqrt(lost.size) + 1e-12
    assert abs(lost.mean() - law.expected_loss(loss, original, minimum=minimum)) < allowed
    other = law.expected_loss(loss, original, minimum=minimum) * 1.2
    assert abs(lost.mean() - other) > allowed or other == 0


def test_the_loss_of_a_table_is_the_sum_over_its_cells():
    law = Laplace("3/2", bound=7)
    counts = [0, 0, 3, 12, 3]
    each = [law.expected_loss("l3", count, minimum=0) for count in counts]
    assert law.expected_loss("l3", counts, minimum=0) == pytest.approx(sum(each), rel=1e-12)
    table = tb.Table(tb.Domain({"cell": "abcde"}), counts)
    assert law.expected_loss("l3", table, minimum=0) == pytest.approx(sum(each), rel=1e-12)


def test_an_impossible_cell_loses_nothing():
    domain = tb.Domain({"a": "xy", "b": "xy"}, structural_zeros=[{"a": "x", "b": "y"}])
    table = tb.Table(domain, [[3, 0], [0, 5]])
    law = Normal(1, bound=4)
    assert law.expected_loss("l2", table) == pytest.approx(3 * law.variance(0), rel=1e-12)


def test_raising_negatives_to_zero_loses_less_and_biases_small_counts_upward():
    for law in (Laplace(1, bound=8), Normal(1, bound=8)):
        for original in range(8):
            assert law.bias(original, minimum=0) > 0
            assert law.expected_loss("l1", original, minimum=0) < law.expected_loss("l1", original)
        assert law.bias(8, minimum=0) == pytest.approx(0, abs=1e-14)


# ε from δ


@every_law
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_epsilon_at_is_the_inverse_of_delta_at(law, share):
    smallest = law.delta_at(50)
    delta = smallest + share * (law.delta_at(0) - smallest)
    epsilon = law.epsilon_at(delta)
    assert law.delta_at(epsilon) <= delta
    assert epsilon == 0 or law.delta_at(epsilon * (1 - 1e-6)) > delta


def test_no_epsilon_reaches_below_what_is_forbidden():
    law = Laplace("3/2", bound=7)
    assert law.epsilon_at(0) == math.inf
    assert law.epsilon_at(law.delta) <= 1.5 * (1 + 1e-9)


def test_the_pure_epsilon_of_laplace_is_the_one_it_names():
    assert Laplace("3/2").epsilon_at(0) == pytest.approx(1.5, rel=1e-9)
    assert Laplace("3/2", sensitivity=3).epsilon_at(0) == pytest.approx(1.5, rel=1e-9)


def test_the_largest_delta_needs_no_epsilon():
    law = Laplace(1)
    assert law.epsilon_at(0.999) == 0.0


@pytest.mark.parametrize("delta", [-0.1, 1, 1.5, float("nan")])
def test_a_delta_that_cannot_be_is_refused(delta):
    with pytest.raises(InvalidNoise, match="at least 0 and below 1"):
        Laplace(1, bound=3).epsilon_at(delta)


def test_a_promised_delta_is_never_flattered():
    law = Normal(1, bound=10)
    assert law.privacy().epsilon == 1
    assert law.delta <= float(law.privacy().delta) <= law.delta * 1.00001
    assert isinstance(Laplace(1).privacy(), tb.PureDP)


@given(st.floats(min_value=1e-300, max_value=1))
def test_rounding_up_never_rounds_down(delta):
    assert delta <= rounded_up(delta) <= delta * (1 + 1.01e-5)


# Rows


@given(
    st.integers(-5, 5),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.integers(-8, 14),
)
def test_at_least_publishes_every_smaller_value_as_the_minimum(lowest, weights, minimum):
    row = Row(lowest, np.array(weights))
    raised = row.at_least(minimum)
    expected = {}
    for value, weight in zip(row.values, weights, strict=True):
        key = max(int(value), minimum)
        expected[key] = expected.get(key, 0.0) + weight
    assert int(raised.values[0]) == max(lowest, minimum)
    assert raised.probabilities.sum() == pytest.approx(sum(weights))
    for value, weight in expected.items():
        assert raised.probability(value) == pytest.approx(weight)


def test_a_row_does_not_change_when_a_minimum_is_applied_to_it():
    row = Row(-1, np.array([0.25, 0.5, 0.25]))
    row.at_least(0)
    assert row.probabilities.tolist() == [0.25, 0.5, 0.25]
    assert row.at_least(None) is row


def test_the_entropy_of_a_uniform_law_is_the_logarithm_of_its_size():
    uniform = Custom(dict.fromkeys(range(-4, 5), "1/9"))
    assert uniform.entropy(3) == pytest.approx(math.log(9), rel=1e-14)


# What cannot be


@every_law
@pytest.mark.parametrize("loss", ["l4", "L1", "", None, 1])
def test_an_unknown_loss_is_refused(law, loss):
    with pytest.raises(InvalidNoise, match="'l1', 'l2' or 'l3'"):
        law.expected_loss(loss, 3)


@every_law
@pytest.mark.parametrize("counts", [-1, [3, -1], 2.5, [1.0], float("nan"), ["3"], None, True, [True]])
def test_losses_are_of_whole_counts_that_are_not_negative(law, counts):
    with pytest.raises(InvalidTable, match="whole numbers, and not negative"):
        law.expected_loss("l1", counts)


@every_law
@pytest.mark.parametrize("count", [-1, 1.0, float("nan"), "1", None, True])
def test_rows_are_of_whole_counts_that_are_not_negative(law, count):
    for ask in (law.entropy, lambda a: law.transition(a, 3), lambda a: law.bias(a, minimum=0)):
        with pytest.raises(InvalidTable, match="a whole number, and not negative"):
            ask(count)
