r"""Non-negative tables without a program: how much must be added, and how often that is not enough.

Dwork, McSherry & Talwar (2007) add a constant to the total. Theorem 6: the L1 norm of the noise is enough. Corollary 1:
t·d²/(ε 2^{k/2}), which is t·d times the scale of the noise, is enough but with probability exp(-t). Three
shifts are compared here, none of which reads a record:

- that of Corollary 1, with its claim and with the truth;
- the quantile of the norm's own law;
- what is really needed: the least cell of a table of nobody, noise alone, is the worst case of all data.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary import Workload
from tabulary.noise import DiscreteLaplace
from tabulary.reconstruct import integer_shift
from tabulary.studies import Lab, Row, Sheets
from tabulary_papers.datasets.yes_no import yes_no_domain
from tabulary_papers.shift import published_failure, published_shift

FAILURES = (0.9, 0.75, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
"""The probabilities exp(-t) that Corollary 1 is asked for."""

_AT_ONCE = 5_000


def corollary(lab: Lab, coefficients: int) -> Sheets:
    """Return the claimed and the true probability that the shift of Corollary 1 is below the norm of the noise."""
    return {
        "corollary": [
            {
                "coefficients": coefficients,
                "claimed": failure,
                "true": published_failure(coefficients, t=-math.log(failure)),
            }
            for failure in FAILURES
        ]
    }


def raised(lab: Lab, attributes: int, way: int, epsilon: str, draws: int) -> Sheets:
    """Return the shifts for all tables of `way` attributes, their bias a cell, and how often they were not enough.

    `norm_failed` counts the draws whose L1 norm was above the shift, `negative` those that would have left a
    negative cell in the full table of a population of nobody.
    """
    work = Workload.k_way(yes_no_domain(attributes), way)
    coefficients = len(work.closure())
    noise = DiscreteLaplace(coefficients / Fraction(epsilon))
    norms, needed = _drawn(lab, work, noise, draws)
    rows: list[Row] = []
    for failure in FAILURES:
        shifts = {
            "Corollary 1": published_shift(noise.scale, coefficients, t=-math.log(failure)),
            "quantile of the norm": float(integer_shift(noise, coefficients, failure=failure)),
            "what is needed": float(np.quantile(needed, 1 - failure, method="higher")),
        }
        rows += [
            {
                "attributes": attributes,
                "way": way,
                "coefficients": coefficients,
                "failure": failure,
                "shift": name,
                "added": added,
                "bias": added / 2**way,
                "norm_failed": float(np.mean(norms > added)),
                "negative": float(np.mean(needed > added)),
                "draws": draws,
            }
            for name, added in shifts.items()
        ]
    return {"shifts": rows}


def _drawn(
    lab: Lab, work: Workload, noise: DiscreteLaplace, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each draw, the L1 norm of the noise and the shift that no cell would have been negative with."""
    names, sets = work.domain.attributes, work.closure().margins
    people = np.array(np.unravel_index(np.arange(work.domain.size), work.domain.shape))
    odd = np.array([people[[names.index(name) for name in chosen]].sum(axis=0) % 2 for chosen in sets])
    signs = 1.0 - 2.0 * odd
    sampler = lab.sampler()
    norms, needed = [], []
    for start in range(0, draws, _AT_ONCE):
        noisy = sampler.draw(noise, (min(_AT_ONCE, draws - start), len(sets))).astype(np.float64)
        norms.append(np.abs(noisy).sum(axis=1))
        needed.append(-(noisy @ signs).min(axis=1))
    return np.concatenate(norms), np.concatenate(needed)
