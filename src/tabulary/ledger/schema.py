"""The tables of a ledger, and the triggers that keep them append-only."""

from collections.abc import Mapping

from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.engine import Connection

VERSION = 1

metadata = MetaData()

ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("identity", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("accounts", Integer, nullable=False),
    Column("digest", Text, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("budget", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("records", Integer, nullable=False),
    Column("at", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    sqlite_with_rowid=False,
)

heads = Table(
    "heads",
    metadata,
    Column("account", Text, ForeignKey("accounts.name"), primary_key=True),
    Column("entries", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    sqlite_with_rowid=False,
)

entries = Table(
    "entries",
    metadata,
    Column("account", Text, ForeignKey("accounts.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("cost", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("records", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("plan_digest", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    sqlite_with_rowid=False,
)

# The condition under which each statement is refused. Those on INSERT stop INSERT OR REPLACE, whose implied
# deletion fires no trigger.
_REFUSALS = {
    ("ledger", "INSERT"): "EXISTS (SELECT 1 FROM ledger)",
    ("ledger", "UPDATE"): (
        "NEW.accounts <> OLD.accounts + 1 OR NEW.id <> OLD.id OR NEW.version <> OLD.version "
        "OR NEW.identity <> OLD.identity OR NEW.at <> OLD.at"
    ),
    ("ledger", "DELETE"): "1",
    ("accounts", "INSERT"): (
        "NEW.position <> (SELECT accounts + 1 FROM ledger) "
        "OR EXISTS (SELECT 1 FROM accounts WHERE name = NEW.name)"
    ),
    ("accounts", "UPDATE"): "1",
    ("accounts", "DELETE"): "1",
    ("heads", "INSERT"): "EXISTS (SELECT 1 FROM heads WHERE account = NEW.account)",
    ("heads", "UPDATE"): "NEW.account <> OLD.account OR NEW.entries <> OLD.entries + 1",
    ("heads", "DELETE"): "1",
    ("entries", "INSERT"): "NEW.number <> (SELECT entries + 1 FROM heads WHERE account = NEW.account)",
    ("entries", "UPDATE"): "1",
    ("entries", "DELETE"): "1",
}

TRIGGERS: Mapping[str, str] = {
    f"{table}_{statement.lower()}": (
        f"CREATE TRIGGER {table}_{statement.lower()} BEFORE {statement} ON {table} WHEN {condition} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    )
    for (table, statement), condition in _REFUSALS.items()
}


def create_tables(connection: Connection) -> None:
    """Create the tables and triggers in an empty database."""
    metadata.create_all(connection, checkfirst=False)
    for statement in TRIGGERS.values():
        connection.exec_driver_sql(statement)
