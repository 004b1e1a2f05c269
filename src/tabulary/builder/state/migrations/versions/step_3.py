"""The log of what the custodian did, which is append-only."""

import sqlalchemy as sa
from alembic import op

from tabulary.builder.state.database import SCHEMA
from tabulary.ledger.guards import postgresql_triggers, sqlite_triggers

revision = "3"
down_revision = "2"

_REFUSALS = {
    ("log", "INSERT"): "NEW.number <> (SELECT entries + 1 FROM {schema}log_head)",
    ("log", "UPDATE"): "{always}",
    ("log", "DELETE"): "{always}",
    ("log_head", "INSERT"): "EXISTS (SELECT 1 FROM {schema}log_head)",
    ("log_head", "UPDATE"): "NEW.id <> OLD.id OR NEW.entries <> OLD.entries + 1",
    ("log_head", "DELETE"): "{always}",
}


def upgrade() -> None:
    """Create its table, that of the end of its chain, and the triggers that keep both."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "log",
        sa.Column("number", number, autoincrement=False, nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("token", sa.Text()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("address", sa.Text()),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="log_pkey"),
    )
    head = op.create_table(
        "log_head",
        sa.Column("id", number, autoincrement=False, nullable=False),
        sa.Column("entries", number, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="log_head_pkey"),
        sa.CheckConstraint("id = 1", name=op.f("log_head_id_check")),
    )
    op.bulk_insert(head, [{"id": 1, "entries": 0, "digest": ""}])
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        triggers = postgresql_triggers(_REFUSALS, ("log", "log_head"), SCHEMA, "the log")
        statements = [statement for each in triggers for statement in each.statements]
    else:
        statements = list(sqlite_triggers(_REFUSALS, "the log").values())
    for statement in statements:
        connection.exec_driver_sql(statement)
