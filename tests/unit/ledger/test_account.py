import threading
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP, compose
from tabulary.errors import BudgetExceeded, InvalidPrivacy, LedgerError
from tabulary.ledger import Amount

ADD_REMOVE = Neighbours()


def spend(account, cost, neighbours=ADD_REMOVE):
    return account.debit(cost, neighbours, purpose="sex by age", plan_digest="ab" * 32)


def test_an_untouched_account_has_spent_nothing_and_has_all_of_its_budget_left(census):
    assert census.spent() is None
    assert census.remaining() == PureDP(1)
    assert census.entries() == ()


def test_a_debit_returns_the_entry_that_the_ledger_keeps(census):
    entry = spend(census, PureDP("1/3"))
    assert census.entries() == (entry,)
    assert (entry.number, entry.account, entry.cost) == (1, "census", PureDP("1/3"))
    assert (entry.neighbours, entry.purpose, entry.plan_digest) == (ADD_REMOVE, "sex by age", "ab" * 32)
    age = datetime.now(UTC) - datetime.fromisoformat(entry.at)
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert datetime.fromisoformat(entry.at).utcoffset() == timedelta(0)


def test_an_entry_cannot_be_changed(census):
    with pytest.raises(FrozenInstanceError):
        spend(census, PureDP("1/3")).purpose = "nothing much"


def test_entries_are_chained_to_the_opening_of_the_account(census):
    first, second = spend(census, PureDP("1/8")), spend(census, PureDP("1/8"))
    assert (first.previous, second.previous) == (census.digest, first.digest)
    assert census.head() == second.head


def test_three_thirds_are_exactly_one(census):
    for _ in range(3):
        spend(census, PureDP("1/3"))
    assert census.spent() == PureDP(1)
    assert census.remaining() is None
    assert census.balance().remaining == Amount(epsilon=Fraction(0))


def test_what_a_float_cannot_hold_is_still_counted(ledger):
    account = ledger.create_account("survey", PureDP(1), ADD_REMOVE)
    spend(account, PureDP(1 - Fraction(1, 10**40)))
    assert account.remaining() == PureDP(Fraction(1, 10**40))
    with pytest.raises(BudgetExceeded):
        spend(account, PureDP(Fraction(2, 10**40)))


def test_a_plan_that_costs_more_than_is_left_is_refused_and_leaves_no_trace(census, ledger):
    spend(census, PureDP("3/4"))
    before = ledger.head()
    with pytest.raises(BudgetExceeded) as refusal:
        spend(census, PureDP("1/2"))
    assert str(refusal.value) == (
        "the plan costs ε = 0.5 but account 'census' has ε = 0.25 left. "
        "Nothing was measured, nothing was spent."
    )
    assert ledger.head() == before


def test_after_a_refusal_a_smaller_plan_is_still_accepted(census):
    with pytest.raises(BudgetExceeded):
        spend(census, PureDP(2))
    spend(census, PureDP(1))
    with pytest.raises(BudgetExceeded, match="has ε = 0 left"):
        spend(census, PureDP("1/1000"))


def test_checking_refuses_what_a_debit_would_refuse_and_writes_nothing(census, ledger):
    before = ledger.head()
    census.check(PureDP(1), ADD_REMOVE)
    assert census.can_afford(PureDP(1), ADD_REMOVE)
    assert not census.can_afford(PureDP("1.01"), ADD_REMOVE)
    with pytest.raises(BudgetExceeded):
        census.check(PureDP("1.01"), ADD_REMOVE)
    assert ledger.head() == before


def test_what_an_account_can_never_count_is_an_error_rather_than_unaffordable(census):
    with pytest.raises(LedgerError, match="cannot count"):
        census.can_afford(ZCDP("1/8"), ADD_REMOVE)
    with pytest.raises(LedgerError, match="promises 'add-remove'"):
        census.can_afford(PureDP("1/8"), Neighbours("replace"))


@pytest.mark.parametrize(
    ("budget", "cost", "remedy"),
    [
        (PureDP(1), ApproxDP("1/2", "1e-9"), "Plan with PureDP,"),
        (PureDP(1), ZCDP("1/8"), "Plan with PureDP,"),
        (ApproxDP(1, "1e-6"), ZCDP("1/8"), "zcdp_to_approx"),
        (ZCDP(1), ApproxDP("1/2", "1e-9"), "approx_to_zcdp"),
    ],
)
def test_a_cost_of_another_kind_is_refused_with_the_remedy(ledger, budget, cost, remedy):
    account = ledger.create_account("survey", budget, ADD_REMOVE)
    with pytest.raises(LedgerError, match=remedy) as refusal:
        spend(account, cost)
    assert not isinstance(refusal.value, BudgetExceeded)
    assert account.entries() == ()


def test_an_approximate_account_limits_both_epsilon_and_delta(ledger):
    account = ledger.create_account("survey", ApproxDP(1, "1e-6"), ADD_REMOVE)
    spend(account, PureDP("1/4"))
    assert account.spent() == PureDP("1/4")
    spend(account, ApproxDP("1/4", "1e-6"))
    assert account.spent() == ApproxDP("1/2", "1e-6")
    with pytest.raises(BudgetExceeded, match=r"has ε = 0.5, δ = 0 left"):
        spend(account, ApproxDP("1/4", "1e-9"))
    assert account.remaining() == PureDP("1/2")
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0.75, here ε = 0.75, δ = 0, but"):
        spend(account, PureDP("3/4"))
    spend(account, PureDP("1/2"))
    assert account.remaining() is None


def test_a_concentrated_account_counts_a_pure_plan_as_half_its_square(ledger):
    account = ledger.create_account("survey", ZCDP("1/4"), ADD_REMOVE)
    spend(account, PureDP("1/2"))
    assert account.spent() == ZCDP("1/8")
    spend(account, ZCDP("1/16"))
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0.5, here ρ = 0.125, but .* has ρ = 0.0625 left"):
        spend(account, PureDP("1/2"))


@pytest.mark.parametrize("offered", [Neighbours("replace", 2), Neighbours("add-remove", 1)])
def test_a_plan_that_protects_less_than_the_account_promises_is_refused(ledger, offered):
    account = ledger.create_account("visits", PureDP(1), Neighbours("add-remove", 2))
    with pytest.raises(LedgerError, match="up to 2 records per person") as refusal:
        spend(account, PureDP("1/8"), offered)
    assert "contribution bound of at least 2" in str(refusal.value)
    assert account.entries() == ()


def test_a_plan_that_protects_more_records_a_person_is_accepted(ledger):
    account = ledger.create_account("visits", PureDP(1), Neighbours("add-remove", 2))
    assert spend(account, PureDP("1/8"), Neighbours("add-remove", 5)).neighbours.records == 5


@pytest.mark.parametrize("text", ["", " ", " purpose", "two\nlines", "a\x00b", "x" * 201, None])
def test_a_purpose_or_digest_that_would_not_stand_on_one_line_is_refused(census, text):
    with pytest.raises(LedgerError, match="the purpose of a debit must"):
        census.debit(PureDP("1/8"), ADD_REMOVE, purpose=text, plan_digest="ab")
    with pytest.raises(LedgerError, match="the digest of a plan must"):
        census.debit(PureDP("1/8"), ADD_REMOVE, purpose="sex by age", plan_digest=text)
    assert census.entries() == ()


def test_bare_numbers_and_words_are_no_costs_and_no_neighbours(census):
    with pytest.raises(LedgerError, match=r"must be PureDP or ApproxDP or ZCDP, not 0.5"):
        spend(census, 0.5)
    with pytest.raises(LedgerError, match="must be Neighbours, not 'add-remove'"):
        spend(census, PureDP("1/8"), "add-remove")


def test_a_cost_with_endless_digits_is_refused(census):
    for digits in (100, 280):
        with pytest.raises(InvalidPrivacy, match="at most 100 digits"):
            spend(census, PureDP(Fraction(1, 10**digits + 1)))
    assert census.entries() == ()


def test_a_total_with_endless_digits_is_refused(census):
    for exponent in (97, 98, 99):
        spend(census, PureDP(Fraction(1, 10**exponent + 1)))
    with pytest.raises(LedgerError, match="more than 300 digits"):
        spend(census, PureDP(Fraction(1, 10**96 + 1)))
    assert len(census.entries()) == 3


def test_threads_share_an_account_without_overspending_it(census):
    outcomes = []

    def work():
        for _ in range(10):
            try:
                outcomes.append(spend(census, PureDP("1/50")).number)
            except BudgetExceeded:
                outcomes.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number in outcomes if number) == list(range(1, 51))
    assert outcomes.count(None) == 30


fractions = st.fractions(min_value=0, max_value=2, max_denominator=60).filter(lambda value: value > 0)
pure = fractions.map(PureDP)
approximate = st.builds(ApproxDP, fractions, fractions.map(lambda value: value / 10**6))
concentrated = fractions.map(ZCDP)


@given(
    st.one_of(
        st.tuples(pure, st.lists(pure)),
        st.tuples(approximate, st.lists(pure | approximate)),
        st.tuples(concentrated, st.lists(pure | concentrated)),
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_sequence_of_debits_overspends_and_what_remains_is_exact(ledger, budget_and_costs):
    budget, costs = budget_and_costs
    account = ledger.create_account(f"census {len(ledger.accounts())}", budget, ADD_REMOVE)
    accepted = []
    for cost in costs:
        affordable = account.can_afford(cost, ADD_REMOVE)
        try:
            spend(account, cost)
        except BudgetExceeded:
            assert not affordable
        else:
            assert affordable
            accepted.append(cost)
    balance = account.balance()
    assert [entry.cost for entry in account.entries()] == accepted
    assert balance.spent <= Amount.of(budget)
    assert balance.spent + balance.remaining == Amount.of(budget)
    # In an account's unit: a total of pure costs is compared as the account counts it.
    assert account.spent() == (compose(_in_kind(budget, accepted)) if accepted else None)
    ledger.check()


def _in_kind(budget, costs):
    if not isinstance(budget, ZCDP):
        return costs
    return [ZCDP(cost.epsilon**2 / 2) if isinstance(cost, PureDP) else cost for cost in costs]
