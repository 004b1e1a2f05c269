"""Entries, and the chain of digests that connects every entry to all earlier ones."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tabulary.core.head import Head
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy


class Unsound(Exception):
    """A fault of a ledger, as a sentence without its subject; it never leaves this room."""


class Behind(Unsound):
    """A ledger that does not contain a head that is known from elsewhere."""


@dataclass(frozen=True)
class Entry:
    """One debit, as the ledger keeps it for ever. `number` counts from 1 within the account.

    `at` is the time of the debit in UTC, ISO 8601. `digest` is the SHA-256 of `previous` (the digest of the entry
    before; for the first entry, of the account's opening) and of everything else in the entry.
    """

    number: int
    account: str
    cost: Privacy
    neighbours: Neighbours
    purpose: str
    plan_digest: str
    at: str
    previous: str
    digest: str

    @property
    def head(self) -> Head:
        """Return the head of the account just after this entry; it may be published with the release."""
        return Head(self.account, self.number, self.digest)


def link(previous: str, content: Mapping[str, object]) -> str:
    """Return the digest of `content` after `previous`, in hexadecimal.

    SHA-256 over the previous digest, a line feed and the content as JSON with sorted keys: any change to the
    content, or to anything before it, changes every digest after it.

    >>> link("", {"number": 1}) == link("", {"number": 2})
    False
    """
    # A damaged file may contain something else than text (bytes, for example); it is spelled out, so that the
    # comparison fails.
    text = json.dumps(dict(content), sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
