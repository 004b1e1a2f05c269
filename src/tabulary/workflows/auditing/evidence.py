"""What draws from a mechanism prove about the privacy that it gives.

Two inputs are measured many times, and each outcome is reduced to the likelihood ratio L (`curve`). The event "L is
above t" is likely on one input and unlikely on the other. How often it is seen bounds both probabilities (Clopper &
Pearson 1934), all bounds together at the stated confidence. They bound δ at ε = t from below, and ε itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.mechanisms import measure
from tabulary.noise import Drawable, IntegerNoise, Sampler
from tabulary.planning import Plan
from tabulary.workflows.auditing.cost import laws_of
from tabulary.workflows.auditing.curve import LossLaw
from tabulary.workflows.auditing.records import InventedRecord, measured, noisy_numbers, tally_of

SABOTAGED = Fraction(7, 10)
"""The scale of the twin's noise, as a part of what the plan says."""

# Draws are handed out from stocks of this many, and reduced so many numbers at a time.
_STOCK = 1 << 16
_BATCH_NUMBERS = 1 << 20
_DIGITS = 10


def clopper_pearson(successes: int, trials: int, error: float) -> tuple[float, float]:
    """Return a lower and an upper bound of a probability, each wrong with a probability of at most `error`.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.398, 0.602)
    """
    # Loaded here: it takes longer to load than all of Tabulary.
    from scipy.stats import beta

    low = float(beta.ppf(error, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.isf(error, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


@dataclass(frozen=True)
class NarrowedSampler:
    """Draws at a scale times `factor`, as a mechanism with a wrong constant would. No release may use it."""

    sampler: Sampler
    factor: Fraction = SABOTAGED

    def draw(self, noise: Drawable, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws from a law that is too narrow."""
        law: IntegerNoise = noise  # type: ignore[assignment]
        return self.sampler.draw(law.narrowed(self.factor), size)


@dataclass
class StockedSampler:
    """Hands out the draws of another sampler, which makes many at a time: small parts are drawn thousands of times."""

    sampler: Sampler
    _stocks: dict[Drawable, NDArray[np.int64]] = field(default_factory=dict)

    def draw(self, noise: Drawable, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return draws of `noise` that nobody has got before."""
        shape = (size,) if isinstance(size, int) else size
        count = math.prod(shape)
        stock = self._stocks.get(noise)
        if stock is None or stock.size < count:
            stock = self.sampler.draw(noise, max(count, _STOCK))
        self._stocks[noise] = stock[count:]
        return stock[:count].reshape(shape)


@dataclass(frozen=True)
class Inputs:
    """Two tables of invented records, `people` persons apart, and how an observer weighs what is measured of them."""

    plan: Plan
    without: dict[InventedRecord, int]
    within: dict[InventedRecord, int]
    people: int

    def losses(
        self, records: dict[InventedRecord, int], sampler: Sampler, draws: int, step: Callable[[int], None]
    ) -> Floats:
        """Return L of so many measurements of one of the tables, through `mechanisms.measure`."""
        centres = [noisy_numbers(measured(self.plan, each)) for each in (self.without, self.within)]
        moved = np.flatnonzero(centres[0] != centres[1])
        laws, group = laws_of(self.plan)
        columns = [(law, np.flatnonzero(group[moved] == i)) for i, law in enumerate(laws)]
        without, within = (centre[moved] for centre in centres)
        tally = tally_of(self.plan, records)
        found = np.empty(draws)
        batch = max(1, _BATCH_NUMBERS // max(moved.size, 1))
        for start in range(0, draws, batch):
            rows = range(start, min(start + batch, draws))
            values = np.array([noisy_numbers(measure(tally, self.plan, sampler))[moved] for _ in rows])
            losses = sum(
                law.loss(values[:, own] - within[own], (within - without)[own]).sum(axis=1)
                for law, own in columns
            )
            # Losses that cancel are zero: rounding must not decide on which side of a threshold they lie.
            found[rows.start : rows.stop] = np.round(losses, _DIGITS)
            step(len(rows))
        return found


@dataclass(frozen=True)
class Event:
    """One event and what was seen of it: `delta` is at least so large, and the laws of the plan allow `allowed`."""

    threshold: float
    forward: bool
    likely: int
    unlikely: int
    delta: float
    allowed: float
    epsilon: float

    @property
    def broken(self) -> bool:
        """Whether more was seen than the noise of the plan allows."""
        return self.delta > self.allowed


@dataclass(frozen=True)
class Evidence:
    """What all events show together, at one confidence."""

    events: tuple[Event, ...]
    draws: int
    people: int
    factor: float
    """At least how many times the plan's privacy loss the draws show, if the noise has the shape that the plan says."""

    @property
    def broken(self) -> bool:
        """Whether an event was seen more often than the noise of the plan allows."""
        return any(event.broken for event in self.events)

    @property
    def epsilon(self) -> float:
        """A lower bound of the ε of one person, whatever the shape of the noise, if δ is zero."""
        return max(0.0, *(event.epsilon for event in self.events)) / self.people


def gather(
    inputs: Inputs,
    sampler: Sampler,
    *,
    draws: int,
    thresholds: Sequence[float],
    curve: Callable[[Fraction], LossLaw],
    error: float,
    progress: Progress,
    what: str,
) -> Evidence:
    """Return what draws from both inputs prove; the probability that any bound is wrong is at most `error`.

    `curve` gives the law of L if the noise had a factor times its scale: at one, what the plan allows.
    """
    done = 0

    def step(count: int) -> None:
        nonlocal done
        done += count
        progress(what, done, 2 * draws)

    progress(what, 0, 2 * draws)
    stocked = StockedSampler(sampler)
    without, within = (inputs.losses(t, stocked, draws, step) for t in (inputs.without, inputs.within))
    allowed = curve(Fraction(1))
    # Each threshold in both directions, and of each event a lower and an upper bound.
    each = error / (4 * len(thresholds))
    events = []
    for threshold in thresholds:
        for forward, near, far in ((True, within, without), (False, -without, -within)):
            likely, unlikely = (int((losses > threshold).sum()) for losses in (near, far))
            low = clopper_pearson(likely, draws, each)[0]
            high = clopper_pearson(unlikely, draws, each)[1]
            events.append(
                Event(
                    threshold=threshold,
                    forward=forward,
                    likely=likely,
                    unlikely=unlikely,
                    delta=low - math.exp(threshold) * high,
                    allowed=allowed.delta(threshold),
                    epsilon=math.log(low / high) if low > 0 else 0.0,
                )
            )
    return Evidence(tuple(events), draws, inputs.people, _factor(events, curve))


def _factor(events: Sequence[Event], curve: Callable[[Fraction], LossLaw]) -> float:
    """Return the largest factor, rounded down, by which the loss must be multiplied to allow what was seen."""

    def shown(factor: Fraction) -> bool:
        # Noise of 1/factor times the scale has factor times the loss.
        law = curve(1 / factor)
        return any(event.delta > law.delta(event.threshold) for event in events)

    low, high = Fraction(0), Fraction(1)
    if shown(high):
        low, high = Fraction(1), Fraction(8)
    while high - low > Fraction(1, 256):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return float(low)
