"""The shapes of what the custodian sends and reads. Amounts of budget are exact fractions as text."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tabulary.builder.api.models import NeighboursModel
from tabulary.builder.state import Role
from tabulary.builder.state.tokens import LONGEST_LIFE
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidPrivacy


def _plain(text: str) -> str:
    # What no ledger takes for a name, and no database for a text.
    if not text.isprintable() or text != text.strip():
        raise ValueError("a name is printable and neither begins nor ends with a space")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
TokenId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$", examples=["5f3a09c1d27e"])]
Position = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[
    dict[str, str],
    Field(description="ε, or ε and δ, or ρ, exactly.", examples=[{"rho": "1/8"}]),
]
Digest = Annotated[str, Field(description="SHA-256, in hexadecimal.")]
Next = Annotated[str | None, Field(description="Where the next page is; null on the last one.")]

# As long as a ledger takes, and nothing such as 1e999999 that is short to write and long to count.
_Exact = Annotated[
    str | None,
    Field(
        pattern=r"^[0-9]{1,100}(/[0-9]{1,100}|\.[0-9]{1,100})?$",
        description="An exact number: 2, 0.25 or 1/8.",
        examples=["1/8"],
    ),
]


class _Given(BaseModel):
    # What is not known is refused: a limit with a slip of the pen must not be no limit.
    model_config = ConfigDict(extra="forbid")


class _Page(_Given):
    size: Annotated[int, Field(ge=1, le=1000, description="The most items on a page.")] = 100


class NamedPage(_Page):
    """A page of what has names."""

    after: Annotated[Name | None, Field(description="Only what stands after the one of this name.")] = None


class TokenPage(_Page):
    """A page of the tokens."""

    after: Annotated[TokenId | None, Field(description="Only those made after the one with this id.")] = None


class EntryPage(_Page):
    """A page of the entries of one account."""

    account: Annotated[Name, Field(description="Whose entries.", examples=["census"])]
    after: Annotated[Position, Field(description="Only entries after the one of this number.")] = 0


class UsagePage(_Page):
    """A page of the usage."""

    dataset: Annotated[Name | None, Field(description="Only requests to this dataset.")] = None
    after: Annotated[Position, Field(description="Only rows after the one of this number.")] = 0


class LogPart(_Given):
    """What came after an entry of the log."""

    after: Annotated[Position, Field(description="Only entries after the one of this number.")] = 0


class LogPage(_Page, LogPart):
    """A page of the log."""


class Budget(_Given):
    """What an account may spend in all: ε, or ε and δ, or ρ."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rho": "1/8"}]})

    epsilon: _Exact = None
    delta: _Exact = None
    rho: _Exact = None

    def privacy(self) -> Privacy:
        """Return the budget; refuse an invalid one.

        >>> print(Budget(rho="1/8").privacy())
        ρ = 0.125
        """
        match (self.epsilon, self.delta, self.rho):
            case (str(epsilon), None, None):
                return PureDP(epsilon)
            case (str(epsilon), str(delta), None):
                return ApproxDP(epsilon, delta)
            case (None, None, str(rho)):
                return ZCDP(rho)
        raise InvalidPrivacy("a budget is epsilon, epsilon and delta, or rho alone.")


class NewNeighbours(_Given):
    """What one person can change."""

    relation: Literal["add-remove", "replace"] = "add-remove"
    records: Annotated[int, Field(ge=1, lt=2**31, description="The most records of one person.")] = 1


class NewAccount(_Given):
    """An account to be opened. Its budget never changes."""

    name: Annotated[Name, Field(examples=["ada"])]
    budget: Budget
    neighbours: NewNeighbours = NewNeighbours()


class HeadModel(BaseModel):
    """The end of an account's chain. Kept elsewhere, it exposes an older copy put in the ledger's place."""

    entries: int
    digest: Digest


class AccountModel(BaseModel):
    """An account: what it may spend, has spent and has left."""

    name: str
    budget: Amount
    spent: Amount
    remaining: Amount
    neighbours: NeighboursModel
    head: HeadModel


class AccountList(BaseModel):
    """A page of the accounts, in the order in which they were opened."""

    items: list[AccountModel]
    next: Next


class EntryModel(BaseModel):
    """One debit, as the ledger keeps it for ever."""

    number: int
    cost: Amount
    neighbours: NeighboursModel
    purpose: str
    plan: Annotated[str, Field(description="The digest of the plan that was paid for.")]
    at: str
    previous: Digest
    digest: Digest


class EntryList(BaseModel):
    """A page of an account's entries, each tied to the one before by its digest, and the end of the chain."""

    ledger: Annotated[str, Field(description="The identity of the ledger.")]
    account: str
    head: HeadModel
    items: list[EntryModel]
    next: Next


class NewToken(_Given):
    """A token to be made."""

    name: Annotated[Name, Field(description="Whose it is.", examples=["Ada Lovelace"])]
    role: Role
    account: Annotated[
        Name | None, Field(description="The account that pays for an analyst's questions.", examples=["ada"])
    ] = None
    days: Annotated[
        int | None,
        Field(ge=1, le=LONGEST_LIFE, description="For how many days it is good; null until it is revoked."),
    ] = None


class TokenModel(BaseModel):
    """What is known of a token: all but its text."""

    model_config = ConfigDict(from_attributes=True)

    id: TokenId
    name: str
    role: Role
    account: str | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None


class MadeToken(BaseModel):
    """A new token and its text, which is shown now and never again."""

    token: TokenModel
    text: Annotated[str, Field(examples=["tab_5f3a09c1d27e_…"])]


class TokenList(BaseModel):
    """A page of the tokens, in the order in which they were made."""

    items: list[TokenModel]
    next: Next


class UsageModel(BaseModel):
    """How many requests of one kind were answered in one way on one day."""

    model_config = ConfigDict(from_attributes=True)

    day: Annotated[str, Field(examples=["2026-05-04"])]
    dataset: Annotated[str, Field(description="Empty where a request was for no dataset that is known.")]
    kind: Annotated[str, Field(examples=["tables"])]
    status: Annotated[int, Field(description="The first digit of the HTTP status.", examples=[2])]
    caller: Annotated[str, Field(description="The id of a token, or `public`.", examples=["public"])]
    requests: int


class UsageList(BaseModel):
    """A page of the usage, in the order of first appearance. What came in the last seconds may not be in it yet."""

    items: list[UsageModel]
    next: Next


class LogModel(BaseModel):
    """One thing that was done to the service, as the log keeps it for ever."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    at: Annotated[str, Field(description="When, in UTC.", examples=["2026-05-04T09:30:00+00:00"])]
    actor: Annotated[
        str,
        Field(description="The name of a token, `command line`, `service` or `unknown`.", examples=["Carl"]),
    ]
    token: Annotated[str | None, Field(description="The id of the token that was shown.")]
    action: Annotated[str, Field(examples=["token made"])]
    object: Annotated[str, Field(description="What it was done to.")]
    address: Annotated[str | None, Field(description="Where the token was shown from.")]
    previous: Digest
    digest: Digest


class LogList(BaseModel):
    """A page of the log, in the order in which things were done; each entry is tied to the one before by its digest."""

    items: list[LogModel]
    next: Next


class KeyModel(BaseModel):
    """Which secret key the noise is drawn with."""

    fingerprint: Annotated[str | None, Field(description="Null where no dataset needs a key.")]


class HeldDataset(BaseModel):
    """A dataset as the custodian sees it: what its answers rest on and who pays for them."""

    id: str
    title: str
    method: Literal["fixed", "interactive", "cell-key"]
    version: str
    account: str | None
    plan: Annotated[
        str | None,
        Field(description="The digest of the plan behind all tables; null where each has a plan of its own."),
    ]


class HeldDatasetList(BaseModel):
    """A page of the datasets."""

    items: list[HeldDataset]
    next: Next
