"""Amounts of memory as people write them."""

import re

from tabulary.errors import PublicError

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def byte_size(size: int | str, *, name: str, error: type[PublicError]) -> int:
    """Return a number of bytes, given as a number or as text, or raise `error` with `name`.

    >>> byte_size("64 MiB", name="memory", error=PublicError), byte_size(1000, name="memory", error=PublicError)
    (67108864, 1000)
    """
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(B|KiB|MiB|GiB|TiB)\s*", size)
        number = int(found[1]) * _UNITS[found[2]] if found else 0
    else:
        number = size if isinstance(size, int) and not isinstance(size, bool) else 0
    if number < 1:
        raise error(f"{name} is a number of bytes, or text such as '64 MiB', not {size!r}.")
    return number
