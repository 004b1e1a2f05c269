"""The log of all actions on a service: who did what, when and to what. It is append-only.

It records accounts, tokens, versions, sign-ins and starts. It holds no token text, no question, and nothing that
depends on a record.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update
from sqlalchemy.engine import Connection

from tabulary.builder.state import schema
from tabulary.builder.state.database import Database
from tabulary.builder.state.log_file import LogFile
from tabulary.errors import ServiceError
from tabulary.ledger.chain import link

if TYPE_CHECKING:
    from tabulary.builder.state.tokens import Clock, Token

_LONGEST_OBJECT = 1_000
_BATCH = 1_000


class Action(StrEnum):
    """The kinds of actions on a service."""

    key_made = "key made"
    ledger_made = "ledger made"
    account_opened = "account opened"
    account_found = "account found"
    token_made = "token made"
    token_revoked = "token revoked"
    version_opened = "version opened"
    service_started = "service started"
    start_refused = "start refused"
    artifact_remade = "artifact made again"
    signed_in = "signed in"
    signed_out = "signed out"
    sign_in_failed = "sign-in failed"


@dataclass(frozen=True)
class Actor:
    """Who does something: the name and id of a token and the address it came from, or a part of the system."""

    name: str
    token: str | None = None
    address: str | None = None

    @classmethod
    def of(cls, token: "Token", address: str | None = None) -> "Actor":
        """Return the actor with this token."""
        return cls(token.name, token.id, address)


COMMAND_LINE = Actor("command line")
SERVICE = Actor("service")
STRANGER = "unknown"
"""The name of an actor with an unknown token."""


@dataclass(frozen=True)
class LogEntry:
    """One entry, as the log keeps it for ever. `number` counts from 1.

    `at` is the time in UTC, ISO 8601. `token` is the id of the token, and `address` the address it came from. `digest`
    is the SHA-256 of `previous`, the digest of the previous entry, and of everything else in the entry.
    """

    number: int
    at: str
    actor: str
    token: str | None
    action: str
    object: str
    address: str | None
    previous: str
    digest: str

    @property
    def line(self) -> str:
        """The entry as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def is_sound(self) -> bool:
        """Whether its digest agrees with its content."""
        content = {name: value for name, value in vars(self).items() if name not in ("previous", "digest")}
        return link(self.previous, content) == self.digest


@dataclass(frozen=True)
class Act:
    """A transaction with a log entry: `note` what it does. Both are committed, or neither is."""

    connection: Connection
    notes: list[tuple[Actor, Action, str]] = field(default_factory=list)

    def note(self, by: Actor, action: Action, object: str = "") -> None:  # noqa: A002 — the field's name
        """Write down who does what to what."""
        self.notes.append((by, action, object[:_LONGEST_OBJECT]))


class Log:
    """The entries of the log, and a copy of them in a file of JSON lines, if the service keeps one.

    Triggers of the database refuse to change or remove an entry. Somebody who removes the triggers and changes an entry
    breaks the chain of digests, and `check` finds that.

    >>> import tempfile
    >>> from tabulary.builder.state import State
    >>> with tempfile.TemporaryDirectory() as folder, State.create(f"{folder}/state.sqlite") as state:
    ...     state.log.add(SERVICE, Action.version_opened, "census 2026")
    ...     [(entry.number, entry.actor, entry.action) for entry in state.log.newest()]
    [(1, 'service', 'version opened')]
    """

    def __init__(self, database: Database, clock: "Clock", file: LogFile | None = None) -> None:
        self._database = database
        self._clock = clock
        self._file = file

    @contextmanager
    def writing(self) -> Iterator[Act]:
        """Yield a transaction of the state whose notes are committed with it."""
        with self._database.writing() as connection:
            act = Act(connection)
            yield act
            self._append(connection, act.notes)
        if act.notes and self._file is not None:
            self._file.catch_up(self.entries)

    def add(self, by: Actor, action: Action, object: str = "") -> None:  # noqa: A002 — the field's name
        """Log an action that changes nothing in the state itself."""
        with self.writing() as act:
            act.note(by, action, object)

    def add_once(self, by: Actor, action: Action, objects: Iterable[str], *same: Action) -> None:
        """Log the action for each object that has no entry with this action or one of the actions `same`."""
        columns = schema.log.c
        query = select(columns.object).where(columns.action.in_([action, *same]))
        with self.writing() as act:
            # Lock first, so that only one of many starting workers writes.
            self._head(act.connection)
            known = set(act.connection.execute(query).scalars())
            for each in objects:
                if each not in known:
                    act.note(by, action, each)

    def add_unless_last(self, by: Actor, action: Action, object: str) -> None:  # noqa: A002
        """Log the action unless the last entry is the same: repeated attempts to start make one entry."""
        columns = schema.log.c
        query = select(columns.actor, columns.action, columns.object).order_by(columns.number.desc()).limit(1)
        with self.writing() as act:
            self._head(act.connection)
            last = act.connection.execute(query).first()
            if last is None or tuple(last) != (by.name, action, object[:_LONGEST_OBJECT]):
                act.note(by, action, object)

    def list(self, after: int = 0, size: int = 100) -> tuple[LogEntry, ...]:
        """Return entries in their order, from the one after number `after`."""
        columns = schema.log.c
        query = select(schema.log).where(columns.number > after).order_by(columns.number).limit(size)
        with self._database.reading() as connection:
            return tuple(LogEntry(**row) for row in connection.execute(query).mappings())

    def newest(self, before: int | None = None, size: int = 100) -> tuple[LogEntry, ...]:
        """Return entries with a number below `before`, the last one first."""
        columns = schema.log.c
        query = select(schema.log).order_by(columns.number.desc()).limit(size)
        if before is not None:
            query = query.where(columns.number < before)
        with self._database.reading() as connection:
            return tuple(LogEntry(**row) for row in connection.execute(query).mappings())

    def entries(self, after: int = 0) -> Iterator[LogEntry]:
        """Yield every entry after number `after`, in order."""
        while page := self.list(after, _BATCH):
            yield from page
            after = page[-1].number

    def check(self) -> None:
        """Refuse a log in which an entry was changed or is missing, or that is behind its own copy."""
        with self._database.reading() as connection:
            head = connection.execute(select(schema.log_head)).mappings().first()
        if head is None:
            raise self._broken("lost its end")
        number, digest = 0, ""
        for entry in self.entries():
            if entry.number != number + 1 or entry.previous != digest or not entry.is_sound:
                raise self._broken(f"holds a changed entry {number + 1}, or has lost it")
            number, digest = entry.number, entry.digest
            # Others may add entries during the reading.
            if number == head["entries"] and digest != head["digest"]:
                raise self._broken(f"holds a changed entry {number}")
        if number < head["entries"]:
            raise self._broken(f"has lost its entries after number {number}")
        if self._file is not None:
            self._refuse_behind_its_copy(self._file)
            self._file.catch_up(self.entries)

    def _refuse_behind_its_copy(self, file: LogFile) -> None:
        last = file.last()
        if last is None:
            return
        number, digest = last
        kept = self.list(number - 1, 1)
        if not kept or (kept[0].number, kept[0].digest) != (number, digest):
            raise ServiceError(
                f"the log in {self._database.name} is not the one of which {str(file.path)!r} is a copy: the state was "
                "set back to an older one, or the file belongs to another service. Nothing was opened. Put the newer "
                "state back. If only the older one is left: tokens that the file calls revoked are good in it. Revoke "
                "them again, then move the file away."
            )

    def _append(self, connection: Connection, notes: Iterable[tuple[Actor, Action, str]]) -> None:
        for by, action, what in notes:
            number, previous = self._head(connection)
            content = {
                "number": number + 1,
                "at": self._clock().astimezone(UTC).isoformat(timespec="seconds"),
                "actor": by.name,
                "token": by.token,
                "action": str(action),
                "object": what,
                "address": by.address,
            }
            digest = link(previous, content)
            connection.execute(insert(schema.log).values(**content, previous=previous, digest=digest))
            connection.execute(update(schema.log_head).values(entries=number + 1, digest=digest))

    def _head(self, connection: Connection) -> tuple[int, str]:
        """Return the number and digest of the last entry; nobody else can append until the transaction ends."""
        found = connection.execute(
            select(schema.log_head.c.entries, schema.log_head.c.digest).with_for_update()
        ).first()
        if found is None:
            raise self._broken("lost its end")
        return found[0], found[1]

    def _broken(self, what: str) -> ServiceError:
        return ServiceError(
            f"the log in {self._database.name} {what}, and whoever changed it may have changed tokens too. Nothing was "
            "opened. Restore the state from a copy; tokens that were revoked since it was made are good in it, so "
            "revoke them again. Without a copy, move the state away, initialise the table builder again, and make the "
            "tokens again."
        )
