"""Bring the tables of the state up to date, once, even if many processes start at the same time."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.engine import Connection

from tabulary.builder.state.database import Database
from tabulary.errors import NotInitialised, ServiceError

STEPS = Path(__file__).with_name("migrations")
"""The place of the steps, and what Alembic needs to run them."""


def migrate(database: Database) -> None:
    """Create the tables, or run the missing steps, in one transaction: all of them or none.

    An up-to-date database stays as it is. A database that is newer than this Tabulary, or holds other data, is refused.
    """
    database.found()
    with database.migrating() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(STEPS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        _refuse_other_tables(connection, database.name)
        _refuse_newer(connection, ScriptDirectory.from_config(config), database.name)
        command.upgrade(config, "head")


def refuse_unmigrated(database: Database) -> None:
    """Refuse a database whose tables are missing, older or newer than this Tabulary's."""
    with database.reading() as connection:
        steps = ScriptDirectory(str(STEPS))
        revision = _refuse_newer(connection, steps, database.name)
        if revision is None:
            raise NotInitialised(
                f"{database.name} holds no state of a table builder. Nothing was opened. Initialise the "
                "table builder, which creates it, or check where it should be."
            )
        if revision != steps.get_current_head():
            raise NotInitialised(
                f"{database.name} was written by an older Tabulary. Nothing was opened. Make a copy of it, then "
                "initialise the table builder again, which brings it up to date."
            )


def _refuse_newer(connection: Connection, steps: ScriptDirectory, name: str) -> str | None:
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is not None and revision not in {step.revision for step in steps.walk_revisions()}:
        raise ServiceError(
            f"{name} was written by a newer Tabulary (its step {revision!r} is not known here). Nothing was changed. "
            "Install that version, or restore an older copy."
        )
    return revision


def _refuse_other_tables(connection: Connection, name: str) -> None:
    tables = set(inspect(connection).get_table_names())
    if tables and "alembic_version" not in tables:
        raise ServiceError(
            f"{name} holds other tables, and the state does not mix with them. Nothing was changed. Choose another "
            "place."
        )
