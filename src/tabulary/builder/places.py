"""The places of a table builder's ledger and state, with hidden passwords."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tabulary.errors import InvalidSettings, ServiceError
from tabulary.private_files import read_private_file
from tabulary.workflows.sections import Section

_ENVIRONMENT = "env:"
_POSTGRESQL = "postgresql://"


@dataclass(frozen=True)
class DatabasePlace:
    """A database as a file names it: a path, a PostgreSQL address, or the variable that holds either.

    A password may be in the address, in the variable, or in its own file. The printed form never shows it.

    >>> DatabasePlace("postgresql://tabulary:secret@db/census", Path("."))
    DatabasePlace(folder=PosixPath('.'), password_file=None)
    """

    told: str = field(repr=False)
    folder: Path
    password_file: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is the path of a SQLite file."""
        return "://" not in self.told and not self.told.startswith(_ENVIRONMENT)

    def where(self) -> Path | str:
        """Return the path of a SQLite file or the address of a PostgreSQL database, its password included."""
        told = self._value()
        if "://" not in told:
            if self.password_file is not None:
                raise InvalidSettings(
                    "a password_file goes with an address such as postgresql://tabulary@host/name."
                )
            return self.folder / told
        address = _parsed(told)
        if self.password_file is not None:
            if address.password is not None:
                raise InvalidSettings(
                    "the address holds a password already: leave it out, or leave out password_file."
                )
            address = address.set(password=read_secret(self.password_file, "the password file"))
        return address.render_as_string(hide_password=False)

    def _value(self) -> str:
        if not self.told.startswith(_ENVIRONMENT):
            return self.told
        name = self.told.removeprefix(_ENVIRONMENT)
        value = os.environ.get(name)
        if not value:
            raise ServiceError(
                f"the environment variable {name!r}, which names a database, is not set. Nothing was opened. Set it to "
                "a path or to postgresql://user:password@host/name."
            )
        return value


def read_place(section: Section, folder: Path) -> DatabasePlace:
    """Return the place that a table such as [ledger] names; refuse an invalid one."""
    told = section.take("database", str)
    password_file = section.take("password_file", str, default=None)
    section.done()
    place = DatabasePlace(told, folder, folder / password_file if password_file else None)
    if not told.removeprefix(_ENVIRONMENT):
        raise InvalidSettings(f"{section.name} database is empty.")
    if "://" in told:
        _parsed(told)
    return place


def read_secret(path: Path, what: str) -> str:
    """Return the only line of a file that only its owner may read; refuse any other file.

    A refusal names the path, and never shows the content.
    """
    content = read_private_file(path, what, ServiceError)
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        lines = []
    if len(lines) != 1 or not lines[0].strip():
        raise ServiceError(f"{what} {str(path)!r} does not hold one line of text. Nothing was opened.")
    return lines[0].strip()


def _parsed(address: str) -> URL:
    if not address.startswith(_POSTGRESQL):
        raise InvalidSettings(
            "a database is the path of a SQLite file, postgresql://user@host/name, or env:NAME for a variable that "
            "holds one of these."
        )
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        # The reason would show the address, and that may hold a password.
        raise InvalidSettings(
            "the PostgreSQL address cannot be read. Write postgresql://user@host:port/name."
        ) from None
