"""Many processes, a few accounts: nothing is overspent, nothing is lost, and nothing is paid for twice."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.ledger import Ledger

pytestmark = pytest.mark.slow

PROCESSES, ATTEMPTS, AFFORDABLE = 8, 60, 300
PLANS, PLANS_OF_THE_DATASET, PLANS_OF_AN_ANALYST = 20, 15, 3

# Imports once, and then gives birth to processes that all begin at about the same time.
SPENDERS = """
import json, os, sys, traceback
from fractions import Fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.errors import BudgetExceeded
from tabulary.ledger import Ledger

where, folder, processes, attempts, affordable, plans, plans_of_the_dataset = sys.argv[1:3] + [
    int(number) for number in sys.argv[3:]
]

def spend(ledger, name):
    accepted, refused, account = [], 0, ledger.account("census")
    for number in range(attempts):
        try:
            entry = account.debit(
                PureDP(Fraction(1, affordable)), Neighbours(), purpose=f"{name} {number}", plan_digest="ab" * 32
            )
        except BudgetExceeded:
            refused += 1
        else:
            accepted.append(entry.digest)
    return {"accepted": accepted, "refused": refused}

def ask(ledger, number):
    answers, accounts = {}, [ledger.account("builder"), ledger.account(f"analyst {number}")]
    for step in range(plans):
        # No two processes ask in the same order, and all of them ask for everything.
        plan = str((number + (1 + 2 * (number % 4)) * step) % plans)
        try:
            paid = ledger.debit_together(
                accounts,
                ZCDP(Fraction(1, plans_of_the_dataset)),
                Neighbours(),
                purpose="a table",
                plan_digest=plan,
                once=True,
            )
        except BudgetExceeded:
            continue
        answers[plan] = paid[0].digest
    return answers

for number in range(processes):
    if os.fork() == 0:
        try:
            with Ledger.open(where, timeout=120) as ledger:
                told = {"spent": spend(ledger, f"process {number}"), "asked": ask(ledger, number)}
            with open(f"{folder}/{number}.json", "w") as file:
                json.dump(told, file)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
sys.exit(any([os.wait()[1] for _ in range(processes)]))
"""


@pytest.fixture
def told(database, tmp_path):
    """What eight processes say that they did to one ledger."""
    with Ledger.create(database) as ledger:
        ledger.create_account("census", PureDP(1), Neighbours())
        ledger.create_account("builder", ZCDP(1), Neighbours())
        limit = ZCDP(Fraction(PLANS_OF_AN_ANALYST, PLANS_OF_THE_DATASET))
        for number in range(PROCESSES):
            ledger.create_account(f"analyst {number}", limit, Neighbours())
    sizes = (PROCESSES, ATTEMPTS, AFFORDABLE, PLANS, PLANS_OF_THE_DATASET)
    subprocess.run(
        [sys.executable, "-c", SPENDERS, database, str(tmp_path), *map(str, sizes)], check=True, timeout=300
    )
    return [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(PROCESSES)]


def test_processes_spend_a_budget_to_the_last_fraction_and_pay_for_a_plan_once(database, told):
    with Ledger.open(database) as ledger:
        ledger.check()
        assert_the_budget_was_spent_to_the_last_fraction(ledger, [each["spent"] for each in told])
        assert_every_plan_was_paid_for_once(ledger, [each["asked"] for each in told])


def assert_the_budget_was_spent_to_the_last_fraction(ledger, spent):
    assert sum(each["refused"] for each in spent) == PROCESSES * ATTEMPTS - AFFORDABLE
    census = ledger.account("census")
    entries = census.entries()
    assert len(entries) == len({entry.purpose for entry in entries}) == AFFORDABLE
    assert {entry.digest for entry in entries} == {digest for each in spent for digest in each["accepted"]}
    assert (census.spent(), census.remaining()) == (PureDP(1), None)


def assert_every_plan_was_paid_for_once(ledger, asked):
    paid = {entry.plan_digest: entry.digest for entry in ledger.account("builder").entries()}
    assert len(paid) == len(ledger.account("builder").entries()) == PLANS_OF_THE_DATASET
    # Whoever asked for a plan was told of the same entry, whoever paid.
    for answers in asked:
        assert answers.items() <= paid.items()
    analysts = [ledger.account(f"analyst {number}").entries() for number in range(PROCESSES)]
    assert max(map(len, analysts)) <= PLANS_OF_AN_ANALYST
    # What the dataset paid, one analyst paid with it.
    assert sorted(entry.plan_digest for entries in analysts for entry in entries) == sorted(paid)
