from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.ledger import Amount, Balance
from tabulary.ledger.chain import Unsound

positive = st.fractions(min_value=0, max_value=10).filter(lambda value: value > 0)
privacies = st.one_of(
    positive.map(PureDP),
    st.builds(ApproxDP, positive, positive.map(lambda value: value / 11)),
    positive.map(ZCDP),
)


@given(privacies)
def test_a_privacy_comes_back_from_its_amount(privacy):
    assert Amount.of(privacy).to_privacy() == privacy


@given(privacies)
def test_an_amount_comes_back_from_its_text(privacy):
    assert Amount.from_text(Amount.of(privacy).to_text()) == Amount.of(privacy)


@given(privacies)
def test_an_amount_less_itself_pays_for_nothing(privacy):
    amount = Amount.of(privacy)
    assert (amount - amount).to_privacy() is None
    assert Balance(amount, amount).remaining == amount - amount


def test_an_amount_fits_only_where_every_parameter_fits():
    limit = Amount.of(ApproxDP(1, "1e-6"))
    assert Amount(epsilon=Fraction(1), delta=Fraction(0)) <= limit
    assert not Amount.of(ApproxDP("1/2", "1e-5")) <= limit
    assert not Amount.of(ApproxDP(2, "1e-7")) <= limit


def test_delta_alone_pays_for_nothing():
    assert Amount(epsilon=Fraction(0), delta=Fraction(1, 2)).to_privacy() is None


def test_amounts_of_different_accounts_do_not_mix():
    with pytest.raises(TypeError, match="does not count epsilon"):
        Amount.of(PureDP(1)) + Amount.of(ZCDP(1))


@pytest.mark.parametrize("text", ["", "3/4", "[]", '{"sigma": "1"}', '{"rho": "1/0"}', '{"rho": [1]}'])
def test_text_that_is_no_amount_is_unsound(text):
    with pytest.raises(Unsound, match="an amount that cannot be read"):
        Amount.from_text(text)


def test_the_share_of_an_amount_is_that_of_its_scarcest_parameter():
    left = Amount.of(ApproxDP(4, "1e-6"))
    assert Amount.of(ApproxDP(1, "1e-7")).share_of(left) == Fraction(1, 4)
    assert Amount.of(ApproxDP(1, "5e-7")).share_of(left) == Fraction(1, 2)
    assert Amount.of(ApproxDP(1, "5e-6")).share_of(left) == 5


def test_nothing_has_a_share_of_an_amount_that_lacks_what_it_counts():
    left = Amount(epsilon=Fraction(1), delta=Fraction(0))
    assert Amount.of(ApproxDP(1, "1e-7")).share_of(left) is None
    assert Amount(epsilon=Fraction(1, 2), delta=Fraction(0)).share_of(left) == Fraction(1, 2)
