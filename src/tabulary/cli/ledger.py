"""`tabulary ledger`: open an account, and read the books."""

from typing import Annotated

import typer
from rich.table import Table as Grid

from tabulary.cli.console import output
from tabulary.core.privacy import ZCDP, ApproxDP, Neighbours, Privacy, PureDP
from tabulary.errors import InvalidPrivacy, LedgerMissing
from tabulary.ledger import Ledger

ledger = typer.Typer(help="Accounts of privacy budget: create one, show them.", no_args_is_help=True)

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
    account: Annotated[str, typer.Option(help="The dataset whose budget this is.")],
    epsilon: Annotated[str | None, typer.Option(help="The total ε, such as 4 or 1/2.")] = None,
    delta: Annotated[str | None, typer.Option(help="The total δ, together with ε.")] = None,
    rho: Annotated[str | None, typer.Option(help="The total ρ of a zCDP budget, instead of ε.")] = None,
    neighbours: Annotated[str, typer.Option(help="add-remove or replace.")] = "add-remove",
    contribution: Annotated[int, typer.Option(help="The most records of one person.")] = 1,
) -> None:
    """Open an account with a total budget, which stands for good. A ledger that is not there is created.

    Example: tabulary ledger create ledger.sqlite --account census --epsilon 4
    """
    budget = _budget(epsilon, delta, rho)
    relation = Neighbours(neighbours, contribution)  # type: ignore[arg-type]
    with _opened_or_created(where) as book:
        book.create_account(account, budget, relation)
    output.print(f"Account {account!r} may spend {budget} ({relation}).", markup=False)


@ledger.command()
def show(
    where: Place,
    account: Annotated[str | None, typer.Option(help="Show the entries of this account.")] = None,
) -> None:
    """Print the accounts with what is spent and left, or the entries of one. The books are checked first.

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


def _opened_or_created(where: str) -> Ledger:
    try:
        return Ledger.open(where)
    except LedgerMissing:
        return Ledger.create(where)


def _budget(epsilon: str | None, delta: str | None, rho: str | None) -> Privacy:
    match (epsilon, delta, rho):
        case (str(), None, None):
            return PureDP(epsilon)
        case (str(), str(), None):
            return ApproxDP(epsilon, delta)
        case (None, None, str()):
            return ZCDP(rho)
    raise InvalidPrivacy("an account needs --epsilon, --epsilon and --delta, or --rho alone.")


def _plain(value: object) -> str:
    return str(value).replace("[", r"\[")
