"""Who pays for what a command measures: an account of a ledger, named by options or by the plan file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import errors
from tabulary.errors import InvalidArgument
from tabulary.ledger import Account, Ledger
from tabulary.workflows import PlanFile

LedgerOption = Annotated[
    Path | None, typer.Option(help="The ledger that pays; overrides the plan file's [ledger].")
]
AccountOption = Annotated[str | None, typer.Option(help="The account in that ledger.")]
WitnessOption = Annotated[
    Path | None,
    typer.Option(
        help="A file to which the head of every debit is written; it refuses an older copy of the ledger."
    ),
]


@contextmanager
def paying_account(
    planned: PlanFile, ledger: Path | None, account: str | None, witness: Path | None
) -> Iterator[Account | None]:
    """Yield the account that pays, its ledger open; None, after a warning, where nothing keeps books."""
    if (ledger is None) != (account is None):
        raise InvalidArgument(
            "--ledger and --account go together: name the ledger file and the account that pays."
        )
    if ledger is None:
        ledger, account, witness = planned.ledger, planned.account, witness or planned.witness
    if ledger is None or account is None:
        if witness is not None:
            raise InvalidArgument(
                "--witness goes with a ledger: name it with --ledger and --account, or in [ledger] of the plan file. "
                "Nothing was measured, nothing was spent."
            )
        errors.print("No ledger is named: nothing adds up what is spent on these records.", style="yellow")
        yield None
        return
    begun = witness is not None and not witness.exists()
    with Ledger.open(ledger, witness=witness) as opened:
        if begun:
            errors.print(
                f"There was no witness {witness}: it is begun with the ledger as it stands.",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        yield opened.account(account)
