"""`tabulary study three-approaches`: noise on cells, on margins or on Fourier coefficients."""

from dataclasses import replace

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES
from tabulary.studies.three_approaches import ThreeApproaches


def three_approaches(
    folder: Folder = None,
    quick: Quick = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Compare noise on cells, on margins and on Fourier coefficients over the number of attributes.

    Dwork, McSherry & Talwar (2007): expected and measured errors, tables that contradict each other, non-negative
    tables without a program, and the bounds of the paper.

    Example: tabulary study three-approaches --quick
    """
    study = ThreeApproaches.quick() if quick else ThreeApproaches()
    if repetitions is not None:
        study = replace(study, repetitions=repetitions)
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
