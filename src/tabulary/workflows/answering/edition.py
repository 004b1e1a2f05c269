"""How the noise of a table builder is tied to the ledger entry that paid for it.

The key of the noise is derived from the custodian's secret and from the text of that entry: the dataset, its version,
the records, the key, and the digest of the plan. So nobody can draw noise that was not paid for. Changed records,
another version or another plan never get old noise: the difference of two answers with the same noise would be exact.
"""

import re
from dataclasses import dataclass, replace

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy
from tabulary.errors import ServiceError
from tabulary.ledger import Entry
from tabulary.noise.keyed import derived_key
from tabulary.release.promise import Promise, promise_of_budget

SCHEME = 1
"""The version of the sampler. A change to the sampler that changes a draw must raise it: the old and the new noise
would be two answers to one question, and each must be paid for."""


@dataclass(frozen=True)
class Edition:
    """One version of a dataset under one secret key. Each edition has its own noise.

    `records` is a keyed fingerprint of the encoded records: it changes with every record, and reveals nothing without
    the key. `key` is the fingerprint of the key.

    >>> edition = Edition("census", "2026", records="ab" * 16, key="cd" * 8)
    >>> print(edition.purpose)
    table builder: census 2026, records abababababababababababababababab, key cdcdcdcdcdcdcdcd, noise 1
    """

    dataset: str
    version: str
    records: str
    key: str

    def __post_init__(self) -> None:
        for name in (self.dataset, self.version):
            # One word each, so that two different editions never have the same purpose.
            if not re.fullmatch(r"[\w.-]+", name):
                raise ServiceError(
                    f"the name and the version of a dataset are one word each, of letters, digits, '.', '-' and '_', "
                    f"and {name!r} is not. Nothing was measured, nothing was spent."
                )

    @property
    def purpose(self) -> str:
        """The text of the ledger entry that pays for noise of this edition."""
        return f"{self._title}, records {self.records}, key {self.key}, noise {SCHEME}"

    @property
    def _title(self) -> str:
        return f"table builder: {self.dataset} {self.version}"

    def noise_key(self, secret: bytes, plan_digest: str) -> bytes:
        """Return the key of the noise that an entry with this purpose and plan digest pays for."""
        return derived_key(secret, "noise", self.purpose, plan_digest)

    def refuse_changed_records(self, entries: tuple[Entry, ...]) -> None:
        """Refuse records or a key that differ from an earlier entry for the same version.

        Changed records need a new version, and the custodian pays for it knowingly. A changed key needs one too: under
        another key the records cannot be recognised, and every answer would be a second answer.
        """
        for entry in self._own(entries):
            if f", key {self.key}, " not in entry.purpose:
                raise ServiceError(
                    f"version {self.version!r} of {self.dataset!r} was opened with another key than the one with the "
                    f"fingerprint {self.key}, and another key is another noise. Nothing was measured, nothing was "
                    "spent. Put the old key back, or give the dataset a new version, which the budget has to pay for."
                )
            if f", records {self.records}, " not in entry.purpose:
                raise ServiceError(
                    f"the records of {self.dataset!r} are not those that version {self.version!r} was opened with, and "
                    "new records need new noise. Nothing was measured, nothing was spent. Give them a new version, "
                    "which the budget has to pay for, or put the old records back."
                )

    def refuse_another_plan(self, entries: tuple[Entry, ...], plan_digest: str) -> None:
        """Refuse a plan that differs from an earlier entry for the same version.

        Its noise would give a second answer to every question that the earlier plan answered.
        """
        if any(entry.plan_digest != plan_digest for entry in self._own(entries)):
            raise ServiceError(
                f"version {self.version!r} of {self.dataset!r} was opened with another plan: other tables, another "
                "privacy, or a planner that has changed since. Nothing was measured, nothing was spent. Restore what "
                "was declared and the folder of what is kept, or give the dataset a new version, which the budget has "
                "to pay for."
            )

    def refuse_another_price(self, entries: tuple[Entry, ...], cost: Privacy, neighbours: Neighbours) -> None:
        """Refuse a price or neighbours that differ from an earlier entry for the same version.

        At another price an old question would get a second answer.
        """
        if any((entry.cost, entry.neighbours) != (cost, neighbours.raw) for entry in self._own(entries)):
            raise ServiceError(
                f"questions to version {self.version!r} of {self.dataset!r} were paid for at another price than "
                f"{cost}, or for other neighbours than '{neighbours}'. Nothing was measured, nothing was spent. "
                "Restore what was declared, or give the dataset a new version, for which every question is new."
            )

    def _own(self, entries: tuple[Entry, ...]) -> list[Entry]:
        return [entry for entry in entries if entry.purpose.startswith(f"{self._title}, ")]


def keyed_promise(privacy: Privacy, neighbours: Neighbours) -> Promise:
    """Return what all answers together promise if their noise is drawn from a secret key.

    >>> from tabulary.core.privacy import ZCDP
    >>> print(keyed_promise(ZCDP("1/8"), Neighbours()).conditions[-1])
    The custodian's key stays secret: the noise is drawn from it, and whoever has it can take it off.
    """
    promised = promise_of_budget(privacy, neighbours)
    secret = (
        "The custodian's key stays secret: the noise is drawn from it, and whoever has it can take it off."
    )
    return replace(promised, conditions=(*promised.conditions, secret))


def key_fingerprint(secret: bytes) -> str:
    """Return sixteen digits that name a secret key and do not reveal it.

    >>> key_fingerprint(bytes(32))
    '739af89d93b10b76'
    """
    return derived_key(secret, "fingerprint").hex()[:16]


def records_key(secret: bytes) -> bytes:
    """Return the key for the fingerprint of the records."""
    return derived_key(secret, "records")
