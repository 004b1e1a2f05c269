"""`tabulary ledger`: open an account, read the ledger, and check it against releases and witness files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from tabulary.cli.console import output
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidPrivacy, LedgerBehind, LedgerError, LedgerMissing
from tabulary.ledger import Head, Ledger
from tabulary.ledger.witness import WitnessFile
from tabulary.release import Release

ledger = typer.Typer(
    help="Accounts of privacy budget: create one, show them, check them.", no_args_is_help=True
)

Place = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger: a file, or postgresql://user@host/database with the password in PGPASSWORD.",
    ),
]


@ledger.command()
def create(
    where: Place,
    account: Annotated[str, typer.Option(help="The dataset that the budget is for.")],
    epsilon: Annotated[str | None, typer.Option(help="The total ε, such as 4 or 1/2.")] = None,
    delta: Annotated[str | None, typer.Option(help="The total δ, together with ε.")] = None,
    rho: Annotated[str | None, typer.Option(help="The total ρ of a zCDP budget, instead of ε.")] = None,
    neighbours: Annotated[str, typer.Option(help="add-remove or replace.")] = "add-remove",
    contribution: Annotated[int, typer.Option(help="The largest number of records of one person.")] = 1,
    witness: Annotated[
        Path | None, typer.Option(help="A file outside the ledger that records the heads of its accounts.")
    ] = None,
) -> None:
    """Open an account with a total budget, which never changes. Create the ledger if it does not exist.

    Examples: tabulary ledger create ledger.sqlite --account census --epsilon 4,
    or: tabulary ledger create ledger.sqlite --account survey --rho 1/8 --witness heads.txt
    """
    budget = _budget(epsilon, delta, rho)
    relation = Neighbours(neighbours, contribution)  # type: ignore[arg-type]
    with _opened_or_created(where, witness) as book:
        book.create_account(account, budget, relation)
    output.print(f"Account {account!r} may spend {budget} ({relation}).", markup=False)


@ledger.command()
def show(
    where: Place,
    account: Annotated[str | None, typer.Option(help="Show the entries of this account.")] = None,
) -> None:
    """Print each account with its spent and remaining budget, or the entries of one. Checks the ledger first.

    Example: tabulary ledger show ledger.sqlite --account census
    """
    with Ledger.open(where, read_only=True) as book:
        if account is None:
            grid = Grid("account", "budget", "spent", "left", "neighbours")
            for each in book.accounts():
                balance = each.balance()
                row = (each.name, each.budget, balance.spent, balance.remaining, each.neighbours)
                grid.add_row(*map(_plain, row))
        else:
            grid = Grid("entry", "when (UTC)", "cost", "purpose", "plan")
            for entry in book.account(account).entries():
                grid.add_row(
                    *map(_plain, (entry.number, entry.at, entry.cost, entry.purpose, entry.plan_digest[:12]))
                )
    output.print(grid)


@ledger.command()
def check(
    where: Place,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A release folder or a witness file. The ledger must contain its heads."),
    ] = None,
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RELEASE", help="More release folders or witness files.", show_default=False),
    ] = None,
) -> None:
    """Check the whole ledger: every page, chain and sum. Refuse a ledger that is older than the given releases.

    Examples: tabulary ledger check ledger.sqlite,
    or: tabulary ledger check ledger.sqlite --against census-2026 census-2027 heads.txt
    """
    places = [*(against or []), *(more or [])]
    # Load releases first: then a debit in between does no harm, and a damaged release is found before a long check.
    releases = {place: Release.load(place) for place in places if place.is_dir()}
    with Ledger.open(where, read_only=True) as book:
        heads = book.heads()
        entries = sum(head.entries for head in heads)
        output.print(
            f"{book.where}: {len(heads)} accounts, {entries:,} entries; every page, chain and sum is "
            "correct.",
            markup=False,
            soft_wrap=True,
        )
        for place in places:
            known = (
                [_head_of(releases[place], place, book)]
                if place in releases
                else WitnessFile(place, book.identity).heads()
            )
            _refuse_older(book, place, known)
            for head in known:
                _say(place, f"the ledger contains account {head.account!r} with {head.entries:,} entries.")
        for head in heads:
            output.print(f"Head: {head}", markup=False, soft_wrap=True)


def _head_of(release: Release, place: Path, book: Ledger) -> Head:
    receipt = release.receipt
    if receipt is None:
        raise LedgerError(
            f"{place}: no ledger paid for this release, so there is nothing to check. Leave it out."
        )
    if receipt.ledger != book.identity:
        raise LedgerError(
            f"{place}: another ledger, {receipt.ledger}, paid for this release. Check the release against "
            "that ledger."
        )
    return receipt.head


def _refuse_older(book: Ledger, place: Path, heads: Iterable[Head]) -> None:
    for head in book.lacks(heads):
        raise LedgerBehind(
            f"the ledger {book.where!r} does not contain entry {head.entries:,} of account "
            f"{head.account!r}, which {place} records. This ledger is an older copy. Do not pay from it; "
            "restore the newest copy."
        )


def _say(place: Path, fact: str) -> None:
    output.print(f"{place}: {fact}", markup=False, soft_wrap=True)


def _opened_or_created(where: str, witness: Path | None) -> Ledger:
    try:
        return Ledger.open(where, witness=witness)
    except LedgerMissing:
        return Ledger.create(where, witness=witness)


def _budget(epsilon: str | None, delta: str | None, rho: str | None) -> Privacy:
    match (epsilon, delta, rho):
        case (str(), None, None):
            return PureDP(epsilon)
        case (str(), str(), None):
            return ApproxDP(epsilon, delta)
        case (None, None, str()):
            return ZCDP(rho)
    raise InvalidPrivacy("an account needs --epsilon alone, --epsilon with --delta, or --rho alone.")


def _plain(value: object) -> str:
    return str(value).replace("[", r"\[")
