"""`tabulary study perturbation`."""

from dataclasses import replace

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES


def perturbation(
    folder: Folder = None,
    quick: Quick = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """What Laplace and Normal perturbation do to tables and to tests (Rinott et al. 2018, Table 2, Figures 1 to 3).

    Example: tabulary study perturbation --quick
    """
    from tabulary.studies.perturbation.study import PerturbationStudy

    study = PerturbationStudy.quick() if quick else PerturbationStudy()
    if repetitions is not None:
        study = replace(study, repetitions=repetitions, aware=min(study.aware, repetitions))
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
