"""The place of a ledger: the path of a file, or the address of a PostgreSQL database."""

import os

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tabulary.core.urls import scheme_of
from tabulary.errors import LedgerError

Where = str | os.PathLike[str]
"""The path of an SQLite file, or `postgresql://user:password@host:port/database`."""

_FORM = "Write postgresql://user:password@host:port/database, with %40 for an @ in the password."


def address_of(where: Where) -> URL | None:
    """Return the address in `where`, or None if it is a path. No refusal repeats what may be a password.

    >>> address_of("ledger.sqlite") is None
    True
    >>> address_of("postgresql://tabulary:secret@db/census").database
    'census'
    """
    text = os.fspath(where)
    scheme = scheme_of(text)
    if scheme is None:
        return None
    if scheme != "postgresql":
        raise LedgerError(
            "a ledger is the path of a file, or an address that begins with postgresql://, not with "
            f"{scheme}:. {_FORM}"
        )
    try:
        address = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the address of the ledger cannot be read. {_FORM}") from None
    # The part after an @ in a password would be read as the host, and printed.
    if "@" in f"{address.host}{address.database}":
        raise LedgerError(f"the address of the ledger contains more than one @. {_FORM}")
    return address


def shown(address: URL) -> str:
    """Return an address without the user, the password and the options of the connection.

    >>> shown(address_of("postgresql://tabulary:secret@db:5433/census?sslmode=require"))
    'postgresql://db:5433/census'
    >>> shown(address_of("postgresql:///census?host=/run/postgresql"))
    'postgresql:///census?host=/run/postgresql'
    """
    port = f":{address.port}" if address.port else ""
    elsewhere = [f"{key}={value}" for key, value in address.query.items() if key in ("host", "port")]
    return f"postgresql://{address.host or ''}{port}/{address.database or ''}" + (
        f"?{'&'.join(elsewhere)}" if elsewhere else ""
    )
