"""What a tool checks before it looks at anything: the promise, to whom, and who pays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Required, TypedDict

from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidPrivacy, LedgerError
from tabulary.ledger import Account, Ledger
from tabulary.noise import ExactSampler, Sampler

UNSPENT = "Nothing was measured, nothing was spent."


class Terms(TypedDict, total=False):
    """What every tool takes by name: the promise, whom it protects, and who pays.

    Attributes:
        privacy: the promise, `PureDP(1)`.
        neighbours: "add-remove", where a person's records are there or not, or "replace".
        ledger: the account that pays; without one nothing is booked, and the caller adds up what was spent.
        purpose: what the ledger says that the budget was spent for; the name of the tool unless given.
        sampler: what draws the noise. Only the exact sampler keeps the promise, and it is the default.
    """

    privacy: Required[PureDP]
    neighbours: Relation | Neighbours
    ledger: Account | None
    purpose: str | None
    sampler: Sampler | None


@dataclass(frozen=True)
class Debit:
    """The price of one use of a tool, agreed before the data are read and paid before noise is drawn.

    Made first, it asks the account if it can pay, so an account without budget costs no computing. `pay` comes
    between the exact statistic, which is still confidential, and the noise. A crash in between loses budget, never
    privacy. Without a ledger nothing is recorded, and the caller adds up what was spent.

    >>> print(Debit.agree("count", {}, privacy=PureDP(1)).guarantee)
    ε = 1 (add-remove): no outcome becomes more than e^ε times likelier through one person.
    """

    privacy: PureDP
    neighbours: Neighbours
    purpose: str
    digest: str
    ledger: Account | None = field(repr=False, compare=False)
    sampler: Sampler = field(repr=False, compare=False)

    @classmethod
    def agree(
        cls,
        tool: str,
        description: Mapping[str, str],
        *,
        privacy: PureDP,
        neighbours: Relation | Neighbours = "add-remove",
        ledger: Account | None = None,
        purpose: str | None = None,
        sampler: Sampler | None = None,
    ) -> "Debit":
        """Return the price, or refuse one that the tool cannot promise or the account cannot pay.

        `description` is what else is public about the measurement. Its digest is the entry's name in the ledger.
        """
        refuse_other_than_pure(privacy)
        near = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
        if near.sensitive:
            raise InvalidPrivacy(f"the tools do not know attributes, so they protect all of them. {UNSPENT}")
        if near.may_drop:
            raise InvalidPrivacy(
                "with 'replace' neighbours the tools assume that the number of values is public, but here "
                f"a record may be left out because of one of its values. {UNSPENT} Keep every record, and "
                "replace a missing value by one inside the bounds that does not depend on the data."
            )
        if isinstance(ledger, Ledger):
            raise LedgerError(f"name the account that pays: ledger.account('census'). {UNSPENT}")
        if ledger is not None:
            ledger.check(privacy, near)
        told = {"tool": tool, "epsilon": str(privacy.epsilon), "neighbours": str(near), **description}
        canonical = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        return cls(privacy, near, purpose or tool, digest, ledger, sampler or ExactSampler())

    def pay(self) -> Sampler:
        """Debit the account, and return what draws the noise: nothing is drawn before it is paid for."""
        if self.ledger is not None:
            self.ledger.debit(self.privacy, self.neighbours, purpose=self.purpose, plan_digest=self.digest)
        return self.sampler

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        public = " The number of records is public." if self.neighbours.total_is_public else ""
        return (
            f"{self.privacy} ({self.neighbours}): no outcome becomes more than e^ε times likelier "
            f"through one person.{public}"
        )


def refuse_other_than_pure(privacy: object) -> None:
    """Refuse a promise that no tool makes, and a bare number.

    >>> refuse_other_than_pure(PureDP(1))
    """
    if not isinstance(privacy, PureDP):
        raise InvalidPrivacy(
            f"the tools promise pure differential privacy, such as PureDP(1), not {privacy!r}. {UNSPENT}"
        )
