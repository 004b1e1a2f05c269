r"""Shares of Laplace noise for the parts of a residual measurement: a descent from several starts.

With Laplace noise of scale 1/t on a part (S, B), of variance 2/t² (the discrete law's is a little less), the
precision of the residual of R is p_R = Σ a t² over the parts with B ⊆ R ⊆ S, a = 1/(2 Π_{S\R} k Π_B h). Parts
that are counted, or centred on attributes of two levels, move by L1 = 1 for every record, so pure ε bounds
Σ t. Centring an attribute of three or more levels is never worth its cost: for k²/(4 (k - 1)²) < 1 of the
precision, the part then knows fewer residuals than if the attribute is counted.

Σ V_R/p_R at a given Σ t is not convex: 1/(t₁² + t₂²) prefers one large share to two small ones. From any t₀ it is
at most Σ_M t₀⁴ G_M/t² with G_M = Σ_R a V_R/p_R² at t₀, and equal to it there (Jensen); that bound is least at
t ∝ t₀ (t₀ G)^{1/3}. Repeating this never increases the sum, and a share that does not pay vanishes with the
power 4/3 of itself. Where it ends depends on where it starts: each margin with binary attributes ends with one
choice of those that are centred, and the choices fit together better or worse. So several starts are compared,
and the choice is opened again for half of the margins at a time, as long as there is time; at the end every
part that has vanished is offered a share of its own once more.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.symmetry import Sets, interchangeable
from tabulary.core.workload import Workload
from tabulary.planning.allocation import CentredMargin, cell_weights, completed, rounded, summed_weights

Vector = NDArray[np.float64]
Orbit = tuple[tuple[int, int], ...]
"""How many attributes of each class a set has; classes without one are left out."""

# With more pairs of a part and a residual than these, parts that an exchange of attributes takes into each other
# have equal shares; and only parts that some start measures are candidates.
MOST_APART = 200_000
MOST_PAIRS = 3_000_000
# Pairs that are looked at in each descent from one more start, together, and the most of these starts.
_SEARCHED = 1_500_000
_MOST_STARTS = 240
# How far the shares of such a start are from equal, as a logarithm.
_UNEQUAL = 0.05
_MOST_STEPS = 1_000
# A step that gains less than this, relatively, is the last one.
_LEAST_STEP = 1e-9
# A part that adds less than this to the precision of every residual that it knows is dropped, the first of these
# at which the others can make up for it but for the tolerance.
_NEGLIGIBLE = (1e-2, 1e-3, 1e-4, 1e-6)
_TOLERANCE = 1e-8
# What a vanished part is offered, as a share of the whole budget, and the least gain that brings it back.
_OFFERS = tuple(2.0**-i for i in range(1, 15))
_LEAST_GAIN = 1e-5
_MOST_RETURNS = 40
_MOST_COMPARED = 20_000
# The powers of the smooth maximum; each starts where the one before it ended.
_POWERS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


class Orbits:
    """Sets of a downward closure up to an exchange of attributes that are treated alike.

    An allocation that starts alike for two parts that such an exchange takes into each other keeps them alike, so
    one number stands for all parts of an orbit: ten numbers for all 19,600 three-way tables of fifty bits. Each set
    has numbers that an exchange must keep.

    Without `exchange` every set is an orbit by itself.
    """

    def __init__(
        self, domain: Domain, numbers: Mapping[Margin, tuple[float, ...]], *, exchange: bool = True
    ) -> None:
        classes = [[a] for a in domain.attributes]
        if exchange:
            levels = dict(zip(domain.attributes, domain.shape, strict=True))
            described: dict[Sets, tuple[float, ...]] = {(frozenset(m),): v for m, v in numbers.items()}
            classes = interchangeable(levels, described, alike=_alike)
        self._class_of = {a: i for i, names in enumerate(classes) for a in names}
        self.size: Counter[Orbit] = Counter()
        self.representative: dict[Orbit, Margin] = {}
        for margin in numbers:
            orbit = self.of(margin)
            self.size[orbit] += 1
            self.representative.setdefault(orbit, margin)

    def of(self, attributes: Iterable[str]) -> Orbit:
        """Return the orbit of a set."""
        return tuple(sorted(Counter(self._class_of[a] for a in attributes).items()))

    def parts(self, margin: Orbit, centred: Orbit) -> int:
        """Return how many parts an orbit of parts has: its margins, times the choices of what is centred."""
        chosen = dict(centred)
        return self.size[margin] * math.prod(math.comb(n, chosen.get(c, 0)) for c, n in margin)


def laplace_allocation(workload: Workload, weights: Mapping[Margin, float]) -> dict[CentredMargin, float]:
    """Return the shares, relative 1/scale, of Laplace noise with a small Σ_R V_R σ²_R.

    Never worse, but for rounding the shares to three digits, than the counts of the wanted margins with equal
    noise or with noise by their weights, than the contrasts of binary attributes with equal or with the best
    noise, or than the counts of one wanted margin that contains all others, each by generalised least
    squares. Deterministic. Not proved to be the least.

    >>> domain = Domain({"a": "xyz", "b": "xyzu"})
    >>> workload = Workload(domain, [("a",), ("b",), ("a", "b")])
    >>> laplace_allocation(workload, cell_weights(workload))
    {(('a', 'b'), ()): 1.0}
    """
    return dict(_allocated(workload, tuple(weights.items())))


# Shares do not depend on the privacy loss, so that one descent serves every ε that is compared.
@lru_cache(maxsize=256)
def _allocated(
    workload: Workload, weighted: tuple[tuple[Margin, float], ...]
) -> Mapping[CentredMargin, float]:
    weights = dict(weighted)
    candidates = _Candidates.of(workload, weights)
    found = least_sum(candidates, candidates.total(weights))
    return completed(workload.domain, weights, rounded(candidates.shares(found)))


def laplace_minimax(workload: Workload) -> dict[CentredMargin, float]:
    """Return the shares of Laplace noise with a small largest weight · variance over the wanted margins' cells.

    Descends on power means of rising powers, from the shares with the least sums and from every start, and
    keeps what had the smallest maximum on the way: never more than `laplace_allocation` has for the cells of
    these margins, but for rounding the shares to four digits. Not proved to be the least.

    >>> domain = Domain({"a": "xyz", "b": "xyzu"})
    >>> laplace_minimax(Workload(domain, [("a",), ("b",)]))
    {(('a',), ()): 1.0, (('b',), ()): 1.0}
    """
    domain = workload.domain
    weights = cell_weights(workload)
    candidates = _Candidates.of(workload, weights)
    alone = summed_weights(domain, zip(workload.margins, map(float, workload.weights), strict=True))
    starts = [least_sum(candidates, candidates.total(w)) for w in (weights, alone)]
    margins = _Margins.of(workload, candidates)

    def largest(t: Vector) -> float:
        return float(margins.variances(1 / candidates.precisions(t)).max())

    best = min(starts, key=largest)
    # Each power costs a descent: on large problems the best starts alone.
    others = candidates.starts if len(candidates.part) <= _MOST_COMPARED else ()
    for start in (*starts, *others):
        t = start
        for power in _POWERS:
            t = _descended(candidates, t, margins.power_mean(power))
            best = min(best, t, key=largest)
    best = _without(candidates, best, _NEGLIGIBLE[-1])
    return completed(domain, weights, rounded(candidates.shares(best), digits=4))


Objective = Callable[[Vector], tuple[float, Vector]]
"""From the variances 1/p of all residuals, the value and its slopes."""


@dataclass(frozen=True)
class _Candidates:
    """The parts that may be measured and the residuals that they know, both up to exchange.

    `adds` is what a pair of them, `part` and `residual`, adds to p_R at t = 1, all parts of the orbit
    together. A budget of one is Σ cost · t = 1.
    """

    domain: Domain
    orbits: Orbits
    sets: tuple[Margin, ...]
    residuals: Mapping[Orbit, int]
    parts: tuple[tuple[Orbit, Orbit], ...]
    cost: Vector
    part: NDArray[np.intp]
    residual: NDArray[np.intp]
    adds: Vector
    starts: tuple[Vector, ...]

    @classmethod
    def of(cls, workload: Workload, weights: Mapping[Margin, float]) -> "_Candidates":
        domain = workload.domain
        levels = dict(zip(domain.attributes, domain.shape, strict=True))
        asked = reduced_margins(workload)
        # A set with an attribute of one level is another one without it.
        sets = {m: v for m, v in weights.items() if all(levels[a] > 1 for a in m)}
        bits = {a for a, k in levels.items() if k == 2}
        exchange = sum(2.0 ** len(m) * 1.5 ** len(bits.intersection(m)) for m in sets) > MOST_APART
        orbits = Orbits(domain, {m: (v, asked.get(m, 0.0)) for m, v in sets.items()}, exchange=exchange)
        wanted = {orbits.of(m): weight for m, weight in asked.items()}
        represented = orbits.representative
        residuals = [orbit for orbit, margin in represented.items() if sets[margin] > 0]
        place = {orbit: i for i, orbit in enumerate(residuals)}
        binary = {m: tuple(a for a in m if a in bits) for m in represented.values()}
        pairs = sum(2.0 ** len(m) * 1.5 ** len(binary[m]) for m in represented.values())
        parts: dict[tuple[Orbit, Orbit], int] = {}
        known: dict[tuple[int, int], float] = defaultdict(float)
        for orbit, margin in represented.items():
            if pairs <= MOST_PAIRS:
                choices = [b for n in range(len(binary[margin]) + 1) for b in combinations(binary[margin], n)]
            else:
                choices = [binary[margin]] + ([()] if orbit in wanted and binary[margin] else [])
            for centred in choices:
                pair = orbit, orbits.of(centred)
                if pair in parts:
                    continue
                parts[pair] = number = len(parts)
                many = orbits.parts(*pair)
                free = [a for a in margin if a not in centred]
                for summed in (s for n in range(len(free) + 1) for s in combinations(free, n)):
                    onto = orbits.of(a for a in margin if a not in summed)
                    if onto in place:
                        precision = 2.0 ** len(centred) / (2 * math.prod(levels[a] for a in summed))
                        known[number, place[onto]] += precision * many / orbits.size[onto]
        found = cls(
            domain=domain,
            orbits=orbits,
            sets=tuple(sets),
            residuals=place,
            parts=tuple(parts),
            cost=np.array([float(orbits.parts(*pair)) for pair in parts]),
            part=np.array([m for m, _ in known], dtype=np.intp),
            residual=np.array([r for _, r in known], dtype=np.intp),
            adds=np.array(list(known.values())),
            starts=(),
        )
        return found._with_starts(wanted, {orbit: sets[m] for orbit, m in represented.items()}, levels)

    def _with_starts(
        self, wanted: Mapping[Orbit, float], values: Mapping[Orbit, float], levels: Mapping[str, int]
    ) -> "_Candidates":
        bits = {
            orbit: self.orbits.of(a for a in margin if levels[a] == 2)
            for orbit, margin in self.orbits.representative.items()
        }
        attributes = len({a for margin in self.sets for a in margin})

        def start(share: Callable[[Orbit, Orbit], float]) -> Vector:
            return np.array([share(margin, centred) for margin, centred in self.parts])

        everything = start(lambda margin, centred: 1.0)
        offered = [
            start(lambda margin, centred: float(margin in wanted and not centred)),
            start(lambda margin, centred: 0.0 if centred else wanted.get(margin, 0.0)),
            start(lambda margin, centred: float(sum(n for _, n in margin) == attributes and not centred)),
            start(lambda margin, centred: float(centred == bits[margin])),
            # The best shares where every part knows one residual, as with contrasts of bits alone.
            start(
                lambda margin, centred: (
                    (values[margin] / 2.0 ** sum(n for _, n in centred)) ** (1 / 3)
                    if centred == bits[margin]
                    else 0.0
                )
            ),
            everything,
            start(lambda margin, centred: values[margin] ** (1 / 3)),
        ]
        # A start that leaves a residual unmeasured is none.
        kept = tuple(self.spent(t) for t in offered if t.any() and self.precisions(t).min() > 0)
        return replace(self, starts=kept)

    def spent(self, t: Vector) -> Vector:
        """The shares stretched to a budget of one."""
        # Summed without BLAS, whose threads cost more than vectors of this length.
        return np.asarray(t / (self.cost * t).sum())

    def precisions(self, t: Vector) -> Vector:
        """p_R of every residual."""
        return summed(self.residual, self.adds * (t * t)[self.part], len(self.residuals))

    def total(self, weights: Mapping[Margin, float]) -> Objective:
        """The objective Σ_R V_R σ²_R."""
        slopes = np.array(
            [weights[self.orbits.representative[o]] * self.orbits.size[o] for o in self.residuals]
        )
        return lambda variances: (float((slopes * variances).sum()), slopes)

    def shares(self, t: Vector) -> dict[CentredMargin, float]:
        """The share of every part that has one, in the order of the closure."""
        active: dict[Orbit, list[tuple[Orbit, float]]] = defaultdict(list)
        for (orbit, chosen), share in zip(self.parts, t.tolist(), strict=True):
            if share > 0:
                active[orbit].append((chosen, share))
        found: dict[CentredMargin, float] = {}
        for margin in self.sets:
            for chosen, share in active.get(self.orbits.of(margin), ()):
                for centred in combinations(margin, sum(n for _, n in chosen)):
                    if self.orbits.of(centred) == chosen:
                        found[margin, centred] = share
        return found


@dataclass(frozen=True)
class _Margins:
    """The wanted margins up to exchange: weight · variance of a cell of each from the residuals' variances."""

    copies: Vector
    margin: NDArray[np.intp]
    residual: NDArray[np.intp]
    factor: Vector

    @classmethod
    def of(cls, workload: Workload, candidates: _Candidates) -> "_Margins":
        orbits = candidates.orbits
        asked = {orbits.of(m): (m, w) for m, w in reduced_margins(workload).items()}
        known: dict[tuple[int, int], float] = defaultdict(float)
        for number, (margin, weight) in enumerate(asked.values()):
            for s, factor in summed_weights(workload.domain, [(margin, weight)]).items():
                known[number, candidates.residuals[orbits.of(s)]] += factor
        return cls(
            copies=np.array([float(orbits.size[o]) for o in asked]),
            margin=np.array([m for m, _ in known], dtype=np.intp),
            residual=np.array([r for _, r in known], dtype=np.intp),
            factor=np.array(list(known.values())),
        )

    def variances(self, residuals: Vector) -> Vector:
        """Weight · variance of a cell of every margin."""
        return summed(self.margin, self.factor * residuals[self.residual], len(self.copies))

    def power_mean(self, power: float) -> Objective:
        """The power mean over all margins, which tends to the largest as the power grows."""

        def objective(residuals: Vector) -> tuple[float, Vector]:
            each = self.variances(residuals)
            largest = float(each.max())
            terms = self.copies * (each / largest) ** power
            mean = largest * float(terms.sum() / self.copies.sum()) ** (1 / power)
            # Up to a factor, which a descent at a given budget does not see.
            slopes = terms / each
            return mean, summed(self.residual, self.factor * slopes[self.margin], len(residuals))

        return objective


def summed(place: NDArray[np.intp], values: Vector, count: int) -> Vector:
    """Return the sum of the values at every place."""
    return np.bincount(place, values, count).astype(np.float64, copy=False)


def reduced_margins(workload: Workload) -> dict[Margin, float]:
    """Return the wanted margins without their attributes of one level, each with its largest weight."""
    domain = workload.domain
    found: dict[Margin, float] = {}
    for margin, weight in zip(workload.margins, workload.weights, strict=True):
        kept = tuple(a for a in margin if len(domain.levels_of(a)) > 1)
        found[kept] = max(found.get(kept, 0.0), float(weight))
    return found


def least_sum(candidates: _Candidates, objective: Objective) -> Vector:
    """Return the best of the descents from all starts, after the parts that vanished had another chance."""

    def value(t: Vector) -> float:
        return objective(1 / candidates.precisions(t))[0]

    ends = [_descended(candidates, start, objective) for start in candidates.starts]
    broken = _broken(candidates, objective)
    t = min(ends if broken is None else [*ends, broken], key=value)
    for _ in range(_MOST_RETURNS):
        offered = _best_offer(candidates, t, objective)
        if offered is None:
            break
        t = _descended(candidates, offered, objective)
    for negligible in _NEGLIGIBLE:
        reduced = _descended(candidates, _without(candidates, t, negligible), objective)
        if value(reduced) <= value(t) * (1 + _TOLERANCE):
            return reduced
    return t


def _descended(candidates: _Candidates, t: Vector, objective: Objective) -> Vector:
    """Return where t ← t (t G / cost)^η leads from here, never upward.

    A power η of 1/3 never fails for a sum; larger ones are tried as long as they gain, and for a smooth
    maximum smaller ones where they do not. For any η the step goes downhill at first, since
    Σ cost · t (1 - x) log x ≤ 0 for x = t G / cost over its mean.
    """
    precisions = candidates.precisions(t)
    value, slopes = objective(1 / precisions)
    exponent = 1 / 3
    for _ in range(_MOST_STEPS):
        steep = summed(
            candidates.part, candidates.adds * (slopes / precisions**2)[candidates.residual], len(t)
        )
        ratio = t * steep / candidates.cost
        ratio /= ratio.max()
        while True:
            moved = candidates.spent(t * ratio**exponent)
            after = candidates.precisions(moved)
            new, sloping = objective(1 / after) if after.min() > 0 else (math.inf, slopes)
            if new <= value or exponent < 1e-6:
                break
            exponent /= 2
        if not new < value:
            return t
        gained = value - new
        t, value, slopes, precisions = moved, new, sloping, after
        if gained < _LEAST_STEP * value:
            return t
        exponent = min(exponent * 1.3, 1.0)
    return t


def _broken(candidates: _Candidates, objective: Objective) -> Vector | None:
    """Return the best shares found where margins that look alike need not be treated alike, if there are choices.

    From almost equal shares for all parts, every margin settles on one choice of its centred attributes. Then
    half of the margins at a time are opened again: the share of each is spread over all its choices, almost
    equally, and a descent that ends lower is kept.
    """
    numbered: dict[Orbit, int] = {}
    margin = np.array([numbered.setdefault(pair[0], len(numbered)) for pair in candidates.parts])
    choices = np.bincount(margin)
    rounds = min(_MOST_STARTS, _SEARCHED // len(candidates.part))
    if choices.max() == 1 or not rounds:
        return None
    best, found = math.inf, candidates.starts[-1]
    for number in range(rounds):
        # Half as many starts from all parts as rounds of opening; the last two starts measure everything.
        if number < max(rounds // 3, 1):
            start = candidates.starts[-1 - number % 2]
            opened = np.ones(len(start), dtype=bool)
        else:
            share = summed(margin, found * candidates.cost, len(choices))
            start = (share / choices)[margin] / candidates.cost
            opened = (_scattered(2 * number, len(choices)) < 0.5)[margin]
        unequal = start * np.exp(_UNEQUAL * _scattered(2 * number + 1, len(start)))
        t = _descended(candidates, candidates.spent(np.where(opened, unequal, found)), objective)
        value = objective(1 / candidates.precisions(t))[0]
        if value < best:
            best, found = value, t
    return found


def _scattered(seed: int, count: int) -> Vector:
    """Return numbers from 0 to 1 without a pattern, the same on every machine (Steele, Lea & Flood 2014)."""
    state = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)
    state *= np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((state ^ (state >> np.uint64(31))) / 2.0**64)


def _best_offer(candidates: _Candidates, t: Vector, objective: Objective) -> Vector | None:
    """Return the shares with the one part that gains most from a part of the whole budget, if any does."""
    precisions = candidates.precisions(t)
    value, slopes = objective(1 / precisions)
    now = (slopes / precisions)[candidates.residual]
    added = candidates.adds / candidates.cost[candidates.part] ** 2
    best, choice = value * (1 - _LEAST_GAIN), None
    for share in _OFFERS:
        kept = (1 - share) ** 2
        then = slopes[candidates.residual] / (kept * precisions[candidates.residual] + share**2 * added)
        totals = value / kept + summed(candidates.part, then - now / kept, len(t))
        part = int(totals.argmin())
        if totals[part] < best:
            best, choice = float(totals[part]), (part, share)
    if choice is None:
        return None
    part, share = choice
    offered = (1 - share) * t
    offered[part] += share / candidates.cost[part]
    return offered


def _without(candidates: _Candidates, t: Vector, negligible: float) -> Vector:
    """Return the shares without parts that no residual would miss; one that is alone is never among them."""
    precisions = candidates.precisions(t)
    part = candidates.adds * (t * t)[candidates.part] / precisions[candidates.residual]
    most = np.zeros(len(t))
    np.maximum.at(most, candidates.part, part)
    return candidates.spent(np.where(most > negligible, t, 0.0))


def _alike(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    # Sums of the same terms in another order differ in their last digits.
    return all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(one, other, strict=True))
