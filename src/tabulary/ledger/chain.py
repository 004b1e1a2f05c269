"""Entries and heads, and the chain of digests that ties every entry to all that came before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tabulary.core.privacy import Neighbours, Privacy
from tabulary.errors import LedgerError


class Unsound(Exception):
    """What is wrong with a ledger, as a sentence that lacks its subject; it never leaves this room."""


@dataclass(frozen=True)
class Head:
    """The end of an account's chain: how many entries, and the digest that vouches for all of them.

    Kept outside the ledger, it exposes an older copy of the file put back in its place: see `Ledger.check`.

    >>> print(Head("census", 2, "ab" * 32))
    2 abababababababababababababababababababababababababababababababab census
    """

    account: str
    entries: int
    digest: str

    def __str__(self) -> str:
        return f"{self.entries} {self.digest} {self.account}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Return the head that `str` wrote.

        >>> Head.parse(str(Head("census", 2, "ab" * 32))).entries
        2
        """
        entries, _, rest = text.rstrip("\n").partition(" ")
        digest, _, account = rest.partition(" ")
        if not (entries.isascii() and entries.isdecimal()) or len(digest) != 64 or not account:
            raise LedgerError(f"{text!r} is not a ledger head. It reads: entries, digest, account name.")
        return cls(account, int(entries), digest)


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
