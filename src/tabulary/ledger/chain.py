"""Entries, and the chain of digests that ties every entry to all that came before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tabulary.core.head import Head
from tabulary.core.privacy import Neighbours, Privacy


class Unsound(Exception):
    """What is wrong with a ledger, as a sentence that lacks its subject; it never leaves this room."""


class Behind(Unsound):
    """A ledger that does not hold a head that is known from elsewhere."""


@dataclass(frozen=True)
class Entry:
    """One debit, as it stands in the ledger for good. `number` counts from 1 within the account.

    `at` is the time of the debit in UTC, ISO 8601. `digest` is the SHA-256 of `previous`, the digest of the
    entry before (of the account's opening, for the first), and of everything else in the entry.
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
        """Return the head of the account just after this entry: fit to be published with the release."""
        return Head(self.account, self.number, self.digest)


def link(previous: str, content: Mapping[str, object]) -> str:
    """Return the digest of `content` standing after `previous`, in hexadecimal.

    SHA-256 over the previous digest, a line feed and the content as JSON with sorted keys: any change to the
    content, or to anything before it, changes every digest after it.

    >>> link("", {"number": 1}) == link("", {"number": 2})
    False
    """
    # What a damaged file may hold in place of text (bytes, say) is spelled out, so that it fails to compare.
    text = json.dumps(dict(content), sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
