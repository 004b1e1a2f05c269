"""Triggers that keep tables append-only for every writer, in SQLite and in PostgreSQL."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Refusals = Mapping[tuple[str, str], str]
"""The condition that refuses a statement on a table, by table and statement.

`{schema}` comes before the name of a table, and `{always}` is a condition that always holds. INSERT needs a trigger
too: it stops INSERT OR REPLACE, whose implied deletion fires no trigger."""


def sqlite_triggers(refusals: Refusals, what: str) -> dict[str, str]:
    """Return the statements that create the triggers, by name; the error calls `what` append-only.

    >>> print(sqlite_triggers({("log", "DELETE"): "{always}"}, "a log")["log_delete"])
    CREATE TRIGGER log_delete BEFORE DELETE ON log WHEN 1 BEGIN SELECT RAISE(ABORT, 'a log is append-only'); END
    """
    return {
        f"{table}_{statement.lower()}": (
            f"CREATE TRIGGER {table}_{statement.lower()} BEFORE {statement} ON {table} "
            f"WHEN {condition.format(schema='', always='1')} "
            f"BEGIN SELECT RAISE(ABORT, '{what} is append-only'); END"
        )
        for (table, statement), condition in refusals.items()
    }


@dataclass(frozen=True)
class PostgreSQLTrigger:
    """A trigger of PostgreSQL, with the function of the same name that it calls."""

    schema: str
    table: str
    statement: str
    condition: str
    what: str

    @property
    def name(self) -> str:
        """The name of the trigger."""
        return f"{self.table}_{self.statement.lower()}"

    @property
    def body(self) -> str:
        """The source of the function; PostgreSQL keeps it letter by letter."""
        return (
            f"BEGIN IF {self.condition} THEN RAISE EXCEPTION '{self.what} is append-only' "
            "USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END"
        )

    @property
    def definition(self) -> str:
        """The trigger as PostgreSQL shows it."""
        each = "STATEMENT" if self.statement == "TRUNCATE" else "ROW"
        return (
            f"CREATE TRIGGER {self.name} BEFORE {self.statement} ON {self.schema}.{self.table} "
            f"FOR EACH {each} EXECUTE FUNCTION {self.schema}.{self.name}()"
        )

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements that create it. It also fires for a session that replays another server's changes."""
        return (
            f"CREATE FUNCTION {self.schema}.{self.name}() RETURNS trigger LANGUAGE plpgsql "
            f"AS $body${self.body}$body$",
            self.definition,
            f"ALTER TABLE {self.schema}.{self.table} ENABLE ALWAYS TRIGGER {self.name}",
        )


def postgresql_triggers(
    refusals: Refusals, tables: Iterable[str], schema: str, what: str
) -> tuple[PostgreSQLTrigger, ...]:
    """Return the triggers of tables in a schema, which refuse TRUNCATE as well."""
    every = {**refusals, **{(table, "TRUNCATE"): "{always}" for table in tables}}
    return tuple(
        PostgreSQLTrigger(
            schema, table, statement, condition.format(schema=f"{schema}.", always="true"), what
        )
        for (table, statement), condition in every.items()
    )
