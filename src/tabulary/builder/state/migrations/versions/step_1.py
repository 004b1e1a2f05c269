"""All tables, as `schema` has them, and the triggers that keep the custodian's log append-only.

No state has been published yet, so this step follows the schema. Once one has, write its tables out here and add a
step for every later change.
"""

from alembic import op

from tabulary.builder.state import schema
from tabulary.builder.state.database import SCHEMA
from tabulary.ledger.guards import postgresql_triggers, sqlite_triggers

revision = "1"
down_revision = None

_REFUSALS = {
    ("log", "INSERT"): "NEW.number <> (SELECT entries + 1 FROM {schema}log_head)",
    ("log", "UPDATE"): "{always}",
    ("log", "DELETE"): "{always}",
    ("log_head", "INSERT"): "EXISTS (SELECT 1 FROM {schema}log_head)",
    ("log_head", "UPDATE"): "NEW.id <> OLD.id OR NEW.entries <> OLD.entries + 1",
    ("log_head", "DELETE"): "{always}",
}


def upgrade() -> None:
    """Create the tables, the empty end of the log's chain, and the triggers."""
    connection = op.get_bind()
    schema.metadata.create_all(connection)
    connection.execute(schema.log_head.insert().values(id=1, entries=0, digest=""))
    if connection.dialect.name == "postgresql":
        triggers = postgresql_triggers(_REFUSALS, ("log", "log_head"), SCHEMA, "the log")
        statements = [statement for each in triggers for statement in each.statements]
    else:
        statements = list(sqlite_triggers(_REFUSALS, "the log").values())
    for statement in statements:
        connection.exec_driver_sql(statement)
