"""An account: the budget of one dataset, and the debits made against it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlalchemy.engine import Connection

from tabulary.core.head import Head, Receipt
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy
from tabulary.errors import BudgetExceeded, LedgerError
from tabulary.ledger.amounts import (
    Amount,
    Balance,
    cost_in_unit_of,
    refuse_unwieldy_privacy,
    refuse_unwieldy_total,
)
from tabulary.ledger.audit import covers, refuse_older_copy, walk_entries
from tabulary.ledger.chain import Entry, Unsound
from tabulary.ledger.rows import (
    Stored,
    account_row,
    append_entry,
    budget_of,
    neighbours_of,
    paid_entry,
    tail_of,
)
from tabulary.ledger.storage import UNSPENT, Storage
from tabulary.ledger.witness import Witnesses
from tabulary.ledger.words import refuse_other_than, refuse_unprintable


@dataclass(frozen=True)
class Account:
    """The budget of one dataset, under one neighbouring relation.

    A debit is one transaction: the total is read, the cost is compared with what is left, the entry is written. Any
    number of processes may share the account; the sum of its entries never exceeds its budget. If the ledger has a
    witness, a ledger that lacks what the witness knows refuses every debit. `ledger` is the identity of the ledger.
    """

    name: str
    budget: Privacy
    neighbours: Neighbours
    digest: str
    ledger: str
    _storage: Storage = field(repr=False, compare=False)
    _witnesses: Witnesses = field(repr=False, compare=False)

    @classmethod
    def from_row(cls, row: Stored, ledger: str, storage: Storage, witnesses: Witnesses) -> "Account":
        """Return the account that a row of `storage` describes."""
        return cls(row["name"], budget_of(row), neighbours_of(row), row["digest"], ledger, storage, witnesses)

    def balance(self) -> Balance:
        """Return what the account may spend, has spent and has left, exactly."""
        with self._storage.reading() as connection:
            _, spent = self._tail(connection)
        return Balance(Amount.of(self.budget), spent)

    def spent(self) -> Privacy | None:
        """Return the cost of all entries together, or None before the first."""
        return self.balance().spent.to_privacy()

    def remaining(self) -> Privacy | None:
        """Return the largest cost that the account can still pay, or None if it can pay for nothing."""
        return self.balance().remaining.to_privacy()

    def share_of_remaining(self, cost: Privacy) -> Fraction | None:
        """Return the part of what is left that a cost would take, above 1 if it is too much; None if nothing is left.

        Reads only; a cost that the account can never count is an error.
        """
        return cost_in_unit_of(self.budget, cost).share_of(self.balance().remaining)

    def entries(self) -> tuple[Entry, ...]:
        """Return every debit in order, checked against the chain."""
        with self._storage.reading() as connection:
            return tuple(walk_entries(connection, self._row(connection)))

    def head(self) -> Head:
        """Return the end of the account's chain, to keep outside the ledger."""
        with self._storage.reading() as connection:
            head, _ = self._tail(connection)
        return head

    def check(self, cost: Privacy, neighbours: Neighbours) -> None:
        """Refuse what a debit would refuse at this moment; write nothing.

        Another process may spend before the debit comes, so this promises nothing: it finds a refusal early.
        """
        self._refuse_weaker_neighbours(neighbours)
        known = self._witnesses.heads()
        with self._storage.reading() as connection:
            refuse_older_copy(connection, known)
            _, spent = self._tail(connection)
        total_after(self, spent, cost)

    def can_afford(self, cost: Privacy, neighbours: Neighbours) -> bool:
        """Return whether the account has enough left; a cost that it can never count is an error."""
        try:
            self.check(cost, neighbours)
        except BudgetExceeded:
            return False
        return True

    def paid(self, purpose: str, plan_digest: str) -> Entry | None:
        """Return the entry that paid for a plan with this purpose, or None: reads one entry, also in a long ledger.

        The witnesses already know the entry: if they could not be told, nothing is measured.
        """
        with self._storage.reading() as connection:
            entry = self._paid(connection, purpose, plan_digest)
        if entry is not None and not self._storage.read_only:
            self._witnesses.catch_up([entry.head])
        return entry

    def debit(
        self, cost: Privacy, neighbours: Neighbours, *, purpose: str, plan_digest: str, once: bool = False
    ) -> Entry:
        """Return the entry that pays for a plan; measure only once this has returned.

        The entry is then on the disk. A crash after it loses budget, never privacy. With `once`, a plan that was
        already paid for with this purpose is not paid for again: its entry is returned.
        """
        return debit_together([self], cost, neighbours, purpose=purpose, plan_digest=plan_digest, once=once)[
            0
        ]

    def receipt(self, entry: Entry) -> Receipt:
        """Return what a release says about the entry of this account that paid for it."""
        return Receipt(self.ledger, entry.head)

    def _paid(self, connection: Connection, purpose: str, plan_digest: str) -> Entry | None:
        self._row(connection)
        return paid_entry(connection, self.name, purpose, plan_digest)

    def _row(self, connection: Connection) -> Stored:
        row = account_row(connection, self.name)
        if row is None or row["digest"] != self.digest:
            raise Unsound(f"no longer contains account {self.name!r} as it was opened")
        return row

    def _tail(self, connection: Connection) -> tuple[Head, Amount]:
        return tail_of(connection, self._row(connection))

    def _refuse_weaker_neighbours(self, offered: Neighbours) -> None:
        refuse_other_than(Neighbours, offered, "the neighbours of a debit")
        if not covers(offered, self.neighbours):
            raise LedgerError(
                f"the plan protects neighbours under '{offered}' but account {self.name!r} promises "
                f"'{self.neighbours}'. Plan with that relation and with a contribution bound of at least "
                f"{self.neighbours.records}. {UNSPENT}"
            )


def debit_together(
    accounts: Sequence[Account],
    cost: Privacy,
    neighbours: Neighbours,
    *,
    purpose: str,
    plan_digest: str,
    once: bool,
) -> tuple[Entry, ...]:
    """Return an entry in each of some accounts of one ledger, made in one transaction: see `Ledger.debit_together`."""
    refuse_unprintable(purpose, "the purpose of a debit")
    refuse_unprintable(plan_digest, "the digest of a plan")
    for account in accounts:
        account._refuse_weaker_neighbours(neighbours)
    first = accounts[0]
    # A plan that is already paid for needs no lock, so its answer does not wait for other payers.
    if once and (entry := first.paid(purpose, plan_digest)) is not None:
        return (_same_debit(entry, cost, neighbours),)
    # Before the lock: see `Witnesses`.
    known = first._witnesses.heads()
    with first._storage.writing() as connection:
        refuse_older_copy(connection, known)
        # Another process may have paid in between.
        found = first._paid(connection, purpose, plan_digest) if once else None
        if found is None:
            made = _append(accounts, connection, cost, neighbours, purpose, plan_digest)
    if found is not None:
        first._witnesses.catch_up([found.head])
        return (_same_debit(found, cost, neighbours),)
    first._witnesses.note([entry.head for entry in made])
    return made


def total_after(account: Account, spent: Amount, cost: Privacy) -> Amount:
    """Return what an account that has spent `spent` has spent after another cost; refuse what it cannot pay."""
    refuse_other_than(Privacy, cost, "the cost of a debit")
    refuse_unwieldy_privacy(cost)
    price = cost_in_unit_of(account.budget, cost)
    left = Amount.of(account.budget) - spent
    if not price <= left:
        named = f"{price}" if Amount.of(cost) == price else f"{cost}, here {price},"
        raise BudgetExceeded(
            f"the plan costs {named} but account {account.name!r} has {left} left. {UNSPENT}"
        )
    refuse_unwieldy_total(spent + price)
    return spent + price


def _append(
    accounts: Sequence[Account],
    connection: Connection,
    cost: Privacy,
    neighbours: Neighbours,
    purpose: str,
    plan_digest: str,
) -> tuple[Entry, ...]:
    tails = [account._tail(connection) for account in accounts]
    # Every account is asked before any account is debited.
    totals = [total_after(account, spent, cost) for account, (_, spent) in zip(accounts, tails, strict=True)]
    return tuple(
        append_entry(
            connection,
            head,
            cost=cost,
            neighbours=neighbours,
            purpose=purpose,
            plan_digest=plan_digest,
            spent=total,
        )
        for (head, _), total in zip(tails, totals, strict=True)
    )


def _same_debit(entry: Entry, cost: Privacy, neighbours: Neighbours) -> Entry:
    # An account promises something about sources; how the plan counts them does not concern it.
    if (entry.cost, entry.neighbours) != (cost, neighbours.raw):
        raise LedgerError(
            f"the plan was paid for with {entry.cost} ({entry.neighbours}) and now costs {cost} "
            f"({neighbours}), but the digest of a plan means one cost. Give the new plan its own digest. "
            f"{UNSPENT}"
        )
    return entry
