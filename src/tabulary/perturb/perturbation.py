"""A perturbation: the law p(a, b) of the published count b for an original count a."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import Drawable, Sampler

if TYPE_CHECKING:
    from tabulary.perturb.published import PerturbedTable

UtilityLoss = Literal["l1", "l2", "l3"]


@dataclass(frozen=True, eq=False)
class Row:
    """The published values of one original count, `lowest` and on, with their probabilities.

    The values after the last one have a total probability of at most `left_out`; it is zero for a finite law.
    """

    lowest: int
    probabilities: Floats
    left_out: float = 0.0

    @property
    def values(self) -> NDArray[np.int64]:
        """The published values, ascending."""
        return np.arange(self.lowest, self.lowest + self.probabilities.size)

    def probability(self, value: int) -> float:
        """Return the probability of one published value.

        >>> Row(3, np.array([0.5, 0.5])).probability(4)
        0.5
        """
        place = value - self.lowest
        return float(self.probabilities[place]) if 0 <= place < self.probabilities.size else 0.0

    def at_least(self, minimum: int | None) -> "Row":
        """Return the row after every value below `minimum` is published as `minimum`.

        >>> Row(-1, np.array([0.25, 0.5, 0.25])).at_least(0).probabilities.tolist()
        [0.75, 0.25]
        """
        if minimum is None or self.lowest >= minimum:
            return self
        below = min(minimum - self.lowest, self.probabilities.size - 1)
        gathered = self.probabilities[below:].copy()
        gathered[0] += self.probabilities[:below].sum()
        return Row(minimum, gathered, self.left_out)


class Perturbation(ABC):
    """What every perturbation can report about itself, computed only from its rows p(a, ·).

    `epsilon` is the ε that its parameters name, None for a law without one. `bound` is the largest change, None for
    a law without one. `sensitivity` is the largest amount that one person adds to one count: 1 for counts of
    people, the largest weight for weighted counts. One person is in one cell; for lists in which one person is in
    several cells, see `tabulary.perturb.Tables`.
    """

    epsilon: Fraction | None
    bound: int | None
    sensitivity: int

    @abstractmethod
    def row(self, original: int) -> Row:
        """Return the law of the published value of an original count."""

    @abstractmethod
    def drawn(self, original: int) -> Drawable:
        """Return what is drawn, exactly, and added to an original count."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the family and its exact parameters, ready for JSON: all that an analyst needs."""

    @property
    @abstractmethod
    def settled(self) -> int | None:
        """The original count from which all rows are the same row, shifted; None if there is none."""

    @abstractmethod
    def delta_at(self, epsilon: object) -> float:
        """Return the smallest δ for which one table of these counts is (ε, δ)-differentially private.

        Over all neighbouring counts; rounded up in the last digits. See `tabulary.perturb.exact_delta`.
        """

    def transition(self, a: int, b: int) -> float:
        """Return p(a, b): the probability that the original count `a` is published as `b`."""
        return self.row(checked_count(a)).probability(b)

    @property
    def delta(self) -> float:
        """The exact δ at `epsilon`, the ε that the parameters name."""
        if self.epsilon is None:
            raise InvalidNoise(
                f"{type(self).__name__} names no ε, so it has no δ of its own. Ask for its δ at some ε: "
                ".delta_at(1)."
            )
        return self.delta_at(self.epsilon)

    @property
    def truncation_delta(self) -> float:
        """The δ of truncation by Rinott et al. (2018), (4.10): the likeliest published value that a neighbour forbids.

        The largest p(a, b) with p(a', b) = 0 for a neighbouring count a'. It is a valid δ only where every
        other ratio is within the ε and one value is forbidden; `delta` is computed without such conditions.
        """
        from tabulary.perturb.exact_delta import largest_forbidden

        return largest_forbidden(self)

    def apply(
        self, table: Table, *, minimum: int | None = None, sampler: Sampler | None = None
    ) -> "PerturbedTable":
        """Return the table with every possible cell perturbed separately; see `tabulary.perturb.perturb`."""
        from tabulary.perturb.published import perturb

        return perturb(table, self, minimum=minimum, sampler=sampler)

    def privacy(self) -> PureDP | ApproxDP:
        """Return what is promised for one table: (ε, δ) with the named ε and its exact δ, rounded up."""
        if self.epsilon is None:
            raise InvalidNoise(f"{type(self).__name__} names no ε. Ask for its δ at some ε: .delta_at(1).")
        delta = self.delta
        return PureDP(self.epsilon) if delta == 0 else ApproxDP(self.epsilon, rounded_up(delta))

    def epsilon_at(self, delta: float = 0.0) -> float:
        """Return the smallest ε for which one table is (ε, δ)-differentially private; infinite if there is none.

        The inverse of `delta_at`, by bisection to ten digits, rounded up. With δ = 0 it is the true pure ε.
        """
        if not 0 <= delta < 1:
            raise InvalidNoise(f"A δ must be at least 0 and below 1, not {delta!r}.")
        low, high = 0.0, 1.0
        while self.delta_at(high) > delta:
            low, high = high, 2 * high
            if high > 2**12:
                return math.inf
        if self.delta_at(low) <= delta:
            return 0.0
        while high - low > 1e-10 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_at(middle) <= delta else (middle, high)
        return high

    def bias(self, original: int, *, minimum: int | None = None) -> float:
        """Return the expected published value less the original one."""
        row = self.row(checked_count(original)).at_least(minimum)
        return math.fsum(row.probabilities * (row.values - original))

    def variance(self, original: int, *, minimum: int | None = None) -> float:
        """Return the variance of the published value of an original count, about its mean."""
        row = self.row(checked_count(original)).at_least(minimum)
        moved = row.values - original
        mean = math.fsum(row.probabilities * moved)
        return math.fsum(row.probabilities * (moved - mean) ** 2)

    def entropy(self, original: int, *, minimum: int | None = None) -> float:
        """Return the entropy of the published value of an original count, in nats."""
        probabilities = self.row(checked_count(original)).at_least(minimum).probabilities
        positive = probabilities[probabilities > 0]
        return -math.fsum(positive * np.log(positive))

    def expected_loss(
        self, loss: UtilityLoss, original: int | Iterable[int] | Table, *, minimum: int | None = None
    ) -> float:
        """Return the expected loss of one count, or its sum over the counts of a table.

        The losses of Rinott et al. (2018), section 4.2: `l1` is the sum of all changes, `l2` of their
        squares, `l3` of the changes of the square roots. Negative values have no root: `l3` needs a
        `minimum` of 0 or more unless the law publishes none. Impossible cells are not perturbed and lose nothing.
        """
        if loss not in get_args(UtilityLoss):
            raise InvalidNoise(f"The loss must be 'l1', 'l2' or 'l3', not {loss!r}.")
        counts, times = np.unique(perturbable_counts(original), return_counts=True)
        each = [self._loss(loss, int(count), minimum) for count in counts]
        return math.fsum(e * int(t) for e, t in zip(each, times, strict=True))

    def _loss(self, loss: UtilityLoss, original: int, minimum: int | None) -> float:
        row = self.row(original).at_least(minimum)
        if loss == "l3":
            if row.lowest < 0:
                raise InvalidNoise(
                    "The loss 'l3' compares square roots, but this perturbation publishes negative values. "
                    "Say what replaces them: expected_loss('l3', counts, minimum=0)."
                )
            return math.fsum(row.probabilities * np.abs(np.sqrt(row.values) - math.sqrt(original)))
        return math.fsum(row.probabilities * np.abs(row.values - original) ** (1 if loss == "l1" else 2))


def checked_count(value: object) -> int:
    """Return a whole number that is not negative, or raise InvalidTable."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidTable("an original count must be a whole number, and not negative.")
    return int(value)


def perturbable_counts(original: int | Iterable[int] | Table) -> NDArray[np.int64]:
    """Return the counts that a perturbation changes: all except those of impossible cells."""
    if isinstance(original, Table):
        table = original
        counts = table.counts[~table.domain.impossible(table.domain.attributes)]
    else:
        counts = np.atleast_1d(np.asarray(original))
    if counts.dtype.kind not in "iu" or np.any(counts < 0):
        raise InvalidTable("the original counts must be whole numbers, and not negative.")
    return counts.astype(np.int64)


def rounded_up(delta: float) -> Fraction:
    """Return a δ rounded up to six digits, so that it is readable and never too small.

    >>> rounded_up(1.7489922673e-05)
    Fraction(1749, 100000000)
    """
    with localcontext(Context(prec=6, rounding=ROUND_CEILING)):
        return Fraction(+Decimal(math.nextafter(delta, math.inf)))
