"""`tabulary attack`: what a reader can find out from published tables. One file per command."""

import typer

from tabulary.cli.attack.averaging import averaging
from tabulary.cli.attack.differencing import differencing
from tabulary.cli.attack.suppression import suppression

attack = typer.Typer(
    help="Attack published tables with suppressed cells, or run an attack on invented people.",
    no_args_is_help=True,
)

attack.command()(suppression)
attack.command()(differencing)
attack.command()(averaging)
