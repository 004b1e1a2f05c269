"""log P(x | a): how likely each released value is for the counts that may lie behind it, whatever the noise."""

import math

import numpy as np

from tabulary.core.arrays import Floats, Integers
from tabulary.infer.table_noise import CountLaw, CountRow, IndependentNoise, TableLaw
from tabulary.noise.count_likelihood import COLUMN, CountLikelihood

# A perturbation without a bound is listed until it is this unlikely beside its likeliest.
_UNLIKELY = 1e-30


class CountLikelihoods:
    """The likelihoods of one noise, each made once: by the number of draws, and by x where the law depends on it."""

    def __init__(self, noise: IndependentNoise) -> None:
        self._noise = noise
        self._known: dict[tuple[int, int | None], CountLikelihood] = {}
        self._rows: dict[int, tuple[int, Floats]] = {}

    def of(self, x: int, terms: int) -> CountLikelihood:
        """Return the likelihood of the counts behind a released value x that holds this many draws."""
        minimum = self._noise.minimum
        depends = isinstance(self._noise.law, CountLaw) or (minimum is not None and x <= minimum)
        key = (terms, x if depends else None)
        if key not in self._known:
            self._known[key] = self._made(x, terms)
        return self._known[key]

    def log_chances(self, x: int, terms: int, counts: Integers) -> Floats:
        """Return log P(x | a) for each of these counts a, -inf where x cannot be released."""
        if not terms:
            return np.where(counts == x, 0.0, -math.inf)
        return self.of(x, terms).at(x, counts)

    def _made(self, x: int, terms: int) -> CountLikelihood:
        law, minimum = self._noise.law, self._noise.minimum
        if minimum is not None and x < minimum:
            # No count is published as less than the minimum.
            return CountLikelihood(COLUMN, table=np.zeros(0))
        if isinstance(law, CountLaw):
            return self._column(law, x)
        return law.likelihood_at_minimum(x) if x == minimum else law.likelihood(terms)

    def _column(self, law: CountLaw, x: int) -> CountLikelihood:
        """Return log P(x | a) of a law that depends on the count, from its rows."""
        lowest = x == self._noise.minimum
        first = 0 if law.bound is None or lowest else max(0, x - law.bound)
        found: list[float] = []
        largest = 0.0
        a = first
        while law.bound is None or a <= x + law.bound:
            start, probabilities = self._row(law, a)
            place = x - start
            if lowest:
                chance = float(probabilities[: max(place + 1, 0)].sum())
            else:
                chance = float(probabilities[place]) if 0 <= place < probabilities.size else 0.0
            largest = max(largest, chance)
            if law.bound is None and a > x and chance <= _UNLIKELY * largest:
                break
            found.append(chance)
            a += 1
        with np.errstate(divide="ignore"):
            table = np.log(found)
        slope = -math.inf
        if law.bound is None and table.size > 1 and np.isfinite(table[-2:]).all():
            slope = min(float(table[-1] - table[-2]), -1e-9)
        return CountLikelihood(COLUMN, slope=slope, table=table, first=first)

    def _row(self, law: CountLaw, original: int) -> tuple[int, Floats]:
        known = original if law.settled is None else min(original, law.settled)
        if known not in self._rows:
            row: CountRow = law.row(known)
            self._rows[known] = row.lowest, row.probabilities
        start, probabilities = self._rows[known]
        return start + original - known, probabilities


def reach_of(law: TableLaw, terms: int, left_out: float) -> tuple[int, int] | None:
    """Return how far below and above a count it is released, but for a small share; None if that is not known."""
    if not terms:
        return 0, 0
    if isinstance(law, CountLaw):
        return None if law.bound is None else (law.bound, law.bound)
    return law.range_of_sum(terms, left_out)
