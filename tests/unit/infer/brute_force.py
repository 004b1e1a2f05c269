"""The noisy Poisson likelihood, summed term by term in the plainest way."""

import numpy as np
from scipy import special, stats

MOST = 3_000


def log_chances(law, terms, x, minimum=None):
    """log P(x | a) for a = 0, 1, …, from convolutions of the law's own probabilities."""
    counts = np.arange(MOST)
    if hasattr(law, "row"):
        rows = [law.row(a).at_least(minimum).probability(x) for a in range(300)]
        chances = np.concatenate([rows, np.zeros(MOST - 300)])
    elif minimum is not None and x == minimum:
        chances = law.cdf(x - counts)
    else:
        single = law.pmf(np.arange(-MOST, MOST + 1))
        sums = single
        for _ in range(terms - 1):
            sums = np.convolve(sums, single)[MOST:-MOST]
        chances = sums[np.clip(x - counts, -MOST, MOST) + MOST]
    with np.errstate(divide="ignore"):
        return np.log(chances)


def moments(law, terms, x, mean, minimum=None):
    """log f, E[a | x] and Var(a | x)."""
    counts = np.arange(MOST)
    logarithms = log_chances(law, terms, x, minimum) + stats.poisson.logpmf(counts, mean)
    total = special.logsumexp(logarithms)
    weights = np.exp(logarithms - total)
    expected = float(weights @ counts)
    return float(total), expected, float(weights @ (counts - expected) ** 2)


def mass_within(noise, terms, h):
    """Return P(|sum of draws| ≤ h), by adding up the probabilities: what an interval of whole numbers attains."""
    reach = noise.half_width(1 - 1e-12)
    single = noise.pmf(np.arange(-reach, reach + 1))
    total = single
    for _ in range(terms - 1):
        total = np.convolve(total, single)
    middle = total.size // 2
    return float(total[middle - h : middle + h + 1].sum())
