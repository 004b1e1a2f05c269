"""The value that a level's text means in a column of some type: the only value with that text.

Databases show a number, a date or a timestamp in different ways, but compare them in one way. So this module states
for values what `reading.sql` states for texts.
"""

import math
import re
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from tabulary.confidential.coding import text_of
from tabulary.confidential.reading.sql import is_integer

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", re.ASCII)

# Up to here a whole number of 32 bits is known by all of its digits, as one of 64 bits is.
_LAST_EXACT = 2**53


def integer_of(text: str) -> int | None:
    """Return the whole number that has this text.

    >>> [integer_of(text) for text in ("-7", "07", "7.0", "-0")]
    [-7, None, None, None]
    """
    return int(text) if is_integer(text) else None


def double_of(text: str) -> float | None:
    """Return the finite 64-bit number that has this text.

    >>> [double_of(text) for text in ("7", "7.0", "0.1", "1e-07", "1e-7", "1e+16", "nan")]
    [7.0, None, 0.1, 1e-07, None, 1e+16, None]
    """
    value = _parsed(text)
    return value if value is not None and text_of(value) == text else None


def single_of(text: str) -> float | None:
    """Return the finite 32-bit number that has this text, in 64 bits.

    >>> [single_of(text) for text in ("0.5", "0.7", "0.699999988079071", "16777217")]
    [0.5, 0.699999988079071, None, None]
    """
    value = _single(_parsed(text))
    if value is None:
        return None
    exact = float(value)
    shown = exact if exact.is_integer() and abs(exact) <= _LAST_EXACT else _shown(value)
    return exact if text_of(shown) == text else None


def least_single(edge: float) -> float:
    """Return the smallest 32-bit number whose text is `edge` or more, in 64 bits; infinity if there is none.

    The text of a 32-bit number decides its bin: 0.7 is stored as a little less than 0.7.

    >>> [least_single(edge) for edge in (0.5, 0.7, 1e39)]
    [0.5, 0.699999988079071, inf]
    """
    with np.errstate(over="ignore"):
        value = np.float32(edge)
        # Far enough down, for the number that is shown as the edge is at most one away from the one next to it.
        for _ in range(2):
            value = np.nextafter(value, np.float32(-math.inf))
        while _shown(value) < edge:
            value = np.nextafter(value, np.float32(math.inf))
    return float(value)


def decimal_of(text: str, precision: int | None, scale: int | None) -> Decimal | None:
    """Return the decimal that has this text, if a type with that many digits, `scale` of them decimals, can store it.

    >>> [decimal_of(text, 4, 2) for text in ("1.25", "1.250", "1.125", "100", "-0")]
    [Decimal('1.25'), None, None, None, None]
    """
    if not _DECIMAL.fullmatch(text) or text == "-0":
        return None
    value = Decimal(text)
    if precision is None or scale is None:
        return value
    decimals = len(text.partition(".")[2])
    return value if decimals <= scale and abs(value) < Decimal(10) ** (precision - scale) else None


def date_of(text: str) -> date | None:
    """Return the day, in the years 1 to 9999, that has this text.

    >>> date_of("2024-02-29"), date_of("20240229"), date_of("2023-02-29")
    (datetime.date(2024, 2, 29), None, None)
    """
    try:
        value = date.fromisoformat(text)
    except ValueError:
        return None
    return value if value.isoformat() == text else None


def moment_of(text: str) -> datetime | None:
    """Return the timestamp without a zone, in the years 1 to 9999, that has this text.

    >>> moment_of("2024-02-29 12:00:00.5"), moment_of("2024-02-29 12:00:00.50"), moment_of("2024-02-29")
    (datetime.datetime(2024, 2, 29, 12, 0, 0, 500000), None, None)
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    shown = value.replace(tzinfo=None).isoformat(" ")
    return value if text == (shown.rstrip("0") if value.microsecond else shown) else None


def _parsed(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _single(value: float | None) -> np.float32 | None:
    with np.errstate(over="ignore"):
        single = np.float32(math.inf if value is None else value)
    return single if np.isfinite(single) else None


def _shown(value: np.float32) -> float:
    """Return the number of 64 bits whose shortest text is that of a number of 32 bits."""
    return float(str(value))
