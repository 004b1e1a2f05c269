"""A fresh ledger with one account, on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.ledger import Account, Ledger
from tests.ledgers import fill


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for a ledger in a file, for what is said of files only."""
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(database: str) -> Iterator[Ledger]:
    with Ledger.create(database) as created:
        yield created


@pytest.fixture
def census(ledger: Ledger) -> Account:
    return ledger.create_account("census", PureDP(1), Neighbours())


@pytest.fixture
def full(database: str) -> str:
    """Return a closed ledger with two accounts and several entries in each."""
    fill(database)
    return database


@pytest.fixture
def full_path(path: Path) -> Path:
    """Return the same in a file."""
    fill(path)
    return path
