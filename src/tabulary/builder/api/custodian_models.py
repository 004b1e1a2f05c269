"""The schemas of the custodian's requests and answers. Amounts of budget are exact fractions as text."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tabulary.builder.api.models import Method, NeighboursModel
from tabulary.builder.state import Role
from tabulary.builder.state.tokens import LONGEST_LIFE
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidPrivacy


def _plain(text: str) -> str:
    # Characters that no ledger accepts in a name and no database in a text.
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
Next = Annotated[str | None, Field(description="The address of the next page; null on the last page.")]

# At most as long as a ledger accepts, and nothing like 1e999999, which is short to write but slow to compute.
_Exact = Annotated[
    str | None,
    Field(
        pattern=r"^[0-9]{1,100}(/[0-9]{1,100}|\.[0-9]{1,100})?$",
        description="An exact number: 2, 0.25 or 1/8.",
        examples=["1/8"],
    ),
]


class _Given(BaseModel):
    # Unknown fields are refused: a misspelled limit must not mean no limit.
    model_config = ConfigDict(extra="forbid")


class _Page(_Given):
    size: Annotated[int, Field(ge=1, le=1000, description="The most items on a page.")] = 100


class NamedPage(_Page):
    """A page of a list of named items."""

    after: Annotated[Name | None, Field(description="Only items after the one with this name.")] = None


class TokenPage(_Page):
    """A page of the tokens."""

    after: Annotated[TokenId | None, Field(description="Only tokens made after the one with this id.")] = None


class EntryPage(_Page):
    """A page of the entries of one account."""

    account: Annotated[Name, Field(description="The account.", examples=["census"])]
    after: Annotated[Position, Field(description="Only entries after the one of this number.")] = 0


class UsagePage(_Page):
    """A page of the usage."""

    dataset: Annotated[Name | None, Field(description="Only requests to this dataset.")] = None
    after: Annotated[Position, Field(description="Only rows after the one with this number.")] = 0


class LogPart(_Given):
    """The entries of the log after a given one."""

    after: Annotated[Position, Field(description="Only entries after the one of this number.")] = 0


class LogPage(_Page, LogPart):
    """A page of the log."""


class Budget(_Given):
    """The total that an account may spend: ε, or ε and δ, or ρ."""

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
    """A new account. Its budget never changes."""

    name: Annotated[Name, Field(examples=["ada"])]
    budget: Budget
    neighbours: NewNeighbours = NewNeighbours()


class HeadModel(BaseModel):
    """The end of an account's chain. A copy kept elsewhere shows whether the ledger was replaced by an older one."""

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
    """A page of the accounts, in the order of their opening."""

    items: list[AccountModel]
    next: Next


class EntryModel(BaseModel):
    """One debit, as the ledger keeps it for ever."""

    number: int
    cost: Amount
    neighbours: NeighboursModel
    purpose: str
    plan: Annotated[str, Field(description="The digest of the paid plan.")]
    at: str
    previous: Digest
    digest: Digest


class EntryList(BaseModel):
    """A page of an account's entries and the end of the chain. A digest ties each entry to the previous one."""

    ledger: Annotated[str, Field(description="The identity of the ledger.")]
    account: str
    head: HeadModel
    items: list[EntryModel]
    next: Next


class NewToken(_Given):
    """A new token."""

    name: Annotated[Name, Field(description="The owner of the token.", examples=["Ada Lovelace"])]
    role: Role
    account: Annotated[
        Name | None, Field(description="The account that pays for an analyst's questions.", examples=["ada"])
    ] = None
    days: Annotated[
        int | None,
        Field(
            ge=1,
            le=LONGEST_LIFE,
            description="The token is valid for this many days; null: until it is revoked.",
        ),
    ] = None


class TokenModel(BaseModel):
    """Everything about a token except its text."""

    model_config = ConfigDict(from_attributes=True)

    id: TokenId
    name: str
    role: Role
    account: str | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None


class MadeToken(BaseModel):
    """A new token and its text. The text is shown only now."""

    token: TokenModel
    text: Annotated[str, Field(examples=["tab_5f3a09c1d27e_…"])]


class TokenList(BaseModel):
    """A page of the tokens, in the order of their creation."""

    items: list[TokenModel]
    next: Next


class UsageModel(BaseModel):
    """The number of requests of one kind and one outcome on one day."""

    model_config = ConfigDict(from_attributes=True)

    day: Annotated[str, Field(examples=["2026-05-04"])]
    dataset: Annotated[str, Field(description="Empty if the request named no known dataset.")]
    kind: Annotated[str, Field(examples=["tables"])]
    status: Annotated[int, Field(description="The first digit of the HTTP status.", examples=[2])]
    caller: Annotated[str, Field(description="The id of a token, or `public`.", examples=["public"])]
    requests: int


class UsageList(BaseModel):
    """A page of the usage, in the order of first appearance. Requests of the last seconds may still be missing."""

    items: list[UsageModel]
    next: Next


class LogModel(BaseModel):
    """One action on the service, as the log keeps it for ever."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    at: Annotated[str, Field(description="The time, in UTC.", examples=["2026-05-04T09:30:00+00:00"])]
    actor: Annotated[
        str,
        Field(description="The name of a token, `command line`, `service` or `unknown`.", examples=["Carl"]),
    ]
    token: Annotated[str | None, Field(description="The id of the token that the caller sent.")]
    action: Annotated[str, Field(examples=["token made"])]
    object: Annotated[str, Field(description="The object of the action.")]
    address: Annotated[str | None, Field(description="The network address that the token came from.")]
    previous: Digest
    digest: Digest


class LogList(BaseModel):
    """A page of the log, in order of time. A digest ties each entry to the previous one."""

    items: list[LogModel]
    next: Next


class KeyModel(BaseModel):
    """The secret key of the noise, by its fingerprint."""

    fingerprint: Annotated[str | None, Field(description="Null if no dataset needs a key.")]


class HeldDataset(BaseModel):
    """A dataset as the custodian sees it: the plan behind its answers, and the account that pays for them."""

    id: str
    title: str
    method: Method
    version: str
    account: str | None
    plan: Annotated[
        str | None,
        Field(description="The digest of the plan behind all tables; null if each table has its own plan."),
    ]


class HeldDatasetList(BaseModel):
    """A page of the datasets."""

    items: list[HeldDataset]
    next: Next
