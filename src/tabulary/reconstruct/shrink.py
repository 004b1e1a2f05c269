r"""Shrinkage: tables that use a noisy interaction only as far as it can be distinguished from noise.

The unbiased table on A adds to the tables of its subsets an interaction that is measured with noise of known
variance. Where the interaction is weaker than its noise, publishing it is worse than leaving it out. So from the
lowest order to the highest:

- the total, and the tables of single attributes, projected on what is possible: non-negative, with this total;
- each larger table starts from a *base* that its subsets decide: for two attributes independence, or dependence
  through a third attribute where the measurements speak for that; for more, the model without an interaction of
  all of them, by proportional fitting;
- the measured residual of the table, less that of the base, is d = interaction + noise of variance s. The prior for
  the interaction of a cell is N(0, κ b), b the base: large cells vary more. With κ known the best estimate is
  b + d · κb/(κb + s). κ is φ² Σb²/Σb, and the strength φ² has the broad prior of `planning.interaction_prior`: its
  posterior follows from d itself (empirical Bayes), and the estimate is averaged over it;
- the table is adjusted to the tables of its subsets, non-negative, each cell by its posterior spread: first by
  least squares (`projection`), then for the last digits by proportional fitting. The largest tables are at last fitted
  to the tables of three attributes below them.

At the end all tables are scaled until they agree on what they share (`proportional.Agreement`). No full table is
ever built. The result is non-negative and consistent, keeps structural zeros, and is biased: towards the base, by as
much as could not be measured.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.reconstruct.independence import Independence
from tabulary.reconstruct.projection import nearest
from tabulary.reconstruct.proportional import Agreement, Number, Projections, fit, held_table
from tabulary.reconstruct.shrinkage_posterior import judged

# A cell keeps at least this share of its base, or of its posterior spread if that is less, so that fitting can reach
# the margins. Without noise the spread is zero, and the measured table is kept unchanged.
_LEAST = 0.01
_LEAST_OPEN = 0.1
# How many third attributes are tried to explain the dependence of a pair, and the share of independence in such a
# base: the base must not rule out combinations that the third attribute happens not to show.
_THROUGH = 3
_INDEPENDENT = 0.05
# Sweeps towards the tables of the subsets, by least squares and by proportions, and how near is near enough.
_SQUARE_SWEEPS = 50
_SWEEPS = 30
_BASE_SWEEPS = 300
_CLOSE = 1e-9
_NOISE_CLOSE = 0.01
# Tables of this many attributes keep their accuracy as margins of larger ones.
_KEPT = 3
# Tables agree when no shared cell differs by more than this, relative to the total: far above the rounding of a sum
# of ten million cells, far below a person. Where that would take too long, a hundred times as much is accepted.
AGREEMENT = 1e-10
# A total below this is a zero with rounding errors: it counts nobody.
_NOBODY = 1e-6
ENOUGH = 100.0
# A simulation needs no better agreement and no more sweeps than this: the rest is far below the noise.
_ROUGH_AGREEMENT = 1e-7
_ROUGH_SWEEPS = 50
# The sweeps towards agreement; fewer if they would visit more shared cells than this.
MOST_SWEEPS = 2_000
_MOST_VISITED = 2_000_000_000
# The shares of the independent tables that are mixed in, one after another, until the tables agree.
MIXED = (0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class Shrunken:
    """The tables, and the posterior spread of each of them.

    `tables` are on the maximal margins and agree with each other. `spreads` are the posterior standard deviations of
    the interaction in each cell, for every set of two and more attributes. `bias_share` is the part of the expected
    squared error of the interactions that is bias. `difference` is the largest remaining difference between two
    tables. `blended` is the share of independence that made them agree, nearly always zero.
    """

    tables: Mapping[Margin, Floats]
    spreads: Mapping[Margin, Floats]
    bias_share: float
    difference: float
    blended: float

    def table(self, margin: Margin) -> Floats:
        """Return the table on a subset of a maximal margin."""
        return held_table(self.tables, margin)


class Shrinkage:
    """Shrinkage for one set of wanted tables and one set of noise variances, for any estimates of residuals."""

    def __init__(self, domain: Domain, margins: Sequence[Margin], variances: Mapping[Margin, float]) -> None:
        self.domain = domain
        # Sorted, because the order of a set would differ between two runs.
        wanted = {s: None for m in margins for n in range(len(m) + 1) for s in combinations(m, n)}
        self.sets = sorted(wanted, key=lambda s: (len(s), [domain.position(a) for a in s]))
        held = {s for m in self.sets if m for s in combinations(m, len(m) - 1)}
        self.maximal = tuple(s for s in self.sets if s not in held)
        self._projections = Projections()
        self._subset_places: dict[tuple[int, ...], NDArray[np.int32]] = {}
        self.agreement = Agreement(domain, self.maximal, self._projections)
        self._holders = _holders(self.sets, self.maximal)
        self._attributes = tuple(s[0] for s in self.sets if len(s) == 1)
        self._pairs = [(s[0], s[1]) for s in self.sets if len(s) == 2]
        self.variances = variances
        # The variance of the noise of one cell of the residual: σ² Π (k - 1)/k.
        self._noise = {
            s: variances[s] * math.prod((k - 1) / k for k in domain.shape_of(s)) for s in self.sets
        }

    def tables(self, residuals: Mapping[Margin, Floats], *, rough: bool = False) -> Shrunken:
        """Return the shrunk tables for these estimates of the residuals of every set.

        They agree to `AGREEMENT`, relative to the total, or to a hundred times that where more would take too long;
        with `rough`, only as well as a simulation needs.
        """
        total = float(residuals[()])
        total = total if total > _NOBODY else 0.0
        independence = Independence(self.domain, self._singles(residuals, total), total)
        state = _State(self, residuals, independence)
        for pair in self._pairs:
            state.shrink(pair, [independence.table(pair)], state.found)
        if len(self._pairs) > 2:
            state.look_through_others()
        for s in self.sets:
            if len(s) > 2:
                state.shrink(s, [state.without_highest(s)], state.found)
        wanted = {m: self._kept(m, state.found) for m in self.maximal}
        tables, difference, blended = self._agreed(wanted, independence, rough=rough)
        return Shrunken(tables, state.spreads, state.bias_share, difference, blended)

    def drawn(self, shrunken: Shrunken, normal: Callable[[tuple[int, ...]], Floats]) -> dict[Margin, Floats]:
        """Return tables that might be the truth: the shrunk ones, with interactions drawn by their posterior spread.

        They are non-negative and agree approximately, as the truth does exactly.
        """
        total = float(self.held(shrunken.tables, ()))
        ones = {a: self.held(shrunken.tables, (a,)) for a in self._attributes}
        independence = Independence(self.domain, ones, total)
        found: dict[Margin, Floats] = {(): np.array(total)}
        found |= {(a,): independence.ones[a] for a in self._attributes}
        for s in self.sets:
            if len(s) > 1:
                centre_of = self.held(shrunken.tables, s)
                moved = centre_of + shrunken.spreads[s] * normal(centre_of.shape)
                found[s] = self.led(s, moved, shrunken.spreads[s], _LEAST * centre_of, found)
        return self._agreed({m: found[m] for m in self.maximal}, independence, rough=True)[0]

    def held(self, tables: Mapping[Margin, NDArray[Number]], s: Margin) -> NDArray[Number]:
        """Return the table on `s` from tables on the maximal margins."""
        holder, axes = self._holders[s]
        return np.asarray(tables[holder].sum(axis=axes)) if axes else tables[holder]

    def led(
        self, s: Margin, table: Floats, spread: Floats, least: Floats, found: Mapping[Margin, Floats]
    ) -> Floats:
        """Return the table on `s` with the tables of its subsets as margins; cells move by their posterior spread."""
        subsets = [found[kept] for kept in combinations(s, len(s) - 1)]
        tolerance = _CLOSE * (1 + float(found[()]))
        moved = nearest(
            table,
            spread**2,
            least,
            self._places(table.shape),
            subsets,
            sweeps=_SQUARE_SWEEPS,
            tolerance=tolerance,
        )
        return self.fitted(s, moved, found)

    def fitted(
        self,
        s: Margin,
        table: Floats,
        found: Mapping[Margin, Floats],
        *,
        sweeps: int = _SWEEPS,
        near: float = 0.0,
    ) -> Floats:
        """Return the table on `s` fitted proportionally to those of its subsets, or `near` to them."""
        subsets = [found[kept] for kept in combinations(s, len(s) - 1)]
        tolerance = max(near, _CLOSE * (1 + float(found[()])))
        return fit(table, self._places(table.shape), subsets, sweeps=sweeps, tolerance=tolerance)

    def _kept(self, s: Margin, found: Mapping[Margin, Floats]) -> Floats:
        """Return the table on `s` fitted to the tables of three attributes below it.

        A large table is fitted to its subsets, these to theirs, and what no table can fit adds up on the way: in a
        table of ten attributes it made the pairs a tenth less accurate.
        """
        if len(s) <= _KEPT + 1:
            return found[s]
        table, kept = found[s], list(combinations(range(len(s)), _KEPT))
        places = np.stack([self._projections.onto(table.shape, axes) for axes in kept])
        targets = [found[tuple(s[i] for i in axes)] for axes in kept]
        return fit(table, places, targets, sweeps=_SWEEPS, tolerance=_CLOSE * (1 + float(found[()])))

    def _places(self, shape: tuple[int, ...]) -> NDArray[np.int32]:
        if shape not in self._subset_places:
            self._subset_places[shape] = self._projections.without_one(shape)
        return self._subset_places[shape]

    def noise(self, s: Margin) -> float:
        """Return the variance of the noise in a cell of the measured residual of `s`."""
        return self._noise[s]

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """The sets of two attributes."""
        return self._pairs

    @property
    def attributes(self) -> Margin:
        """All attributes of the wanted tables."""
        return self._attributes

    def _singles(self, residuals: Mapping[Margin, Floats], total: float) -> dict[str, Floats]:
        found = {}
        for a in self._attributes:
            own = residuals[a,] + total / residuals[a,].size
            possible = ~self.domain.impossible((a,))
            found[a] = np.zeros(own.shape)
            found[a][possible] = simplex(own[possible], total)
        return found

    def _agreed(
        self, tables: Mapping[Margin, Floats], independence: Independence, *, rough: bool
    ) -> tuple[dict[Margin, Floats], float, float]:
        """Return tables that agree, the remaining difference, and the share of independence that was mixed in.

        Independent tables agree with any structural zeros, and have the same positive cells, so mixing them in brings
        other tables closer to agreement, and faster.
        """
        total = independence.total
        if rough:
            tolerance = _ROUGH_AGREEMENT * (1 + total)
            found, left = self.agreement.reached(
                tables, total=total, sweeps=_ROUGH_SWEEPS, tolerance=tolerance
            )
            return found, left, 0.0
        tolerance = AGREEMENT * (1 + total)
        sweeps = min(MOST_SWEEPS, max(_ROUGH_SWEEPS, _MOST_VISITED // max(1, self.agreement.work)))
        for blended in MIXED:
            mixed = tables
            if blended:
                mixed = {m: (1 - blended) * t + blended * independence.table(m) for m, t in tables.items()}
            found, left = self.agreement.reached(mixed, total=total, sweeps=sweeps, tolerance=tolerance)
            if left <= ENOUGH * tolerance:
                break
        return found, left, blended


class _State:
    """The tables found so far, from the lowest order up."""

    def __init__(
        self, shrinkage: Shrinkage, residuals: Mapping[Margin, Floats], independence: Independence
    ) -> None:
        self._shrinkage = shrinkage
        self._residuals = residuals
        self._independence = independence
        self.found: dict[Margin, Floats] = {(): np.array(independence.total)}
        self.found |= {(a,): independence.ones[a] for a in shrinkage.attributes}
        self.spreads: dict[Margin, Floats] = {}
        self._bias: dict[Margin, tuple[float, float]] = {}

    @property
    def bias_share(self) -> float:
        """The part of the expected squared error of all interactions that is bias."""
        bias = sum(b for b, _ in self._bias.values())
        whole = sum(w for _, w in self._bias.values())
        return bias / whole if whole > 0 else 0.0

    def shrink(self, s: Margin, bases: Sequence[Floats], into: dict[Margin, Floats]) -> None:
        """Put in the table on `s` from the base that explains its measured residual best."""
        noise = self._shrinkage.noise(s)
        found = [judged(base, self._residuals[s], noise) for base in bases]
        best = max(range(len(bases)), key=lambda i: found[i].evidence)
        mean, spread, bias, whole = found[best].estimate()
        self.spreads[s] = spread
        self._bias[s] = (bias, whole)
        least = np.minimum(_LEAST * bases[best], _LEAST_OPEN * spread)
        into[s] = self._shrinkage.led(s, mean, spread, least, self.found)

    def without_highest(self, s: Margin) -> Floats:
        """Return the table on `s` that its subsets decide, without an interaction of all its attributes."""
        independent = self._independence.table(s)
        # The subsets need not agree, and accuracy beyond the noise would be useless.
        near = _NOISE_CLOSE * math.sqrt(self._shrinkage.noise(s))
        return self._shrinkage.fitted(s, independent, self.found, sweeps=_BASE_SWEEPS, near=near)

    def look_through_others(self) -> None:
        """Compute every pair again, with bases in which two attributes depend through a third one.

        The information that two attributes share through a third is at most what each shares with it, so the few best
        third attributes by the smaller of the two are tried.
        """
        attributes = self._shrinkage.attributes
        place = {a: i for i, a in enumerate(attributes)}
        shared = np.full((len(attributes), len(attributes)), -1.0)
        for a, b in self._shrinkage.pairs:
            shared[place[a], place[b]] = shared[place[b], place[a]] = _mutual_information(self.found[a, b])
        anew: dict[Margin, Floats] = {}
        for a, b in self._shrinkage.pairs:
            bases = [self._independence.table((a, b))]
            both = np.minimum(shared[place[a]], shared[place[b]])
            for i in np.argsort(-both, kind="stable")[:_THROUGH]:
                if both[i] > 0:
                    bases.append(self._through(a, b, attributes[i], bases[0]))
            self.shrink((a, b), bases, anew)
        self.found |= anew

    def _through(self, a: str, b: str, other: str, independent: Floats) -> Floats:
        own = self.found[other,]
        rows = self._pair(a, other) / np.where(own > 0, own, 1.0)
        base = np.where(independent > 0, rows @ self._pair(other, b), 0.0)
        return (1 - _INDEPENDENT) * base + _INDEPENDENT * independent

    def _pair(self, a: str, b: str) -> Floats:
        return self.found[a, b] if (a, b) in self.found else self.found[b, a].T


def _holders(
    sets: Sequence[Margin], maximal: Sequence[Margin]
) -> dict[Margin, tuple[Margin, tuple[int, ...]]]:
    """Return, for each set, the first maximal margin that contains it, and the axes to sum over."""
    found: dict[Margin, tuple[Margin, tuple[int, ...]]] = {}
    for m in maximal:
        for order in range(len(m) + 1):
            for axes in combinations(range(len(m)), order):
                s = tuple(m[i] for i in axes)
                if s not in found:
                    found[s] = m, tuple(i for i in range(len(m)) if i not in axes)
    return {s: found[s] for s in sets}


def simplex(values: Floats, total: float) -> Floats:
    """Return the nearest non-negative values with this total.

    >>> simplex(np.array([5.0, 1.0, -2.0]), 5.0).tolist()
    [4.5, 0.5, 0.0]
    """
    falling = np.sort(values)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    positive = np.flatnonzero(falling > levels)
    # With a total of zero, no value is above its level.
    level = levels[positive[-1]] if positive.size else levels[0]
    found: Floats = np.maximum(values - level, 0.0)
    return found


def _mutual_information(table: Floats) -> float:
    joint = table / max(table.sum(), 1e-300)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    # The rest adds nothing, and its products would underflow.
    here = joint > 1e-15
    return float((joint[here] * np.log(joint[here] / apart[here])).sum())
