"""OpenDP's noise on every margin, the budget split equally: what one writes with a noise library alone."""

import math

import numpy as np
import opendp.prelude as dp

from bench.peers.opendp_loss import zcdp_loss
from bench.peers.question import Answer, Question, Table, timed
from tabulary.core.arrays import Floats


def noisy_margins(question: Question) -> Answer:
    """Return discrete Laplace (δ = 0) or discrete Gaussian counts. Drawn from OpenDP's entropy, not the seed."""
    dp.enable_features("contrib")
    vectors = dp.vector_domain(dp.atom_domain(T="i64"))
    parts = len(question.margins)

    def make() -> list[Table]:
        if question.delta:
            scale = math.sqrt(parts / (2 * zcdp_loss(question.epsilon, question.delta)))
            noise = dp.m.make_gaussian(vectors, dp.l2_distance(T="i64"), scale=scale)
        else:
            noise = dp.m.make_laplace(vectors, dp.l1_distance(T="i64"), scale=parts / question.epsilon)
        return [
            np.array(noise(exact.reshape(-1).tolist())).reshape(exact.shape)
            for exact in map(question.counts, question.margins)
        ]

    return timed(make)


def projected(noisy: Answer) -> Answer:
    """Return each table's nearest non-negative one with the total that all tables together give."""
    made = timed(lambda: [nearest_in_simplex(t, common_total(noisy.tables)) for t in noisy.tables])
    return Answer(made.tables, noisy.seconds + made.seconds, noisy.cpu_seconds + made.cpu_seconds)


def common_total(tables: tuple[Table, ...]) -> float:
    """Return the mean of the tables' totals, weighted by the inverse of their variance, which is their size.

    >>> common_total((np.array([10.0]), np.array([6.0, 0.0, 0.0])))
    9.0
    """
    weights = np.array([1 / table.size for table in tables])
    return float(np.average([table.sum() for table in tables], weights=weights))


def nearest_in_simplex(table: Table, total: float) -> Floats:
    """Return the non-negative table with this total that is nearest in the Euclidean distance.

    All cells fall by the same amount and stop at zero. Duchi, Shalev-Shwartz, Singer & Chandra (2008).

    >>> nearest_in_simplex(np.array([[5.0, 1.0], [-4.0, 3.0]]), 6.0).tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    cells = np.asarray(table, dtype=np.float64).reshape(-1)
    falling = np.sort(cells)[::-1]
    excess = (np.cumsum(falling) - max(total, 0.0)) / np.arange(1, cells.size + 1)
    kept = int(np.flatnonzero(falling >= excess)[-1])
    return np.maximum(cells - excess[kept], 0.0).reshape(table.shape)
