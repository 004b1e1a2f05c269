"""`tabulary study suppression`."""

from dataclasses import replace

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES


def suppression(
    folder: Folder = None,
    quick: Quick = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Cells left out, or noise: what is left of a table (Nabar & Mishra 2010, Figures 1 and 3 to 5).

    Example: tabulary study suppression --quick
    """
    from tabulary.studies.suppression.study import SuppressionStudy

    study = SuppressionStudy.quick() if quick else SuppressionStudy()
    if repetitions is not None:
        study = replace(study, repetitions=repetitions)
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
