"""The account that pays for what a command measures, named by options or by the plan file."""

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
    Path | None, typer.Option(help="The ledger that pays; replaces [ledger] of the plan file.")
]
AccountOption = Annotated[str | None, typer.Option(help="The account in that ledger.")]
WitnessOption = Annotated[
    Path | None,
    typer.Option(
        help="A file that records the head after every debit; then an older copy of the ledger is refused."
    ),
]


@contextmanager
def paying_account(
    planned: PlanFile, ledger: Path | None, account: str | None, witness: Path | None
) -> Iterator[Account | None]:
    """Yield the account that pays, with its ledger open; None, after a warning, if there is no ledger."""
    if (ledger is None) != (account is None):
        raise InvalidArgument(
            "--ledger and --account need each other: name the ledger file and the account that pays."
        )
    if ledger is None:
        ledger, account, witness = planned.ledger, planned.account, witness or planned.witness
    if ledger is None or account is None:
        if witness is not None:
            raise InvalidArgument(
                "--witness needs a ledger: name one with --ledger and --account, or in [ledger] of the "
                "plan file. Nothing was measured, nothing was spent."
            )
        errors.print(
            "No ledger is named, so nothing adds up the privacy that is spent on these records.",
            style="yellow",
        )
        yield None
        return
    begun = witness is not None and not witness.exists()
    with Ledger.open(ledger, witness=witness) as opened:
        if begun:
            errors.print(
                f"There was no witness {witness}: a new one now records the ledger in its present state.",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        yield opened.account(account)
