"""The law of largest entropy on given offsets, with mean zero and further constraints.

The program is: maximise -Σ p log p subject to Σ p = 1, Σ k p = 0, Σ k² p = variance, p(0) = stay, and p not rising
outward. Its dual has one variable for each equation: log p = λ·f(k) + constant, with the features
f(k) = (k, k², 1[k = 0]). Where p may not rise outward, log p is the isotonic regression of λ·f towards offset 0,
since the derivative of the entropy is -log p - 1 and order constraints average derivatives (Barlow & Brunk 1972).
The dual is convex and its gradient continuous, so damped Newton steps find its minimum. Where they do not, what
was asked cannot be had, or lies at the very end of what can; a linear program tells which variances there are.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats

_NEWTON_STEPS = 500
_HALVINGS = 60
# Below this gain the dual's own rounding would mislead a line search, and whole steps converge by themselves.
_SURE_GAIN = 1e-7
_PATIENCE = 20
# Above it a full step may jump to a law with all probability on one offset, and no step leads back from there.
_WHOLE_STEPS = 1 / 16
# With few blocks left their covariance is singular, and the gradient must lead to more of them.
_DAMPING = 1e-3
_LEAST_DAMPING = 1e-13
# Below this a feature does not vary, and its square is lost among the smallest numbers.
_NO_VARIATION = 1e-100


@dataclass(frozen=True, eq=False)
class EntropyProgram:
    """A law on ascending `offsets` with mean 0; with `variance` and P(0) = `stay` unless they are None.

    With `mono`, of two offsets on the same side of 0 the farther is not the likelier, and none is likelier
    than 0 where that is an offset.
    """

    offsets: NDArray[np.int64]
    variance: float | None
    stay: float | None
    mono: bool

    def solve(self) -> Floats:
        """Return the probabilities of the offsets; if no law satisfies the constraints, these do not either.

        >>> EntropyProgram(np.arange(-1, 2), 0.5, None, False).solve().round(6).tolist()
        [0.25, 0.5, 0.25]
        """
        features, targets = self._equations()
        multipliers = np.zeros(targets.size)
        now = best = self._tilted(features, multipliers)
        least, waited = math.inf, 0
        for _ in range(_NEWTON_STEPS):
            gradient = now.means - targets
            missed = float(np.abs(gradient).max())
            best, least, waited = (now, missed, 0) if missed < least else (best, least, waited + 1)
            step = _newton_step(now.covariance, gradient)
            gain = -float(gradient @ step)
            if not 0 < gain < math.inf or (least < _SURE_GAIN and waited > _PATIENCE):
                break
            # The length at which a self-concordant function surely falls; nearer to its minimum, the whole step.
            length = 1.0 if gain < _WHOLE_STEPS else 1 / (1 + math.sqrt(gain))
            value = now.log_total - float(multipliers @ targets)
            for _ in range(_HALVINGS if gain > _SURE_GAIN else 1):
                tried = multipliers + length * step
                now = self._tilted(features, tried)
                if now.log_total - float(tried @ targets) <= value - 1e-4 * length * gain:
                    break
                length /= 2
            multipliers = tried
        return self._symmetric(best.probabilities)

    def variances(self) -> tuple[float, float] | None:
        """Return the smallest and the largest possible variance under all other constraints; None if there is none.

        >>> EntropyProgram(np.arange(-1, 6), None, None, False).variances()
        (0.0, 5.0)
        """
        # Loaded only for an error message.
        import highspy

        from tabulary.linear_solver import linear_solver

        k = self.offsets.astype(np.float64)
        every = np.arange(k.size, dtype=np.int32)
        model = linear_solver()
        lower, upper = np.zeros(k.size), np.ones(k.size)
        if self.stay is not None:
            lower[k == 0] = upper[k == 0] = self.stay
        model.addVars(k.size, lower, upper)
        model.addRow(1.0, 1.0, k.size, every, np.ones(k.size))
        model.addRow(0.0, 0.0, k.size, every, k)
        for near, far in self._order():
            model.addRow(0.0, 1.0, 2, np.array([near, far], dtype=np.int32), np.array([1.0, -1.0]))
        found = []
        for sign in (1.0, -1.0):
            model.changeColsCost(k.size, every, sign * k * k)
            model.run()
            if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
            found.append(sign * float(model.getInfo().objective_function_value) + 0.0)
        return found[0], found[1]

    def _equations(self) -> tuple[Floats, Floats]:
        """Return one feature per column, in units of the largest offset, and the required mean of each."""
        unit = float(np.abs(self.offsets).max()) or 1.0
        k = self.offsets / unit
        columns, targets = [k], [0.0]
        if self.variance is not None:
            columns.append(k * k)
            targets.append(self.variance / unit**2)
        if self.stay is not None:
            columns.append((self.offsets == 0).astype(np.float64))
            targets.append(self.stay)
        return np.stack(columns, axis=1), np.array(targets)

    def _tilted(self, features: Floats, multipliers: Floats) -> "_Tilted":
        """Return the law with log p = features · multipliers, averaged where it may not rise outward."""
        sizes = np.ones(self.offsets.size, dtype=np.intp)
        if self.mono:
            sizes = np.array(_blocks(features @ multipliers, self.offsets), dtype=np.intp)
        starts = np.cumsum(sizes) - sizes
        averaged = np.add.reduceat(features, starts, axis=0) / sizes[:, None]
        logs = averaged @ multipliers
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = math.fsum(sizes * weights)
        mass = sizes * weights / total
        means = mass @ averaged
        centred = averaged - means
        covariance = (centred * mass[:, None]).T @ centred
        return _Tilted(np.repeat(weights / total, sizes), top + math.log(total), means, covariance)

    def _symmetric(self, probabilities: Floats) -> Floats:
        """Return the law made symmetric if its offsets are: the solution is, up to rounding."""
        if np.array_equal(self.offsets, -self.offsets[::-1]):
            return np.asarray((probabilities + probabilities[::-1]) / 2)
        return probabilities

    def _order(self) -> list[tuple[int, int]]:
        """Return the neighbouring places (nearer to 0, farther) that `mono` orders."""
        if not self.mono:
            return []
        k = self.offsets
        places = range(k.size - 1)
        return [(i, i + 1) for i in places if k[i] >= 0] + [(i + 1, i) for i in places if k[i + 1] <= 0]


class _Tilted(NamedTuple):
    probabilities: Floats
    log_total: float
    means: Floats
    covariance: Floats


def _newton_step(covariance: Floats, gradient: Floats) -> Floats:
    """Return a Newton step, in units in which every feature varies alike, damped as far as the goal is missed."""
    scales = np.sqrt(np.diag(covariance))
    # A feature that hardly varies among so few blocks may vary among others, farther along its gradient.
    scales[scales < _NO_VARIATION] = 1.0
    missed = gradient / scales
    damping = max(_LEAST_DAMPING, _DAMPING * min(1.0, float(np.abs(missed).max())))
    damped = covariance / np.outer(scales, scales) + damping * np.eye(missed.size)
    return np.asarray(-np.linalg.solve(damped, missed) / scales)


def _blocks(heights: Floats, offsets: NDArray[np.int64]) -> list[int]:
    """Return the sizes of the blocks that an isotonic regression towards offset 0 averages.

    Each side by itself from its far end inward, pooling what falls; then 0 pools with the higher of its two
    neighbours while that is higher than itself: the order is a tree with its root at 0 (Pardalos & Xue 1999).

    >>> _blocks(np.array([3.0, 1.0, 2.0, 0.0, 5.0]), np.arange(-2, 3))
    [2, 3]
    """
    below = int(np.searchsorted(offsets, 0))
    above = below + int(below < offsets.size and offsets[below] == 0)
    left = _rising(heights[:below].tolist())
    right = _rising(heights[above:][::-1].tolist())
    if above == below:
        return [size for _, size in left] + [size for _, size in reversed(right)]
    total, size = float(heights[below]), 1
    while sides := [side for side in (left, right) if side and side[-1][0] / side[-1][1] > total / size]:
        more, members = max(sides, key=lambda side: side[-1][0] / side[-1][1]).pop()
        total, size = total + more, size + members
    return [size for _, size in left] + [size] + [size for _, size in reversed(right)]


def _rising(heights: list[float]) -> list[tuple[float, int]]:
    """Return (sum, size) of the blocks of the rising regression of a sequence."""
    blocks: list[tuple[float, int]] = []
    for height in heights:
        total, size = height, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            more, members = blocks.pop()
            total, size = total + more, size + members
        blocks.append((total, size))
    return blocks
