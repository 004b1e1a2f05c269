"""`tabulary attack averaging`: ask for the same people in many ways, and average the answers."""

from typing import Annotated

import typer
from rich.table import Table as Lines

from tabulary.cli.attack.share_bars import share_bar
from tabulary.cli.console import output


def averaging(
    answers: Annotated[
        int, typer.Option(help="The number of descriptions of the same people that are asked for.")
    ] = 100,
    trials: Annotated[int, typer.Option(help="How often the attack is run.")] = 2_000,
    epsilon: Annotated[str, typer.Option(help="The budget of differential privacy, such as 1 or 1/2.")] = "1",
) -> None:
    """Describe the same people in many ways, and average the answers.

    Example: tabulary attack averaging --answers 400
    """
    # The compiled lookups take a moment to load, and other commands do not need them.
    from tabulary.attacks.differencing import averaging as run

    found = run(answers=answers, trials=trials, epsilon=epsilon)
    lines = Lines(title="How many people are they, exactly?", title_justify="left")
    lines.add_column("protection", no_wrap=True)
    for head in ("right after one answer", f"right after {answers:,} answers"):
        lines.add_column(head, no_wrap=True)
    for row in found:
        lines.add_row(row.mechanism, share_bar(row.once), share_bar(row.averaged))
    output.print(lines)
    output.print(
        "Fresh perturbations cancel out. With cell keys every answer is the first one again, so asking again gains "
        "nothing; but cell keys are open to the other attack: tabulary attack differencing. Differential privacy "
        "shares its budget among the answers. The noise of each answer grows with their number, and so does the noise "
        "of their mean."
    )
