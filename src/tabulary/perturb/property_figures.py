"""The numbers that `tabulary.perturb.properties` compares with the eight properties."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tabulary.noise import Truncated
from tabulary.perturb.additive import Additive, Laplace
from tabulary.perturb.exact_delta import delta_between
from tabulary.perturb.largest_entropy import largest_entropy
from tabulary.perturb.perturbation import Perturbation, Row

# The counts at which a law is examined if its rows never repeat.
_PROBES = (0, 10, 1000)
# The counts above a threshold whose rows it still cuts: the nearest are cut most.
_CUT_COUNTS = 32
_LARGEST_BOUND = 4096
# δ at this ε is what no ε removes.
_EVERY_EPSILON = 10**6


@dataclass(frozen=True)
class Figures:
    r"""A law, the wanted properties, and what follows for its rows and its privacy at `epsilon`.

    From `law.settled` on every row is the same law moved along. A `minimum` raises such a row by E max(X, t) with t
    falling as the count grows: the bias falls to that of X. And max(X, t) moves no two values apart, so
    the variance rises to that of X. Hence the largest of each is found at one of the counts 0 to `settled`, or
    at the first that `minimum` does not reach: these are `counts`.

    >>> figures = Figures(Laplace(1.5, bound=7), 0, 1, None, Fraction(3, 2))
    >>> figures.counts, round(figures.biases[0], 4), round(figures.variances[7], 4)
    ((0, 7), 0.2348, 0.7387)
    """

    law: Perturbation
    minimum: int | None
    threshold: int
    variance_limit: Fraction | None
    epsilon: Fraction

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The original counts at which a property of the law is largest, or some if its rows never settle."""
        settled = self.law.settled
        if settled is None:
            return _PROBES
        counts = tuple(range(settled + 1))
        if self.minimum is None or (reached := self.minimum - self.law.row(settled).lowest) <= 0:
            return counts
        return (*counts, settled + reached)

    @cached_property
    def large(self) -> int:
        """A count whose row is that of all larger ones, or an ordinary one if there is none."""
        return _PROBES[1] if self.law.settled is None else self.law.settled

    @cached_property
    def published(self) -> dict[int, Row]:
        """The law of what is published, by original count."""
        return {count: self.law.row(count).at_least(self.minimum) for count in self.counts}

    @cached_property
    def lowest(self) -> int:
        """The smallest value that is listed as published."""
        return min(int(row.values[row.probabilities > 0][0]) for row in self.published.values())

    @cached_property
    def largest_change(self) -> int | None:
        """The largest change that is published; None if there is none."""
        if self.law.bound is None:
            return None
        changes = (np.abs(row.values[row.probabilities > 0] - a) for a, row in self.published.items())
        return max(int(change.max()) for change in changes)

    @cached_property
    def biases(self) -> dict[int, float]:
        """The bias of what is published, by original count."""
        return {count: self.law.bias(count, minimum=self.minimum) for count in self.counts}

    @cached_property
    def variances(self) -> dict[int, float]:
        """The variance of what is published, by original count."""
        return {count: self.law.variance(count, minimum=self.minimum) for count in self.counts}

    @cached_property
    def entropies(self) -> dict[int, tuple[float, float]]:
        """The entropy of what is published, and the largest with the same values, mean and variance."""
        endless = self.law.bound is None
        return {
            count: (self.law.entropy(count, minimum=self.minimum), largest_entropy(row, endless=endless)[0])
            for count, row in self.published.items()
        }

    @cached_property
    def keeps_zeros(self) -> bool:
        """Whether a zero is always published as a zero."""
        return self.published[0].probability(0) == 1

    @cached_property
    def delta(self) -> float:
        """The exact δ at ε."""
        return self.law.delta_at(self.epsilon)

    @cached_property
    def lasting_delta(self) -> float:
        """The δ that remains at every ε: the probability of values that a neighbouring count cannot have.

        After `minimum`, which may hide such values of small counts but of no large ones.
        """
        if self.law.bound is None or self.minimum is None:
            return self.law.delta_at(_EVERY_EPSILON)
        return max(
            self._between(row, self.law.row(count + step).at_least(self.minimum), _EVERY_EPSILON)
            for count, row in self.published.items()
            for step in range(1, self.law.sensitivity + 1)
        )

    def zeros_delta(self, minimum: int | None) -> float:
        """Return the δ at every ε if zeros are left alone: the probability that a neighbour of zero is not zero."""
        rows = (self.law.row(count).at_least(minimum) for count in range(1, self.law.sensitivity + 1))
        return max(1 - row.probability(0) for row in rows)

    @cached_property
    def largest_variance(self) -> float | None:
        """The limit of the variance, or what it is before any value is raised; None if there is no limit."""
        if self.variance_limit is not None:
            return float(self.variance_limit)
        if self.law.settled is None:
            return None
        return max(self.law.variance(count) for count in range(self.law.settled + 1))

    @cached_property
    def variance_delta(self) -> float | None:
        """The least δ of any law, at every ε, that is non-negative, unbiased and within the variance.

        Of a count s: s² = (E b)² ≤ E b² · P(b ≠ 0) by Cauchy & Schwarz, and zeros stay zeros.
        """
        square = self.law.sensitivity**2
        return None if self.largest_variance is None else square / (square + self.largest_variance)

    @cached_property
    def bound_delta(self) -> float | None:
        """The least δ of any law, at every ε, that is non-negative, unbiased and within the bound.

        Of a count s: s = E b ≤ (s + bound) · P(b ≠ 0), and zeros stay zeros.
        """
        step = self.law.sensitivity
        return None if self.law.bound is None else step / (step + self.law.bound)

    @cached_property
    def cut_delta(self) -> float | None:
        """The δ at ε, or less, of the law without all values up to the threshold; None if some count has no other.

        What is left of each row is weighed anew, as in a design that knows the count. A threshold applied to what
        was drawn does not know it, and costs nothing. Examined are the counts that are cut most, and those far away.
        """
        law, last, largest = self.law, self.large, 0.0
        if law.settled is not None:
            last = max(law.settled, self.threshold + _CUT_COUNTS)
            # Counts far above the threshold have these rows too, moved along and not cut.
            moves = range(1, law.sensitivity + 1)
            largest = max(self._between(law.row(last), law.row(last + move)) for move in moves)
        near: list[Row] = []
        for count in range(last + law.sensitivity + 1):
            row = law.row(count)
            kept = np.where(row.values > self.threshold, row.probabilities, 0.0)
            if not kept.any():
                return None
            cut = Row(row.lowest, kept / math.fsum(kept), row.left_out)
            largest = max([largest, *(self._between(cut, other) for other in near)])
            near = [*near, cut][-law.sensitivity :]
        return largest

    @cached_property
    def entropic_delta(self) -> float | None:
        """The δ at ε of the law of largest entropy with the values, means and variances of this one."""
        law, steps = self.law, range(1, self.law.sensitivity + 1)
        if law.settled is None:
            return None
        rows = [largest_entropy(law.row(a), endless=law.bound is None)[1] for a in range(law.settled + 1)]
        last = rows[-1]
        rows += [Row(last.lowest + step, last.probabilities, last.left_out) for step in steps]
        return max(self._between(rows[a], rows[a + step]) for a in range(law.settled + 1) for step in steps)

    @cached_property
    def unbounded_delta(self) -> float | None:
        """The δ at ε of additive noise without its bound; None for a law that is not truncated noise."""
        law = self.law
        if not isinstance(law, Additive) or not isinstance(law.noise, Truncated):
            return None
        if isinstance(law, Laplace):
            return Laplace(law.epsilon, sensitivity=law.sensitivity).delta_at(self.epsilon)
        whole = law.noise.law
        # Beyond forty standard deviations a Gaussian has no probability that a double holds.
        reach = math.ceil(40 * math.sqrt(whole.variance))
        row = whole.pmf(np.arange(-reach, reach + 1))
        return self._between(Row(0, row), Row(law.sensitivity, row))

    @cached_property
    def equally_private(self) -> Laplace:
        """Laplace noise with no larger ε and δ than the law."""
        sensitivity = self.law.sensitivity
        bounds = range(sensitivity, _LARGEST_BOUND)
        place = bisect_left(
            bounds, True, key=lambda m: Laplace(self.epsilon, m, sensitivity=sensitivity).delta <= self.delta
        )
        return Laplace(self.epsilon, bounds[place] if place < len(bounds) else None, sensitivity=sensitivity)

    def equally_varying(self, variance: float) -> Laplace:
        """Return Laplace noise without a bound that has this variance, which is 1/(cosh r - 1) at the rate r."""
        # As 2·asinh(√(1/2v)), without cancellation.
        rate = 2 * math.asinh(math.sqrt(0.5 / variance))
        return Laplace(rate * self.law.sensitivity, sensitivity=self.law.sensitivity)

    def _between(self, one: Row, other: Row, epsilon: float | None = None) -> float:
        """Return the δ at ε of two rows, both ways round; of endless ones, that of the values both list."""
        at = float(self.epsilon) if epsilon is None else epsilon
        if one.left_out or other.left_out:
            one, other = _shared(one, other)
        return max(delta_between(one, other, at), delta_between(other, one, at))


def _shared(*rows: Row) -> list[Row]:
    """Return the rows at the values that all of them list: beyond, a zero would only mean that a list ends."""
    start = max(row.lowest for row in rows)
    end = min(row.lowest + row.probabilities.size for row in rows)
    return [Row(start, row.probabilities[start - row.lowest : end - row.lowest]) for row in rows]
