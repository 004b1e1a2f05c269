r"""The noise that the cells of a table share when it is made of noisy residuals.

A weighted sum of the cells of the table on A is Σ_R u_R · r_R over the subsets R of A, with u_R the weights summed
over the other attributes and divided by their levels. The estimate of r_R is the mean of what the parts say of it,
and a part is linear in its own draws, so the weight of each draw of a part (S, B) is

    Σ_{B ⊆ R ⊆ S ∩ A} share_R · (P_R u_R, divided by k on a centred attribute of three or more levels),

the same for all draws that differ in attributes of S \ A alone. `core.residuals` and `planning.queries.residuals` say
how a part tells a residual; this is the transpose of that.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tabulary.core import basis
from tabulary.core.arrays import Floats, axes_outside
from tabulary.core.domain import Margin
from tabulary.core.residuals import centre
from tabulary.planning.accuracy import SMALLEST_VARIANCE
from tabulary.planning.covariance import Draws, by_block, filtered
from tabulary.planning.residual_errors import NoisyPart, part_variance, subsets


@dataclass(frozen=True, eq=False)
class ResidualNoise:
    """The errors of the table on `margin`, by the noise on the parts and the variances of the residuals."""

    margin: Margin
    levels: Mapping[str, int]
    parts: Sequence[NoisyPart]
    variances: Mapping[Margin, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return tuple(self.levels[a] for a in self.margin)

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw by two transforms."""
        return filtered(self._spectrum, weights)

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws of each part that the estimate of this table uses."""
        told: dict[Margin, Floats] = {}
        own = set(self.margin)
        for margin, centred, noise in self.parts:
            v = noise.variance
            if (
                v <= SMALLEST_VARIANCE
                or not own.issuperset(centred)
                or any(self.levels[a] == 1 for a in centred)
            ):
                continue
            met = tuple(a for a in margin if a in own)
            total = np.zeros([self._values(a, centred) for a in met])
            for r in subsets(met, centred):
                if not self.variances[r]:
                    continue
                if r not in told:
                    told[r] = self._centred(weights, r)
                share = self.variances[r] / part_variance(self.levels, margin, centred, r, v)
                total += share * self._on_part(told[r], r, met, centred)
            yield Draws(noise, total.reshape(-1), math.prod(self.levels[a] for a in margin if a not in own))

    @cached_property
    def _spectrum(self) -> Floats:
        values = {
            r: self.variances[r] / math.prod(self.levels[a] for a in self.margin if a not in r)
            for r in subsets(self.margin)
        }
        return by_block(self.margin, self.shape, values) / basis.squared_norms(self.shape)

    def _centred(self, weights: Floats, r: Margin) -> Floats:
        """Return P_R u_R, a table over the levels of R."""
        summed = axes_outside(self.margin, r)
        return centre(np.asarray(weights.mean(axis=summed)))

    def _on_part(self, told: Floats, r: Margin, met: Margin, centred: Margin) -> Floats:
        """Return the weights of the part's values, one on the attributes that r lacks."""
        for axis, a in enumerate(r):
            if a in centred:
                # Two levels were measured as their difference: both have half of it, with both signs.
                told = (
                    told[(slice(None),) * axis + (slice(1),)]
                    if self.levels[a] == 2
                    else told / self.levels[a]
                )
        return told.reshape([self._values(a, centred) if a in r else 1 for a in met])

    def _values(self, attribute: str, centred: Margin) -> int:
        return 1 if attribute in centred and self.levels[attribute] == 2 else self.levels[attribute]
