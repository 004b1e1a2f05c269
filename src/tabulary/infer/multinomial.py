r"""The likelihood of the released counts of all cells of a classification whose total is known.

Multinomial counts are Poisson counts with the means n p, given that they add up to n. So the likelihood is

    L(p) = [h_1 * … * h_k](n) / Pois(n; n),    h_j(a) = Pois(a; n p_j) P(x_j | a),

the convolution taken at n. Weights e^{sa} on every h_j change it by e^{sn} alone. With the s at which the expected
counts add up to n, what is asked for lies in the middle of the convolution, where no digit is lost, however badly p
fits. The same convolution with one cell left out gives the expected count of that cell.
"""

import math

import numpy as np

from tabulary.core.arrays import Floats, Integers
from tabulary.errors import InvalidTable, NotCertified
from tabulary.infer.count_likelihoods import CountLikelihoods
from tabulary.infer.likelihood import NoisyCells
from tabulary.infer.table_noise import IndependentNoise

_STEPS = 300
_TOLERANCE = 1e-9
_LONGEST, _SHORTEST = 5.0, 1e-9
_LOWEST = -40.0
_FLAT = 1e-9
# A count is looked at within so many standard deviations of its mean given what was released, and so many more.
_DEVIATIONS, _MORE = 30.0, 30


class ManyCounts:
    """The likelihood of the shares of all cells, for counts that add up to `n` behind the noise of each."""

    def __init__(self, observed: Integers, n: int, noise: IndependentNoise) -> None:
        self.n = n
        self._observed = observed
        self._terms = noise.terms
        self._cells = NoisyCells(observed, noise)
        self._likelihoods = CountLikelihoods(noise)
        # log Pois(n; n), from the series of Stirling.
        self._log_total = n * math.log(n) - n - math.lgamma(n + 1)

    def best(self) -> float:
        """Return the largest log L(p) of all shares p.

        Newton's method in the logarithms of the shares. The gradient E[a | x] - n p is exact; the covariance of the
        counts, which the information needs, is that of independent counts given their sum.
        """
        shares = np.maximum(self._observed, 0.5).astype(np.float64)
        shares /= shares.sum()
        value, expected, variances = self.log_likelihood(shares)
        if value == -math.inf:
            raise InvalidTable(
                "no counts with the total n can give these released counts with the stated noise. Check the counts, "
                "the total and the noise: one of them does not fit the others."
            )
        for _ in range(_STEPS):
            gradient = expected - self.n * shares
            direction = self._direction(gradient, shares, variances)
            promised = float(gradient @ direction)
            if promised <= _TOLERANCE:
                return value
            size = min(1.0, _LONGEST / max(float(np.abs(direction).max()), _LONGEST))
            while True:
                logarithms = np.maximum(np.log(shares) + size * direction, _LOWEST)
                tried = np.exp(logarithms - logarithms.max())
                tried /= tried.sum()
                found = self.log_likelihood(tried)
                if found[0] >= value + 1e-4 * size * promised or size < _SHORTEST:
                    break
                size /= 2
            if not found[0] > value:
                break
            shares = tried
            value, expected, variances = found
        raise NotCertified(
            "the maximum of the likelihood of the released counts was not found. No test was made."
        )

    def log_likelihood(self, shares: Floats) -> tuple[float, Floats, Floats]:
        """Return log L(p), the expected counts given what was released, and their spread without the total."""
        tilt, logarithms, expected, variances = self._tilted(shares)
        if not np.isfinite(logarithms).all():
            return -math.inf, expected, variances
        laws = [
            self._posterior(j, float(mean), float(expected[j]), float(variances[j]))
            for j, mean in enumerate(self.n * shares * math.exp(tilt))
        ]
        # What the cells before each one, and those after it, add up to.
        before = [(0, np.ones(1))]
        for first, weights in laws[:-1]:
            before.append(_sum(before[-1], (first, weights)))
        after = [(0, np.ones(1))]
        for first, weights in laws[:0:-1]:
            after.append(_sum(after[-1], (first, weights)))
        after.reverse()
        given = np.empty(len(laws))
        chance = 0.0
        for j, (first, weights) in enumerate(laws):
            others, rest = _sum(before[j], after[j])
            counts = first + np.arange(weights.size)
            places = self.n - counts - others
            inside = (places >= 0) & (places < rest.size)
            joint = np.where(inside, weights * rest[np.clip(places, 0, rest.size - 1)], 0.0)
            chance = float(joint.sum())
            if chance <= 0:
                return -math.inf, expected, variances
            given[j] = float(joint @ counts) / chance
        value = (
            math.fsum(logarithms)
            + math.log(chance)
            - tilt * self.n
            + self.n * math.expm1(tilt)
            - self._log_total
        )
        return value, given, variances

    def _tilted(self, shares: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Return the tilt at which the expected counts add up to n, and what the cells say there."""
        with np.errstate(divide="ignore"):
            base = np.log(self.n * shares)
        low, high, tilt = -60.0, 60.0, 0.0
        for _ in range(_STEPS):
            logarithms, expected, variances = self._cells.evaluate(base + tilt)
            gap = self.n - float(expected.sum())
            low, high = (tilt, high) if gap > 0 else (low, tilt)
            if abs(gap) <= 1e-6 * math.sqrt(self.n) or high - low < 1e-12:
                break
            slope = float(variances.sum())
            step = gap / slope if slope > 0 else 0.0
            tilt = tilt + step if step and low < tilt + step < high else (low + high) / 2
        return tilt, logarithms, expected, variances

    def _posterior(self, j: int, mean: float, expected: float, variance: float) -> tuple[int, Floats]:
        """Return the law of the count of a cell given what was released of it: the first count, and weights."""
        width = _DEVIATIONS * math.sqrt(variance) + _MORE
        first = max(0, math.floor(expected - width))
        last = math.ceil(expected + width)
        counts = np.arange(first, last + 1)
        steps = math.log(mean) - np.log(np.maximum(counts, 1).astype(np.float64))
        steps[0] = 0.0
        terms = np.cumsum(steps) + self._likelihoods.log_chances(
            int(self._observed[j]), int(self._terms[j]), counts
        )
        weights = np.exp(terms - terms.max())
        return first, weights / weights.sum()

    def _direction(self, gradient: Floats, shares: Floats, variances: Floats) -> Floats:
        scale = np.sqrt(self.n * shares)
        information = self.n * (np.diag(shares) - np.outer(shares, shares)) - np.diag(variances)
        total = float(variances.sum())
        if total > 0:
            information += np.outer(variances, variances) / total
        curvatures, axes = np.linalg.eigh(information / np.outer(scale, scale))
        lengths = (axes.T @ (gradient / scale)) / np.maximum(np.abs(curvatures), _FLAT)
        return np.asarray((axes @ lengths) / scale)


def _sum(one: tuple[int, Floats], two: tuple[int, Floats]) -> tuple[int, Floats]:
    """Return the law of the sum of two independent counts, each as its first value and its weights."""
    return one[0] + two[0], np.convolve(one[1], two[1])
