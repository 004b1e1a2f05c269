r"""How far one person reaches in a list of overlapping tables: the cells, the ε and the δ of all tables together.

One person more or less (add-remove) changes one cell of every table. One person replaced by another changes two
cells of every table in which the two are in different cells, and no cell of the other tables. A record with a
weight changes a cell by up to the weight; a record replaced by one with another weight in the same cell changes
that cell too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import exact_sum
from tabulary.core.neighbours import Neighbours
from tabulary.core.sensitivity import margin_sensitivity
from tabulary.perturb.additive import Laplace, Normal

# The grid on which privacy losses are added up has about this many steps from zero to the largest loss.
_STEPS = 8_192
# What a loss exceeds a point of the grid by, if no more than this, is rounding of a logarithm.
_ROUNDING = 1e-12
# Sums of products of doubles are good to this share of them.
_SLACK = 1e-12


def changed_cells(
    domain: Domain, margins: Sequence[Margin], neighbours: Neighbours, *, largest_weight: int | None = None
) -> int:
    """Return d, the largest number of cells in which the lists of two neighbouring data sets can differ.

    Rinott, O'Keefe, Shlomo & Skinner (2018), section 7. Add-remove: a person is in one cell of each table, so d is
    the number of tables. Replace: twice the most tables in which two possible people are in different cells; for
    counts of people that a structural zero or an attribute of one level keeps in the same cell of a table, that is
    less than all. `largest_weight` is that of weighted counts in whole units, none for counts of people. Exact,
    but where structural zeros tie more than 4,000 possible cells together it may be too large, never too small.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> margins = [(), ("a",), ("a", "b")]
    >>> changed_cells(domain, margins, Neighbours()), changed_cells(domain, margins, Neighbours("replace"))
    (3, 4)
    """
    tables = len(margins)
    if neighbours.relation == "add-remove":
        return tables
    moved = int(margin_sensitivity(domain, margins, neighbours).l1)
    if largest_weight is None:
        return moved
    # The weight of the other record may be another one, or, in whole units, nothing at all.
    return max(moved, tables) if largest_weight == 1 else tables + moved // 2


def largest_sum(
    domain: Domain,
    margins: Sequence[Margin],
    amounts: Sequence[Fraction],
    neighbours: Neighbours,
    *,
    weighted: bool = False,
) -> Fraction:
    """Return the largest sum of the amounts of the tables that one person can change together.

    For add-remove neighbours, and for weights that are replaced, that is all of them. With amounts ε_i it is
    the ε of the list: Theorem 7.1 of Rinott et al. (2018), with none but the tables that do change.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> largest_sum(domain, [(), ("a",)], [Fraction(1, 2), Fraction(1, 3)], Neighbours("replace"))
    Fraction(1, 3)
    """
    if neighbours.relation == "add-remove" or weighted:
        return exact_sum(amounts, [1] * len(amounts))
    spent = [(margin, amount) for margin, amount in zip(margins, amounts, strict=True) if amount]
    if not spent:
        return Fraction(0)
    return (
        margin_sensitivity(domain, [m for m, _ in spent], neighbours, scales=[1 / a for _, a in spent]).l1 / 2
    )


@dataclass(frozen=True, eq=False)
class Losses:
    """The law of log p(b)/q(b) over what is published of one neighbour, rounded up to a grid.

    `masses[i]` is the probability of the loss (`lowest` + i)·`step`; `forbidden` that of all values which the other
    neighbour forbids. Losses of independent cells add up, and a loss that is too large gives a δ that is too large.
    """

    step: float
    lowest: int
    masses: Floats
    forbidden: float

    def beside(self, other: "Losses") -> "Losses":
        """Return the losses of both together."""
        either = self.forbidden + other.forbidden - self.forbidden * other.forbidden
        joined = np.convolve(self.masses, other.masses)
        return Losses(self.step, self.lowest + other.lowest, joined, either)

    def delta_at(self, epsilon: float) -> float:
        """Return P(forbidden) + Σ p·(1 - e^(ε - loss)) over the losses above ε: the δ at ε, rounded up."""
        above = self.step * (self.lowest + np.arange(self.masses.size)) - epsilon
        lost = above > _ROUNDING
        delta = self.forbidden + math.fsum(self.masses[lost] * -np.expm1(-above[lost]))
        return min(1.0, delta * (1 + _SLACK))


def joint_losses(laws: Sequence[Laplace | Normal]) -> Losses:
    """Return the privacy losses of independent cells, one a law, each moved by the sensitivity of its law.

    Of a smaller move the losses are never larger: the noise is log-concave, so what tells two moves of one cell
    apart is the more the larger they are, and so it is for many cells together.
    """
    total = sum((law.epsilon for law in laws), Fraction(0))
    shared = math.lcm(*(law.epsilon.denominator for law in laws))
    pieces = total * shared / math.gcd(*(int(law.epsilon * shared) for law in laws))
    # A whole number of steps for each ε where they have a common measure, so that their losses are not rounded.
    step = float(total / (pieces * math.ceil(_STEPS / pieces) if pieces <= _STEPS else _STEPS))
    parts = {law: _losses(law, step) for law in dict.fromkeys(laws)}
    return reduce(Losses.beside, (parts[law] for law in laws))


def _losses(law: Laplace | Normal, step: float) -> Losses:
    amounts, masses, forbidden = _unbounded(law) if law.bound is None else _bounded(law)
    places = np.ceil((amounts - _ROUNDING) / step).astype(np.int64)
    lowest = int(places.min())
    gathered = np.asarray(np.bincount(places - lowest, masses), dtype=np.float64)
    return Losses(step, lowest, gathered, forbidden)


def _bounded(law: Laplace | Normal) -> tuple[Floats, Floats, float]:
    """Return the losses of all values that both neighbours allow, their probabilities, and that of the others."""
    row, s = law.row(0), law.sensitivity
    p, q = row.probabilities[s:], row.probabilities[:-s]
    # The tails of the law may be too thin for a double.
    told = (p > 0) & (q > 0)
    return np.log(p[told] / q[told]), p[told], math.fsum(row.probabilities[:s]) + math.fsum(p[~told])


def _unbounded(law: Laplace | Normal) -> tuple[Floats, Floats, float]:
    """Return the same of Laplace noise without a bound: ε for x ≤ 0, -ε for x ≥ s, and rate·(s - 2x) between."""
    s = law.sensitivity
    rate = float(law.epsilon) / s
    x = np.arange(s + 1, dtype=np.float64)
    masses: Floats = math.tanh(rate / 2) * np.exp(-rate * x)
    masses[[0, s]] = np.exp(-rate * x[[0, s]]) / (1 + math.exp(-rate))
    return np.asarray(rate * (s - 2 * x)), masses, 0.0
