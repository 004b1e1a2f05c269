"""The content of the custodian's pages: budgets, debits, tokens, requests, the log. Never a count of people."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import accumulate
from urllib.parse import urlencode

from tabulary.builder.service import ServedDataset
from tabulary.builder.state import Token
from tabulary.builder.state.log import LogEntry
from tabulary.builder.state.usage import DayOfUse
from tabulary.ledger import Account, Amount, Balance, Entry
from tabulary.ledger.amounts import cost_in_unit_of

WIDTH, HEIGHT = 600, 100
"""The size of the picture of the spending, in its own units."""

LEDGER = "/custodian/ledger"
MOST_POINTS = 400


@dataclass(frozen=True)
class BudgetShare:
    """The spending of one parameter of a budget: `share` is between 0 and 1, the amounts are exact."""

    budget: str
    spent: str
    left: str
    share: float

    @property
    def percent(self) -> str:
        """The share for a reader."""
        return percent(self.share)


def percent(share: float) -> str:
    """Return a share for a reader: never 0 if something was spent, and never 100 if something is left.

    >>> [percent(share) for share in (0, 1e-9, 0.25, 1 - 1e-9, 1)]
    ['0 %', 'less than 1 %', '25 %', 'more than 99 %', '100 %']
    """
    if 0 < share < 0.01:
        return "less than 1 %"
    return "more than 99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def parts(balance: Balance) -> tuple[BudgetShare, ...]:
    """Return the spending of each parameter that an account counts.

    >>> spending = Balance(Amount(rho=Fraction(1, 2)), Amount(rho=Fraction(1, 6)))
    >>> [(part.spent, part.left, part.percent) for part in parts(spending)]
    [('ρ = 1/6', 'ρ = 1/3', '33 %')]
    """
    budget, spent, left = (_parameters(each) for each in (balance.budget, balance.spent, balance.remaining))
    return tuple(
        BudgetShare(
            budget=_show(name, budget[name]),
            spent=_show(name, spent[name]),
            left=_show(name, left[name]),
            share=float(spent[name] / budget[name]),
        )
        for name in budget
    )


@dataclass(frozen=True)
class AccountLine:
    """An account: its owner, what it may spend, has spent and has left, and the end of its chain."""

    name: str
    pays_for: str
    parts: tuple[BudgetShare, ...]
    neighbours: str
    entries: int
    head: str
    url: str

    @classmethod
    def of(cls, account: Account, datasets: Iterable[ServedDataset]) -> "AccountLine":
        """Return the line of an account; an account that pays for no dataset belongs to an analyst."""
        head = account.head()
        titles = [dataset.title for dataset in datasets if dataset.account == account.name]
        return cls(
            account.name,
            " and ".join(titles),
            parts(account.balance()),
            str(account.neighbours),
            head.entries,
            str(head),
            ledger_url(account.name),
        )


@dataclass(frozen=True)
class EntryLine:
    """A debit: what it paid for, what it cost, and what the account had spent and had left after it."""

    number: int
    moment: datetime
    purpose: str
    cost: str
    spent: str
    left: str
    share: float
    plan: str
    digest: str


@dataclass(frozen=True)
class Timeline:
    """One page of the debits of an account, the newest first, and the picture of all debits."""

    account: str
    lines: tuple[EntryLine, ...]
    entries: int
    path: str
    begin: datetime | None
    end: datetime | None
    share: str
    newer_url: str
    older_url: str

    @classmethod
    def of(cls, account: Account, *, before: int | None, size: int) -> "Timeline":
        """Return the debits with a number below `before`, at most `size` of them, and the running totals.

        The whole chain is read and checked each time.
        """
        entries = account.entries()
        budget = Amount.of(account.budget)
        totals = list(accumulate(cost_in_unit_of(account.budget, entry.cost) for entry in entries))
        shares = [_share(total, budget) for total in totals]
        last = len(entries) if before is None else min(before - 1, len(entries))
        first = max(0, last - size)
        lines = [_line(entries[i], Balance(budget, totals[i]), shares[i]) for i in range(first, last)]
        moments = [datetime.fromisoformat(entry.at) for entry in entries]
        return cls(
            account.name,
            tuple(reversed(lines)),
            len(entries),
            _steps(moments, shares),
            moments[0] if moments else None,
            moments[-1] if moments else None,
            percent(shares[-1] if shares else 0),
            _page_url(account.name, last + size + 1, len(entries)) if last < len(entries) else "",
            ledger_url(account.name, before=first + 1) if first else "",
        )


def ledger_url(account: str, **more: int) -> str:
    """Return where the debits of an account are shown.

    >>> ledger_url("Bob & Sons", before=51)
    '/custodian/ledger?account=Bob+%26+Sons&before=51'
    """
    return f"{LEDGER}?{urlencode({'account': account, **more})}"


@dataclass(frozen=True)
class TokenLine:
    """A token, and whether it is valid: `condition` is good, expired or revoked."""

    token: Token
    condition: str
    url: str

    @classmethod
    def of(cls, token: Token, now: datetime) -> "TokenLine":
        """Return the line of a token at a moment."""
        good = token.good_at(now)
        condition = "good" if good else "expired" if token.revoked is None else "revoked"
        return cls(token, condition, f"/custodian/tokens/{token.id}")


@dataclass(frozen=True)
class LogLine:
    """An entry of the log; `url` leads to the token of the actor, and is empty if there was no token."""

    entry: LogEntry
    moment: datetime
    url: str

    @classmethod
    def of(cls, entry: LogEntry) -> "LogLine":
        """Return the line of an entry."""
        url = "" if entry.token is None else f"/custodian/tokens/{entry.token}"
        return cls(entry, datetime.fromisoformat(entry.at), url)


@dataclass(frozen=True)
class UseLine:
    """The requests for one dataset on one day; `share` is relative to the busiest day and dataset."""

    use: DayOfUse
    dataset: str
    share: float


def use_lines(uses: Sequence[DayOfUse], datasets: Iterable[ServedDataset]) -> tuple[UseLine, ...]:
    """Return the requests by day and dataset, under the titles of the datasets."""
    most = max((use.requests for use in uses), default=1)
    titles = {"": "None in particular", **{dataset.name: dataset.title for dataset in datasets}}
    return tuple(
        # A dataset that is no longer served has a name but no title.
        UseLine(use, titles.get(use.dataset, use.dataset), use.requests / most)
        for use in uses
    )


def _parameters(amount: Amount) -> dict[str, Fraction]:
    counted: dict[str, Fraction | None] = vars(amount)
    return {name: value for name, value in counted.items() if value is not None}


def _show(name: str, value: Fraction) -> str:
    return str(Amount(**{name: value}))


def _share(spent: Amount, budget: Amount) -> float:
    """Return the largest share of all parameters: it decides when the account is empty."""
    counted = _parameters(spent)
    return max(float(counted[name] / value) for name, value in _parameters(budget).items())


def _line(entry: Entry, balance: Balance, share: float) -> EntryLine:
    return EntryLine(
        entry.number,
        datetime.fromisoformat(entry.at),
        entry.purpose,
        str(entry.cost),
        str(balance.spent),
        str(balance.remaining),
        share,
        entry.plan_digest,
        entry.digest,
    )


def _page_url(account: str, before: int, entries: int) -> str:
    return ledger_url(account) if before > entries else ledger_url(account, before=before)


def _steps(moments: Sequence[datetime], shares: Sequence[float]) -> str:
    """Return the spending as the steps of an SVG path, from zero at the first debit to the total at the last."""
    if not moments:
        return ""
    begin, length = moments[0], (moments[-1] - moments[0]).total_seconds()
    drawn = [f"M0 {HEIGHT}"]
    # Only as many steps as a reader can distinguish, including the last one.
    every = -(-len(moments) // MOST_POINTS)
    for i in range((len(moments) - 1) % every, len(moments), every):
        x = WIDTH * (moments[i] - begin).total_seconds() / length if length else 0
        drawn.append(f"H{x:.1f}V{HEIGHT * (1 - shares[i]):.1f}")
    return "".join([*drawn, f"H{WIDTH}"])
