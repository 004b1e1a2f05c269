"""How far a weighted sum of independent draws can be from zero."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.interruption import checkpoint
from tabulary.errors import InvalidNoise
from tabulary.noise.checks import check_half_width
from tabulary.noise.integer import IntegerNoise
from tabulary.noise.sums import NEGLIGIBLE, check_sum_confidence, smallest

# Probabilities have this error, and the confidence is raised by it.
_PROBABILITY_ERROR = 1e-11
# The blur that makes the law of the sum continuous: its reach in standard deviations, and its smoothness.
_BLUR = 1e-3
_BLUR_ORDER = 16
# Weights this close, relatively, count as multiples of one step.
_ALIKE = 1e-12
_LARGEST_DENOMINATOR = 360
# Above this many steps the blur costs less.
_LARGEST_LATTICE = 1 << 17
_PIECE = 1 << 14


def weighted_half_width(noise: IntegerNoise, weights: ArrayLike, confidence: float) -> float:
    r"""Return an h with P(\|Σ wᵢXᵢ\| ≤ h) ≥ `confidence` for independent draws Xᵢ of `noise`.

    Three cases, each rounded up by its stated error so that h never covers too little:

    - equal weights: \|w\| times the smallest half-width of the integer sum, `noise.half_width`;
    - multiples of one step that is not too fine, such as 1/2, 1/3 and 1: the smallest multiple of the step
      that covers, up to 1e-11 in probability;
    - any other weights: the law may have atoms anywhere, so an independent blur within ±η, η a thousandth of
      the sum's standard deviation, is added. \|S + blur\| ≤ h - η implies \|S\| ≤ h, and the blurred law has
      a characteristic function that falls like t**-16. The result is at most 2η too wide, but for 1e-11 in
      probability.

    Post-processing: reads no data. It evaluates some hundred thousand frequencies, and few of them remain after the
    first weights: a fraction of a second for a thousand different weights. More remain where most draws are zero, σ
    below 1/2 or so; there it may take ten seconds.

    >>> from tabulary.noise import DiscreteGaussian
    >>> weighted_half_width(DiscreteGaussian(1600), [0.5, -0.5, 0.5, 0.5], 0.95)
    78.5
    >>> weighted_half_width(DiscreteGaussian(1600), [1.0, 0.25], 0.95)
    80.75
    """
    total = _Total.of(noise, weights)
    check_half_width(confidence, 1)
    # An integer is zero except with a probability of at most its second moment.
    if total.draws * noise.variance <= 1 - confidence:
        return 0.0
    step = total.step()
    if step is not None and step == total.sizes[0] == total.sizes[-1]:
        return noise.half_width(confidence, total.draws) * step
    check_sum_confidence(confidence)
    if step is not None and total.reach() / step <= _LARGEST_LATTICE:
        return _lattice_half_width(total, step, confidence + _PROBABILITY_ERROR)
    return _blurred_half_width(total, confidence + _PROBABILITY_ERROR)


@dataclass(frozen=True, eq=False)
class _Total:
    """A sum of independent draws: its distinct weights, ascending, each with its count."""

    noise: IntegerNoise
    sizes: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, noise: IntegerNoise, weights: ArrayLike) -> "_Total":
        sizes = np.abs(np.asarray(weights, dtype=np.float64)).ravel()
        if not np.isfinite(sizes).all():
            raise InvalidNoise("the weights of a sum must be finite numbers, and at least one is not.")
        return cls(noise, *np.unique(sizes[sizes > 0], return_counts=True))

    @property
    def draws(self) -> int:
        return int(self.counts.sum())

    @property
    def deviation(self) -> float:
        largest = float(self.sizes[-1])
        squares = float(np.sum(self.counts * (self.sizes / largest) ** 2))
        return largest * math.sqrt(self.noise.variance * squares)

    def step(self) -> float | None:
        """Return the largest step of which all weights are multiples, if it is not too small to be sought."""
        ratios = self.sizes / self.sizes[0]
        for denominator in range(1, _LARGEST_DENOMINATOR + 1):
            multiples = ratios * denominator
            if (np.abs(multiples - np.round(multiples)) <= _ALIKE * multiples).all():
                return float(self.sizes[0]) / denominator
        return None

    def reach(self) -> float:
        r"""Return an h with P(\|S\| > h) ≤ 1e-17, by Chernoff's bound at the best tilt of a grid."""
        deviation, largest = self.deviation, float(self.sizes[-1])
        tilts = np.geomspace(1e-3 / deviation, max(100 / deviation, 16 / largest), 800)
        moments = np.zeros_like(tilts)
        for size, count in zip(self.sizes, self.counts, strict=True):
            moments += count * self.noise.log_moment_bound(size * tilts)
        return float(np.min((math.log(2 / NEGLIGIBLE) + moments) / tilts))

    def surviving(
        self, frequencies: NDArray[np.float64], start: NDArray[np.float64], sizes: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the frequencies at which `start` times the characteristic function is not negligible.

        It also returns that product. The widest terms come first: where they are negligible, the others are not
        evaluated.
        """
        alive, values = frequencies, start
        for size, count in zip(sizes[::-1], self.counts[::-1], strict=True):
            checkpoint()
            values = values * self.noise.characteristic(size * alive) ** count
            kept = np.abs(values) > NEGLIGIBLE
            alive, values = alive[kept], values[kept]
            if not alive.size:
                break
        return alive, values


def _lattice_half_width(total: _Total, step: float, confidence: float) -> float:
    """Return the half-width of a sum that lives on the multiples of `step`, as in `half_width_of_sum`."""
    multiples = np.round(total.sizes / step)
    reach = math.ceil(total.reach() / step)
    circle = 2 * reach + 1

    def survivors(indices: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        angles = 2 * np.pi / circle * indices.astype(np.float64)
        return total.surviving(angles, np.ones_like(angles), multiples)

    angles, values = _in_pieces(survivors, reach)
    values = values / np.sin(angles / 2)

    def covers(h: int) -> bool:
        within = 2 * h + 1 + 2 * float(np.sum(values * np.sin((h + 0.5) * angles)))
        return h >= reach or within / circle >= confidence

    h = smallest(covers, upper=reach) * step
    if np.array_equal(multiples * step, total.sizes):
        return h
    # Weights that are multiples only up to rounding move the sum by trillionths of its terms.
    return h + 1e-9 * (h + total.deviation + float(total.sizes[-1]))


def _blurred_half_width(total: _Total, confidence: float) -> float:
    r"""Return the half-width of the sum plus a blur, and the reach of the blur.

    The blur is the sum of 16 uniform numbers on ±η/16, so its characteristic function is
    (sin(ηt/16) / (ηt/16))**16. On a circle of length L, up to the mass that wraps around,

        P(\|S'\| ≤ h) = (2h + 4 Σ_j φ(t_j) sin(h t_j) / t_j) / L,   t_j = 2πj/L.

    What lies beyond the last frequency T is below (2/π) · (16/(ηT))**16 / 16; T makes it 1e-12.
    """
    blur = _BLUR * total.deviation
    circle = 2 * (total.reach() + blur)
    last = _BLUR_ORDER / blur * (2 / (math.pi * _BLUR_ORDER * 1e-12)) ** (1 / _BLUR_ORDER)

    def survivors(indices: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        frequencies = 2 * np.pi / circle * indices.astype(np.float64)
        smooth = np.sinc(blur * frequencies / (_BLUR_ORDER * np.pi)) ** _BLUR_ORDER
        return total.surviving(frequencies, smooth, total.sizes)

    frequencies, values = _in_pieces(survivors, math.ceil(last * circle / (2 * np.pi)))
    values = values / frequencies
    low, high = 0.0, circle / 2
    while high - low > _BLUR * blur:
        middle = (low + high) / 2
        within = 2 * middle + 4 * float(np.sum(values * np.sin(middle * frequencies)))
        low, high = (low, middle) if within / circle >= confidence else (middle, high)
    return high + blur


def _in_pieces(
    survivors: Callable[[NDArray[np.int64]], tuple[NDArray[np.float64], NDArray[np.float64]]], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the survivors among the frequencies of index 1 … `count`."""
    found = [
        survivors(np.arange(first, min(first + _PIECE, count + 1))) for first in range(1, count + 1, _PIECE)
    ]
    return np.concatenate([t for t, _ in found]), np.concatenate([values for _, values in found])
