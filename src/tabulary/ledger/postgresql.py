"""A ledger in a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from types import MappingProxyType

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError

from tabulary.errors import LedgerBusy, LedgerError, LedgerMissing, MissingExtra
from tabulary.ledger import schema
from tabulary.ledger.address import shown
from tabulary.ledger.storage import UNSPENT, Storage, Structure

# So a debit notices within a minute that the server's machine is gone; TCP alone may wait for hours.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

# A debit takes milliseconds: a process that stops this long in the middle is gone, and must not keep the lock.
_HUNG = "60s"

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
    reading_options = MappingProxyType({**_OPTIONS, "postgresql_readonly": True})
    writing_options = MappingProxyType({**_OPTIONS, "postgresql_readonly": False})
    expected_guards = MappingProxyType(
        # A: the trigger always fires.
        {trigger.name: f"{trigger.definition} A {trigger.body}" for trigger in schema.POSTGRESQL_TRIGGERS}
    )

    def __init__(self, address: URL, *, read_only: bool, timeout: float) -> None:
        usual = {
            "connect_timeout": max(2, ceil(timeout)),
            "application_name": "tabulary ledger",
            **_KEEPALIVE,
        }
        try:
            engine = create_engine(
                address.set(drivername="postgresql+psycopg"),
                connect_args={name: value for name, value in usual.items() if name not in address.query},
                # A connection that a restart broke is replaced before it is used.
                pool_pre_ping=True,
                pool_timeout=timeout,
                hide_parameters=True,
            )
        except ModuleNotFoundError:
            raise MissingExtra(
                "a ledger in PostgreSQL needs the package psycopg. Install it: pip install 'tabulary[serve]'"
            ) from None
        self._password = str(address.password or "")
        super().__init__(shown(address), engine, read_only=read_only, timeout=timeout)

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
                raise self._taken() if _code(error.orig) in _TAKEN else error from None

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
                f"SET LOCAL idle_in_transaction_session_timeout = '{_HUNG}'{lock}"
            )
        except DBAPIError as error:
            # A replica does not even begin a transaction that may write.
            raise self._takes_no_writes() if _code(error.orig) == "0A000" else error from None

    def _refuse_other_encodings(self, connection: Connection) -> None:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding != "UTF8":
            raise LedgerError(
                f"the database of {self.name} has the encoding {encoding} and cannot store every name. "
                f"Create it with ENCODING 'UTF8'. {UNSPENT}"
            )

    def _translate(self, error: BaseException | None, *, committing: bool) -> LedgerError:
        code = _code(error)
        match code[:2], code:
            case _, "55P03":
                return self._busy()
            case "40", _:
                return LedgerBusy(
                    f"another process wrote to {self.name} at the same moment. {UNSPENT} Try again."
                )
            case _, "53100":
                return LedgerError(f"the disk of {self.name} is full. {UNSPENT} Free some space, try again.")
            case _, "25006":
                return self._takes_no_writes()
            case _, "42501":
                return LedgerError(
                    f"the user has no right to use {self.name} in this way. {UNSPENT} Grant the rights on "
                    f"schema {schema.POSTGRESQL_SCHEMA} and its tables."
                )
            case _, "42P01" | "3F000":
                return self._missing()
            case "23", _:
                return self._corrupt(f"does not accept the next entry (SQLSTATE {code})")
            # The statements are fixed and correct: if PostgreSQL cannot run them, the database is at fault.
            case ("0A" | "22" | "42", _) | (_, "XX001" | "XX002"):
                return self._corrupt(f"cannot be read (SQLSTATE {code})")
            case ("" | "08", _) | (_, "25P03" | "53300" | "57P01" | "57P02" | "57P03" | "57P05"):
                return self._out_of_reach(error, committing=committing)
            case _:
                return LedgerError(f"{self.name} could not be used (SQLSTATE {code}). {UNSPENT}")

    def _out_of_reach(self, error: BaseException | None, *, committing: bool) -> LedgerError:
        if committing:
            problem = LedgerError(
                f"the connection to {self.name} was lost in the middle of a commit. Nothing was measured. "
                "When the server is back, the ledger's entries show whether the debit was kept."
            )
        else:
            problem = LedgerError(
                f"{self.name} cannot be reached, or its server stopped. {UNSPENT} Check that the server "
                "runs, and that host, port, database, user and password are right; then try again."
            )
        # The server's own words name users and hosts: they are for the terminal or the log, not for a reader.
        said = " ".join(str(error).split())
        problem.add_note(f"PostgreSQL: {said.replace(self._password, '***') if self._password else said}")
        return problem

    def _takes_no_writes(self) -> LedgerError:
        return LedgerError(
            f"the server of {self.name} accepts no writes: it is a replica, or read-only. {UNSPENT} Give "
            "the address of the primary server."
        )

    def _missing(self) -> LedgerMissing:
        return LedgerMissing(
            f"there is no ledger at {self.where!r}. {UNSPENT} Check the address; a new ledger would not "
            "know earlier spending."
        )

    def _taken(self) -> LedgerError:
        return LedgerError(
            f"there is already a ledger at {self.where!r}, and a ledger is never overwritten. Open it, or choose "
            f"another database. {UNSPENT}"
        )


def _code(error: BaseException | None) -> str:
    # Without a code, the error came from this side: no connection could be made, or it broke.
    return getattr(error, "sqlstate", None) or ""
