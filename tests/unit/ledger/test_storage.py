"""Locks, full disks and files that may not be written: refused with an answer, and nothing spent."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.errors import LedgerBusy, LedgerError, LedgerMissing
from tabulary.ledger import Ledger

resource = pytest.importorskip("resource")

UNSPENT = "Nothing was measured, nothing was spent."


def test_a_closed_ledger_refuses_to_be_used(path):
    ledger = Ledger.create(path)
    account = ledger.create_account("census", PureDP(1), Neighbours())
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match=f"is closed. Open it again. {UNSPENT}"):
        account.spent()


def test_a_writer_that_keeps_the_lock_too_long_makes_the_ledger_busy(path, census, debit):
    with (
        Ledger.open(path, timeout=0.05) as impatient,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy, match=f"more than 0.05 seconds. {UNSPENT} Try again"):
            debit(impatient.account("census"))
        other.execute("ROLLBACK")
        assert debit(impatient.account("census")).number == 1


def test_a_debit_waits_for_a_writer_that_finishes_in_time(path, census, debit):
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        timer.start()
        assert debit(census).number == 1
        timer.join()


FORKED = """
import os, sys
from tabulary.core.privacy import Neighbours, PureDP
from tabulary.errors import LedgerError
from tabulary.ledger import Ledger

with Ledger.open(sys.argv[1]) as ledger:
    account = ledger.account("census")
    account.balance()
    child = os.fork()
    if child == 0:
        try:
            account.debit(PureDP("1/8"), Neighbours(), purpose="sex by age", plan_digest="ab")
        except LedgerError as error:
            print(error, flush=True)
        ledger.close()
        os._exit(0)
    os.waitpid(child, 0)
    account.debit(PureDP("1/8"), Neighbours(), purpose="sex by age", plan_digest="ab")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_must_open_the_ledger_again(path, census):
    # In an interpreter of its own: this one has threads, which do not survive a fork.
    finished = subprocess.run(
        [sys.executable, "-c", FORKED, str(path)], capture_output=True, text=True, check=True
    )
    assert f"was opened by another process. Open it again in this one. {UNSPENT}" in finished.stdout
    assert len(census.entries()) == 1


def test_a_ledger_replaced_while_it_is_open_takes_no_debit(path, census, debit):
    debit(census)
    other = path.with_name("other.sqlite")
    Ledger.create(other).close()
    other.replace(path)
    with pytest.raises(LedgerError, match=f"replaced by another file .* {UNSPENT}"):
        debit(census)


def test_a_ledger_removed_while_it_is_open_takes_no_debit(path, census, debit):
    path.unlink()
    with pytest.raises(LedgerMissing, match=UNSPENT):
        debit(census)


@contextlib.contextmanager
def files_no_longer_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_takes_no_debit_and_leaves_the_ledger_sound(path, ledger, census, debit):
    debit(census)
    with files_no_longer_than(Path(f"{path}-wal").stat().st_size), pytest.raises(LedgerError) as refusal:
        debit(census)
    assert "disk of the ledger" in str(refusal.value)
    assert "Nothing was measured" in str(refusal.value)
    assert "INSERT" not in str(refusal.value)
    ledger.check()
    assert len(census.entries()) == 1
    debit(census)


@pytest.fixture
def locked_folder():
    """Yield a folder, and in it a ledger, that an ordinary user can read and cannot write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Ledger.create(folder / "ledger.sqlite") as ledger:
            ledger.create_account("census", PureDP(1), Neighbours())
        (folder / "ledger.sqlite").chmod(0o444)
        folder.chmod(0o555)
        # The superuser may write anywhere, so that these tests would prove nothing.
        superuser = os.geteuid() == 0
        if superuser:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if superuser:
                os.seteuid(0)
            folder.chmod(0o755)


def test_a_ledger_in_a_locked_folder_can_be_read_but_not_debited(locked_folder, debit):
    with Ledger.open(locked_folder / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.account("census").remaining() == PureDP(1)
    with pytest.raises(LedgerError, match=f"cannot be opened or written to. {UNSPENT} Check the permissions"):
        Ledger.open(locked_folder / "ledger.sqlite")
    with pytest.raises(LedgerError, match="Permission denied"):
        Ledger.create(locked_folder / "another.sqlite")


def test_a_read_only_file_in_an_open_folder_takes_no_debit(locked_folder, debit):
    if os.getuid() == 0:
        os.seteuid(0)
    locked_folder.chmod(0o777)
    if os.getuid() == 0:
        os.seteuid(65534)
    with Ledger.open(locked_folder / "ledger.sqlite") as ledger:
        account = ledger.account("census")
        with pytest.raises(LedgerError, match="cannot be opened or written to"):
            debit(account)
        assert account.spent() is None
