"""`tabulary attack`: what can be found out from published tables."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid
from typer.core import TyperGroup

from tabulary.cli.attack_suppression import suppression
from tabulary.cli.console import output

if TYPE_CHECKING:
    from tabulary.studies.proportion import Proportion


class _FilesToo(TyperGroup):
    """A group whose last command also takes what is no command's name: the files of `suppression`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments, with the command that files are meant for before them."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["suppression", *args]
        return super().parse_args(ctx, args)


attack = typer.Typer(
    cls=_FilesToo,
    help="Attacks on published tables. `tabulary attack FILE...` tells what suppressed cells give away, as `tabulary "
    "attack suppression FILE...` does; the others are run on invented people.",
    no_args_is_help=True,
)
attack.command()(suppression)

_WIDTH = 10


@attack.command()
def differencing(
    trials: Annotated[int, typer.Option(help="How often the attack is run.")] = 100_000,
    workers: Annotated[int, typer.Option(help="How many other workers earn more than s.")] = 40,
    epsilon: Annotated[str, typer.Option(help="The budget of differential privacy, such as 1 or 1/2.")] = "1",
) -> None:
    """Find out Bob's salary from two counts that differ by at most him.

    Bob is the only worker hired today. Asked: how many workers earn more than s, and how many of these have been here
    for more than a day. Example: tabulary attack differencing --epsilon 1
    """
    # The compiled lookups take a moment to load, and other commands do not need them.
    from tabulary.studies.differencing import differencing as run

    found = run(trials=trials, workers=workers, epsilon=epsilon)
    grid = Grid(title="Does Bob earn more than s? Two counts tell, or do not.", title_justify="left")
    grid.add_column("protection", no_wrap=True)
    for head in ("attacker", "says yes when it is so", "says yes when it is not"):
        grid.add_column(head)
    for row in found:
        grid.add_row(row.mechanism, row.attacker, _bar(row.found), _bar(row.wrong))
    output.print(grid)
    keys, _, best = found
    assert best.bound is not None
    output.print(
        f"Cell keys: the answers differ in {keys.found.rate:.0%} of the cases in which Bob earns more than s, and in "
        f"{keys.wrong.times} of the {keys.wrong.trials:,} others. Who sees them differ knows it for certain."
    )
    output.print(
        f"Differential privacy with ε = {epsilon} for both answers: they differ whether or not he does, so that alone "
        f"says nothing. The best attacker there is says yes {best.advantage:.0%} more often when it is so; nobody can "
        f"gain more than {math.ceil(100 * best.bound)}%."
    )


@attack.command()
def averaging(
    answers: Annotated[
        int, typer.Option(help="How many descriptions of the same people are asked for.")
    ] = 100,
    trials: Annotated[int, typer.Option(help="How often the attack is run.")] = 2_000,
    epsilon: Annotated[str, typer.Option(help="The budget of differential privacy, such as 1 or 1/2.")] = "1",
) -> None:
    """Describe the same people in many ways, and average the answers.

    Example: tabulary attack averaging --answers 400
    """
    from tabulary.studies.differencing import averaging as run

    found = run(answers=answers, trials=trials, epsilon=epsilon)
    grid = Grid(title="How many people are they, exactly?", title_justify="left")
    grid.add_column("protection", no_wrap=True)
    for head in ("right after one answer", f"right after {answers:,} answers"):
        grid.add_column(head, no_wrap=True)
    for row in found:
        grid.add_row(row.mechanism, _bar(row.once), _bar(row.averaged))
    output.print(grid)
    output.print(
        "Fresh perturbations cancel out. With cell keys every answer is the first one again, so asking gains nothing; "
        "the price is the other attack: tabulary attack differencing. Differential privacy shares its budget among the "
        "answers, so that the noise of each grows with their number, and so does that of their mean."
    )


def _bar(share: "Proportion") -> str:
    full = round(_WIDTH * share.rate)
    low, high = share.interval(0.95)
    return f"{'█' * full}{'░' * (_WIDTH - full)} {share.rate:.0%} ({100 * low:.0f}-{100 * high:.0f})"
