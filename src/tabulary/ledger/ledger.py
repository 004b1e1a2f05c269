"""The ledger: accounts of privacy budget in a place that is created once and only grows."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tabulary.core.head import Head
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy
from tabulary.errors import LedgerError, LedgerMissing
from tabulary.ledger.account import Account, debit_together
from tabulary.ledger.amounts import refuse_unwieldy_privacy
from tabulary.ledger.audit import lacking_heads, refuse_older_copy, refuse_unsound_ledger
from tabulary.ledger.chain import Entry, link
from tabulary.ledger.postgresql import PostgreSQLStorage
from tabulary.ledger.rows import (
    Stored,
    account_row,
    account_rows,
    append_account,
    found_ledger,
    founding_digest,
    head_of,
    ledger_row,
)
from tabulary.ledger.sqlite import SQLiteStorage
from tabulary.ledger.storage import UNSPENT, Storage
from tabulary.ledger.witness import Witness, Witnesses, WitnessFile
from tabulary.ledger.words import refuse_other_than, refuse_unprintable
from tabulary.sql import Where, address_of

# Long enough for a queue of debits on a slow disk, short enough to notice a process that hangs with the lock.
_PATIENCE = 30.0


class Ledger:
    """Accounts, one per dataset or analyst, each with a budget and its debits.

    It is stored in an SQLite file, which the threads of a process and the processes of a machine share safely, or
    in a PostgreSQL database, `postgresql://user:password@host:port/database`, which machines share. A process that
    forks opens it again. `timeout` is the number of seconds to wait for another writer. `witness` is a text file
    that records the head of every debit; it is created if it does not exist. A ledger that lacks one of its heads
    is an older copy and is refused. Use the ledger as a context manager, or `close` it.
    """

    def __init__(self, storage: Storage, identity: str) -> None:
        self.storage = storage
        self._identity = identity
        self._witnesses = Witnesses()

    @classmethod
    def create(
        cls, where: Where, *, timeout: float = _PATIENCE, witness: str | os.PathLike[str] | None = None
    ) -> "Ledger":
        """Return a new, empty ledger at a path or in a PostgreSQL database; refuse a place that has one.

        In PostgreSQL, the database must exist. The ledger makes its own schema in it, `tabulary_ledger`.

        >>> import tempfile
        >>> from tabulary.core.privacy import PureDP
        >>> with tempfile.TemporaryDirectory() as folder, Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...     census = ledger.create_account("census", PureDP(1), Neighbours())
        ...     _ = census.debit(PureDP("1/4"), Neighbours(), purpose="sex by age", plan_digest="5f3a")
        ...     print(census.remaining())
        ε = 0.75
        """
        address = address_of(where, "the ledger", LedgerError)
        storage: Storage = (
            SQLiteStorage.claim(Path(where), timeout=timeout)
            if address is None
            else PostgreSQLStorage(address, read_only=False, timeout=timeout)
        )
        with _closed_on_error(storage), storage.founding() as connection:
            identity = found_ledger(connection)
            # If the witness cannot be created, no ledger is left behind.
            file = None if witness is None else WitnessFile.begun(witness, identity)
        ledger = cls(storage, identity)
        if file is not None:
            ledger.attach(file)
        return ledger

    @classmethod
    def open(
        cls,
        where: Where,
        *,
        read_only: bool = False,
        timeout: float = _PATIENCE,
        witness: str | os.PathLike[str] | None = None,
    ) -> "Ledger":
        """Return the ledger at `where`, after a check of its whole content; refuse one that is missing or unsound.

        With `read_only`, it is never written to: the file may be in a read-only folder, or the database may belong
        to a user who may only read.
        """
        address = address_of(where, "the ledger", LedgerError)
        storage: Storage = (
            SQLiteStorage(Path(where), read_only=read_only, timeout=timeout)
            if address is None
            else PostgreSQLStorage(address, read_only=read_only, timeout=timeout)
        )
        with _closed_on_error(storage):
            with storage.reading() as connection:
                refuse_unsound_ledger(storage, connection)
                identity = str(ledger_row(connection)["identity"])
            ledger = cls(storage, identity)
            if witness is not None:
                begin = WitnessFile if read_only else WitnessFile.begun
                ledger.attach(begin(witness, identity))
        return ledger

    @property
    def where(self) -> str:
        """Return the place of the ledger: its path, or its address without user and password."""
        return self.storage.where

    @property
    def identity(self) -> str:
        """Return the identity of the ledger: no other ledger has it, and copies and moves keep it."""
        return self._identity

    def attach(self, witness: Witness) -> None:
        """Refuse a ledger that lacks what `witness` knows; from now on, tell the witness about every debit.

        A witness that is behind the ledger is told what it missed: a crash between a debit and the message does no
        harm.
        """
        known = witness.heads()
        with self.storage.reading() as connection:
            refuse_older_copy(connection, known)
        self._witnesses.add(witness)
        if not self.storage.read_only:
            self._witnesses.catch_up(self.heads())

    def lacks(self, kept: Iterable[Head]) -> tuple[Head, ...]:
        """Return the `kept` heads that the ledger does not contain: none, unless it is an older copy."""
        with self.storage.reading() as connection:
            return tuple(lacking_heads(connection, kept))

    def close(self) -> None:
        """Close the file or the connections. A second call does nothing."""
        self.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.where!r})"

    def create_account(self, name: str, budget: Privacy, neighbours: Neighbours) -> Account:
        """Return a new account; its budget and neighbouring relation never change."""
        refuse_unprintable(name, "the name of an account")
        refuse_other_than(Privacy, budget, "the budget of an account")
        refuse_other_than(Neighbours, neighbours, "the neighbours of an account")
        refuse_unwieldy_privacy(budget)
        if neighbours.sensitive:
            raise LedgerError(
                f"an account promises to protect every attribute, but the relation is {neighbours}. An "
                f"account cannot pay for a plan with sensitive attributes. {UNSPENT}"
            )
        with self.storage.writing() as connection:
            if account_row(connection, name) is not None:
                raise LedgerError(
                    f"there is already an account {name!r} in this ledger, and its budget never changes. "
                    f"Choose another name. {UNSPENT}"
                )
            return self._account(append_account(connection, name, budget, neighbours))

    def account(self, name: str) -> Account:
        """Return the account with that name."""
        refuse_unprintable(name, "the name of an account")
        with self.storage.reading() as connection:
            row = account_row(connection, name)
            if row is None:
                known = [each["name"] for each in account_rows(connection)]
                raise LedgerMissing(
                    f"there is no account {name!r} in this ledger. "
                    f"{f'It has {known}.' if known else 'It has none yet.'} {UNSPENT}"
                )
            return self._account(row)

    def accounts(self) -> list[Account]:
        """Return every account, in the order of opening."""
        with self.storage.reading() as connection:
            return [self._account(row) for row in account_rows(connection)]

    def debit_together(
        self,
        accounts: Sequence[Account],
        cost: Privacy,
        neighbours: Neighbours,
        *,
        purpose: str,
        plan_digest: str,
        once: bool = False,
    ) -> tuple[Entry, ...]:
        """Return the entries that pay for a plan from several accounts at once: from all of them, or from none.

        A question to a table builder is paid from the account of the dataset and from the account of the person who
        asks: so nobody learns more than that person may, and all together learn no more than the dataset allows.
        With `once`, a plan that the first account has already paid for with this purpose is not paid for again:
        only that account's entry is returned.

        >>> import tempfile
        >>> from tabulary.core.privacy import ZCDP
        >>> with tempfile.TemporaryDirectory() as folder, Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...     census = ledger.create_account("census", ZCDP(1), Neighbours())
        ...     ann = ledger.create_account("ann", ZCDP("1/8"), Neighbours())
        ...     for _ in range(2):
        ...         paid = ledger.debit_together(
        ...             [census, ann], ZCDP("1/8"), Neighbours(), purpose="sex", plan_digest="5f3a", once=True
        ...         )
        ...     print(len(paid), "|", census.spent(), "|", ann.remaining())
        1 | ρ = 0.125 | None
        """
        names = [account.name for account in accounts]
        if not names or len(set(names)) < len(names):
            raise LedgerError(f"a debit needs accounts, each of them once, not {names}. {UNSPENT}")
        if any(account._storage is not self.storage for account in accounts):
            raise LedgerError(f"accounts of another ledger cannot pay together with this one's. {UNSPENT}")
        return debit_together(accounts, cost, neighbours, purpose=purpose, plan_digest=plan_digest, once=once)

    def heads(self) -> tuple[Head, ...]:
        """Return the end of every account's chain, in the order of opening."""
        with self.storage.reading() as connection:
            return tuple(head_of(connection, row["name"]) for row in account_rows(connection))

    def head(self) -> str:
        """Return one digest of the whole ledger: it changes with every account and every debit.

        If you keep it elsewhere, you can see later whether the ledger has changed. If debits may come in between,
        keep `heads` and give them to `check`.
        """
        with self.storage.reading() as connection:
            heads = [str(head_of(connection, row["name"])) for row in account_rows(connection)]
            return link(founding_digest(ledger_row(connection)), {"heads": heads})

    def check(self, *, kept: Iterable[Head] = ()) -> None:
        """Check all pages, chains and sums; refuse the ledger if one is false or a `kept` head is missing.

        A head that was kept elsewhere is in every later state of the ledger, and in no earlier one. What a witness
        knows is checked too.
        """
        known = [*self._witnesses.heads(), *kept]
        with self.storage.reading() as connection:
            refuse_unsound_ledger(self.storage, connection)
            refuse_older_copy(connection, known)

    def _account(self, row: Stored) -> Account:
        return Account.from_row(row, self._identity, self.storage, self._witnesses)


@contextmanager
def _closed_on_error(storage: Storage) -> Iterator[None]:
    try:
        yield
    except BaseException:
        storage.close()
        raise
