"""Debits made from several accounts at once, and debits made once."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.errors import BudgetExceeded, LedgerCorrupt, LedgerError
from tabulary.ledger import Ledger
from tests.ledgers import by_hand, locked, tamper

ADD_REMOVE = Neighbours()
UNSPENT = "Nothing was measured, nothing was spent."


@pytest.fixture
def survey(ledger):
    """The account of a dataset."""
    return ledger.create_account("survey", ZCDP(1), ADD_REMOVE)


@pytest.fixture
def ann(ledger):
    """The account of an analyst, who may learn less than the dataset allows."""
    return ledger.create_account("ann", ZCDP("1/2"), ADD_REMOVE)


def ask(ledger, accounts, rho="1/4", *, purpose="sex", plan="ab", once=True, neighbours=ADD_REMOVE):
    return ledger.debit_together(
        accounts, ZCDP(rho), neighbours, purpose=purpose, plan_digest=plan, once=once
    )


def once(account, rho="1/4", *, purpose="sex", plan="ab"):
    return account.debit(ZCDP(rho), ADD_REMOVE, purpose=purpose, plan_digest=plan, once=True)


def test_a_debit_made_together_stands_in_every_account(ledger, survey, ann):
    entries = ask(ledger, [survey, ann])
    assert [entry.account for entry in entries] == ["survey", "ann"]
    assert (survey.entries(), ann.entries()) == (entries[:1], entries[1:])
    assert {entry.cost for entry in entries} == {ZCDP("1/4")}
    ledger.check()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_account_that_cannot_pay_keeps_all_the_others_from_paying(ledger, survey, ann, order):
    before = ledger.head()
    accounts = [(survey, ann)[place] for place in order]
    with pytest.raises(BudgetExceeded, match=rf"account 'ann' has ρ = 0.5 left. {UNSPENT}"):
        ask(ledger, accounts, "3/4")
    assert ledger.head() == before


def test_an_account_that_promises_more_keeps_all_the_others_from_paying(ledger, survey):
    visits = ledger.create_account("visits", ZCDP(1), Neighbours("add-remove", 2))
    before = ledger.head()
    with pytest.raises(LedgerError, match="account 'visits' promises"):
        ask(ledger, [survey, visits])
    assert ledger.head() == before


def test_a_failure_between_two_entries_takes_both_back(ledger, survey, ann, monkeypatch):
    from tabulary.ledger import account

    written = []

    def fail_at_the_second(*arguments, **options):
        if written:
            raise ZeroDivisionError("at the second")
        written.append(append(*arguments, **options))
        return written[0]

    append, before = account.append_entry, ledger.head()
    monkeypatch.setattr(account, "append_entry", fail_at_the_second)
    with pytest.raises(ZeroDivisionError, match="at the second"):
        ask(ledger, [survey, ann])
    assert len(written) == 1
    assert ledger.head() == before


def test_a_plan_is_paid_for_once_and_by_nobody_else(ledger, survey, ann):
    bob = ledger.create_account("bob", ZCDP("1/8"), ADD_REMOVE)
    first, _ = ask(ledger, [survey, ann])
    before = ledger.head()
    assert ask(ledger, [survey, ann]) == (first,)
    # Not even by one who could not pay.
    assert ask(ledger, [survey, bob]) == (first,)
    assert once(survey) == first
    assert ledger.head() == before


def test_without_once_the_same_plan_is_paid_for_again(ledger, survey, ann):
    for _ in range(2):
        assert len(ask(ledger, [survey, ann], once=False)) == 2
    assert survey.spent() == ann.spent() == ZCDP("1/2")


def test_another_purpose_or_another_plan_is_another_debit(survey):
    entries = [once(survey), once(survey, purpose="age"), once(survey, plan="cd")]
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert [once(survey), once(survey, purpose="age"), once(survey, plan="cd")] == entries


def test_only_what_the_first_account_paid_counts_as_paid(ledger, survey, ann):
    once(ann)
    assert [entry.account for entry in ask(ledger, [survey, ann])] == ["survey", "ann"]
    assert ann.spent() == ZCDP("1/2")


def test_a_plan_that_was_paid_for_with_another_cost_is_refused(ledger, survey):
    once(survey)
    with pytest.raises(LedgerError, match=f"ρ = 0.25 .* now costs ρ = 0.5 .* {UNSPENT}"):
        once(survey, "1/2")
    wider = Neighbours("add-remove", 2)
    with pytest.raises(LedgerError, match="up to 2 records per person"):
        ask(ledger, [survey], neighbours=wider)
    assert len(survey.entries()) == 1


def test_the_entry_that_paid_is_found_by_purpose_and_plan(survey, ann):
    assert survey.paid("sex", "ab") is None
    entry = once(survey)
    assert survey.paid("sex", "ab") == entry
    assert survey.paid("sex", "cd") is survey.paid("age", "ab") is ann.paid("sex", "ab") is None


def test_of_several_entries_for_one_plan_the_first_is_the_one_that_paid(survey):
    first, _ = (survey.debit(ZCDP("1/4"), ADD_REMOVE, purpose="sex", plan_digest="ab") for _ in range(2))
    assert survey.paid("sex", "ab") == once(survey) == first


def test_what_was_paid_for_waits_for_no_lock_and_needs_no_right_to_write(database, survey):
    entry = once(survey)
    with locked(database), Ledger.open(database, timeout=0.05, read_only=True) as reader:
        assert once(reader.account("survey")) == entry
        with pytest.raises(LedgerError, match="opened read-only"):
            once(reader.account("survey"), plan="cd")


def test_an_edited_entry_does_not_count_as_paid(database, survey):
    once(survey)
    once(survey, plan="cd")
    tamper(database, "UPDATE entries SET plan_digest = 'ef' WHERE number = 1")
    with pytest.raises(LedgerCorrupt, match="changed entry 1 of account 'survey'"):
        survey.paid("sex", "ef")


@pytest.mark.parametrize("names", [[], ["survey", "survey"]])
def test_a_debit_needs_accounts_and_each_of_them_once(ledger, survey, names):
    with pytest.raises(LedgerError, match=f"each of them once, not .* {UNSPENT}"):
        ask(ledger, [ledger.account(name) for name in names])
    assert survey.entries() == ()


def test_accounts_of_two_ledgers_cannot_pay_together(ledger, survey, tmp_path):
    with Ledger.create(tmp_path / "another.sqlite") as other:
        bob = other.create_account("bob", ZCDP(1), ADD_REMOVE)
        with pytest.raises(LedgerError, match=f"accounts of another ledger .* {UNSPENT}"):
            ask(ledger, [survey, bob])
        assert bob.entries() == survey.entries() == ()


def test_accounts_of_different_kinds_each_count_in_their_own_unit(ledger, survey):
    pure = ledger.create_account("pure", PureDP(1), ADD_REMOVE)
    ledger.debit_together([survey, pure], PureDP("1/2"), ADD_REMOVE, purpose="sex", plan_digest="ab")
    assert (survey.spent(), pure.spent()) == (ZCDP("1/8"), PureDP("1/2"))


LONG = """
INSERT INTO entries WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
SELECT account, n, cost, relation, records, purpose, 'plan ' || n, spent, at, previous, digest FROM entries, numbers
"""


def test_an_index_finds_what_was_paid_in_a_long_ledger(database, ledger, survey):
    once(survey)
    tamper(database, LONG)
    executed = []

    def remember(connection, cursor, statement, parameters, context, many):
        executed.append((statement, parameters))

    event.listen(ledger.storage.engine, "before_cursor_execute", remember)
    assert survey.paid("sex", "ab").number == 1
    ((statement, parameters),) = [each for each in executed if "plan_digest =" in each[0]]
    explain = "EXPLAIN" if database.startswith("postgresql:") else "EXPLAIN QUERY PLAN"
    with by_hand(database) as connection:
        assert "entries_paid" in str(connection.execute(f"{explain} {statement}", parameters).fetchall())


def test_an_older_ledger_without_the_index_still_opens_and_answers(database, survey):
    entry = once(survey)
    with by_hand(database) as connection:
        connection.execute("DROP INDEX entries_paid")
    with Ledger.open(database) as older:
        assert older.account("survey").paid("sex", "ab") == entry
        assert once(older.account("survey")) == entry
        assert once(older.account("survey"), plan="cd").number == 2


requests = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True),
        st.integers(1, 4),
        st.sampled_from(["sex", "age", "job"]),
        st.booleans(),
    ),
    max_size=8,
)


@given(requests)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_together_no_account_overspends_and_all_pay_or_none(ledger, asked):
    prefix = len(ledger.accounts())
    accounts = {name: ledger.create_account(f"{name} {prefix}", ZCDP(6), ADD_REMOVE) for name in "abc"}
    spent, paid = dict.fromkeys(accounts, 0), set()
    for names, price, purpose, only_once in asked:
        # The digest of a plan stands for its cost.
        plan = f"{purpose} {price}"
        payers = [accounts[name] for name in names]
        if only_once and (names[0], plan) in paid:
            assert len(ask(ledger, payers, price, purpose=purpose, plan=plan, once=True)) == 1
        elif any(spent[name] + price > 6 for name in names):
            with pytest.raises(BudgetExceeded):
                ask(ledger, payers, price, purpose=purpose, plan=plan, once=only_once)
        else:
            assert len(ask(ledger, payers, price, purpose=purpose, plan=plan, once=only_once)) == len(names)
            for name in names:
                spent[name] += price
                paid.add((name, plan))
    assert {name: account.balance().spent.rho for name, account in accounts.items()} == spent
    ledger.check()
