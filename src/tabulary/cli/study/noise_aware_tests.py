"""`tabulary study noise-aware-tests`."""

from dataclasses import replace

from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES


def noise_aware_tests(
    folder: Folder = None,
    quick: Quick = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Tests of perturbed tables that know the noise, and those that do not (Rinott et al. 2018, Table 3, Figure 4).

    Example: tabulary study noise-aware-tests --quick
    """
    from tabulary.studies.noise_aware_tests.study import NoiseAwareTests

    study = NoiseAwareTests.quick() if quick else NoiseAwareTests()
    if repetitions is not None:
        study = replace(study, repetitions=repetitions)
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
