"""Perturbations that add the same noise to every count: discrete Laplace and discrete Normal."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, Truncated
from tabulary.noise.truncated import check_bound
from tabulary.perturb.exact_delta import checked_epsilon, delta_between
from tabulary.perturb.perturbation import Perturbation, Row, UtilityLoss

# A law without a bound is summed over values that contain all but this share of it.
_LEFT_OUT = 1e-17
_MOST_VALUES = 20_000_000


class Additive(Perturbation):
    """A perturbation whose noise does not depend on the count.

    Unbiased, because the noise is symmetric. Negative values are published unless there is a `minimum`.
    """

    epsilon: Fraction
    noise: DiscreteLaplace | Truncated
    settled = 0

    def pmf(self, offset: ArrayLike) -> Floats:
        """Return how likely each offset is added to a count."""
        return self.noise.pmf(offset)

    def row(self, original: int) -> Row:
        """Return the law of the published value of an original count."""
        reach, probabilities, left_out = _row(self.noise, self.bound)
        return Row(original - reach, probabilities, left_out)

    def drawn(self, original: int) -> IntegerNoise:
        """Return the noise: the same for every count."""
        return self.noise

    def delta_at(self, epsilon: object) -> float:
        """Return the exact δ at ε, the same for every pair of neighbouring counts."""
        # The noise is log-concave, so a larger change of a count is never better hidden.
        return delta_between(self.row(0), self.row(self.sensitivity), checked_epsilon(epsilon))

    def variance(self, original: int = 0, *, minimum: int | None = None) -> float:
        """Return the variance of the published value; that of the noise while negatives are kept."""
        return self.noise.variance if minimum is None else super().variance(original, minimum=minimum)

    def bias(self, original: int = 0, *, minimum: int | None = None) -> float:
        """Return the expected change of an original count; zero while negatives are kept."""
        return 0.0 if minimum is None else super().bias(original, minimum=minimum)

    def expected_loss(
        self, loss: UtilityLoss, original: int | Iterable[int] | Table = 0, *, minimum: int | None = None
    ) -> float:
        """Return the expected loss; `l1` and `l2` need no original count while negatives are kept.

        >>> laplace = Laplace(0.5)
        >>> round(laplace.expected_loss("l1"), 4), round(laplace.expected_loss("l1", 3, minimum=0), 4)
        (1.919, 1.7049)
        """
        return super().expected_loss(loss, original, minimum=minimum)

    @property
    @abstractmethod
    def family(self) -> str:
        """The name of the law."""

    def describe(self) -> dict[str, str]:
        """Return the family and its exact parameters."""
        described = {"family": self.family, "epsilon": str(self.epsilon)}
        if self.bound is not None:
            described["bound"] = str(self.bound)
        return described | ({"sensitivity": str(self.sensitivity)} if self.sensitivity > 1 else {})

    def __str__(self) -> str:
        bound = "" if self.bound is None else f", at most ±{self.bound:,}"
        return f"discrete {self.family} perturbation, ε = {show_fraction(self.epsilon)}{bound}"


@dataclass(frozen=True, init=False)
class Laplace(Additive):
    r"""Adds x with probability ∝ exp(-ε\|x\| / sensitivity), truncated at ±`bound` if there is one.

    Rinott, O'Keefe, Shlomo & Skinner (2018), (5.1) and (5.2): the exponential mechanism for the loss l1. One
    more person moves one count by at most `sensitivity` s, so no log-probability moves by more than ε: without
    a bound it is ε-differentially private. With a bound m the s outermost values become impossible, and
    δ is exactly their probability; with s = 1 that is p(m), (4.10) of the paper.

    >>> Laplace(1.5, bound=7).privacy().epsilon, f"{Laplace(1.5, bound=7).delta:.7f}"
    (Fraction(3, 2), '0.0000175')
    >>> Laplace(1).delta, round(Laplace(1).expected_loss("l1"), 4)
    (0.0, 0.8509)
    """

    epsilon: Fraction
    bound: int | None
    sensitivity: int

    def __init__(self, epsilon: object, bound: int | None = None, *, sensitivity: int = 1) -> None:
        _settle(self, epsilon, bound, sensitivity)
        noise = DiscreteLaplace(self.sensitivity / self.epsilon)
        object.__setattr__(self, "noise", noise if bound is None else Truncated(noise, bound))

    @property
    def family(self) -> str:
        """The name of the law."""
        return "laplace"

    def delta_at(self, epsilon: object) -> float:
        """Return the exact δ at ε; in closed form without a bound."""
        if self.bound is not None:
            return super().delta_at(epsilon)
        return _laplace_delta(float(self.epsilon), self.sensitivity, checked_epsilon(epsilon))

    def _loss(self, loss: UtilityLoss, original: int, minimum: int | None) -> float:
        if minimum is None and loss == "l2":
            return self.noise.variance
        if minimum is None and loss == "l1" and self.bound is None:
            # 2α / (1 - α²) with α = exp(-rate). The limit that the paper prints lacks the factor 2.
            return 1 / math.sinh(float(self.epsilon / self.sensitivity))
        return super()._loss(loss, original, minimum)


@dataclass(frozen=True, init=False)
class Normal(Additive):
    r"""Adds x with probability ∝ exp(-ε x² / (2m + 1)) for \|x\| ≤ m, the `bound`.

    Rinott et al. (2018), (5.3): the exponential mechanism for the loss l2. Without a bound one person could change
    a log-probability without limit, so there must be a bound. With sensitivity s the divisor is s(2m + s) = (m +
    s)² - m². The paper's ε covers a change that ends outside the bound; inside it a log-probability changes by at
    most ε (2m - 1)/(2m + 1) for s = 1, so the same δ = p(m) holds at a smaller ε: see `epsilon_at(delta)`.

    >>> round(Normal(1, bound=10).delta, 5), round(Normal(1, bound=10).epsilon_at(Normal(1, bound=10).delta), 4)
    (0.00105, 0.9048)
    """

    epsilon: Fraction
    bound: int
    sensitivity: int

    def __init__(self, epsilon: object, bound: int | None = None, *, sensitivity: int = 1) -> None:
        if bound is None:
            raise InvalidNoise(
                "Normal perturbation needs a bound: without one, this construction has no ε for any δ. "
                "Give one, for example Normal(1, bound=10), or use Laplace. Nothing was drawn."
            )
        _settle(self, epsilon, bound, sensitivity)
        divisor = sensitivity * (2 * bound + sensitivity)
        noise = DiscreteGaussian(Fraction(divisor, 2) / self.epsilon)
        object.__setattr__(self, "noise", Truncated(noise, bound))

    @property
    def family(self) -> str:
        """The name of the law."""
        return "normal"


def _settle(law: Additive, epsilon: object, bound: int | None, sensitivity: int) -> None:
    """Set the checked parameters of a law."""
    if bound is not None:
        check_bound(bound)
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or sensitivity < 1:
        raise InvalidNoise(
            f"The sensitivity of a count must be a positive whole number, not {sensitivity!r}."
        )
    if bound is not None and 2 * bound < sensitivity:
        raise InvalidNoise(
            f"The bound {bound} is below half the sensitivity {sensitivity}: two neighbouring counts could "
            "never be published as the same value. Choose a larger bound, or none. Nothing was drawn."
        )
    object.__setattr__(law, "epsilon", PureDP(epsilon).epsilon)
    object.__setattr__(law, "bound", bound)
    object.__setattr__(law, "sensitivity", sensitivity)


@lru_cache(maxsize=64)
def _row(noise: DiscreteLaplace | Truncated, bound: int | None) -> tuple[int, Floats, float]:
    """Return how far a row reaches, its probabilities, and what lies beyond."""
    reach = bound
    if reach is None:
        assert isinstance(noise, DiscreteLaplace), "what is not cut is Laplace"
        # P(|X| > h) = 2 exp(-(h + 1)/scale) / (1 + exp(-1/scale)).
        reach = math.ceil(float(noise.scale) * math.log(2 / _LEFT_OUT))
        if 2 * reach > _MOST_VALUES:
            raise InvalidNoise(
                "Such a small ε spreads the counts over more values than can be listed. Give a bound, or "
                "use a quantity with a closed form: delta, variance, the losses l1 and l2."
            )
    probabilities = noise.pmf(np.arange(-reach, reach + 1))
    probabilities.flags.writeable = False
    return reach, probabilities, 0.0 if bound is not None else _LEFT_OUT


def _laplace_delta(named: float, sensitivity: int, epsilon: float) -> float:
    """Return δ(ε) of the discrete Laplace law without a bound, with rate named / sensitivity.

    The loss at x is rate·(|x - s| - |x|): ε named for x ≤ 0, which has probability 1/(1 + q), and
    rate·(s - 2x) for 0 < x < s; further on it is negative.
    """
    if epsilon >= named:
        return 0.0
    rate = named / sensitivity
    left = -math.expm1(epsilon - named) / (1 + math.exp(-rate))
    x = np.arange(1, (sensitivity + 1) // 2)
    losses = rate * (sensitivity - 2 * x)
    terms = math.tanh(rate / 2) * np.exp(-rate * x) * -np.expm1(np.minimum(epsilon - losses, 0.0))
    return min(1.0, (left + math.fsum(terms)) * (1 + 1e-13))
