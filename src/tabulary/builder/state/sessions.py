"""Sessions: who signed in to the pages with a token. The database holds only the digest of a session."""

import hashlib
import secrets
from datetime import timedelta

from sqlalchemy import delete, insert, or_, select, update

from tabulary.builder.state import schema
from tabulary.builder.state.database import Database
from tabulary.builder.state.log import Action, Actor, Log
from tabulary.builder.state.tokens import Clock, Role, Token, token_from_row

IDLE = timedelta(minutes=30)
"""A session ends after this time without use."""

LONGEST = timedelta(hours=12)
"""A session ends after this time in any case."""

# The precision of the last use of a session, so that most page views write nothing.
_NOTED = timedelta(minutes=1)


class Sessions:
    """The sessions of a service: each belongs to a token, and ends with it at the latest.

    The name of a session is 256 random bits, so its SHA-256 does not reveal it, and a lookup by the SHA-256 reveals
    nothing about a nearly correct name. The service makes the name at sign-in and never accepts one from the caller.

    >>> import tempfile
    >>> from tabulary.builder.state import State
    >>> with tempfile.TemporaryDirectory() as folder, State.create(f"{folder}/state.sqlite") as state:
    ...     token, _ = state.tokens.add("Carl", "custodian")
    ...     session = state.sessions.begin(token)
    ...     before = state.sessions.find(session)
    ...     state.sessions.end(session)
    ...     before == token, state.sessions.find(session)
    (True, None)
    """

    def __init__(self, database: Database, clock: Clock, log: Log) -> None:
        self._database = database
        self._clock = clock
        self._log = log

    def begin(self, token: Token, address: str | None = None) -> str:
        """Return the name of a new session. The name is not stored. Ended sessions are deleted.

        The log records the sign-in of a custodian and the address.
        """
        name = secrets.token_hex(32)
        now, sessions = self._clock(), schema.sessions
        with self._log.writing() as act:
            act.connection.execute(
                delete(sessions).where(or_(sessions.c.began <= now - LONGEST, sessions.c.seen <= now - IDLE))
            )
            act.connection.execute(
                insert(sessions).values(digest=_digest(name), token=token.id, began=now, seen=now)
            )
            if token.role is Role.custodian:
                act.note(Actor.of(token, address), Action.signed_in)
        return name

    def find(self, name: str) -> Token | None:
        """Return whose session it is, if neither it nor the token has ended, and note that it was used."""
        now, sessions, tokens = self._clock(), schema.sessions, schema.tokens
        mine = sessions.c.digest == _digest(name)
        query = select(tokens, sessions.c.seen).join(sessions, sessions.c.token == tokens.c.id)
        with self._database.reading() as connection:
            row = (
                connection.execute(
                    query.where(mine, sessions.c.began > now - LONGEST, sessions.c.seen > now - IDLE)
                )
                .mappings()
                .first()
            )
        if row is None:
            return None
        found = dict(row)
        seen = found.pop("seen")
        token = token_from_row(found)
        if not token.good_at(now):
            return None
        if now - seen >= _NOTED:
            with self._database.writing() as connection:
                connection.execute(update(sessions).where(mine).values(seen=now))
        return token

    def end(self, name: str, address: str | None = None) -> None:
        """End a session, immediately and permanently; a missing session has ended already."""
        sessions, tokens = schema.sessions, schema.tokens
        mine = sessions.c.digest == _digest(name)
        with self._log.writing() as act:
            row = (
                act.connection.execute(
                    select(tokens).join(sessions, sessions.c.token == tokens.c.id).where(mine)
                )
                .mappings()
                .first()
            )
            act.connection.execute(delete(sessions).where(mine))
            if row is not None and row["role"] == Role.custodian:
                act.note(Actor.of(token_from_row(dict(row)), address), Action.signed_out)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()
