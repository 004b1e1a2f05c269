"""`tabulary token`: the tokens of analysts and custodians of a table builder."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid

from tabulary.cli.console import output
from tabulary.cli.serve import read_file
from tabulary.errors import ServiceError

if TYPE_CHECKING:
    from tabulary.builder.state import State, Token

token = typer.Typer(help="Tokens of a table builder: make one, list them, revoke one.", no_args_is_help=True)

ServiceFileArgument = Annotated[Path, typer.Argument(help="The service file.")]


@token.command()
def add(
    file: ServiceFileArgument,
    name: Annotated[str, typer.Argument(help="The owner of the token.")],
    account: Annotated[
        str | None, typer.Option(help="The ledger account that pays for an analyst's questions.")
    ] = None,
    custodian: Annotated[
        bool, typer.Option("--custodian", help="Make a token for a custodian of the service instead.")
    ] = False,
    days: Annotated[
        int | None, typer.Option(help="The number of days that the token is valid. Default: no limit.")
    ] = None,
) -> None:
    """Make a token and show it only once: the service stores only its digest.

    Example: tabulary token add service.toml "Ada Lovelace" --account ada --days 90
    """
    from tabulary.builder.state import Role
    from tabulary.ledger import Ledger

    configured = read_file(file)
    if account is not None and configured.ledger is not None:
        with Ledger.open(configured.ledger.where(), read_only=True) as ledger:
            ledger.account(account)
        if account in {each.payment.account for each in configured.datasets.values() if each.payment}:
            raise ServiceError(
                f"{account!r} is the account of a dataset, and pays for the questions of everybody. No "
                "token was made. Open an account for the analyst: tabulary ledger create."
            )
    with _state(file) as state:
        made, text = state.tokens.add(name, Role.custodian if custodian else Role.analyst, account, days)
    output.print(f"Token {made.id} of {made.name}, shown only once:", markup=False)
    output.print(text, markup=False, soft_wrap=True)


@token.command("list")
def list_tokens(file: ServiceFileArgument) -> None:
    """Print all tokens with owner and last day, but not the tokens themselves.

    Example: tabulary token list service.toml
    """
    grid = Grid("id", "name", "role", "account", "good")
    now = datetime.now(UTC)
    with _state(file) as state:
        for each in _all(state):
            cells = (each.id, each.name, each.role, each.account or "", _good(each, now))
            grid.add_row(*(str(cell).replace("[", r"\[") for cell in cells))
    output.print(grid)


@token.command()
def revoke(
    file: ServiceFileArgument,
    id: Annotated[str, typer.Argument(help="The id of the token, from `tabulary token list`.")],  # noqa: A002
) -> None:
    """Revoke a token, immediately and for ever.

    Example: tabulary token revoke service.toml 5f3a9c0e21b7
    """
    with _state(file) as state:
        if not state.tokens.revoke(id):
            raise ServiceError(f"there is no token {id!r}. Nothing was revoked. See: tabulary token list.")
    output.print(f"Token {id} is revoked.", markup=False)


def _state(file: Path) -> "State":
    # First: if a package is missing, this call says which one.
    configured = read_file(file)
    from tabulary.builder.opening import open_state

    return open_state(configured)


def _all(state: "State") -> Iterator["Token"]:
    page = state.tokens.list()
    while page:
        yield from page
        page = state.tokens.list(after=page[-1].id)


def _good(token: "Token", now: datetime) -> str:
    if token.revoked is not None:
        return f"revoked {token.revoked:%Y-%m-%d}"
    if token.expires is None:
        return "until revoked"
    return f"{'until' if token.good_at(now) else 'expired'} {token.expires:%Y-%m-%d}"
