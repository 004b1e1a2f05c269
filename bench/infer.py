"""The noise-aware test of a 10 × 10 table beside a general optimiser: `python -m bench.infer`.

Both maximise the same likelihood, Poisson counts behind released discrete noise, over the 19 parameters of
independence and over the 100 means of the alternative, from the same start: ours by Newton's method with analytic
derivatives, scipy's BFGS from differences of the likelihood alone. The likelihood that scipy calls is our compiled
one, so the ratio is that of the ways and not of the languages. Processor time of one test, ours with its p-value; and
the same for the fit of the hypothesis alone.

`ours_above` and `theirs_above` say by how much either maximised log-likelihood exceeds the other, at most. They agree
to 1e-9 but where a released value is zero or negative: its best mean is zero, a log-mean without end, towards which
differences of the likelihood lose their slope. There the peer stops some 1e-6 below, whatever its tolerance.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from bench.report import line
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.infer import IndependentNoise, independence
from tabulary.infer.independence import two_way_design
from tabulary.infer.likelihood import NoisyCells, fit_log_linear
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, Truncated

SHAPE = (10, 10)
LARGE = (50, 50)
LIMIT = 10_000.0
TABLES = 5
ROUNDS = 5
TARGET = 50
PEER = "scipy.optimize.minimize without gradients"

Result = TypeVar("Result")


def released(law: IntegerNoise, seed: int, shape: tuple[int, int] = SHAPE) -> Table:
    """A table of independent attributes, about 55 people a cell, behind the noise."""
    generator = np.random.default_rng(seed)
    rows, columns = (generator.uniform(-0.5, 0.5, side) for side in shape)
    counts = generator.poisson(np.exp(4 + rows[:, np.newaxis] + columns))
    reach = law.half_width(1 - 1e-9)
    values = np.arange(-reach, reach + 1)
    chances = law.pmf(values)
    noise = generator.choice(values, shape, p=chances / chances.sum())
    return Table(Domain({"row": range(shape[0]), "column": range(shape[1])}), counts + noise)


def timed(work: Callable[[], Result], rounds: int = 1) -> tuple[float, Result]:
    """The least milliseconds of processor time of so many rounds, and what came of them."""
    least = np.inf
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return 1e3 * float(least), result


def general(cells: NoisyCells, design: NDArray[np.float64]) -> float:
    """The largest log-likelihood under a design, by scipy without gradients."""
    start = np.linalg.lstsq(design, np.log(np.maximum(cells.observed, 0.5)), rcond=None)[0]
    found = optimize.minimize(lambda theta: -cells.log_likelihood(design @ theta), start, method="BFGS")
    return -float(found.fun)


def compare(name: str, law: IntegerNoise) -> None:
    design = two_way_design(SHAPE)
    # One level is the yardstick of the others: no two columns say the same.
    free = np.delete(design, SHAPE[0], axis=1)
    independence(released(law, 0), noise=law)
    times, gaps = np.zeros((2, 2)), np.zeros((2, 2))
    for seed in range(1, TABLES + 1):
        table = released(law, seed)
        cells = NoisyCells(
            table.counts.reshape(-1), IndependentNoise(law, np.ones(design.shape[0], dtype=np.int64))
        )
        test_time, _ = timed(lambda table=table: independence(table, noise=law), ROUNDS)
        fit_time, fit = timed(lambda cells=cells: fit_log_linear(cells, design), ROUNDS)
        null_time, null = timed(lambda cells=cells: general(cells, free))
        best_time, best = timed(lambda cells=cells: general(cells, np.eye(design.shape[0])))
        times += [[test_time, null_time + best_time], [fit_time, null_time]]
        above = fit.log_likelihood - null
        either = max(above, float(cells.saturated()[1].sum()) - best, key=abs)
        gaps = np.maximum(gaps, [[either, -either], [above, -above]])
    for what, (ours, theirs), (higher, lower) in zip(
        ("the test", "the fit of the hypothesis"), times / TABLES, gaps, strict=True
    ):
        line(
            f"infer: {what} of independence, 10 × 10 behind {name}",
            PEER,
            ours,
            theirs,
            TARGET,
            unit="ms of processor time",
            tables=TABLES,
            ours_above=float(f"{higher:.2g}"),
            theirs_above=float(f"{lower:.2g}"),
        )


def large(name: str, law: IntegerNoise) -> None:
    """The whole test of 50 × 50 cells beside what may be waited for: no peer ends on as many parameters."""
    table = released(law, 1, LARGE)
    ours, _ = timed(lambda: independence(table, noise=law))
    line(
        f"infer: the test of independence, 50 × 50 behind {name}",
        "a limit of ten seconds",
        ours,
        LIMIT,
        1,
        unit="ms of processor time",
    )


def main() -> None:
    compare("truncated Laplace noise, ε = 0.1, m = 10", Truncated(DiscreteLaplace(10), 10))
    compare("Laplace noise, ε = 0.1", DiscreteLaplace(10))
    compare("discrete Gaussian noise, σ = 10", DiscreteGaussian(100))
    large("truncated Laplace noise, ε = 0.1, m = 10", Truncated(DiscreteLaplace(10), 10))
    large("Laplace noise, ε = 0.1", DiscreteLaplace(10))


if __name__ == "__main__":
    main()
