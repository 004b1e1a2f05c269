"""The figure of risk and utility: it shows the effect of two laws on a table."""

import statistics
from pathlib import Path

from rich.table import Table as Grid

from tabulary.cli.console import output, progress_bar
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.table import Table
from tabulary.errors import ReleaseError, ReleaseExists
from tabulary.studies import MEASURES, RiskUtility, risk_utility

# This file marks a folder that contains an earlier figure.
_MARK = ".tabulary-figure"
_STEM = "risk-utility"


def draw_risk_utility(table: Table, folder: Path, *, name: str, bound: int, repetitions: int) -> None:
    """Perturb a public table many times, draw box plots of the results, and print where the plots are."""
    _prepare(folder)
    with progress_bar() as progress:
        found = risk_utility(table, bound=bound, repetitions=repetitions, progress=progress)
        progress("drawing", 0, 0)
        # Imported here only, because importing the charts takes longer than most commands run.
        from tabulary.release.drawing import save_both
        from tabulary.studies.perturbed_charts import risk_utility_chart

        chart = risk_utility_chart(found, name=name)
        try:
            pictures = save_both(chart, folder / _STEM)
        except OSError:
            raise _unwritable(folder) from None
    _print_medians(found)
    output.print(
        f"Cramér's V of {name} itself is {found.truth:.5f}. Medians of {repetitions:,} perturbations, "
        "losses per cell, negative counts published as zero. The bound m of Normal is the one whose δ is "
        "closest to the δ of Laplace.",
        markup=False,
    )
    for picture in pictures:
        output.print(f"Picture: {picture}", markup=False, soft_wrap=True)


def _print_medians(found: RiskUtility) -> None:
    grid = Grid(title="Laplace and Normal perturbation at the same ε", title_justify="left")
    for head in ("ε", "law", "m", "δ", "Cramér's V", "ℓ₁", "ℓ₂", "ℓ₃"):
        grid.add_column(head, justify="left" if head == "law" else "right")
    for law in found.laws:
        association, *losses = (statistics.median(found.values(measure, law)) for measure in MEASURES)
        grid.add_row(
            show_fraction(law.epsilon),
            law.family,
            f"{law.bound}",
            f"{law.delta:.2g}",
            f"{association:.4f}",
            *(f"{loss:.2f}" for loss in losses),
            end_section=law.family == "normal",
        )
    output.print(grid)


def _prepare(folder: Path) -> None:
    """Make the folder. Overwrite only a folder that an earlier figure made."""
    try:
        ours = (folder / _MARK).exists() or not folder.exists()
        if not ours and (not folder.is_dir() or any(folder.iterdir())):
            raise ReleaseExists(
                f"{folder} is not empty and contains no earlier figure. Nothing was drawn. Choose another "
                "folder with -o."
            )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).touch()
    except OSError:
        raise _unwritable(folder) from None


def _unwritable(folder: Path) -> ReleaseError:
    return ReleaseError(f"{folder} cannot be written. No figure was saved. Choose another folder with -o.")
