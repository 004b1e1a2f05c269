"""A ledger in a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError

from tabulary.errors import LedgerError
from tabulary.ledger import schema
from tabulary.ledger.storage import UNSPENT, Storage, Structure
from tabulary.sql import postgresql_engine, shown, sqlstate_of

# A debit takes milliseconds: a process that stops this long in the middle is gone, and must not keep the lock.
HUNG = "60s"

_OPTIONS = {
    "isolation_level": "REPEATABLE READ",
    "schema_translate_map": {None: schema.POSTGRESQL_SCHEMA},
}

_TABLES = """
SELECT relname AS name, array(
    SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum
) AS columns
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s AND relkind NOT IN ('i', 'I')
"""

# Rules stand among the triggers: one of them could turn a statement into nothing.
_GUARDS = """
SELECT tgname AS name, concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled, prosrc) AS text
FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid JOIN pg_namespace n ON n.oid = relnamespace
JOIN pg_proc p ON p.oid = tgfoid WHERE nspname = %(schema)s AND NOT tgisinternal
UNION ALL
SELECT rulename, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = %(schema)s
"""

# Then definitions contain full names, with any search path of the user.
_PLAIN_NAMES = "SET LOCAL search_path = pg_catalog"

# A schema, a table, or the row that names one: another process was faster.
_TAKEN = ("42P06", "42P07", "23505")


class PostgreSQLStorage(Storage):
    """A separate schema in a PostgreSQL database, whose server may restart at any time.

    A writing transaction locks the table of the founding record before it reads the ledger, so that it sees
    everything that was committed before. Its commit returns when the server's log is on the disk, with any setting
    of the server (synchronous_commit = on). Every transaction sees one moment (REPEATABLE READ).
    """

    kept_in = "database"
    place = "address"
    access = f"Grant the user the rights on schema {schema.POSTGRESQL_SCHEMA} and its tables."
    reading_options = MappingProxyType({**_OPTIONS, "postgresql_readonly": True})
    writing_options = MappingProxyType({**_OPTIONS, "postgresql_readonly": False})
    expected_guards = MappingProxyType(
        # A: the trigger always fires.
        {trigger.name: f"{trigger.definition} A {trigger.body}" for trigger in schema.POSTGRESQL_TRIGGERS}
    )

    def __init__(self, address: URL, *, read_only: bool, timeout: float) -> None:
        engine = postgresql_engine(address, application="ledger", timeout=timeout)
        super().__init__(
            shown(address),
            engine,
            read_only=read_only,
            timeout=timeout,
            password=str(address.password or ""),
        )

    @contextmanager
    def founding(self) -> Iterator[Connection]:
        """Yield a connection to new, empty tables in their own schema; an error removes everything."""
        with self._transaction(self._writer) as connection:
            self._set_up(connection)
            self._refuse_other_encodings(connection)
            if self._tables(connection):
                raise self._taken()
            try:
                self._create_tables(connection)
                yield connection
            except DBAPIError as error:
                raise self._taken() if sqlstate_of(error.orig) in _TAKEN else error from None

    def structure(self, connection: Connection) -> Structure:
        """Return the tables, triggers and rules of the schema."""
        tables = self._tables(connection)
        if not tables:
            raise self._missing()
        connection.exec_driver_sql(_PLAIN_NAMES)
        guards = connection.exec_driver_sql(_GUARDS, {"schema": schema.POSTGRESQL_SCHEMA})
        return Structure(tables, {row.name: row.text for row in guards})

    def _tables(self, connection: Connection) -> dict[str, list[str]]:
        found = connection.exec_driver_sql(_TABLES, (schema.POSTGRESQL_SCHEMA,))
        return {row.name: row.columns for row in found}

    def _create_tables(self, connection: Connection) -> None:
        # A user of a schema that the administrator made need not have the right to make one.
        known = connection.exec_driver_sql(
            "SELECT FROM pg_namespace WHERE nspname = %s", (schema.POSTGRESQL_SCHEMA,)
        )
        if known.first() is None:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema.POSTGRESQL_SCHEMA}")
        schema.create_tables(connection)
        triggers = [statement for each in schema.POSTGRESQL_TRIGGERS for statement in each.statements]
        connection.exec_driver_sql("; ".join(triggers))

    def _begin(self, connection: Connection, *, writing: bool) -> None:
        if writing:
            self._set_up(connection, f"; LOCK TABLE {schema.POSTGRESQL_SCHEMA}.ledger IN EXCLUSIVE MODE")

    def _set_up(self, connection: Connection, lock: str = "") -> None:
        try:
            # In one message. None of these looks at a row, so the transaction's moment begins after the lock.
            connection.exec_driver_sql(
                "SET LOCAL synchronous_commit = on; "
                f"SET LOCAL lock_timeout = {max(1, round(self._timeout * 1000))}; "
                f"SET LOCAL idle_in_transaction_session_timeout = '{HUNG}'{lock}"
            )
        except DBAPIError as error:
            # A replica does not even begin a transaction that may write.
            raise self._takes_no_writes() if sqlstate_of(error.orig) == "0A000" else error from None

    def _refuse_other_encodings(self, connection: Connection) -> None:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding != "UTF8":
            raise LedgerError(
                f"the database of {self.name} has the encoding {encoding} and cannot store every name. "
                f"Create it with ENCODING 'UTF8'. {UNSPENT}"
            )

    def _taken(self) -> LedgerError:
        return LedgerError(
            f"there is already a ledger at {self.where!r}, and a ledger is never overwritten. Open it, or choose "
            f"another database. {UNSPENT}"
        )
