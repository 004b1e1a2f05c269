import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.privacy import compose
from tabulary.errors import InvalidPrivacy
from tabulary.toolbox import RandomizedResponse, group, guessing, parallel, sequential

epsilons = st.fractions("1/100", 5, max_denominator=100)


@given(st.lists(epsilons, min_size=1, max_size=6))
def test_looks_at_the_same_records_add_up_and_looks_at_disjoint_ones_do_not(each):
    parts = [tb.PureDP(epsilon) for epsilon in each]
    assert sequential(parts) == compose(parts) == tb.PureDP(sum(each))
    assert parallel(parts) == tb.PureDP(max(each))


@given(st.lists(epsilons, min_size=1, max_size=6), st.integers(1, 3))
def test_a_record_that_is_replaced_leaves_one_share_and_enters_another(each, records):
    parts = [tb.PureDP(epsilon) for epsilon in each]
    ordered = sorted(each, reverse=True)
    near = tb.Neighbours("replace", records)
    assert parallel(parts, neighbours=near) == tb.PureDP(sum(ordered[: 2 * records]))
    assert parallel(parts, neighbours=tb.Neighbours(records=records)) == tb.PureDP(sum(ordered[:records]))


def test_the_two_largest_parts_are_what_a_replaced_record_can_reach():
    # Randomised counts of two rooms, of 0 and 1 people: whoever moves from one to the other changes both.
    left, right = (RandomizedResponse("01", q=q) for q in ("1/2", "1/3"))
    loss = math.log(left.truth / left.lie) + math.log(right.truth / right.lie)
    promised = parallel([left.privacy, right.privacy], neighbours="replace")
    assert float(promised.epsilon) == pytest.approx(loss, abs=1e-10)
    assert float(parallel([left.privacy, right.privacy]).epsilon) < loss


def test_parts_of_other_kinds_are_counted_in_a_common_currency():
    mixed = [tb.ApproxDP(1, 1e-9), tb.ApproxDP("1/2", 1e-6), tb.PureDP(2)]
    assert parallel(mixed) == tb.ApproxDP(2, 1e-6)
    assert parallel(mixed, neighbours="replace") == tb.ApproxDP(3, Fraction(1, 10**6) + Fraction(1, 10**9))
    assert parallel([tb.ZCDP("1/8"), tb.PureDP(1)]) == tb.ZCDP("1/2")
    with pytest.raises(InvalidPrivacy, match="cannot be added directly"):
        parallel([tb.ZCDP("1/8"), tb.ApproxDP(1, 1e-9)])
    with pytest.raises(InvalidPrivacy, match="empty"):
        parallel([])


@given(epsilons, st.integers(1, 8))
def test_a_group_is_promised_less_in_proportion(epsilon, size):
    assert group(tb.PureDP(epsilon), size) == tb.PureDP(size * epsilon)
    assert group(tb.ZCDP(epsilon), size) == tb.ZCDP(size**2 * epsilon)


@given(epsilons, st.integers(1, 8))
def test_the_delta_of_a_group_is_the_geometric_sum_rounded_up(epsilon, size):
    delta = Fraction(1, 10**20)
    found = group(tb.ApproxDP(epsilon, delta), size)
    with localcontext(prec=60):
        step = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        exact = Fraction(sum(step**i for i in range(size))) * delta
    assert found.epsilon == size * epsilon
    assert exact * (1 - Fraction(1, 10**40)) <= found.delta <= exact * (1 + Fraction(1, 10**10))


@given(epsilons, st.integers(1, 6), st.integers(1, 6))
def test_a_group_of_groups_is_a_group(epsilon, inner, outer):
    for promise in (tb.PureDP(epsilon), tb.ZCDP(epsilon)):
        assert group(group(promise, inner), outer) == group(promise, inner * outer)


@pytest.mark.parametrize(
    "promise", [tb.ApproxDP(1, "1/2"), tb.ApproxDP(400, 1e-9), tb.ApproxDP("1e-80", 1e-9)]
)
def test_a_group_to_which_nothing_is_promised_is_refused(promise):
    with pytest.raises(InvalidPrivacy, match="nothing is promised"):
        group(promise, 10)


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_a_group_has_a_whole_number_of_people(size):
    with pytest.raises(InvalidPrivacy, match="must be a whole number"):
        group(tb.PureDP(1), size)


@pytest.mark.parametrize("calculator", [guessing, lambda promise: group(promise, 2)])
def test_a_bare_number_is_no_promise(calculator):
    with pytest.raises(InvalidPrivacy, match="PureDP"):
        calculator(1)


@given(epsilons)
def test_randomized_response_lets_a_guess_be_right_as_often_as_any_mechanism_may(epsilon):
    coin = RandomizedResponse("ab", epsilon=epsilon)
    assert guessing(coin.privacy) == pytest.approx(float(coin.truth), rel=1e-12)


@given(epsilons)
def test_the_chances_of_both_guesses_add_up_to_less_than_one_plus_half_of_epsilon(epsilon):
    both = 2 * guessing(tb.PureDP(epsilon))
    assert both == pytest.approx(1 + math.tanh(float(epsilon) / 2), rel=1e-12)
    assert both <= 1 + float(epsilon) / 2


def test_a_guess_is_never_certain_and_grows_with_delta():
    assert guessing(tb.PureDP(1)) < guessing(tb.ApproxDP(1, "1/10")) < 1
    assert guessing(tb.ApproxDP(1, 1e-12)) == pytest.approx(guessing(tb.PureDP(1)))
    assert guessing(tb.ZCDP(100)) == 1.0
    assert guessing(tb.PureDP(10_000)) <= 1
    # Between tables one standard deviation of Gaussian noise apart, the best guess is right with Φ(1/2).
    assert guessing(tb.ZCDP("1/2")) > 0.6914
