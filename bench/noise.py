"""One million exact draws beside OpenDP's: `python -m bench.noise`.

Processor time a draw, ours and theirs in the same run. OpenDP draws fewer, because its cost a draw does not
depend on how many are asked for. Ours is given twice: with the tables built from nothing, and with the tables
at hand, as in every release after the first. OpenDP has no rounded Gaussian; ours stands beside its discrete
one.
"""

import time
from collections.abc import Callable
from fractions import Fraction

from bench.report import line
from tabulary.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExactSampler,
    IntegerNoise,
    OpenDPSampler,
    RoundedGaussian,
    Sampler,
)

OUR_DRAWS = 1_000_000
THEIR_DRAWS = 50_000
ROUNDS = 3
TARGET = 50
UNIT = "µs of processor time a draw"


def microseconds_a_draw(sampler: Sampler, noise: IntegerNoise, draws: int) -> float:
    start = time.process_time()
    sampler.draw(noise, draws)
    return (time.process_time() - start) / draws * 1e6


def best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(ROUNDS))


def compare(
    name: str, noise: IntegerNoise, other: IntegerNoise, peer_noise: IntegerNoise | None = None
) -> None:
    """Print both comparisons; `other` is a law of the same family, to warm up the code and not the tables."""
    ours, theirs = ExactSampler(), OpenDPSampler()
    peer_noise = peer_noise or noise
    ours.draw(other, 1_000)
    theirs.draw(peer_noise, 1_000)
    with_tables = microseconds_a_draw(ours, noise, OUR_DRAWS)
    peer = best(lambda: microseconds_a_draw(theirs, peer_noise, THEIR_DRAWS))
    details = {"unit": UNIT, "draws": OUR_DRAWS, "peer_draws": THEIR_DRAWS}
    line(f"noise: {name}, building its tables", "OpenDP", with_tables, peer, TARGET, **details)
    drawing = best(lambda: microseconds_a_draw(ours, noise, OUR_DRAWS))
    line(f"noise: {name}", "OpenDP", drawing, peer, TARGET, **details)


def main() -> None:
    compare("Laplace of scale 105", DiscreteLaplace(Fraction(105)), DiscreteLaplace(Fraction(7)))
    compare("Gaussian of σ = 40", DiscreteGaussian.from_sigma(40), DiscreteGaussian.from_sigma(7))
    compare("Laplace of scale 10⁶", DiscreteLaplace(Fraction(10**6)), DiscreteLaplace(Fraction(7)))
    compare("Gaussian of σ = 10⁶", DiscreteGaussian.from_sigma(10**6), DiscreteGaussian.from_sigma(7))
    for shown, sigma in (("40", 40), ("10⁶", 10**6)):
        compare(
            f"rounded Gaussian of σ = {shown}",
            RoundedGaussian.from_sigma(sigma),
            RoundedGaussian.from_sigma(7),
            DiscreteGaussian.from_sigma(sigma),
        )


if __name__ == "__main__":
    main()
