"""The tables of a ledger, and the triggers that keep them append-only, in SQLite and in PostgreSQL."""

from collections.abc import Mapping

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.engine import Connection

from tabulary.ledger.guards import Refusals, postgresql_triggers, sqlite_triggers

VERSION = 1

POSTGRESQL_SCHEMA = "tabulary_ledger"
"""The PostgreSQL schema of a ledger: the database may also contain the state of a service, or anything else."""

# As wide as in SQLite, and ordered by bytes: the order of a language changes with the operating system, and then an
# index misses rows.
_Number = Integer().with_variant(BigInteger, "postgresql")
_Words = Text().with_variant(Text(collation="C"), "postgresql")

metadata = MetaData()

ledger = Table(
    "ledger",
    metadata,
    Column("id", _Number, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("version", _Number, nullable=False),
    Column("identity", _Words, nullable=False),
    Column("at", _Words, nullable=False),
    Column("accounts", _Number, nullable=False),
    Column("digest", _Words, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", _Words, primary_key=True),
    Column("position", _Number, nullable=False, unique=True),
    Column("budget", _Words, nullable=False),
    Column("relation", _Words, nullable=False),
    Column("records", _Number, nullable=False),
    Column("at", _Words, nullable=False),
    Column("previous", _Words, nullable=False),
    Column("digest", _Words, nullable=False),
    sqlite_with_rowid=False,
)

heads = Table(
    "heads",
    metadata,
    Column("account", _Words, ForeignKey("accounts.name"), primary_key=True),
    Column("entries", _Number, nullable=False),
    Column("digest", _Words, nullable=False),
    sqlite_with_rowid=False,
)

entries = Table(
    "entries",
    metadata,
    Column("account", _Words, ForeignKey("accounts.name"), primary_key=True),
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("cost", _Words, nullable=False),
    Column("relation", _Words, nullable=False),
    Column("records", _Number, nullable=False),
    Column("purpose", _Words, nullable=False),
    Column("plan_digest", _Words, nullable=False),
    Column("spent", _Words, nullable=False),
    Column("at", _Words, nullable=False),
    Column("previous", _Words, nullable=False),
    Column("digest", _Words, nullable=False),
    sqlite_with_rowid=False,
)

# So that `paid` reads one entry of a ledger of any length. Ledgers of an earlier version have no such index.
Index("entries_paid", entries.c.account, entries.c.plan_digest, entries.c.purpose, entries.c.number)

_REFUSALS: Refusals = {
    ("ledger", "INSERT"): "EXISTS (SELECT 1 FROM {schema}ledger)",
    ("ledger", "UPDATE"): (
        "NEW.accounts <> OLD.accounts + 1 OR NEW.id <> OLD.id OR NEW.version <> OLD.version "
        "OR NEW.identity <> OLD.identity OR NEW.at <> OLD.at"
    ),
    ("ledger", "DELETE"): "{always}",
    ("accounts", "INSERT"): (
        "NEW.position <> (SELECT accounts + 1 FROM {schema}ledger) "
        "OR EXISTS (SELECT 1 FROM {schema}accounts WHERE name = NEW.name)"
    ),
    ("accounts", "UPDATE"): "{always}",
    ("accounts", "DELETE"): "{always}",
    ("heads", "INSERT"): "EXISTS (SELECT 1 FROM {schema}heads WHERE account = NEW.account)",
    ("heads", "UPDATE"): "NEW.account <> OLD.account OR NEW.entries <> OLD.entries + 1",
    ("heads", "DELETE"): "{always}",
    ("entries", "INSERT"): (
        "NEW.number <> (SELECT entries + 1 FROM {schema}heads WHERE account = NEW.account)"
    ),
    ("entries", "UPDATE"): "{always}",
    ("entries", "DELETE"): "{always}",
}

# An opened ledger is compared with these, letter by letter.
SQLITE_TRIGGERS: Mapping[str, str] = sqlite_triggers(_REFUSALS, "a ledger")
POSTGRESQL_TRIGGERS = postgresql_triggers(_REFUSALS, metadata.tables, POSTGRESQL_SCHEMA, "a ledger")


def create_tables(connection: Connection) -> None:
    """Create the tables in an empty database, without their triggers."""
    metadata.create_all(connection, checkfirst=False)
