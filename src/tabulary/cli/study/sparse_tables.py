"""`tabulary study sparse-tables`."""

from dataclasses import replace
from typing import Annotated

import typer

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES
from tabulary.studies.sparse_tables import PAPER_GRID, SparseTables


def sparse_tables(
    folder: Folder = None,
    quick: Quick = False,
    paper_grid: Annotated[
        bool, typer.Option("--paper-grid", help="The paper's 200 values of ε, 0.005, 0.015, … 1.995.")
    ] = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Perturb the four tables of Yang, Fienberg & Rinaldo, as published and with the mechanisms of today.

    Their Figures 1 to 6 and Tables 7 and 8: sample size, margins, fit, estimates and the linear program, for ε from
    0.005 to 2.

    Example: tabulary study sparse-tables --quick
    """
    study = SparseTables.quick() if quick else SparseTables()
    if paper_grid:
        study = replace(study, epsilons=PAPER_GRID)
    if repetitions is not None:
        study = replace(study, repetitions=repetitions)
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
