"""Tokens: who may ask, and who may manage the service. The database holds only the digest of a token."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlalchemy import insert, select, update

from tabulary.builder.state import schema
from tabulary.builder.state.database import Database
from tabulary.builder.state.log import COMMAND_LINE, Action, Actor, Log
from tabulary.errors import InvalidArgument

Clock = Callable[[], datetime]
"""What time it is, with its zone."""

_FORM = re.compile(r"tab_([0-9a-f]{12})_[0-9a-f]{64}")

# Unknown tokens are compared with this, so that their refusal takes the same time. No text has this digest.
_NO_DIGEST = "0" * 64

LONGEST_LIFE = 3650
"""The most days for which a token may be good."""


class Role(StrEnum):
    """The purpose of a token: to ask questions that cost, or to manage the service."""

    analyst = "analyst"
    custodian = "custodian"


@dataclass(frozen=True)
class Token:
    """Everything about a token except its text, which was shown once.

    `account` is the ledger account that pays for an analyst's questions. `expires` is None for a token without an end,
    and `revoked` is None for a token that nobody revoked.
    """

    id: str
    name: str
    role: Role
    account: str | None
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    @property
    def words(self) -> str:
        """What the log calls it."""
        return f"{self.id}, {self.name}, {self.role}"

    def good_at(self, moment: datetime) -> bool:
        """Return whether the token is valid at that moment."""
        return self.revoked is None and (self.expires is None or moment < self.expires)


class Tokens:
    """The tokens of a service.

    A token is 256 random bits, so its SHA-256 does not reveal it and needs neither salt nor stretching. The lookup uses
    the identifier, which is not secret. The comparison of digests takes constant time, also for an unknown identifier.
    """

    def __init__(self, database: Database, clock: Clock, log: Log) -> None:
        self._database = database
        self._clock = clock
        self._log = log

    def add(
        self,
        name: str,
        role: Role | str,
        account: str | None = None,
        days: int | None = None,
        *,
        by: Actor = COMMAND_LINE,
    ) -> tuple[Token, str]:
        """Return a new token and its text. The text is not stored: show it to its owner and forget it.

        `name` is the owner. The token is valid for `days`, or until it is revoked. An analyst's token names the account
        that pays; a custodian's token pays for nothing. `by` is who makes it, for the log.
        """
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise InvalidArgument("a token needs a name of at most 200 printable characters. None was made.")
        if role not in list(Role):
            raise InvalidArgument(f"a token is for an analyst or a custodian, not {role!r}. None was made.")
        if (role == Role.analyst) != bool(account):
            raise InvalidArgument(
                "an analyst's token needs the account that pays, and a custodian's has none. None was made."
            )
        if days is not None and not 1 <= days <= LONGEST_LIFE:
            raise InvalidArgument(
                f"a token is good for 1 to {LONGEST_LIFE:,} days, not {days!r}. None was made."
            )
        # Whole seconds, as they are stored.
        created = self._clock().astimezone(UTC).replace(microsecond=0)
        token = Token(
            id=secrets.token_hex(6),
            name=name.strip(),
            role=Role(role),
            account=account,
            created=created,
            expires=None if days is None else created + timedelta(days=days),
        )
        text = f"tab_{token.id}_{secrets.token_hex(32)}"
        with self._log.writing() as act:
            act.connection.execute(insert(schema.tokens).values(**vars(token), digest=_digest(text)))
            act.note(by, Action.token_made, token.words)
        return token, text

    def find(self, text: str) -> Token | None:
        """Return the token of that text if it is valid now: known, not expired, not revoked."""
        token = self.known(text)
        return token if token is not None and self.is_good(token) else None

    def known(self, text: str) -> Token | None:
        """Return the token of that text, even if it has expired or was revoked; None if there is no such token."""
        shaped = _FORM.fullmatch(text)
        row = None
        if shaped is not None:
            query = select(schema.tokens).where(schema.tokens.c.id == shaped[1])
            with self._database.reading() as connection:
                row = connection.execute(query).mappings().first()
        same = hmac.compare_digest(_digest(text), _NO_DIGEST if row is None else row["digest"])
        return token_from_row(dict(row)) if row is not None and same else None

    def get(self, id: str) -> Token | None:  # noqa: A002 — the field's name
        """Return what is known of the token with that id."""
        with self._database.reading() as connection:
            row = connection.execute(select(schema.tokens).where(schema.tokens.c.id == id)).mappings().first()
        return None if row is None else token_from_row(dict(row))

    def is_good(self, token: Token) -> bool:
        """Return whether a token is valid now."""
        return token.good_at(self._clock())

    def revoke(self, id: str, *, by: Actor = COMMAND_LINE) -> bool:  # noqa: A002 — the field's name
        """Revoke a token, immediately and permanently; return whether there is such a token."""
        tokens = schema.tokens
        with self._log.writing() as act:
            row = act.connection.execute(select(tokens).where(tokens.c.id == id)).mappings().first()
            done = act.connection.execute(
                # Keep the time of the first revocation.
                update(tokens)
                .where(tokens.c.id == id, tokens.c.revoked.is_(None))
                .values(revoked=self._clock())
            )
            if row is not None and done.rowcount:
                act.note(by, Action.token_revoked, token_from_row(dict(row)).words)
        return row is not None

    def list(self, after: str | None = None, size: int = 100) -> tuple[Token, ...]:
        """Return tokens in the order in which they were made, those made after the one with the id `after`."""
        tokens = schema.tokens
        query = select(tokens).order_by(tokens.c.number).limit(size)
        if after is not None:
            query = query.where(
                tokens.c.number > select(tokens.c.number).where(tokens.c.id == after).scalar_subquery()
            )
        with self._database.reading() as connection:
            return tuple(token_from_row(dict(row)) for row in connection.execute(query).mappings())


def token_from_row(row: dict[str, object]) -> Token:
    """Return the token that a row of the database holds."""
    known = {name: value for name, value in row.items() if name not in ("number", "digest")}
    return Token(**{**known, "role": Role(str(row["role"]))})  # type: ignore[arg-type]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
