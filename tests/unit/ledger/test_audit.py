"""A ledger that was damaged, edited, cut or replaced is refused."""

import contextlib
import hashlib
import random
import sqlite3
from contextlib import closing

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.errors import LedgerCorrupt, LedgerError
from tabulary.ledger import Amount, Ledger
from tabulary.ledger.postgresql import PostgreSQLStorage
from tabulary.ledger.sqlite import SQLiteStorage
from tests.ledgers import fill, pay, restored, tamper

UNSPENT = "Nothing was measured, nothing was spent."


def what_it_says(path):
    with Ledger.open(path) as ledger:
        ledger.check()
        return [(account, account.entries(), account.balance()) for account in ledger.accounts()]


def refuse(path, match=UNSPENT):
    with pytest.raises(LedgerCorrupt, match=match):
        Ledger.open(path)
    with pytest.raises(LedgerCorrupt, match=match):
        Ledger.open(path, read_only=True)


def test_a_ledger_cut_at_any_length_is_refused(full_path):
    content = full_path.read_bytes()
    lengths = {0, 1, 15, 16, 17, 99, 100, 101, 511, 512, 1023, 1024, len(content) - 1, len(content) - 100}
    lengths |= set(range(4096, len(content), 4096)) | set(range(5000, len(content), 3001))
    for length in sorted(lengths):
        full_path.write_bytes(content[:length])
        refuse(full_path)


def test_a_changed_byte_in_the_header_is_refused_or_changes_nothing(full_path):
    before = what_it_says(full_path)
    content = full_path.read_bytes()
    for position in range(100):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        full_path.write_bytes(changed)
        if position < 18:
            refuse(full_path)
        else:
            # Counters, hints and reserved fields stand among those that say how an entry is stored.
            with contextlib.suppress(LedgerCorrupt):
                assert what_it_says(full_path) == before


def test_a_changed_byte_anywhere_is_refused_or_changes_nothing(full_path):
    before = what_it_says(full_path)
    content = full_path.read_bytes()
    choose = random.Random(20210321)
    refused = 0
    for _ in range(150):
        changed = bytearray(content)
        changed[choose.randrange(len(content))] ^= choose.randrange(1, 256)
        full_path.write_bytes(changed)
        try:
            assert what_it_says(full_path) == before
        except LedgerCorrupt:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\n", b"name,budget\ncensus,1\n" * 1000, bytes(8192)],
    ids=["empty", "text", "csv", "zeros"],
)
def test_a_file_that_is_no_database_is_refused(path, content):
    path.write_bytes(content)
    refuse(path)
    assert path.read_bytes() == content


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(LedgerError, match=UNSPENT):
        Ledger.open(tmp_path)


@pytest.mark.parametrize("statement", ["CREATE TABLE people (name)", "CREATE TABLE ledger (name)"])
def test_another_database_is_refused_and_left_alone(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    content = path.read_bytes()
    refuse(path, "ledger")
    assert path.read_bytes() == content


def test_a_ledger_of_another_version_is_refused(full):
    tamper(full, "UPDATE ledger SET version = 2")
    refuse(full, "has schema version 2, but this Tabulary reads version 1")


@pytest.mark.parametrize(
    ("storage", "digest"),
    [
        (SQLiteStorage, "8851ad72607d02c1813dc9620bbbf2ac1560bc0259300c401d4cb767c4da0b44"),
        (PostgreSQLStorage, "a5b629c6442578a69dacda90a8bf9837029526026e45e1585cfb3af05bb6be87"),
    ],
)
def test_the_triggers_of_ledgers_that_were_written_stay_as_they_are(storage, digest):
    # Other words would mean the same, and every ledger that is out there would be refused.
    words = repr(sorted(storage.expected_guards.items()))
    assert hashlib.sha256(words.encode()).hexdigest() == digest


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entries_delete",
        "DROP TABLE entries",
        "CREATE TABLE more (name)",
        "CREATE VIEW more AS SELECT 1",
        "ALTER TABLE entries ADD COLUMN more",
        "ALTER TABLE entries RENAME COLUMN purpose TO reason",
    ],
)
def test_a_ledger_with_other_tables_or_triggers_is_refused(full_path, statement):
    with closing(sqlite3.connect(full_path)) as connection:
        connection.execute(statement)
    refuse(full_path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET purpose = 'another'",
        "DELETE FROM entries WHERE number = 4",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE number = 2",
        "UPDATE accounts SET budget = '9'",
        "DELETE FROM accounts",
        "INSERT OR REPLACE INTO accounts SELECT * FROM accounts",
        "UPDATE heads SET entries = 0",
        "DELETE FROM heads",
        "INSERT OR REPLACE INTO heads SELECT * FROM heads",
        "UPDATE ledger SET accounts = 0",
        "DELETE FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_written(full_path, statement):
    before = what_it_says(full_path)
    with closing(sqlite3.connect(full_path)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
        connection.rollback()
    assert what_it_says(full_path) == before


COLUMNS = ["cost", "relation", "purpose", "plan_digest", "spent", "at", "previous", "digest"]

EDITS = [
    """UPDATE entries SET cost = '{"kind":"pure-dp","epsilon":"1/16"}' WHERE number = 2""",
    "UPDATE entries SET records = 9 WHERE number = 3",
    "UPDATE entries SET number = number + 1 WHERE number = 4",
    "DELETE FROM entries WHERE number = 1",
    "DELETE FROM entries WHERE number = 2",
    "DELETE FROM entries WHERE number = 4",
    "DELETE FROM entries",
    "DELETE FROM entries WHERE account = 'survey'",
    "UPDATE entries SET account = 'visits' WHERE account = 'survey'",
    "DELETE FROM heads WHERE account = 'survey'",
    "UPDATE heads SET digest = (SELECT digest FROM entries WHERE number = 3 AND account = heads.account), entries = 3",
    """UPDATE accounts SET budget = '{"kind":"pure-dp","epsilon":"2"}'""",
    "UPDATE accounts SET relation = 'replace'",
    "DELETE FROM accounts WHERE name = 'census'",
    "DELETE FROM accounts WHERE name = 'survey'",
    "UPDATE ledger SET identity = 'another'",
    "DELETE FROM ledger",
]

# SQLite alone takes bytes for text.
BYTES = [
    "UPDATE entries SET purpose = x'ff00' WHERE number = 3",
    "UPDATE entries SET purpose = CAST(x'ff00' AS TEXT) WHERE number = 3",
]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_edited_entry_is_refused(full_path, column, number):
    tamper(full_path, f"UPDATE entries SET {column} = {column} || ' ' WHERE number = {number}")
    refuse(full_path, "account 'census'")


@pytest.mark.parametrize("statement", [*EDITS, *BYTES])
def test_an_edit_behind_the_triggers_is_refused(full_path, statement):
    tamper(full_path, statement)
    refuse(full_path)


def test_an_edit_behind_the_triggers_of_postgresql_is_refused(postgres_database):
    fill(postgres_database)
    before = what_it_says(postgres_database)
    edited = [f"UPDATE entries SET {column} = {column} || ' ' WHERE number = 2" for column in COLUMNS]
    for statement in [*edited, *EDITS]:
        with restored(postgres_database):
            tamper(postgres_database, statement)
            with pytest.raises(LedgerCorrupt, match=UNSPENT):
                Ledger.open(postgres_database)
    assert what_it_says(postgres_database) == before


def test_a_whole_account_cut_from_the_end_is_refused(full):
    tamper(
        full,
        "DELETE FROM entries WHERE account = 'survey'",
        "DELETE FROM heads WHERE account = 'survey'",
        "DELETE FROM accounts WHERE name = 'survey'",
    )
    refuse(full, "lost the accounts that were opened last")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries WHERE number = 2",
        'UPDATE entries SET spent = \'{"epsilon":"0"}\' WHERE number = 2',
        "UPDATE heads SET entries = 1",
        "DELETE FROM heads",
        "UPDATE accounts SET budget = replace(budget, '1', '9')",
        "DELETE FROM accounts",
        "ALTER TABLE entries RENAME COLUMN purpose TO reason",
    ],
)
def test_a_debit_notices_an_edit_made_while_the_ledger_is_open(database, census, statement):
    pay(census)
    pay(census)
    tamper(database, statement)
    with pytest.raises(LedgerCorrupt, match=UNSPENT):
        pay(census)


def test_a_check_notices_what_a_debit_does_not_look_at(database, ledger, census):
    pay(census)
    pay(census)
    tamper(database, "UPDATE entries SET purpose = 'another' WHERE number = 1")
    with pytest.raises(LedgerCorrupt, match="changed entry 1 of account 'census'"):
        ledger.check()
    with pytest.raises(LedgerCorrupt, match="changed entry 1 of account 'census'"):
        census.entries()


@pytest.mark.parametrize(
    "total",
    [lambda account, spent, cost: spent, lambda account, spent, cost: spent + Amount.of(cost)],
    ids=["a cost left out", "a budget exceeded"],
)
def test_a_false_total_is_refused_even_if_every_digest_is_right(database, census, monkeypatch, total):
    pay(census, "1/2")
    monkeypatch.setattr("tabulary.ledger.account.total_after", total)
    pay(census, "3/4")
    refuse(database, "false total at entry 2 of account 'census'")


def test_an_entry_that_protects_too_little_is_refused_even_if_every_digest_is_right(
    database, census, monkeypatch
):
    monkeypatch.setattr("tabulary.ledger.account.covers", lambda offered, promised: True)
    census.debit(PureDP("1/8"), Neighbours("replace"), purpose="sex by age", plan_digest="ab")
    refuse(database, "wrong neighbouring relation at entry 1 of account 'census'")


def test_an_entry_of_the_wrong_kind_is_refused_even_if_every_digest_is_right(database, census, monkeypatch):
    monkeypatch.setattr("tabulary.ledger.account.total_after", lambda account, spent, cost: spent)
    census.debit(ZCDP("1/8"), Neighbours(), purpose="sex by age", plan_digest="ab")
    refuse(database, "wrong kind at entry 1 of account 'census'")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO heads VALUES ('ghost', 0, 'ab')",
        "INSERT INTO entries (account, number, cost, relation, records, purpose, plan_digest, spent, at, "
        "previous, digest) SELECT 'ghost', number, cost, relation, records, purpose, plan_digest, spent, at, "
        "previous, digest FROM entries WHERE account = 'survey'",
    ],
)
def test_entries_of_an_account_that_is_not_there_are_refused(full, statement):
    tamper(full, statement)
    refuse(full, "has entries of an account that does not exist")


def test_an_index_that_disagrees_with_its_table_is_refused(full_path):
    with closing(sqlite3.connect(full_path)) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'accounts'"
        )
        ((size,),) = connection.execute("PRAGMA page_size")
    content = bytearray(full_path.read_bytes())
    content[page * size - 1] ^= 0x01
    full_path.write_bytes(content)
    refuse(full_path, "has damaged pages")


def test_a_kept_head_of_an_account_without_entries_exposes_another_ledger(tmp_path):
    with Ledger.create(tmp_path / "one") as one, Ledger.create(tmp_path / "two") as two:
        one.create_account("census", PureDP(1), Neighbours())
        with pytest.raises(LedgerCorrupt, match="older copy"):
            two.check(kept=one.heads())
        two.create_account("census", PureDP(1), Neighbours())
        with pytest.raises(LedgerCorrupt, match="older copy"):
            two.check(kept=one.heads())
        one.check(kept=one.heads())
