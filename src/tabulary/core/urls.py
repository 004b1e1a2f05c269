"""Addresses of databases and clusters, and what may be said of one: never who connects, nor with what."""

import re

# Two letters at least: one is a drive. One slash is what is left of two when an address was taken for a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")

_OPTIONS = re.compile(r"[?#]")


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address, or None where a text is none: a path, say.

    >>> scheme_of("postgresql://db/census"), scheme_of("people.parquet"), scheme_of("C:/people.parquet")
    ('postgresql', None, None)
    """
    found = _SCHEME.match(text)
    return None if found is None else found[1]


def shown(address: str) -> str:
    """Return an address without the user, the password and the options of the connection.

    Whatever stands before an @ may be a password, however it is spelled; where an @ stands in what may be an option,
    nobody can tell, and the scheme alone is shown.

    >>> shown("postgresql://reader:secret@db:5433/census?sslmode=require")
    'postgresql://db:5433/census'
    >>> shown("postgresql://reader:se?cret@db/census")
    'postgresql://…'
    """
    scheme, _, rest = address.partition(":")
    place, *options = _OPTIONS.split(rest.lstrip("/"), maxsplit=1)
    slashes = "/" * (len(rest) - len(rest.lstrip("/")))
    if options and "@" in options[0]:
        return f"{scheme}://…"
    return f"{scheme}:{slashes}{place.rpartition('@')[2]}"
