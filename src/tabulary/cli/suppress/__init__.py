"""`tabulary suppress`: exact tables with cells left out. One file per command."""

import typer

from tabulary.cli.suppress.advice import advice
from tabulary.cli.suppress.classical import classical
from tabulary.cli.suppress.replay import replay
from tabulary.cli.suppress.simulatable import simulatable

suppress = typer.Typer(
    help="Leave cells out of a table of exact counts, and print what that promises.", no_args_is_help=True
)

suppress.command()(simulatable)
suppress.command()(advice)
suppress.command()(replay)
suppress.command()(classical)
