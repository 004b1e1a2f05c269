"""The tables of the state, the same on SQLite and on PostgreSQL.

These are the tables of a fully migrated database. The steps that create them are in `migrations`.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect

# Every constraint has a name, so that a later migration can refer to it.
metadata = MetaData(
    naming_convention={
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "pk": "%(table_name)s_pkey",
    }
)


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, kept as ISO 8601 text: SQLite has no type of its own that keeps the zone."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Return the text that is stored."""
        return None if value is None else value.astimezone(UTC).isoformat(timespec="seconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """Return the moment that was stored."""
        return None if value is None else datetime.fromisoformat(value)


# SQLite numbers rows by itself only where the key is an INTEGER, which holds 64 bits there.
_Number = BigInteger().with_variant(Integer, "sqlite")

tokens = Table(
    "tokens",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", Text, CheckConstraint("role IN ('analyst', 'custodian')", name="role"), nullable=False),
    Column("account", Text),
    Column("digest", Text, nullable=False),
    Column("created", Moment, nullable=False),
    Column("expires", Moment),
    Column("revoked", Moment),
)

usage = Table(
    "usage",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("day", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("caller", Text, nullable=False),
    Column("requests", BigInteger, nullable=False),
    UniqueConstraint("day", "dataset", "kind", "status", "caller"),
)

# `seen` is when a session was last used, to the minute.
sessions = Table(
    "sessions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("token", Text, nullable=False),
    Column("began", Moment, nullable=False),
    Column("seen", Moment, nullable=False),
)

# The newest head of each account of the ledger that this service has seen.
heads = Table(
    "heads",
    metadata,
    Column("account", Text, primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# The custodian's actions. A digest ties each entry to the previous one, as for debits in the ledger.
log = Table(
    "log",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("token", Text),
    Column("action", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("address", Text),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
)

# The end of the chain, so that a missing last entry is noticed.
log_head = Table(
    "log_head",
    metadata,
    Column("id", _Number, CheckConstraint("id = 1", name="id"), primary_key=True, autoincrement=False),
    Column("entries", _Number, nullable=False),
    Column("digest", Text, nullable=False),
)
