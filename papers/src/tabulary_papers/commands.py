"""What `tabulary study NAME` runs for each paper: a function of its options that returns the study.

The studies are imported when they are asked for: a list of commands needs none of them.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tabulary.studies import Study


def noise_aware_tests(quick: bool = False, repetitions: int | None = None) -> Study:
    """Compare tests of perturbed tables that know the noise with tests that do not.

    Rinott et al. (2018), Table 3 and Figure 4.

    Example: tabulary study noise-aware-tests --quick
    """
    from tabulary_papers.noise_aware_tests import NoiseAwareTests

    return _repeated(NoiseAwareTests.quick() if quick else NoiseAwareTests(), repetitions)


def perturbation(quick: bool = False, repetitions: int | None = None) -> Study:
    """Show what Laplace and Normal perturbation do to tables and to tests.

    Rinott et al. (2018), Table 2 and Figures 1 to 3.

    Example: tabulary study perturbation --quick
    """
    from tabulary_papers.perturbation import PerturbationStudy

    study = PerturbationStudy.quick() if quick else PerturbationStudy()
    # No table can be tested more often than it is perturbed.
    return _repeated(replace(study, aware=min(study.aware, repetitions or study.aware)), repetitions)


def rap(
    quick: bool = False,
    repetitions: int | None = None,
    adult: Annotated[
        Path | None,
        typer.Option(
            help="The public Adult extract as CSV with column names; studied beside made-up people."
        ),
    ] = None,
) -> Study:
    """Compare the largest error of Relaxed Adaptive Projection with that of other methods.

    Aydore et al. (2021), Figures 2 and 3: against ε and against the number of tables, on made-up people, and on Adult
    if you give a file of it. Needs the extra synth.

    Example: tabulary study rap --quick
    """
    from tabulary_papers.rap import RapCurves

    return _repeated(RapCurves.quick(adult) if quick else RapCurves(path=adult), repetitions)


def sparse_tables(
    quick: bool = False,
    repetitions: int | None = None,
    paper_grid: Annotated[
        bool, typer.Option("--paper-grid", help="Use the paper's 200 values of ε: 0.005, 0.015, … 1.995.")
    ] = False,
) -> Study:
    """Perturb four sparse tables as published by Yang, Fienberg & Rinaldo, and with the mechanisms of today.

    Their Figures 1 to 6 and Tables 7 and 8: sample size, margins, fit, estimates and the linear program, for ε from
    0.005 to 2.

    Example: tabulary study sparse-tables --quick
    """
    from tabulary_papers.sparse_tables import PAPER_GRID, SparseTables

    study = SparseTables.quick() if quick else SparseTables()
    return _repeated(replace(study, epsilons=PAPER_GRID) if paper_grid else study, repetitions)


def suppression(quick: bool = False, repetitions: int | None = None) -> Study:
    """Compare suppressed cells with noise: what is left of a table.

    Nabar & Mishra (2010), Figures 1 and 3 to 5.

    Example: tabulary study suppression --quick
    """
    from tabulary_papers.suppression import SuppressionStudy

    return _repeated(SuppressionStudy.quick() if quick else SuppressionStudy(), repetitions)


def three_approaches(quick: bool = False, repetitions: int | None = None) -> Study:
    """Compare noise on cells, on margins and on Fourier coefficients for more and more attributes.

    Dwork, McSherry & Talwar (2007): expected and measured errors, tables that contradict each other, non-negative
    tables without a linear program, and the bounds of the paper.

    Example: tabulary study three-approaches --quick
    """
    from tabulary_papers.three_approaches import ThreeApproaches

    return _repeated(ThreeApproaches.quick() if quick else ThreeApproaches(), repetitions)


def _repeated(study: Any, repetitions: int | None) -> Study:
    """Return a study with another number of repetitions, if one is asked for."""
    made: Study = study if repetitions is None else replace(study, repetitions=repetitions)
    return made
