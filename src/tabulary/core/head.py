"""The end of an account's chain in a ledger, in the form that is kept outside the ledger."""

import re
from dataclasses import dataclass
from typing import Any

from tabulary.errors import LedgerError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"[0-9a-f]{32}")
_LINE = re.compile(r"(0|[1-9][0-9]{0,17}) ([0-9a-f]{64}) (.+)")
_MOST_ENTRIES = 10**18
_LONGEST_NAME = 200
_NO_RECEIPT = "the receipt of a ledger has its identity, an account, the number of its entries and a digest."


@dataclass(frozen=True)
class Head:
    """The end of an account's chain: the number of entries, and a digest of all of them.

    Kept outside the ledger, it reveals an older copy of the ledger: see `Ledger.check`.

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
        found = _LINE.fullmatch(text.removesuffix("\n"))
        if found is None or not _is_name(found[3]):
            raise LedgerError(f"{text!r} is not a ledger head. It reads: entries, digest, account name.")
        return cls(found[3], int(found[1]), found[2])


@dataclass(frozen=True)
class Receipt:
    """Who paid for a release: the identity of the ledger, and the head of the account just after the debit.

    Everything in it is public. Every later state of that ledger contains the head, and no earlier one does.
    """

    ledger: str
    head: Head

    def __post_init__(self) -> None:
        if not (
            _IDENTITY.fullmatch(self.ledger)
            and _DIGEST.fullmatch(self.head.digest)
            and 1 <= self.head.entries < _MOST_ENTRIES
            and _is_name(self.head.account)
        ):
            raise LedgerError(_NO_RECEIPT)

    def describe(self) -> dict[str, Any]:
        """Return the receipt as a field of a manifest; the inverse of `from_description`."""
        return {
            "identity": self.ledger,
            "account": self.head.account,
            "entries": self.head.entries,
            "digest": self.head.digest,
        }

    @classmethod
    def from_description(cls, described: object) -> "Receipt":
        """Return the receipt that `describe` wrote; refuse what it could not have written.

        >>> receipt = Receipt("cd" * 16, Head("census", 2, "ab" * 32))
        >>> Receipt.from_description(receipt.describe()) == receipt
        True
        """
        match described:
            case {
                "identity": str(ledger),
                "account": str(account),
                "entries": int(entries),
                "digest": str(digest),
                **rest,
            } if not rest and not isinstance(entries, bool):
                return cls(ledger, Head(account, entries, digest))
        raise LedgerError(_NO_RECEIPT)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME and text == text.strip() and text.isprintable()
