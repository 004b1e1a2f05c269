"""What a perturbation promises, in plain words: for one table, and compared with eight properties."""

import math

from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.console import output, print_points
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.errors import InvalidNoise
from tabulary.perturb import Laplace, Normal, Perturbation, PerturbedTable
from tabulary.perturb.perturbation import rounded_up
from tabulary.perturb.properties import NoiseProperties
from tabulary.release.promise import guess_sentence, likelier
from tabulary.release.table import CONFIDENCE

# The bias is printed for these original counts: it is largest in the emptiest cells.
_TOLD = (0, 1, 2, 5, 20)
_NO_BIAS = 5e-4
# A true ε that is closer than this to the named one is not mentioned.
_NEAR = 0.995


def promise_of(law: Perturbation, epsilon: object) -> PureDP | ApproxDP:
    """Return what a law promises for one table: at its own ε, or at the given ε if the law has none."""
    if law.epsilon is not None:
        return law.privacy()
    delta = law.delta_at(PureDP(epsilon).epsilon)
    if delta >= 1:
        raise InvalidNoise(f"this law promises nothing at ε = {epsilon}, because its δ there is 1.")
    return PureDP(epsilon) if delta == 0 else ApproxDP(epsilon, rounded_up(delta))


def print_promise(published: PerturbedTable, promised: PureDP | ApproxDP, *more: str) -> None:
    """Print what is promised for a perturbed table, its accuracy and its bias. The table has no exact count."""
    law = published.law
    name = str(law)
    said = (*_guarantee(law, promised), _accuracy(published), _bias(law, published.minimum), *more)
    print_points(f"{name[0].upper()}{name[1:]}", said)


def print_properties(report: NoiseProperties) -> None:
    """Print which of eight properties a law has, what each one costs, and which ones contradict each other."""
    at = f"δ = {report.delta:.4g} at ε = {show_fraction(report.epsilon)}"
    output.print(f"\nEight properties, checked for the {report.law}, with {at}", style="bold", markup=False)
    grid = Grid.grid(padding=(0, 1))
    for row in report.rows:
        verdict = Text.assemble((f"{row.name}: {row.verdict}", "bold"), f". {row.evidence} Cost: {row.cost}")
        grid.add_row(f"{row.number}", verdict)
    output.print(grid)
    contradictions = []
    for found in report.contradictions:
        privacy = [] if found.delta is None else ["privacy"]
        contradictions.append(f"{' and '.join([*map(str, found.properties), *privacy])}: {found.reason}")
    print_points("Contradictions", contradictions)


def _guarantee(law: Perturbation, promised: PureDP | ApproxDP) -> list[str]:
    delta = show_fraction(promised.delta) if isinstance(promised, ApproxDP) else None
    exception = "" if delta is None else f", except with a probability of at most δ = {delta}"
    said = [
        f"Promise: {promised}, for one person more or less in the table.",
        "One person can change one count by 1. For any published result, this changes the odds of any "
        f"conclusion about the person by at most a factor e^ε = {likelier(promised.epsilon)}{exception}.",
        guess_sentence(promised),
    ]
    if delta is not None and isinstance(law, Laplace | Normal):
        said.append(
            f"δ is the price of the bound: a count that was changed by the full {law.bound:,} is impossible "
            "if the table has one person more, or less."
        )
    true = law.epsilon_at(law.delta_at(promised.epsilon))
    if true < _NEAR * float(promised.epsilon):
        shown = math.ceil(true * 1e4) / 1e4
        said.append(
            f"The law is better than its promise: the same δ already holds at ε = {shown:g}, computed from "
            "all pairs of neighbouring counts."
        )
    return said


def _accuracy(published: PerturbedTable) -> str:
    moved = published.standard_errors > 0
    if not moved.any():
        return "These counts have no noise."
    errors = published.standard_errors[moved]
    widths = published.half_widths(CONFIDENCE)[moved]
    low, high = (f"{value:.2f}" for value in (errors.min(), errors.max()))
    near, far = (f"±{value:,}" for value in (int(widths.min()), int(widths.max())))
    return (
        f"Each count: standard error {low if low == high else f'{low} to {high}'}; {CONFIDENCE:.0%} are "
        f"within {near if near == far else f'{near} to {far}'} of the original count."
    )


def _bias(law: Perturbation, minimum: int | None) -> str:
    cut = ""
    if minimum is not None:
        cut = f"Counts below {minimum} are published as {minimum}. This costs no privacy. "
    biases = {count: law.bias(count, minimum=minimum) for count in _TOLD}
    if max(map(abs, biases.values())) < _NO_BIAS:
        return f"{cut}Unbiased: on average a published count is equal to the original count."
    (first, bias), *others = biases.items()
    told = ", ".join(f"{count} as {count + bias:.2f}" for count, bias in others)
    return (
        f"{cut}Biased: on average an original {first} is published as {first + bias:.2f}, {told}. The bias "
        "adds up in sums of many small counts."
    )
