r"""What the variance of each residual counts for when the tables will be shrunk (`reconstruct="shrink"`).

The error of a linear estimate is the variance of what was measured, whatever the data are. The error of a shrunk
interaction is at most the interaction itself: with variance τ before and noise σ², it is τσ²/(τ + σ²). So budget is
wasted on an interaction that no affordable noise could show, and better spent on what everything else rests on.
What to expect is a model, made without data:

- the levels of an attribute are as unequal as those of many real ones: p_i ∝ 1/i (Zipf), with Σp² = s;
- there are about `records` records, n;
- the interaction of R has the strength φ² of `planning.interaction_prior`: τ_R = φ² n² Π_R s / cells(R) in a cell;
- an error of the table on R reaches a larger table A in proportion to the levels of the others: the sum of squares
  gets Π_{A\R} s of it where an even spread (the linear estimate) would get Π 1/k. For the sum of relative squares,
  which bounds the L1 distance, it is all of it, 1. Both matter to readers: √s is between the two.

The risk Σ_R V_R E_φ[τσ²/(τ + σ²)] is concave in each σ², so replacing it by its tangent at σ² bounds it from above;
the tangent is a weighted sum of variances, for which the best allocation is known. Repeating this only lowers the
risk. What comes back are the weights V_R E[τ²/(τ + σ²)²] at which it settles.
"""

import math
from collections.abc import Mapping

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, PureDP
from tabulary.core.workload import Workload
from tabulary.planning.allocation import CentredMargin, cell_weights, gaussian_allocation, residual_variances
from tabulary.planning.interaction_prior import STRENGTHS, prior
from tabulary.planning.laplace_allocation import laplace_allocation

RECORDS = 100_000
"""The number of records that a plan assumes by default."""

CLEARLY = 0.8
"""The part of another plan's error that counts as clearly less: the model is not right to the digit."""

# What remains of the weight of an interaction that is not worth measuring: a hundredth of the budget at most, so that
# a very strong one is still seen, and every table keeps an unbiased estimate.
LEAST = 1e-4
_ROUNDS = 40
_LAPLACE_ROUNDS = 10
_LARGE = 2_000
_SETTLED = 1e-4


def shrink_weights(
    workload: Workload, loss: Loss, neighbours: Neighbours, *, records: int = RECORDS
) -> dict[Margin, float]:
    """Return the weight of the variance of every residual of the closure, for shrinkage. Reads no data.

    >>> from tabulary.core.domain import Domain
    >>> domain = Domain({"a": range(20), "b": range(30)})
    >>> work = Workload(domain, [("a", "b")])
    >>> planned = cell_weights(work), shrink_weights(work, PureDP(1), Neighbours("add-remove"), records=1_000)
    >>> for weights in planned:
    ...     print([round(weights[s], 2) for s in [(), ("a",), ("b",), ("a", "b")]])
    [0.0, 0.63, 1.45, 551.0]
    [0.09, 4.87, 8.29, 63.66]
    """
    model = ShrinkageModel(workload, records)
    weights = cell_weights(workload)
    pure = isinstance(loss, PureDP)
    rounds = _ROUNDS if not pure else _LAPLACE_ROUNDS if len(weights) <= _LARGE else 2
    risk = math.inf
    for _ in range(rounds):
        variances = allocated_variances(workload, weights, loss, neighbours.records)
        weights, reached = model.tangent(variances)
        if reached > risk * (1 - _SETTLED):
            break
        risk = reached
    return weights


def shrunk_variances(
    workload: Workload, variances: Mapping[Margin, float], *, records: int = RECORDS
) -> dict[Margin, float]:
    """Return the mean squared error of a cell of every wanted table that the model expects of shrunk tables."""
    return ShrinkageModel(workload, records, spread=1.0).expected(variances)


class ShrinkageModel:
    """The expected risk of shrunk tables as a function of the variances of the residuals."""

    def __init__(self, workload: Workload, records: int, *, spread: float = 0.5) -> None:
        domain = workload.domain
        levels = dict(zip(domain.attributes, domain.shape, strict=True))
        concentration = {k: _zipf_concentration(k) for k in set(levels.values())}
        place: dict[Margin, int] = {}
        pairs: list[tuple[int, int, int, float, float]] = []
        for margin, weight in zip(workload.margins, workload.weights, strict=True):
            # Subsets of the attributes so far, with what reaches the table by an even spread and by an uneven one.
            subsets: dict[Margin, tuple[float, float]] = {(): (float(weight), float(weight))}
            for a in margin:
                k = levels[a]
                apart = concentration[k] ** spread
                subsets = {s: (e / k, u * apart) for s, (e, u) in subsets.items()} | {
                    (*s, a): (e * (k - 1), u * (k - 1)) for s, (e, u) in subsets.items()
                }
            own = place.setdefault(margin, len(place))
            # An attribute of one level has no part in an interaction.
            shown = tuple(a for a in margin if levels[a] > 1)
            highest = place.setdefault(shown, len(place))
            pairs += [(own, highest, place.setdefault(s, len(place)), e, u) for s, (e, u) in subsets.items()]
        self.sets = tuple(place)
        self._weighted_cells = {
            m: float(w) * domain.cells(m) for m, w in zip(workload.margins, workload.weights, strict=True)
        }
        self._table = np.array([pair[0] for pair in pairs])
        self._highest = np.array([pair[1] for pair in pairs])
        self._set = np.array([pair[2] for pair in pairs])
        self._even = np.array([pair[3] for pair in pairs])
        self._uneven = np.array([pair[4] for pair in pairs])
        # What is there to be found in a cell; of totals and single attributes everything is.
        self._there = np.array(
            [records**2 * math.prod(concentration[levels[a]] / levels[a] for a in s) for s in self.sets]
        )
        orders = [len(s) for s in self.sets]
        self._low = np.array([order < 2 for order in orders])
        self._prior = np.array([prior(max(order, 2)) for order in orders])

    def reach(self, variances: Mapping[Margin, float]) -> Floats:
        """Return V: how much of the squared error of each set reaches the wanted tables.

        A table that keeps its interaction is a linear estimate, and spreads what is below it evenly; so V depends
        on the variances, a little.
        """
        return np.bincount(self._set, self._reached(variances), len(self.sets)).astype(np.float64)

    def expected(self, variances: Mapping[Margin, float]) -> dict[Margin, float]:
        """Return the mean squared error of a cell of every wanted table."""
        reached = self._reached(variances) * self._risks(variances)[self._set]
        sums = np.bincount(self._table, reached, len(self.sets))
        place = {s: i for i, s in enumerate(self.sets)}
        return {m: float(sums[place[m]] / cells) for m, cells in self._weighted_cells.items()}

    def tangent(
        self, variances: Mapping[Margin, float], reach: Floats | None = None
    ) -> tuple[dict[Margin, float], float]:
        """Return the slopes of the risk in every variance with V as it is, never quite zero, and the risk."""
        own = self.reach(variances) if reach is None else reach
        slopes = np.where(self._low, 1.0, (self._kept(variances) ** 2 * self._prior).sum(axis=1))
        weights = own * np.maximum(slopes, LEAST)
        return dict(zip(self.sets, weights.tolist(), strict=True)), float(own @ self._risks(variances))

    def _reached(self, variances: Mapping[Margin, float]) -> Floats:
        linear = np.where(self._low, 1.0, (self._kept(variances) * self._prior).sum(axis=1))[self._highest]
        return np.asarray(linear * self._even + (1 - linear) * self._uneven)

    def _risks(self, variances: Mapping[Margin, float]) -> Floats:
        """Return the squared error of every set: its noise, or what shrinkage leaves of it."""
        noise = np.array([variances[s] for s in self.sets])
        return np.where(self._low, noise, (self._kept(variances) * self._prior).sum(axis=1) * noise)

    def _kept(self, variances: Mapping[Margin, float]) -> Floats:
        """Return the share τ/(τ + σ²) of an interaction that is kept, for each strength."""
        noise = np.array([variances[s] for s in self.sets])
        strengths = self._there[:, None] * STRENGTHS
        return np.asarray(strengths / (strengths + noise[:, None]))


def allocated_variances(
    workload: Workload, weights: Mapping[Margin, float], loss: Loss, records: int
) -> Mapping[Margin, float]:
    """Return the variances of the residuals for the best allocation with these weights, for add-remove neighbours."""
    domain = workload.domain
    noise: dict[CentredMargin, float]
    if isinstance(loss, PureDP):
        shares = laplace_allocation(workload, weights)
        # One record moves a counted or binary part by one, and a part that holds nothing, on one level, not at all.
        single = {a for a, k in zip(domain.attributes, domain.shape, strict=True) if k == 1}
        total = records * sum(share for (_, b), share in shares.items() if not single.intersection(b))
        noise = {part: 2 * (total / share / float(loss.epsilon)) ** 2 for part, share in shares.items()}
    else:
        shares = gaussian_allocation(domain, weights)
        levels = dict(zip(domain.attributes, domain.shape, strict=True))
        total = sum(
            share * math.prod(k * (k - 1) if k > 2 else k - 1 for k in (levels[a] for a in margin))
            for (margin, _), share in shares.items()
        )
        noise = {part: records**2 * total / (2 * float(loss.rho)) / share for part, share in shares.items()}
    return residual_variances(domain, noise)


def _zipf_concentration(levels: int) -> float:
    """Return Σp² for p ∝ 1, 1/2, …, 1/k.

    >>> round(_zipf_concentration(2), 3), round(_zipf_concentration(100), 3)
    (0.556, 0.061)
    """
    ranks = np.arange(1, levels + 1)
    return float((ranks**-2.0).sum() / (1.0 / ranks).sum() ** 2)
