"""The place of the records, as a plan file gives it: files, or a table of a database or of a Spark cluster."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import quote

from tabulary.confidential.coding import Coding
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.core.urls import scheme_of, shown
from tabulary.errors import InvalidAddress, listed

FILE_ENGINES = (CompiledEngine.name, "duckdb")
"""The engines that can count files. An address has its own engine."""

_SPARK = "spark"

# Databases in a file: three slashes before a relative path, four before an absolute one.
_IN_FILES = ("duckdb", "sqlite")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

UNREAD = "Nothing was read."


@dataclass(frozen=True, repr=False)
class Source:
    """The place of the records and the engine that counts them. Nothing is opened or asked before `open`.

    `place` is the path of a file, a folder or a glob; or the address of a database or a Spark master, which needs
    the name of a `table`. `engine` names the engine that counts files; the default is "compiled".

    `${NAME}` in an address means a variable of the environment, so that a plan file contains no password. It is
    replaced when the source is opened. The printed form of the source has no user, no password and no options.

    >>> Source("postgresql://reader:${CENSUS_PASSWORD}@db/census", "public.people")
    <Source postgresql://db/census, table 'public.people'>
    >>> Source.read(Path("/data"), "people.parquet", engine="duckdb").place.as_posix()
    '/data/people.parquet'
    """

    place: Path | str
    table: str | None = None
    engine: str | None = None

    @classmethod
    def read(cls, folder: Path, source: str, table: str | None = None, engine: str | None = None) -> "Source":
        """Return the source that a file in `folder` names; paths, also of databases, are relative to the folder."""
        scheme = scheme_of(source)
        if scheme is None:
            return cls(folder / source, table, engine)
        path = source.removeprefix(f"{scheme}:///")
        if scheme in _IN_FILES and path not in ("", source) and not path.startswith("/"):
            source = f"{scheme}:///{(folder / path).absolute().as_posix()}"
        return cls(source, table, engine)

    def __post_init__(self) -> None:
        if isinstance(self.place, Path):
            self._check_files()
        else:
            self._check_address(self.place)

    def counted_by(self, engine: str) -> "Source":
        """Return the same files, counted by another engine."""
        return replace(self, engine=engine)

    def open(
        self, domain: Domain, codings: Mapping[str, Coding] | None = None, *, weights: Weights | None = None
    ) -> Records:
        """Return the records, opened and recoded."""
        if isinstance(self.place, Path):
            engine = self.engine or CompiledEngine.name
            return Records.from_file(self.place, domain, codings, weights=weights, engine=engine)
        assert self.table is not None
        return Records.from_database(_filled(self.place), self.table, domain, codings, weights=weights)

    @property
    def shown(self) -> str:
        """The source as it may be printed."""
        if isinstance(self.place, Path):
            return str(self.place)
        return f"{shown(self.place)}, table {self.table!r}"

    def __repr__(self) -> str:
        return f"<Source {self.shown}>"

    def _check_files(self) -> None:
        if self.table is not None:
            raise InvalidAddress(
                f"a `table` needs an address such as postgresql://host/database, but {self.shown!r} is a "
                f"path. {UNREAD} Leave `table` out, or give the address as `source`."
            )
        if self.engine is not None and self.engine not in FILE_ENGINES:
            raise InvalidAddress(
                f"files are counted by the engine {listed(FILE_ENGINES)}, not by {self.engine!r}. {UNREAD}"
            )

    def _check_address(self, address: str) -> None:
        scheme = scheme_of(address)
        if scheme is None or "://" not in address:
            raise InvalidAddress(f"an address needs its scheme, as in postgresql://host/database. {UNREAD}")
        known = _schemes()
        if known and scheme not in known:
            raise InvalidAddress(
                f"no engine counts records at {scheme}://. {UNREAD} An address begins with one of "
                f"{', '.join(sorted(known))}; download files from other places, and name their path."
            )
        if not self.table:
            raise InvalidAddress(
                f"the address {shown(address)} needs the name of a `table`, such as 'public.people'. {UNREAD}"
            )
        if self.engine is not None:
            raise InvalidAddress(
                f"the engine {self.engine!r} is for files: records at {scheme}:// are counted where they are. "
                f"{UNREAD} Leave `engine` out."
            )
        if "${" in _VARIABLE.sub("", address):
            raise InvalidAddress(
                "a variable in an address is written ${NAME}, with letters, digits and underscores. " + UNREAD
            )


def _schemes() -> set[str]:
    """Return the schemes that have an engine; none if Ibis is missing, because then nobody knows yet."""
    databases = {backend.name for backend in entry_points(group="ibis.backends")}
    return databases | {"postgresql", _SPARK} if databases else set()


def _filled(address: str) -> str:
    """Return an address with the values of its variables; the values are never printed.

    A value before the last @ is a user name or a password and is used exactly: characters with a meaning in an
    address are escaped.
    """
    missing = [name for name in _VARIABLE.findall(address) if name not in os.environ]
    if missing:
        raise InvalidAddress(
            f"the address {shown(address)} names {listed(missing)}, but the environment has no such "
            "variable. Nothing was counted, nothing was spent. Set it, and try again."
        )
    who, at, where = address.rpartition("@")
    user = _VARIABLE.sub(lambda found: quote(os.environ[found[1]], safe=""), who)
    return user + at + _VARIABLE.sub(lambda found: os.environ[found[1]], where)
