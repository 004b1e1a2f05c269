"""The state of a table builder, opened: tokens, sessions, log, usage and facts, on SQLite or on PostgreSQL."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Select, select, text

from tabulary.builder.state import schema
from tabulary.builder.state.counter import RequestCounter
from tabulary.builder.state.database import Database, database_at
from tabulary.builder.state.heads import Heads
from tabulary.builder.state.log import Log
from tabulary.builder.state.log_file import LogFile
from tabulary.builder.state.migrating import migrate, refuse_unmigrated
from tabulary.builder.state.sessions import Sessions
from tabulary.builder.state.tokens import Clock, Tokens
from tabulary.builder.state.usage import Usage
from tabulary.errors import ServiceError
from tabulary.sql import Where


def _now() -> datetime:
    return datetime.now(UTC)


class State:
    """What a table builder remembers besides its ledger. Nothing in it depends on a record.

    Threads and processes share it; each process opens it for itself. `tokens` says who may ask, and `sessions` who
    signed in with a token. `log` records what the custodian did, and `log_file` gets a copy. `usage` records the
    requests, and `counter` counts them. `heads` are the newest heads of the ledger. `remember` keeps the facts that
    must not change between two starts. Use it as a context manager, or `close` it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, State.create(f"{folder}/state.sqlite") as state:
    ...     token, text = state.tokens.add("Ada", "analyst", account="ada")
    ...     state.tokens.find(text) == token, state.tokens.find(text[:-1] + "x")
    (True, None)
    """

    def __init__(self, database: Database, clock: Clock, log_file: Path | None = None) -> None:
        self.database = database
        self.log = Log(database, clock, None if log_file is None else LogFile(log_file))
        self.tokens = Tokens(database, clock, self.log)
        self.sessions = Sessions(database, clock, self.log)
        self.usage = Usage(database)
        self.heads = Heads(database)
        self.counter = RequestCounter(self.usage.add)

    @classmethod
    def create(cls, where: Where, *, clock: Clock = _now, log_file: Path | None = None) -> "State":
        """Return the state at `where`, its tables created or brought up to date; nothing in them is lost."""
        return cls._opened(where, migrate, clock, log_file)

    @classmethod
    def open(cls, where: Where, *, clock: Clock = _now, log_file: Path | None = None) -> "State":
        """Return the state at `where`; refuse one that is missing, or older or newer than this Tabulary."""
        return cls._opened(where, refuse_unmigrated, clock, log_file)

    @classmethod
    def _opened(
        cls, where: Where, prepare: Callable[[Database], None], clock: Clock, log_file: Path | None
    ) -> "State":
        database = database_at(where)
        try:
            prepare(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, log_file)

    def remember(self, name: str, value: str) -> None:
        """Keep a fact for ever; refuse a value other than the one that was kept first.

        So the service notices a lost ledger, another key or another sampler when it starts, before it gives a second
        answer to an old question. If many processes set a fact at once, the first one wins.
        """
        with self.database.writing() as connection:
            # Both databases accept it: it writes the row unless there is one with that name.
            connection.execute(
                text("INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"),
                {"name": name, "value": value},
            )
            kept = connection.execute(_fact(name)).scalar_one()
        if kept != value:
            raise ServiceError(
                f"{self.database.name} remembers {name} {kept!r}, but it is now {value!r}. Nothing was measured, "
                "nothing was spent. Put back what was there when the service was set up, or set up a new service, "
                "whose answers have to be paid for anew."
            )

    def recall(self, name: str) -> str | None:
        """Return the fact with that name, or None if there is none."""
        with self.database.reading() as connection:
            found: str | None = connection.execute(_fact(name)).scalar()
        return found

    def close(self) -> None:
        """Write what was counted, and close every connection. A second call does nothing."""
        self.counter.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"State({self.database.name!r})"


def _fact(name: str) -> Select[str]:
    return select(schema.facts.c.value).where(schema.facts.c.name == name)
