"""A fresh ledger with one account, and the means to damage it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.ledger import Account, Entry, Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.create(path) as created:
        yield created


@pytest.fixture
def census(ledger: Ledger) -> Account:
    return ledger.create_account("census", PureDP(1), Neighbours())


@pytest.fixture
def debit() -> Callable[..., Entry]:
    """Return a debit that needs only an account and an ε."""

    def pay(account: Account, epsilon: object = "1/8") -> Entry:
        return account.debit(PureDP(epsilon), account.neighbours, purpose="sex by age", plan_digest="ab" * 32)

    return pay


@pytest.fixture
def full_path(path: Path, debit: Callable[..., Entry]) -> Path:
    """Return a closed ledger with two accounts and several entries in each."""
    with Ledger.create(path) as ledger:
        for name in ("census", "survey"):
            account = ledger.create_account(name, PureDP(1), Neighbours())
            for _ in range(4):
                debit(account)
    return path


@pytest.fixture
def tamper() -> Callable[[Path, str], None]:
    """Return a hand that edits a ledger behind its triggers, and puts the triggers back."""

    def edit(path: Path, *statements: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                assert connection.execute(statement).rowcount != 0, f"this changes nothing: {statement}"
            for _, text in triggers:
                connection.execute(text)

    return edit
