"""A filled ledger, and hands that touch its tables behind its back."""

import contextlib
import sqlite3
from contextlib import closing, contextmanager

import psycopg

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.ledger import Ledger

TABLES = ("ledger", "accounts", "heads", "entries")


def pay(account, epsilon="1/8"):
    """Debit an ε for one and the same plan."""
    return account.debit(PureDP(epsilon), account.neighbours, purpose="sex by age", plan_digest="ab" * 32)


def fill(where):
    """Create a ledger with two accounts and several entries in each."""
    with Ledger.create(where) as ledger:
        for name in ("census", "survey"):
            account = ledger.create_account(name, PureDP(1), Neighbours())
            for _ in range(4):
                pay(account)


@contextmanager
def by_hand(where):
    """Yield a connection to a ledger's tables that Tabulary has no part in."""
    if str(where).startswith("postgresql:"):
        with closing(psycopg.connect(where, autocommit=True)) as connection:
            connection.execute("SET search_path = tabulary_ledger")
            yield connection
    else:
        with closing(sqlite3.connect(where, isolation_level=None, check_same_thread=False)) as connection:
            yield connection


def tamper(where, *statements):
    """Edit a ledger behind its triggers, and put the triggers back."""
    with by_hand(where) as connection, triggers_off(connection):
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, f"this changes nothing: {statement}"


@contextmanager
def restored(where):
    """Put the rows of a ledger back in the end, as an older copy does; in place, so that it may be open elsewhere."""
    with by_hand(where) as connection:
        if isinstance(connection, sqlite3.Connection):
            with closing(sqlite3.connect(":memory:")) as copy:
                connection.backup(copy)
                yield
                copy.backup(connection)
            return
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
        yield
        with triggers_off(connection):
            for table in TABLES:
                connection.execute(f"TRUNCATE {table} CASCADE")
                for row in rows[table]:
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)


@contextmanager
def triggers_off(connection):
    if isinstance(connection, sqlite3.Connection):
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield
        for _, text in triggers:
            connection.execute(text)
    else:
        for table in TABLES:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        yield
        for table in TABLES:
            connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
            for statement in ("insert", "update", "delete", "truncate"):
                connection.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_{statement}")


@contextmanager
def locked(where):
    """Hold the lock of a ledger's writers."""
    with by_hand(where) as connection, contextlib.ExitStack() as stack:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE")
        stack.callback(connection.execute, "ROLLBACK")
        yield
