"""The ledger: a file of accounts that is created once and only ever grows."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tabulary.core.privacy import Neighbours, Privacy
from tabulary.errors import LedgerError, LedgerMissing
from tabulary.ledger import schema
from tabulary.ledger.account import Account
from tabulary.ledger.amounts import refuse_unwieldy_privacy
from tabulary.ledger.audit import refuse_older_copy, refuse_unsound_ledger
from tabulary.ledger.chain import Head, link
from tabulary.ledger.rows import (
    account_row,
    account_rows,
    append_account,
    found_ledger,
    founding_digest,
    head_of,
    ledger_row,
)
from tabulary.ledger.storage import UNSPENT, Storage, journals_beside
from tabulary.ledger.words import refuse_other_than, refuse_unprintable

# Long enough for a queue of debits on a slow disk, short enough to notice a process that hangs with the lock.
_PATIENCE = 30.0


class Ledger:
    """A file of accounts, one a dataset, each with a budget and the debits made against it.

    Shared safely by the threads of a process and by the processes of a machine; a process that forks opens
    it again. `timeout` is how many seconds to wait for another writer. Use it as a context manager, or
    `close` it.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, timeout: float = _PATIENCE) -> "Ledger":
        """Return a new, empty ledger at `path`; refuse a path that is taken.

        >>> import tempfile
        >>> from tabulary.core.privacy import PureDP
        >>> with tempfile.TemporaryDirectory() as folder, Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...     census = ledger.create_account("census", PureDP(1), Neighbours())
        ...     _ = census.debit(PureDP("1/4"), Neighbours(), purpose="sex by age", plan_digest="5f3a")
        ...     print(census.remaining())
        ε = 0.75
        """
        path = Path(path)
        if leftover := journals_beside(path):
            raise LedgerError(
                f"there is a journal at {str(leftover[0])!r}: a ledger stood at {str(path)!r} and its file "
                f"is gone. Restore it, or choose another path. {UNSPENT}"
            )
        try:
            # Exclusive, so that of two processes that create the same ledger one is refused.
            path.open("xb").close()
        except FileExistsError:
            raise LedgerError(
                f"{str(path)!r} is already there, and a ledger is never overwritten. Open it, or choose "
                f"another path. {UNSPENT}"
            ) from None
        except OSError as error:
            raise LedgerError(
                f"no ledger can be created at {str(path)!r}: {error.strerror}. {UNSPENT}"
            ) from None
        storage = Storage(path, read_only=False, timeout=timeout)
        try:
            storage.use_write_ahead_log()
            with storage.writing() as connection:
                schema.create_tables(connection)
                found_ledger(connection)
        except BaseException:
            storage.close()
            path.unlink(missing_ok=True)
            raise
        return cls(storage)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, read_only: bool = False, timeout: float = _PATIENCE
    ) -> "Ledger":
        """Return the ledger at `path`, after a check of all it holds; refuse one that is missing or unsound.

        With `read_only`, the file is never written to and may stand in a folder that cannot be.
        """
        storage = Storage(Path(path), read_only=read_only, timeout=timeout)
        try:
            with storage.reading() as connection:
                refuse_unsound_ledger(connection)
        except BaseException:
            storage.close()
            raise
        return cls(storage)

    @property
    def path(self) -> Path:
        """Return where the ledger stands."""
        return self._storage.path

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def create_account(self, name: str, budget: Privacy, neighbours: Neighbours) -> Account:
        """Return a new account; its budget and neighbouring relation stand for good."""
        refuse_unprintable(name, "the name of an account")
        refuse_other_than(Privacy, budget, "the budget of an account")
        refuse_other_than(Neighbours, neighbours, "the neighbours of an account")
        refuse_unwieldy_privacy(budget)
        if neighbours.sensitive:
            raise LedgerError(
                f"an account promises to protect every attribute, not {neighbours}. A plan with sensitive "
                f"attributes cannot be paid from one. {UNSPENT}"
            )
        with self._storage.writing() as connection:
            if account_row(connection, name) is not None:
                raise LedgerError(
                    f"there is already an account {name!r} in this ledger, and its budget stands for good. "
                    f"Choose another name. {UNSPENT}"
                )
            return Account.from_row(append_account(connection, name, budget, neighbours), self._storage)

    def account(self, name: str) -> Account:
        """Return the account of that name."""
        refuse_unprintable(name, "the name of an account")
        with self._storage.reading() as connection:
            row = account_row(connection, name)
            if row is None:
                known = [each["name"] for each in account_rows(connection)]
                raise LedgerMissing(
                    f"there is no account {name!r} in this ledger. "
                    f"{f'It has {known}.' if known else 'It has none yet.'} {UNSPENT}"
                )
            return Account.from_row(row, self._storage)

    def accounts(self) -> list[Account]:
        """Return every account, in the order in which they were opened."""
        with self._storage.reading() as connection:
            return [Account.from_row(row, self._storage) for row in account_rows(connection)]

    def heads(self) -> tuple[Head, ...]:
        """Return the end of every account's chain, in the order in which the accounts were opened."""
        with self._storage.reading() as connection:
            return tuple(head_of(connection, row["name"]) for row in account_rows(connection))

    def head(self) -> str:
        """Return one digest of all that the ledger holds: it changes with every account and every debit.

        Written down elsewhere, it tells whether the ledger is still the one that was left. Where debits may
        have come in between, keep `heads` and give them to `check`.
        """
        with self._storage.reading() as connection:
            heads = [str(head_of(connection, row["name"])) for row in account_rows(connection)]
            return link(founding_digest(ledger_row(connection)), {"heads": heads})

    def check(self, *, kept: Iterable[Head] = ()) -> None:
        """Walk all pages, chains and sums; refuse the ledger where one is false or a `kept` head is missing.

        A head that was kept elsewhere is in every later state of the ledger, and in no earlier one.
        """
        with self._storage.reading() as connection:
            refuse_unsound_ledger(connection)
            refuse_older_copy(connection, kept)
