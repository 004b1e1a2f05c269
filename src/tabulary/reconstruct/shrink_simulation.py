r"""The errors of shrunk tables, from the release alone: by simulation, and in closed form where there is no time.

Taking the shrunk tables as the truth would give errors that are too small: they are smoother than the truth, because
shrinkage has removed part of the interactions. So each repetition draws a possible truth: the shrunk tables plus
interactions with the posterior spread of each cell. It measures this truth again, with normal noise of the stated
variance on every residual, and shrinks it again. The distance of the result from the drawn truth estimates the
distance of the published tables from the real ones, bias included. It reads no data and spends no budget.

A few repetitions say little about one cell, but much about all cells together. In closed form, a table that is scaled
to the tables of its subsets has relative errors that add up over the subsets:

    var(t_A) ≈ t_A² Σ_{R ⊆ A} u_R / t_R²,

where u_R is the posterior variance of the interaction, or the variance of the noise for single attributes and the
total. This gives the distribution of the errors over the cells; the repetitions give their size, separately for each
order. The stated variance is the mean of both, in which the closed form counts as five repetitions. So there is a
result after zero repetitions, and after fifty it is a simulation.

It assumes the broad prior for the strength of interactions, and that within a table they grow with the base. Over all
cells the intervals hold about as often as they claim; in single large cells that differ from their base they hold
less often (`docs/explanation/shrinkage.md` has the measured coverage).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.residuals import centre
from tabulary.noise import Entropy
from tabulary.planning import ErrorLaw, Plan, SimulatedErrors
from tabulary.planning.accuracy import normal_quantile
from tabulary.reconstruct.rounding.full_table import uniforms_from
from tabulary.reconstruct.shrink import Shrinkage, Shrunken

REPETITIONS = 50
FEWEST = 10
"""With fewer repetitions the errors are said to be of the closed form."""
CONFIDENCE = 0.95

# A cell with less than this counts nobody, and has no relative error.
_NOBODY = 1e-6
# The closed form counts as this many repetitions.
_CLOSED = 5


def simulated_shrink_errors(
    plan: Plan, shrinkage: Shrinkage, shrunken: Shrunken, entropy: Entropy, *, seconds: float
) -> tuple[dict[Margin, ErrorLaw], int]:
    """Return the law of the errors of every wanted table and how many repetitions it rests on.

    It runs as many repetitions as the given seconds allow, at most fifty, possibly none.
    """
    normal = normals_from(entropy)
    wanted = plan.workload.margins
    squares = {margin: np.zeros(plan.domain.shape_of(margin)) for margin in wanted}
    start = time.monotonic()
    done = 0
    # The next repetition begins only if, at the speed so far, it ends in time.
    while done < REPETITIONS and (time.monotonic() - start) * (done + 1) < seconds * max(done, 1):
        error = one_error(shrinkage, shrunken, normal)
        for margin, own in squares.items():
            own += shrinkage.held(error, margin) ** 2
        done += 1
    variances = _combined(squares, closed_variances(shrinkage, shrunken, wanted), done)
    # A deviation from few repetitions is itself uncertain: Student's law.
    quantile = student_quantile(CONFIDENCE, _CLOSED + done)
    return {margin: _law(plan, margin, own, quantile) for margin, own in variances.items()}, done


def closed_variances(
    shrinkage: Shrinkage, shrunken: Shrunken, margins: Sequence[Margin]
) -> dict[Margin, Floats]:
    """Return the variance of the error of each cell in closed form: relative errors of the subsets, added up."""
    relative: dict[Margin, tuple[Floats, Floats]] = {}
    found: dict[Margin, Floats] = {}
    for margin in margins:
        table = shrinkage.held(shrunken.tables, margin)
        variance = np.zeros(table.shape)
        for order in range(len(margin) + 1):
            for s in combinations(margin, order):
                if s not in relative:
                    relative[s] = _relative(shrinkage, shrunken, s)
                shape = [k if a in s else 1 for a, k in zip(margin, table.shape, strict=True)]
                ratio, nothing = (part.reshape(shape) for part in relative[s])
                # Where the subset counts nobody, an even share is taken.
                variance += ratio * table**2 + nothing * (math.prod(shape) / table.size) ** 2
        found[margin] = variance
    return found


def _relative(shrinkage: Shrinkage, shrunken: Shrunken, s: Margin) -> tuple[Floats, Floats]:
    """Return the squared relative error of each cell that counts anybody, and the squared error of the others."""
    table = shrinkage.held(shrunken.tables, s)
    squared = shrunken.spreads[s] ** 2 if len(s) > 1 else np.full(table.shape, shrinkage.noise(s))
    some = table > _NOBODY
    ratio = np.divide(squared, table**2, out=np.zeros(table.shape), where=some)
    return ratio, np.where(some, 0.0, squared)


def _combined(
    squares: Mapping[Margin, Floats], closed: Mapping[Margin, Floats], done: int
) -> dict[Margin, Floats]:
    """Return the mean of the simulated and the closed variances, after scaling the closed ones of each order."""
    if not done:
        return dict(closed)
    scales = {}
    for order in {len(margin) for margin in squares}:
        alike = [margin for margin in squares if len(margin) == order]
        simulated = sum(float(squares[margin].sum()) for margin in alike) / done
        expected = sum(float(closed[margin].sum()) for margin in alike)
        scales[order] = simulated / expected if expected > 0 else 1.0
    return {
        margin: (own + _CLOSED * scales[len(margin)] * closed[margin]) / (done + _CLOSED)
        for margin, own in squares.items()
    }


def normals_from(entropy: Entropy) -> Callable[[tuple[int, ...]], Floats]:
    """Return a source of standard normal numbers from the words of `entropy` (Box & Muller 1958).

    They are for simulation alone: no noise that protects a person is drawn here.

    >>> from tabulary.noise import SystemEntropy
    >>> normals_from(SystemEntropy())((2, 3)).shape
    (2, 3)
    """
    uniform = uniforms_from(entropy)

    def normal(shape: tuple[int, ...]) -> Floats:
        count = math.prod(shape)
        half = (count + 1) // 2
        drawn = uniform(2 * half)
        radius = np.sqrt(-2 * np.log1p(-drawn[:half]))
        angle = 2 * np.pi * drawn[half:]
        found = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return found[:count].reshape(shape)

    return normal


def one_error(
    shrinkage: Shrinkage, shrunken: Shrunken, normal: Callable[[tuple[int, ...]], Floats]
) -> dict[Margin, Floats]:
    """Return the errors of one repetition, on the maximal margins."""
    truth = shrinkage.drawn(shrunken, normal)
    measured = {}
    for s in shrinkage.sets:
        exact = shrinkage.held(truth, s)
        # Centred, white noise of variance σ² has the covariance σ² P of the estimate.
        measured[s] = centre(exact + math.sqrt(shrinkage.variances[s]) * normal(exact.shape))
    again = shrinkage.tables(measured, rough=True)
    return {m: again.tables[m] - truth[m] for m in shrinkage.maximal}


def student_quantile(confidence: float, freedom: int) -> float:
    """Return the half-width of a central interval of Student's law, for five degrees of freedom and more.

    The expansion of Cornish and Fisher to second order in 1/freedom, within 1 % there.

    >>> round(student_quantile(0.95, 5), 2), round(student_quantile(0.95, 55), 2)
    (2.55, 2.0)
    """
    z = normal_quantile(confidence)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _law(plan: Plan, margin: Margin, squared: Floats, quantile: float) -> SimulatedErrors:
    impossible = plan.domain.impossible(margin)
    # Only an impossible cell is exact. A cell that no repetition moved may be off by one person.
    deviations = np.where(impossible, 0.0, np.maximum(np.sqrt(squared), 0.5))
    widths = np.where(impossible, 0.0, np.maximum(quantile * deviations, 1.0))
    return SimulatedErrors(deviations, widths, CONFIDENCE)
