"""The secret key of a table builder: a file for its owner only, made once and never replaced silently."""

import secrets
from pathlib import Path

from tabulary.builder.places import read_secret
from tabulary.errors import NotInitialised, ServiceError
from tabulary.noise.keyed import SMALLEST_KEY
from tabulary.private_files import create_private_file

WHAT_A_NEW_KEY_MEANS = (
    "A new key draws new noise for every table: answers would differ from those already given, and the budget has to "
    "pay for all of them again."
)


def create_key(path: Path) -> None:
    """Write a new key of 256 bits to a new file of mode 0600; refuse an existing path.

    The bits come from the operating system. The file and its folder are on the disk when this returns: if a power
    failure lost a key after its noise was paid for, the custodian would have to pay twice.
    """
    content = f"{secrets.token_hex(SMALLEST_KEY)}\n".encode("ascii")
    create_private_file(path, content, "a key", ServiceError)


def read_key(path: Path) -> bytes:
    """Return the key; refuse a file that is missing, open to others, too short or not hexadecimal."""
    if not path.exists():
        raise NotInitialised(
            f"there is no key file {str(path)!r}, and without its key no answer can be given again. Nothing was "
            "opened, nothing was spent. Put the key back from where it is kept; if this table builder is new, "
            f"initialise it, which makes a key. {WHAT_A_NEW_KEY_MEANS}"
        )
    text = read_secret(path, "the key file")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        raise ServiceError(
            f"the key file {str(path)!r} does not hold a key: hexadecimal digits are expected. Nothing was opened. Put "
            f"the key back from where it is kept. {WHAT_A_NEW_KEY_MEANS}"
        ) from None
    if len(key) < SMALLEST_KEY:
        raise ServiceError(
            f"the key in {str(path)!r} is too short: {2 * SMALLEST_KEY} hexadecimal digits are the least. Nothing was "
            f"opened. Put the key back from where it is kept. {WHAT_A_NEW_KEY_MEANS}"
        )
    return key
