"""The script that Alembic runs to migrate, on the given connection, in the transaction that is already open."""

from alembic import context

from tabulary.builder.state import schema


def _migrate() -> None:
    context.configure(connection=context.config.attributes["connection"], target_metadata=schema.metadata)
    context.run_migrations()


# Alembic loads this file under its own name. A plain import migrates nothing.
if __name__ == "env_py":
    _migrate()
