"""The errors of a constrained estimate, by simulation from the release alone.

A non-negative estimate is not a linear function of the measurement, and its error has no closed form: it is biased
where cells are cut off at zero. So the simulation takes the reconstructed table as the truth, measures it again with
fresh noise of the stated law, and reconstructs it again, many times. The distances of those tables from the
reconstructed one estimate its distance from the truth: a parametric bootstrap. It reads no data and spends no budget.

One limit: estimates of zero count as true zeros, so where the truth is small and positive the simulated error is a
little too small.
"""

import time

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.noise import Entropy
from tabulary.planning import ErrorLaw, SimulatedErrors
from tabulary.reconstruct.constrained import FullTable

REPETITIONS = 100
FEWEST = 20
SECONDS = 30.0
CONFIDENCE = 0.95


def simulated_errors(
    unknown: FullTable, full: CellCounts, entropy: Entropy, *, seconds: float = SECONDS
) -> tuple[dict[Margin, ErrorLaw], int]:
    """Return the law of the errors of every table and how many repetitions it rests on.

    It stops after the given seconds. Fewer than twenty repetitions say nothing about a 95 % interval; then the result
    is empty.
    """
    plan = unknown.plan
    centre = _measured(unknown, full)
    truth = unknown.tables(full)
    errors: dict[Margin, list[Floats]] = {margin: [] for margin in truth}
    start = time.monotonic()
    done = 0
    while done < REPETITIONS and not (time.monotonic() - start) * FEWEST > seconds * max(done, 1):
        again, _ = unknown.solve(centre + _noise(unknown, entropy), entropy)
        for margin, table in unknown.tables(again).items():
            errors[margin].append(np.asarray(table - truth[margin], dtype=np.float64))
        done += 1
        if done >= FEWEST and time.monotonic() - start > seconds:
            break
    if done < FEWEST:
        return {}, done
    return {m: _law(np.array(errors[m]), plan.domain.impossible(m)) for m in truth}, done


def _law(errors: Floats, impossible: NDArray[np.bool_]) -> SimulatedErrors:
    deviations = np.sqrt((errors**2).mean(axis=0))
    widths = np.quantile(np.abs(errors), CONFIDENCE, axis=0, method="higher")
    # Only an impossible cell is exact. A cell that no repetition moved may be off by one person.
    deviations = np.where(impossible, 0.0, np.maximum(deviations, 0.5))
    return SimulatedErrors(deviations, np.where(impossible, 0.0, np.maximum(widths, 1.0)), CONFIDENCE)


def _measured(unknown: FullTable, full: CellCounts) -> Floats:
    table = np.asarray(full, dtype=np.float64)
    return unknown.linear_map.forward(unknown.plan.encoded.encode(unknown.attributes, table))


def _noise(unknown: FullTable, entropy: Entropy) -> Floats:
    drawn = [part.noise.sample(unknown.plan.shape_of(part), entropy) for part in unknown.plan.measured]
    noise = np.concatenate([d.reshape(-1) for d in drawn]).astype(np.float64)
    # Impossible cells of a measured margin get no noise.
    noisy = [part.query.noisy(unknown.plan.measured_domain) for part in unknown.plan.measured]
    noise *= np.concatenate([each.reshape(-1) for each in noisy])
    return noise
