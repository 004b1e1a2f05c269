"""The slow and plain way: what a perturbation is, computed from the definitions alone."""

import math
from itertools import product

import numpy as np

CELLS = 3


def delta(law, epsilon, *, largest):
    """The smallest δ by the definition, over all neighbouring tables of three cells with counts up to `largest`.

    The worst set S holds the outputs that are likelier on one table than e^ε times on the other, so the δ of two
    tables is a sum over all outputs, of products of transition probabilities.
    """
    values = range(-law.bound, largest + law.sensitivity + law.bound + 1)
    rows = np.array([[law.transition(a, b) for b in values] for a in range(largest + law.sensitivity + 1)])
    worst = 0.0
    for table in product(range(largest + 1), repeat=CELLS):
        here = _outputs(rows, table)
        for cell, step in product(range(CELLS), range(1, law.sensitivity + 1)):
            there = _outputs(rows, [count + step * (i == cell) for i, count in enumerate(table)])
            for one, other in ((here, there), (there, here)):
                worst = max(worst, float(np.maximum(0.0, one - math.exp(epsilon) * other).sum()))
    return worst


def _outputs(rows, table):
    first, second, third = (rows[count] for count in table)
    return first[:, None, None] * second[:, None] * third


def published(law, original, *, minimum=None, reach=60):
    """Every published value of one count with its probability, after small values are raised to `minimum`."""
    found = {}
    for b in range(original - reach, original + reach + 1):
        probability = law.transition(original, b)
        if probability:
            value = b if minimum is None else max(b, minimum)
            found[value] = found.get(value, 0.0) + probability
    return found


def mean_of(law, function):
    """Σ function(value) · probability."""
    return math.fsum(function(value) * probability for value, probability in law.items())
