"""`tabulary attack differencing`: compare two counts that differ by at most one person."""

import math
from typing import Annotated

import typer
from rich.table import Table as Lines

from tabulary.cli.attack.share_bars import share_bar
from tabulary.cli.console import output


def differencing(
    trials: Annotated[int, typer.Option(help="How often the attack is run.")] = 100_000,
    workers: Annotated[int, typer.Option(help="How many other workers earn more than s.")] = 40,
    epsilon: Annotated[str, typer.Option(help="The budget of differential privacy, such as 1 or 1/2.")] = "1",
) -> None:
    """Find out Bob's salary from two counts that differ by at most one person, Bob.

    Bob is the only worker hired today. The attacker asks how many workers earn more than s, and how many of these have
    been here for more than a day. Example: tabulary attack differencing --epsilon 1
    """
    # The compiled lookups take a moment to load, and other commands do not need them.
    from tabulary.attacks.differencing import differencing as run

    found = run(trials=trials, workers=workers, epsilon=epsilon)
    lines = Lines(title="Does Bob earn more than s? What two counts tell", title_justify="left")
    lines.add_column("protection", no_wrap=True)
    for head in ("attacker", "says yes when it is true", "says yes when it is false"):
        lines.add_column(head)
    for row in found:
        lines.add_row(row.mechanism, row.attacker, share_bar(row.found), share_bar(row.wrong))
    output.print(lines)
    keys, _, best = found
    assert best.bound is not None
    output.print(
        f"Cell keys: the answers differ in {keys.found.rate:.0%} of the cases in which Bob earns more than s, and in "
        f"{keys.wrong.times} of the {keys.wrong.trials:,} others. A reader who sees them differ is certain."
    )
    output.print(
        f"Differential privacy with ε = {epsilon} for both answers: they differ in both cases, so the difference alone "
        f"says nothing. The best possible attacker says yes {best.advantage:.0%} more often when it is true; no "
        f"attacker can gain more than {math.ceil(100 * best.bound)}%."
    )
