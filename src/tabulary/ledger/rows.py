"""Rows in storage: each is sealed with the digest of the row before, and read only if the seal is valid."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.engine import Connection

from tabulary.core.head import Head
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy, describe_privacy, privacy_from_description
from tabulary.errors import InvalidPrivacy
from tabulary.ledger import schema
from tabulary.ledger.amounts import Amount, zero_in_unit_of
from tabulary.ledger.chain import Entry, Unsound, link

Stored = dict[str, Any]


def found_ledger(connection: Connection) -> str:
    """Return the identity of a new ledger, after writing its founding record; the first account is chained to it."""
    identity = uuid.uuid4().hex
    founding = {"version": schema.VERSION, "identity": identity, "at": _now()}
    connection.execute(insert(schema.ledger).values(id=1, accounts=0, digest=link("", founding), **founding))
    return identity


def founding_digest(ledger: Stored) -> str:
    """Return the digest that the first account of a ledger is chained to."""
    return link("", {name: ledger[name] for name in ("version", "identity", "at")})


def append_account(connection: Connection, name: str, budget: Privacy, neighbours: Neighbours) -> Stored:
    """Write a new account after those in the ledger, with an empty chain of entries."""
    ledger = ledger_row(connection)
    row = _sealed(
        ledger["digest"],
        name=name,
        position=ledger["accounts"] + 1,
        budget=_privacy_text(budget),
        relation=neighbours.relation,
        records=neighbours.records,
        at=_now(),
    )
    connection.execute(insert(schema.accounts).values(**row))
    connection.execute(insert(schema.heads).values(account=name, entries=0, digest=row["digest"]))
    connection.execute(update(schema.ledger).values(accounts=row["position"], digest=row["digest"]))
    return row


def append_entry(
    connection: Connection,
    head: Head,
    *,
    cost: Privacy,
    neighbours: Neighbours,
    purpose: str,
    plan_digest: str,
    spent: Amount,
) -> Entry:
    """Write the entry that follows `head`; `spent` is the account's total with this cost in it."""
    row = _sealed(
        head.digest,
        account=head.account,
        number=head.entries + 1,
        cost=_privacy_text(cost),
        relation=neighbours.relation,
        records=neighbours.records,
        purpose=purpose,
        plan_digest=plan_digest,
        spent=spent.to_text(),
        at=_now(),
    )
    connection.execute(insert(schema.entries).values(**row))
    connection.execute(
        update(schema.heads)
        .where(schema.heads.c.account == head.account)
        .values(entries=row["number"], digest=row["digest"])
    )
    return entry_of(row)


def ledger_row(connection: Connection) -> Stored:
    """Return the founding record, with the number of accounts and the digest of the last one."""
    found = _first(connection, select(schema.ledger))
    if found is None:
        raise Unsound("lost its founding record")
    return found


def account_rows(connection: Connection) -> list[Stored]:
    """Return the accounts in the order of opening."""
    return list(each(connection, select(schema.accounts).order_by(schema.accounts.c.position)))


def account_row(connection: Connection, name: str) -> Stored | None:
    """Return the account with that name, or None."""
    found = _first(connection, select(schema.accounts).where(schema.accounts.c.name == name))
    if found is not None:
        refuse_broken_seal(found, f"account {name!r}")
    return found


def head_of(connection: Connection, name: str) -> Head:
    """Return the recorded head of an account."""
    found = _first(connection, select(schema.heads).where(schema.heads.c.account == name))
    if found is None:
        raise Unsound(f"lost the head of account {name!r}")
    return Head(name, found["entries"], found["digest"])


def tail_of(connection: Connection, account: Stored) -> tuple[Head, Amount]:
    """Return the head of an account and what it has spent; reads one entry.

    The last entry must have a valid seal and agree with the head; the entries before it are checked when a ledger
    is opened.
    """
    name, columns = account["name"], schema.entries.c
    query = select(schema.entries).where(columns.account == name).order_by(columns.number.desc()).limit(1)
    last = _first(connection, query)
    if last is None:
        expected, spent = Head(name, 0, account["digest"]), zero_in_unit_of(budget_of(account))
    else:
        refuse_broken_seal(last, f"entry {last['number']} of account {name!r}")
        expected, spent = Head(name, last["number"], last["digest"]), Amount.from_text(last["spent"])
    head = head_of(connection, name)
    if head != expected:
        raise Unsound(f"lost entries at the end of account {name!r}")
    return head, spent


def paid_entry(connection: Connection, name: str, purpose: str, plan_digest: str) -> Entry | None:
    """Return the first entry of an account with this purpose and plan, or None."""
    columns = schema.entries.c
    # The number first, which the index contains: for a whole row, SQLite would scan the account.
    number = (
        select(func.min(columns.number))
        .where(columns.account == name, columns.plan_digest == plan_digest, columns.purpose == purpose)
        .scalar_subquery()
    )
    query = select(schema.entries).where(columns.account == name, columns.number == number)
    found = _first(connection, query)
    if found is None:
        return None
    refuse_broken_seal(found, f"entry {found['number']} of account {name!r}")
    return entry_of(found)


def budget_of(account: Stored) -> Privacy:
    """Return the budget that an account was opened with."""
    return _privacy(account["budget"])


def neighbours_of(row: Stored) -> Neighbours:
    """Return the neighbouring relation of an account or an entry."""
    try:
        return Neighbours(row["relation"], row["records"])
    except InvalidPrivacy:
        raise Unsound("has a neighbouring relation that cannot be read") from None


def entry_of(row: Stored) -> Entry:
    """Return the entry that a row holds."""
    return Entry(
        number=row["number"],
        account=row["account"],
        cost=_privacy(row["cost"]),
        neighbours=neighbours_of(row),
        purpose=row["purpose"],
        plan_digest=row["plan_digest"],
        at=row["at"],
        previous=row["previous"],
        digest=row["digest"],
    )


def each(connection: Connection, query: Select[Any]) -> Iterator[Stored]:
    """Return the rows that `query` finds, one after the other."""
    for row in connection.execute(query):
        yield dict(row._mapping)


def refuse_broken_seal(row: Stored, name: str) -> None:
    """Refuse a row whose content does not give its digest."""
    content = {column: value for column, value in row.items() if column not in ("previous", "digest")}
    if link(row["previous"], content) != row["digest"]:
        raise Unsound(f"has a changed {name}")


def _sealed(previous: str, **content: object) -> Stored:
    return {**content, "previous": previous, "digest": link(previous, content)}


def _first(connection: Connection, query: Select[Any]) -> Stored | None:
    row = connection.execute(query).first()
    return None if row is None else dict(row._mapping)


def _privacy_text(privacy: Privacy) -> str:
    return json.dumps(describe_privacy(privacy), separators=(",", ":"))


def _privacy(text: str) -> Privacy:
    try:
        return privacy_from_description(json.loads(text))
    except (InvalidPrivacy, TypeError, ValueError):
        raise Unsound("has a privacy parameter that cannot be read") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
