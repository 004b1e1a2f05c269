"""Populations of several shapes, made up, for what must work on data that it was not tuned on.

Each is a domain and the codes of its records, drawn from a seed. Sizes are small enough for a test; none of them is
the size of any data set that a constant of the package was looked at with.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin

Codes = NDArray[np.int64]
Population = tuple[Domain, Codes]


def sparse(seed: int, levels=(20, 30, 40, 50, 25, 35), records: int = 5_000) -> Population:
    """Many levels, few records: most cells of a pair are empty, levels follow a steep Zipf law."""
    return _latent_classes(seed, levels, records, classes=4, steepness=1.5, evenness=0.3)


def dense(seed: int, levels=(2, 3, 4, 2, 3, 4), records: int = 200_000) -> Population:
    """Few levels, many records: noise hardly matters."""
    return _latent_classes(seed, levels, records, classes=4, steepness=0.5, evenness=2.0)


def independent(seed: int, levels=(2, 5, 10, 20, 50, 7), records: int = 50_000) -> Population:
    """Nothing depends on anything: what is not in the single attributes is noise."""
    generator = np.random.default_rng(seed)
    columns = [generator.choice(k, records, p=_zipf(k, 1.0, generator)) for k in levels]
    return _population(levels, np.stack(columns, axis=1))


def chained(seed: int, levels=(10, 10, 10, 10, 10, 10), records: int = 50_000) -> Population:
    """Each attribute is a function of the one before it, but for one record in twenty."""
    generator = np.random.default_rng(seed)
    columns = [generator.choice(levels[0], records, p=_zipf(levels[0], 1.0, generator))]
    for before, k in pairwise(levels):
        decided = generator.integers(0, k, before)[columns[-1]]
        stray = generator.random(records) < 0.05
        columns.append(np.where(stray, generator.integers(0, k, records), decided))
    return _population(levels, np.stack(columns, axis=1))


def binary(seed: int, levels=(2,) * 10, records: int = 20_000) -> Population:
    """Two levels everywhere, tied by five hidden classes."""
    return _latent_classes(seed, levels, records, classes=5, steepness=0.5, evenness=1.0)


def many_levels(seed: int, levels=(100, 80, 24, 16, 12), records: int = 100_000) -> Population:
    """Correlated normal variables cut into many levels: interactions are smooth, not cell by cell."""
    generator = np.random.default_rng(seed)
    loadings = generator.standard_normal((len(levels), 2))
    values = generator.standard_normal((records, 2)) @ loadings.T
    values += generator.standard_normal(values.shape)
    values /= np.sqrt((loadings**2).sum(axis=1) + 1)
    columns = [
        np.clip((values[:, i] * k / 6 + k / 2).astype(np.int64), 0, k - 1) for i, k in enumerate(levels)
    ]
    return _population(levels, np.stack(columns, axis=1))


def few_records(seed: int, levels=(2, 3, 4, 2, 3, 4, 5), records: int = 1_000) -> Population:
    """So few records that the noise is as large as most cells."""
    return _latent_classes(seed, levels, records, classes=4, steepness=0.5, evenness=2.0)


def mixed(seed: int, levels=(2, 3, 70, 5, 2, 16, 9), records: int = 30_000) -> Population:
    """Small and large attributes side by side, as in a survey."""
    return _latent_classes(seed, levels, records, classes=6, steepness=1.0, evenness=0.6)


def skewed_pairs(seed: int, levels=(2, 2, 8, 15, 15, 40), records: int = 12_000) -> Population:
    """Nearly everybody in one level of every attribute, the rest anywhere."""
    generator = np.random.default_rng(seed)
    columns = []
    rare = generator.random(records) < 0.1
    for k in levels:
        spread = generator.choice(k, records, p=_zipf(k, 1.0, generator))
        columns.append(np.where(rare | (generator.random(records) < 0.05), spread, 0))
    return _population(levels, np.stack(columns, axis=1))


SHAPES: dict[str, Callable[[int], Population]] = {
    "sparse": sparse,
    "dense": dense,
    "independent": independent,
    "chained": chained,
    "binary": binary,
    "many levels": many_levels,
    "few records": few_records,
    "mixed": mixed,
    "skewed": skewed_pairs,
}


def true_table(population: Population, margin: Margin) -> NDArray[np.int64]:
    """The exact table on a margin; the total for the empty one."""
    domain, codes = population
    shape = domain.shape_of(margin)
    cells = np.zeros(len(codes), dtype=np.int64)
    for a, k in zip(margin, shape, strict=True):
        cells = cells * k + codes[:, domain.position(a)]
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def _population(levels, codes: Codes) -> Population:
    return Domain({f"x{i}": range(k) for i, k in enumerate(levels)}), codes


def _zipf(levels: int, steepness: float, generator: np.random.Generator) -> NDArray[np.float64]:
    shares = np.arange(1, levels + 1) ** -steepness
    return generator.permutation(shares / shares.sum())


def _latent_classes(
    seed: int, levels, records: int, *, classes: int, steepness: float, evenness: float
) -> Population:
    """Attributes that are independent within hidden classes; the less even, the more the classes differ."""
    generator = np.random.default_rng(seed)
    hidden = generator.choice(classes, records, p=generator.dirichlet(np.ones(classes)))
    columns = []
    for k in levels:
        share = _zipf(k, steepness, generator)
        laws = np.array([generator.dirichlet(evenness * k * share + 1e-3) for _ in range(classes)])
        uniform = generator.random(records)
        columns.append((uniform[:, None] > laws.cumsum(axis=1)[hidden]).sum(axis=1).clip(0, k - 1))
    return _population(levels, np.stack(columns, axis=1))
