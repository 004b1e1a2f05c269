"""What each approach is expected to be off by, from its plan alone: no data, no simulation."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary import ApproxDP, PureDP, Workload
from tabulary.core import Margin, Privacy, gaussian_delta, gaussian_rho
from tabulary.errors import TooManyCells
from tabulary.noise import DiscreteLaplace, IntegerNoise, chernoff_reach
from tabulary.planning import CellErrors, Plan, ResidualNoise, Residuals, plan
from tabulary.studies import Lab, Row, Sheets, Value
from tabulary_papers.datasets.yes_no import yes_no_domain

APPROACHES = ("cells", "margins", "fourier", "residual")
"""The three of the paper, and this package's planner."""

TOLERANCE = 1e-4
"""How far off the mean absolute value of a sum may be, in standard deviations of the sum, where it is not exact."""

# Values of the characteristic function that are left out.
_NEGLIGIBLE = 1e-17

Drawn = tuple[IntegerNoise, float, int]
"""A noise, the size of a weight, and how many independent draws have it."""


def expected_errors(lab: Lab, attributes: int, way: int, privacy: Privacy) -> Sheets:
    """Return the standard error of a cell and the expected L1 error of a table, for every approach.

    All tables of a workload are alike, so one of them speaks for all; the planner, which may treat them
    differently, is averaged over them. Where an approach needs more cells than may be, its errors are missing.
    """
    work = Workload.k_way(yes_no_domain(attributes), way)
    rows: list[Row] = []
    for approach in APPROACHES:
        told: dict[str, Value] = {
            "attributes": attributes,
            "way": way,
            "privacy": str(privacy),
            "approach": approach,
        }
        try:
            made = plan(work.domain, work, privacy=privacy, mechanism=approach, reconstruct="none")
        except TooManyCells:
            rows.append({**told, "tables": len(work), "values": None, "standard_error": None, "l1": None})
            continue
        values = sum(math.prod(shape) for shape in made.shapes())
        error, l1 = _errors(made)
        rows.append({**told, "tables": len(work), "values": values, "standard_error": error, "l1": l1})
    return {"expected": rows}


def _errors(made: Plan) -> tuple[float, float]:
    """Return the standard error of a cell and the expected L1 error of a table, on average over the tables."""
    first = made.workload.margins[0]
    cells = made.domain.cells(first)
    if made.query is not Residuals:
        law = made.error_of(first)
        if not isinstance(law, CellErrors):
            raise TypeError(f"draws of one weight are summed here, not {type(law).__name__}")
        drawn = (law.noise, law.scale, int(law.terms.flat[0]))
        return float(law.standard_errors.flat[0]), cells * mean_absolute([drawn])
    laws = Counter(_laws(made))
    total = sum(tables * mean_absolute(law) for law, tables in laws.items())
    return made.expected_rmse, cells * total / len(made.workload)


def _laws(made: Plan) -> Iterator[frozenset[Drawn]]:
    """Yield the draws in a cell of each table of a plan on residuals. On two levels all cells of a table are alike."""
    levels = dict(zip(made.domain.attributes, made.domain.shape, strict=True))
    # A part tells nothing of a table without the attributes it is centred on, and there are thousands of both.
    centred: dict[Margin, list[tuple[Margin, Margin, IntegerNoise]]] = {}
    for part in made.measured:
        assert isinstance(part.query, Residuals)
        own = part.query.centred
        centred.setdefault(own, []).append((part.margin, own, part.noise))
    for margin in made.workload:
        subsets = (s for order in range(len(margin) + 1) for s in combinations(margin, order))
        parts = [part for s in subsets for part in centred.get(s, ())]
        one_cell = np.zeros(made.domain.shape_of(margin))
        one_cell.flat[0] = 1.0
        held: Counter[tuple[IntegerNoise, float]] = Counter()
        for draws in ResidualNoise(margin, levels, parts, made.residual_variances).draws(one_cell):
            for weight in np.abs(draws.weights[draws.weights != 0]).tolist():
                # Sums in another order leave other last digits, and equal weights should be seen to be equal.
                held[draws.noise, float(f"{weight:.12g}")] += draws.copies
        yield frozenset((noise, weight, count) for (noise, weight), count in held.items())


def mean_absolute(law: Iterable[Drawn]) -> float:
    r"""Return E\|S\| of a weighted sum S of independent draws, from its characteristic function φ.

    On a circle of length 2L that S does not leave, \|x\| = L/2 - (4L/π²) Σ cos(πjx/L)/j² over the odd j, so E\|S\|
    is the same with φ(πj/L) in the place of the cosine. Where all weights are alike, S is a whole number of them: φ
    has a period, and Σ 1/(j + 2Ln)² over all n, which is that of a sine, leaves a sum over the odd j below L.
    Elsewhere, and in sums that are very wide, the series stops where the rest is below `TOLERANCE`, for φ is at
    most one.

    >>> q = math.exp(-1 / 5)
    >>> round(mean_absolute([(DiscreteLaplace(5), 0.5, 1)]), 6), round(q / (1 - q * q), 6)
    (2.483411, 2.483411)
    """
    # The widest draws first: where their φ has fallen to nothing, the others need not be asked.
    drawn = sorted(law, key=lambda each: each[1] * math.sqrt(each[0].variance), reverse=True)
    unit = max(weight for _, weight, _ in drawn)
    deviation = math.sqrt(
        sum(count * (weight / unit) ** 2 * noise.variance for noise, weight, count in drawn)
    )

    def log_moment_bound(tilts: NDArray[np.float64]) -> NDArray[np.float64]:
        bounds = [count * noise.log_moment_bound(weight / unit * tilts) for noise, weight, count in drawn]
        return np.asarray(np.sum(bounds, axis=0))

    # Even, so that no odd number is half of the circle.
    length = 2 * math.ceil(chernoff_reach(log_moment_bound, 1, largest=100 / deviation) / 2)
    alike = all(weight == unit for _, weight, _ in drawn)
    last = math.ceil(2 * length / (math.pi**2 * TOLERANCE * deviation))
    halves = math.pi / (2 * length) * np.arange(1, min(length, last) if alike else last, 2)
    values = np.ones_like(halves)
    for noise, weight, count in drawn:
        values = values * noise.characteristic(weight / unit * 2 * halves) ** count
        kept = np.abs(values) > _NEGLIGIBLE
        halves, values = halves[kept], values[kept]
    squares = np.sin(halves) ** 2 if alike else halves**2
    return unit * (length / 2 - float(np.sum(values / squares)) / length)


def statements(lab: Lab, epsilon: str, delta: str) -> Sheets:
    """Return what the paper prints about the sizes of errors, and the same recomputed."""
    rows: list[Row] = []

    def add(statement: str, printed: float | None, recomputed: float, *, at: int | None = None) -> None:
        rows.append(
            {"statement": statement, "attributes": at, "printed": printed, "recomputed": float(recomputed)}
        )

    pure, both = PureDP(epsilon), ApproxDP(epsilon, delta)
    size = float(pure.epsilon)
    one = DiscreteLaplace(1 / pure.epsilon).variance
    for attributes in (8, 20):
        printed = 2 ** (attributes - 1) / size**2
        add("variance of one attribute's cells, Laplace", printed, 2 * printed, at=attributes)
        add(
            "variance of one attribute's cells, integer noise",
            printed,
            printed * size**2 * one,
            at=attributes,
        )
    for attributes in (30, 50, 100):
        sets = sum(math.comb(attributes, order) for order in range(4))
        noise = DiscreteLaplace(sets / pure.epsilon)
        add("standard error of a cell, all triples", None, math.sqrt(noise.variance / 8), at=attributes)
        add(
            "expected L1 error of a table, all triples", None, mean_absolute([(noise, 1.0, 8)]), at=attributes
        )
    variance = -2 * math.log(float(both.delta)) / size**2
    add("Gaussian variance for a sensitivity of one", variance, 1 / (2 * float(gaussian_rho(both))))
    add(
        "delta of the printed Gaussian variance",
        float(both.delta),
        gaussian_delta(both.epsilon, 1 / (2 * variance)),
    )
    return {"statements": rows}
