"""The law of how many people have the private attribute, if they have it independently with known priors."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabulary.errors import InvalidTable


class PoissonBinomial:
    r"""People of one or more kinds: `people[t]` of them have the attribute with `probability[t]`, independently.

    Nabar & Mishra (2010), section 5.2. Their number is Poisson-binomial: the weight of v ones is the v-th elementary
    symmetric polynomial of the odds p/(1-p). Everything here is public; no private value is read.

    >>> count_law = PoissonBinomial([2, 1], [0.5, 0.1])
    >>> np.exp(count_law.log_weights).round(3).tolist()
    [0.225, 0.475, 0.275, 0.025]
    >>> count_law.chances[:, 1].round(3).tolist()
    [0.053, 0.474]
    """

    def __init__(self, people: Iterable[int], probability: Iterable[float]) -> None:
        number = np.asarray(list(people), dtype=np.int64)
        prior = np.asarray(list(probability), dtype=np.float64)
        if number.shape != prior.shape or number.ndim != 1:
            raise InvalidTable("give one number of people and one probability for each kind of person.")
        if (number < 0).any():
            raise InvalidTable("a number of people is below zero.")
        if not ((prior > 0) & (prior < 1))[number > 0].all():
            raise InvalidTable(
                "a probability is not strictly between 0 and 1. Leave people whose value is certain out."
            )
        # People with the same prior are of one kind, whatever they were called.
        self.probability, kind = np.unique(prior[number > 0], return_inverse=True)
        self.people = np.bincount(kind, weights=number[number > 0]).astype(np.int64)

    @property
    def size(self) -> int:
        """How many people there are."""
        return int(self.people.sum())

    @property
    def variance(self) -> float:
        """The variance of how many have it."""
        return float(self.people @ (self.probability * (1 - self.probability)))

    @cached_property
    def log_weights(self) -> NDArray[np.float64]:
        """The logarithm of the probability of 0, 1, ..., `size` people with the attribute."""
        return _product(
            [_binomial(int(n), float(p)) for n, p in zip(self.people, self.probability, strict=True)]
        )

    @cached_property
    def chances(self) -> NDArray[np.float64]:
        r"""The probability that a person of kind t has the attribute when v of the count_law do, for each t and v.

        p_t W(v-1; all but that person) / W(v; all), where W are probabilities.
        """
        return self.chances_between(0, self.size)

    def chances_between(self, low: int, high: int) -> NDArray[np.float64]:
        """Return `chances` for v = low, ..., high only: those of many people of many kinds fill the memory."""
        if not self.people.size:
            return np.zeros((0, high - low + 1))
        if self.people.size == 1:
            # People of one kind share alike.
            return np.arange(low, high + 1)[None, :] / self.size
        from tabulary.table_samplers.poisson_binomial_kernels import chances_of

        return chances_of(self.log_weights, self.probability / (1 - self.probability), low, high)

    def posterior(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each kind's probability of having the attribute, for a law of the count over 0, ..., `size`."""
        return self.chances @ marginal

    def deviation(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return the largest |1 - posterior/prior| over kinds of people and both values of the attribute.

        `posterior` holds kinds along its first axis; the others are kept. Nabar & Mishra, Definition 1.
        """
        if not self.people.size:
            return np.zeros(posterior.shape[1:])
        prior = self.probability.reshape(-1, *[1] * (posterior.ndim - 1))
        moved = np.abs(posterior - prior) / np.minimum(prior, 1 - prior)
        return np.asarray(moved.max(axis=0))

    def __repr__(self) -> str:
        return f"<PoissonBinomial of {self.size:,} people of {self.people.size} kinds>"


def _binomial(number: int, prior: float) -> NDArray[np.float64]:
    ones = np.arange(number + 1)
    ways = gammaln(number + 1) - gammaln(ones + 1) - gammaln(number - ones + 1)
    return np.asarray(ways + ones * np.log(prior) + (number - ones) * np.log1p(-prior))


def _product(factors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    # The compiled sums take a moment to load, and one kind of person does not need them.
    if not factors:
        return np.zeros(1)
    if len(factors) == 1:
        return factors[0]
    from tabulary.table_samplers.poisson_binomial_kernels import log_convolution

    middle = len(factors) // 2
    return log_convolution(_product(factors[:middle]), _product(factors[middle:]))
