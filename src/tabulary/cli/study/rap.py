"""`tabulary study rap`: the error curves of Relaxed Adaptive Projection, and of other ways to the same tables."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES


def rap(
    folder: Folder = None,
    quick: Quick = False,
    adult: Annotated[
        Path | None,
        typer.Option(
            help="The public Adult extract as CSV with a line of column names, beside made-up people."
        ),
    ] = None,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Draw the largest error of RAP against ε and against the number of tables, beside that of other ways.

    Aydore et al. (2021), Figures 2 and 3, on made-up people and on Adult if a file of it is given. Needs the extra
    synth.

    Example: tabulary study rap --quick
    """
    # The rooms of synthetic rows take a while to import.
    from tabulary.studies.rap import RapCurves

    study = RapCurves.quick(adult) if quick else RapCurves(path=adult)
    if repetitions is not None:
        study = replace(study, repetitions=repetitions)
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
