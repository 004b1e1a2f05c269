"""Tokens, usage, facts and the heads of the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the four tables."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "tokens",
        sa.Column("number", number, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("account", sa.Text()),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("expires", sa.Text()),
        sa.Column("revoked", sa.Text()),
        sa.PrimaryKeyConstraint("number", name="tokens_pkey"),
        sa.UniqueConstraint("id", name="tokens_id_key"),
        sa.CheckConstraint("role IN ('analyst', 'custodian')", name=op.f("tokens_role_check")),
    )
    op.create_table(
        "usage",
        sa.Column("number", number, nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="usage_pkey"),
        sa.UniqueConstraint(
            "day", "dataset", "kind", "status", "caller", name="usage_day_dataset_kind_status_caller_key"
        ),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="facts_pkey"),
    )
    op.create_table(
        "heads",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", name="heads_pkey"),
    )
