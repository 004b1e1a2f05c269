"""Checks that a ledger is sound: its pages, its tables, its chains and its sums."""

from collections.abc import Iterable, Iterator

from sqlalchemy import Table, func, select
from sqlalchemy.engine import Connection

from tabulary.core.head import Head
from tabulary.core.neighbours import Neighbours
from tabulary.errors import LedgerError
from tabulary.ledger import schema
from tabulary.ledger.amounts import Amount, cost_in_unit_of, zero_in_unit_of
from tabulary.ledger.chain import Behind, Entry, Unsound
from tabulary.ledger.rows import (
    Stored,
    account_rows,
    budget_of,
    each,
    entry_of,
    founding_digest,
    head_of,
    ledger_row,
    neighbours_of,
    refuse_broken_seal,
)
from tabulary.ledger.storage import Storage


def refuse_unsound_ledger(storage: Storage, connection: Connection) -> None:
    """Refuse a ledger whose pages, tables, chains or sums differ from what this version of Tabulary writes.

    Reads everything once: the cost is linear in the number of entries.
    """
    _refuse_foreign_tables(storage, connection)
    ledger = ledger_row(connection)
    previous, accounts, entries = founding_digest(ledger), 0, 0
    for account in account_rows(connection):
        accounts += 1
        if (account["position"], account["previous"]) != (accounts, previous):
            raise Unsound(f"lost or gained an account before {account['name']!r}")
        refuse_broken_seal(account, f"account {account['name']!r}")
        entries += sum(1 for _ in walk_entries(connection, account))
        previous = account["digest"]
    if (ledger["accounts"], ledger["digest"]) != (accounts, previous):
        raise Unsound("lost the accounts that were opened last")
    if (accounts, entries) != (_count(connection, schema.heads), _count(connection, schema.entries)):
        raise Unsound("has entries of an account that does not exist")


def walk_entries(connection: Connection, account: Stored) -> Iterator[Entry]:
    """Return the entries of an account in order; refuse the first that does not follow from those before it."""
    name, budget, promised = account["name"], budget_of(account), neighbours_of(account)
    spent, limit = zero_in_unit_of(budget), Amount.of(budget)
    previous, number = account["digest"], 0
    query = select(schema.entries).where(schema.entries.c.account == name).order_by(schema.entries.c.number)
    for row in each(connection, query):
        number += 1
        if (row["number"], row["previous"]) != (number, previous):
            raise Unsound(f"lost entry {number} of account {name!r}")
        refuse_broken_seal(row, f"entry {number} of account {name!r}")
        entry = entry_of(row)
        try:
            spent += cost_in_unit_of(budget, entry.cost)
        except LedgerError:
            raise Unsound(f"has a cost of the wrong kind at entry {number} of account {name!r}") from None
        if Amount.from_text(row["spent"]) != spent or not spent <= limit:
            raise Unsound(f"has a false total at entry {number} of account {name!r}")
        if not covers(entry.neighbours, promised):
            raise Unsound(f"has the wrong neighbouring relation at entry {number} of account {name!r}")
        previous = entry.digest
        yield entry
    if head_of(connection, name) != Head(name, number, previous):
        raise Unsound(f"lost entries at the end of account {name!r}")


def refuse_older_copy(connection: Connection, kept: Iterable[Head]) -> None:
    """Refuse a ledger that does not contain every head in `kept`, even if it is sound."""
    for head in lacking_heads(connection, kept):
        raise Behind(
            f"does not contain the head of account {head.account!r} at {head.entries} entries that was kept "
            "elsewhere: it is an older copy, or another ledger"
        )


def lacking_heads(connection: Connection, kept: Iterable[Head]) -> list[Head]:
    """Return the heads that the ledger does not contain.

    Most kept heads are the ends of their chains: these are read at once. Each other head needs one lookup.
    """
    wanted = list(kept)
    ends = {Head(**row) for row in each(connection, select(schema.heads))} if wanted else ()
    return [head for head in wanted if head not in ends and _digest_at(connection, head) != head.digest]


def _digest_at(connection: Connection, head: Head) -> str | None:
    accounts, entries = schema.accounts.c, schema.entries.c
    query = (
        select(entries.digest).where(entries.account == head.account, entries.number == head.entries)
        if head.entries
        else select(accounts.digest).where(accounts.name == head.account)
    )
    found: str | None = connection.execute(query).scalar()
    return found


def covers(offered: Neighbours, promised: Neighbours) -> bool:
    """Return whether a plan with the relation `offered` protects all that an account with `promised` promises.

    >>> covers(Neighbours("replace", 3), Neighbours("replace", 2))
    True
    """
    return (
        offered.relation == promised.relation
        and offered.records >= promised.records
        and offered.sensitive == promised.sensitive
    )


def _refuse_foreign_tables(storage: Storage, connection: Connection) -> None:
    found = storage.structure(connection)
    if "ledger" not in found.tables:
        raise Unsound("is not a ledger")
    if "version" in found.tables["ledger"]:
        version = connection.execute(select(schema.ledger.c.version)).scalar()
        if version not in (None, schema.VERSION):
            raise Unsound(f"has schema version {version}, but this Tabulary reads version {schema.VERSION}")
    expected = {name: table.columns.keys() for name, table in schema.metadata.tables.items()}
    if found.tables != expected:
        raise Unsound("does not have the tables of a ledger")
    if found.guards != storage.expected_guards:
        raise Unsound("lost the triggers that keep it append-only")


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
