"""What a ledger's transactions promise, on each database: a refusal comes with an answer, and nothing is spent."""

import os
import subprocess
import sys
import threading

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import LedgerBusy, LedgerError
from tabulary.ledger import Ledger
from tabulary.ledger.rows import account_row, tail_of
from tests.ledgers import locked, pay

UNSPENT = "Nothing was measured, nothing was spent."


def test_a_closed_ledger_refuses_to_be_used(database):
    ledger = Ledger.create(database)
    account = ledger.create_account("census", PureDP(1), Neighbours())
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match=f"is closed. Open it again. {UNSPENT}"):
        account.spent()


def test_a_writer_that_keeps_the_lock_too_long_makes_the_ledger_busy(database, census):
    with Ledger.open(database, timeout=0.05) as impatient:
        with (
            locked(database),
            pytest.raises(LedgerBusy, match=f"more than 0.05 seconds. {UNSPENT} Try again"),
        ):
            pay(impatient.account("census"))
        assert pay(impatient.account("census")).number == 1


def test_the_lock_of_a_writer_stops_no_reader(database, census):
    pay(census)
    with locked(database), Ledger.open(database, timeout=0.05) as reader:
        assert reader.account("census").spent() == PureDP("1/8")


def test_a_debit_waits_for_a_writer_that_finishes_in_time(database, census):
    held, done = threading.Event(), threading.Event()

    def write():
        with locked(database):
            held.set()
            done.wait()

    writer = threading.Thread(target=write)
    writer.start()
    held.wait()
    timer = threading.Timer(0.1, done.set)
    timer.start()
    assert pay(census).number == 1
    assert done.is_set()
    writer.join()
    timer.join()


def test_a_transaction_that_reads_sees_one_moment(database, ledger, census):
    pay(census)
    with ledger.storage.reading() as connection:
        before = tail_of(connection, account_row(connection, "census"))
        assert pay(census).number == 2
        assert tail_of(connection, account_row(connection, "census")) == before
    assert census.head().entries == 2


def test_a_debit_that_fails_half_way_leaves_no_trace(ledger, census, monkeypatch):
    before = ledger.head()

    def fail(row):
        raise ZeroDivisionError("half way")

    with monkeypatch.context() as patched:
        # By then the entry and the head are written, and only the commit is missing.
        patched.setattr("tabulary.ledger.rows.entry_of", fail)
        with pytest.raises(ZeroDivisionError, match="half way"):
            pay(census)
    assert ledger.head() == before
    assert pay(census).number == 1


FORKED = """
import os, sys
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import LedgerError
from tabulary.ledger import Ledger
from tabulary.ledger.rows import account_row, tail_of

def debit(account):
    account.debit(PureDP("1/8"), Neighbours(), purpose="sex by age", plan_digest="ab")

for where in sys.argv[1:]:
    with Ledger.open(where) as ledger:
        account = ledger.account("census")
        account.balance()
        child = os.fork()
        if child == 0:
            try:
                debit(account)
            except LedgerError as error:
                print(error, flush=True)
            ledger.close()
            os._exit(0)
        os.waitpid(child, 0)
        debit(account)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_must_open_the_ledger_again(path, postgres_database):
    for where in (path, postgres_database):
        with Ledger.create(where) as ledger:
            ledger.create_account("census", PureDP(1), Neighbours())
    # In an interpreter of its own: this one has threads, which do not survive a fork.
    finished = subprocess.run(
        [sys.executable, "-c", FORKED, path, postgres_database], capture_output=True, text=True, check=True
    )
    refusal = f"was opened by another process. Open it again in this one. {UNSPENT}"
    assert finished.stdout.count(refusal) == 2
    for where in (path, postgres_database):
        with Ledger.open(where) as ledger:
            assert len(ledger.account("census").entries()) == 1
