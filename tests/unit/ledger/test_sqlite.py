"""A ledger in a file: replaced, copied, on a full disk, or where it may not be written."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.errors import LedgerCorrupt, LedgerError, LedgerMissing
from tabulary.ledger import Ledger
from tests.ledgers import pay

resource = pytest.importorskip("resource")

UNSPENT = "Nothing was measured, nothing was spent."


@pytest.fixture
def database(path):
    return str(path)


def test_a_ledger_replaced_while_it_is_open_takes_no_debit(path, census):
    pay(census)
    other = path.with_name("other.sqlite")
    Ledger.create(other).close()
    other.replace(path)
    with pytest.raises(LedgerError, match=f"replaced by another file .* {UNSPENT}"):
        pay(census)


def test_a_ledger_removed_while_it_is_open_takes_no_debit(path, census):
    path.unlink()
    with pytest.raises(LedgerMissing, match=UNSPENT):
        pay(census)


@contextlib.contextmanager
def files_no_longer_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_takes_no_debit_and_leaves_the_ledger_sound(path, ledger, census):
    pay(census)
    with (
        files_no_longer_than(Path(f"{path}-wal").stat().st_size),
        pytest.raises(LedgerError, match=r"the disk of the ledger .* Nothing was measured") as refusal,
    ):
        pay(census)
    assert "INSERT" not in str(refusal.value)
    ledger.check()
    assert len(census.entries()) == 1
    pay(census)


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


def test_a_ledger_in_a_locked_folder_can_be_read_but_not_debited(locked_folder):
    with Ledger.open(locked_folder / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.account("census").remaining() == PureDP(1)
    with pytest.raises(LedgerError, match=f"cannot be opened or written to. {UNSPENT} Check the permissions"):
        Ledger.open(locked_folder / "ledger.sqlite")
    with pytest.raises(LedgerError, match="Permission denied"):
        Ledger.create(locked_folder / "another.sqlite")


def test_a_read_only_file_in_an_open_folder_takes_no_debit(locked_folder):
    if os.getuid() == 0:
        os.seteuid(0)
    locked_folder.chmod(0o777)
    if os.getuid() == 0:
        os.seteuid(65534)
    with Ledger.open(locked_folder / "ledger.sqlite") as ledger:
        account = ledger.account("census")
        with pytest.raises(LedgerError, match="cannot be opened or written to"):
            pay(account)
        assert account.spent() is None


def test_an_older_copy_is_exposed_by_a_kept_head(path, census, ledger):
    pay(census)
    copy = path.with_name("copy.sqlite")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    opened, early, late = ledger.heads()[0], census.head(), pay(census).head
    with Ledger.open(copy) as old:
        old.check(kept=[early])
        with pytest.raises(LedgerCorrupt, match="an older copy, or another ledger"):
            old.check(kept=[early, late])
        assert old.head() != ledger.head()
    ledger.check(kept=[opened, early, late])


def test_entries_still_in_the_journal_of_a_crashed_process_are_counted(path, ledger, census):
    pay(census)
    crashed = path.with_name("crashed.sqlite")
    for suffix in ("", "-wal"):
        shutil.copy(str(path) + suffix, str(crashed) + suffix)
    with Ledger.open(crashed) as recovered:
        assert recovered.account("census").spent() == PureDP("1/8")
