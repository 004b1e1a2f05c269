"""`tabulary plan`: what a plan file would publish, and how accurate it would be."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, print_expected
from tabulary.core.exact import show_fraction
from tabulary.core.privacy import PureDP
from tabulary.workflows import read_plan_file


def plan(
    file: Annotated[Path, typer.Argument(help="A plan file in TOML.")],
    confidence: Annotated[float, typer.Option(help="The confidence of the half-widths.")] = 0.95,
) -> None:
    """Print how accurate every table of a plan file would be. Reads no records and spends nothing.

    Example: tabulary plan census.toml
    """
    made = read_plan_file(file).plan
    expected = made.expected_error(confidence)
    output.print(f"{made}", markup=False)
    if made.loss != made.privacy:
        kind = "Laplace" if isinstance(made.loss, PureDP) else "Gaussian"
        output.print(
            f"The noise is discrete {kind} at {made.loss}, which implies that promise.", markup=False
        )
    print_expected(expected)
    for noise in sorted({_noise(part.noise.describe()) for part in made.measured}):
        output.print(f"Noise on each measured cell: {noise}.", markup=False)


def _noise(description: dict[str, str]) -> str:
    from fractions import Fraction

    family = description["family"].replace("-", " ")
    parameter = next(key for key in description if key != "family")
    return f"{family}, {parameter.replace('_', ' ')} {show_fraction(Fraction(description[parameter]))}"
