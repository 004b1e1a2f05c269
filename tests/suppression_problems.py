"""Small problems of secondary suppression, and their answers by looking at every pattern and every deviation."""

from functools import lru_cache
from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tabulary.suppress.classical_method.rules import ProtectionLevels
from tabulary.suppress.classical_method.suppression_problem import SuppressionProblem

FARTHEST = 4
"""No cell of these problems deviates by more, so that all deviations of whole numbers can be listed."""


@st.composite
def problems(draw, shapes=((2, 2), (2, 3), (3, 2), (3, 3), (2, 4))):
    shape = draw(st.sampled_from(shapes))
    whole = lambda least, most: draw(arrays.arrays(np.int64, shape, elements=st.integers(least, most)))  # noqa: E731
    rise, fall = whole(0, FARTHEST), whole(0, FARTHEST)
    primary = draw(arrays.arrays(bool, shape, elements=st.sampled_from([True, False, False])))
    kept = draw(arrays.arrays(bool, shape, elements=st.sampled_from([True] + [False] * 7))) & ~primary
    levels = ProtectionLevels(
        np.minimum(whole(0, 3), fall), np.minimum(whole(0, 3), rise), np.minimum(whole(0, 6), rise + fall)
    )
    cost = whole(0, 6).astype(float) * draw(st.sampled_from([1.0, 2.0, 0.37]))
    return SuppressionProblem(rise.astype(float), fall.astype(float), cost, primary, kept, levels.of(primary))


@lru_cache
def all_deviations(shape):
    """Every table of whole numbers up to FARTHEST whose lines sum to zero."""
    inner = tuple(levels - 1 for levels in shape)
    steps = range(-FARTHEST, FARTHEST + 1)
    found = np.array(list(product(steps, repeat=int(np.prod(inner))))).reshape(-1, *inner)
    for axis in range(1, found.ndim):
        found = np.concatenate([found, -found.sum(axis=axis, keepdims=True)], axis=axis)
    return found[(np.abs(found).reshape(len(found), -1) <= FARTHEST).all(axis=1)]


def protects(problem, pattern):
    """Whether a pattern meets the protection levels of every sensitive cell."""
    deviations = all_deviations(problem.shape)
    possible = (deviations <= np.where(pattern, problem.rise, 0)) & (
        deviations >= -np.where(pattern, problem.fall, 0)
    )
    left = deviations[possible.reshape(len(deviations), -1).all(axis=1)]
    high, low = left.max(axis=0), -left.min(axis=0)
    levels = problem.levels
    enough = (high >= levels.upper) & (low >= levels.lower) & (high + low >= levels.width)
    return bool(enough[problem.primary].all())


def cheapest_cost(problem):
    """The least cost of a pattern that protects, or None."""
    free = np.argwhere(~problem.primary & ~problem.kept)
    costs = []
    for number in range(len(free) + 1):
        for added in combinations(free, number):
            pattern = problem.primary.copy()
            for cell in added:
                pattern[tuple(cell)] = True
            if (not costs or problem.price(pattern) < min(costs)) and protects(problem, pattern):
                costs.append(problem.price(pattern))
    return min(costs, default=None)
