"""Populations that belong to nobody, and what a plan would make of their tables: for pictures and numbers.

The exact tables get simulated Gaussian noise of the variances that a plan states for its residuals, from seeded
generators, so that every run of `make docs` measures the same. Nothing here protects anybody: a release draws its
noise exactly, and never from a seed.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import tabulary as tb
from tabulary.core.arrays import Floats
from tabulary.core.residuals import centre
from tabulary.planning import Plan
from tabulary.planning.queries.residuals import table_of
from tabulary.reconstruct.shrink import Shrinkage, Shrunken

Margin = tuple[str, ...]
Tables = Mapping[Margin, Floats]


@dataclass(frozen=True, eq=False)
class Population:
    """Generated records, as codes, and the tables that are wanted of them: all of up to two attributes."""

    name: str
    domain: tb.Domain
    records: NDArray[np.int64]

    @property
    def workload(self) -> tb.Workload:
        """All tables of one and two attributes."""
        return tb.Workload.all_up_to(self.domain, 2)

    def exact(self, margin: Margin) -> Floats:
        """Return the exact table on a margin."""
        if not margin:
            return np.array(float(len(self.records)))
        shape = self.domain.shape_of(margin)
        cells = np.ravel_multi_index([self.records[:, self.domain.position(a)] for a in margin], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(float)


def populations(seed: int = 7) -> Iterator[Population]:
    """Yield generated populations of shapes that differ in every way that matters to shrinkage."""
    rng = np.random.default_rng(seed)
    yield _population("sparse", (20, 30, 40, 25, 35), lambda k: _classes(k, 5_000, 1.5, 0.3, rng))
    yield _population("dense, few levels", (2, 3, 4, 2, 3, 4), lambda k: _classes(k, 200_000, 0.5, 2.0, rng))
    yield _population("independent", (2, 5, 10, 20, 30), lambda k: _independent(k, 50_000, rng))
    yield _population("strongly dependent", (10,) * 5, lambda k: _chain(k, 50_000, rng))
    yield _population("binary", (2,) * 8, lambda k: _classes(k, 20_000, 0.5, 1.0, rng))
    yield _population("many levels", (40,) * 4, lambda k: _factors(k, 100_000, rng))
    yield _population("few records", (2, 3, 4, 2, 3, 4), lambda k: _classes(k, 1_000, 0.5, 2.0, rng))


def measured(plan: Plan, exact: Tables, rng: np.random.Generator) -> dict[Margin, Floats]:
    """Return estimates of all residuals, with Gaussian noise of the variances of the plan."""
    return {
        s: centre(exact[s] + math.sqrt(v) * rng.standard_normal(exact[s].shape))
        for s, v in plan.residual_variances.items()
    }


def linear(plan: Plan, residuals: Mapping[Margin, Floats]) -> dict[Margin, Floats]:
    """Return the unbiased tables."""
    return {m: table_of(dict(residuals), m, plan.domain.shape_of(m)) for m in plan.workload}


def shrunk(plan: Plan, residuals: Tables) -> tuple[Shrinkage, Shrunken]:
    """Return the shrunk tables, and what made them."""
    shrinkage = Shrinkage(plan.domain, plan.workload.margins, plan.residual_variances)
    return shrinkage, shrinkage.tables(residuals)


def root_mean_square(found: Tables, exact: Tables) -> float:
    """Return the root mean squared error of all cells of these tables."""
    squares = sum(float(((t - exact[m]) ** 2).sum()) for m, t in found.items())
    return math.sqrt(squares / sum(t.size for t in found.values()))


def distance(found: Tables, exact: Tables) -> float:
    """Return the L1 distance over the number of records, averaged over the tables."""
    return float(np.mean([np.abs(t - exact[m]).sum() / exact[m].sum() for m, t in found.items()]))


def of_two(domain: tb.Domain, table: Floats) -> dict[Margin, Floats]:
    """Return a table of two attributes and all its margins."""
    a, b = domain.attributes
    return {(a, b): table, (a,): table.sum(axis=1), (b,): table.sum(axis=0), (): np.array(table.sum())}


@cache
def of_strength(shape: tuple[int, ...], n: int, strength: float, seed: int) -> tuple[Floats, Floats]:
    """Return a table of two attributes with an interaction of this strength, and the independent one."""
    rng = np.random.default_rng(seed)
    rows, columns = (_zipf(k, 0.7, rng) for k in shape)
    apart = n * np.outer(rows, columns)
    drawn = rng.standard_normal(apart.shape)
    low, high = 0.0, 20.0
    while True:
        table = apart * np.exp((low + high) / 2 * drawn)
        for _ in range(50):
            table *= (apart.sum(axis=1) / table.sum(axis=1))[:, None]
            table *= apart.sum(axis=0) / table.sum(axis=0)
        if high - low < 1e-3 * high:
            return table, apart
        if ((table - apart) ** 2).sum() < strength * (apart**2).sum():
            low = (low + high) / 2
        else:
            high = (low + high) / 2


def _population(
    name: str, levels: tuple[int, ...], records: Callable[[tuple[int, ...]], NDArray[np.int64]]
) -> Population:
    return Population(name, tb.Domain({f"x{i}": range(k) for i, k in enumerate(levels)}), records(levels))


def _zipf(levels: int, power: float, rng: np.random.Generator) -> Floats:
    p = np.arange(1, levels + 1) ** -power
    return np.asarray(rng.permutation(p / p.sum()))


def _classes(
    levels: tuple[int, ...], n: int, power: float, alike: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Four hidden classes, in each of which the attributes are independent; the more alike, the weaker."""
    hidden = rng.choice(4, n, p=rng.dirichlet(np.ones(4)))
    columns = []
    for k in levels:
        base = _zipf(k, power, rng)
        shares = np.stack([rng.dirichlet(alike * k * base + 1e-3) for _ in range(4)])
        columns.append((rng.random(n)[:, None] > shares.cumsum(axis=1)[hidden]).sum(axis=1).clip(0, k - 1))
    return np.stack(columns, axis=1)


def _independent(levels: tuple[int, ...], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.stack([rng.choice(k, n, p=_zipf(k, 1.0, rng)) for k in levels], axis=1)


def _chain(levels: tuple[int, ...], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Each attribute decides the next one, but for one record in twenty."""
    columns = [rng.choice(levels[0], n, p=_zipf(levels[0], 1.0, rng))]
    for k in levels[1:]:
        decided = rng.integers(0, k, k)[columns[-1]]
        columns.append(np.where(rng.random(n) < 0.05, rng.integers(0, k, n), decided))
    return np.stack(columns, axis=1)


def _factors(levels: tuple[int, ...], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Normal variables with two common factors, cut into many levels."""
    loads = rng.standard_normal((2, len(levels)))
    x = rng.standard_normal((n, 2)) @ loads + rng.standard_normal((n, len(levels)))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    k = np.array(levels)
    return np.clip((x * k / 6 + k / 2).astype(np.int64), 0, k - 1)
