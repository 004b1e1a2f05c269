r"""How much noise each part of a residual measurement gets. Numbers only: no plan, no noise, no data.

A part (margin S, centred attributes B) with noise of variance v knows the residual of R, B ⊆ R ⊆ S, with
variance σ² = v · Π_{S\R} k · Π_B h (`core.residuals`). Residuals of different sets are uncorrelated, so
generalised least squares over all parts is a weighted mean for each R by itself, with the precision
1/σ²_R = Σ 1/σ² over the parts that know it, and every cell of the table on A has the variance

    var_A = Σ_{R ⊆ A} σ²_R · Π_R (k - 1)/k · Π_{A\R} k⁻².

Any sum of these over tables is Σ_R V_R σ²_R for some weights V_R ≥ 0, which is all that an allocation asks for.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidPlan

CentredMargin = tuple[Margin, Margin]
"""What is measured together: a margin, and those of its attributes that are centred."""

# The gap at which the least largest variance is found, and the steps after which the gap is what it is.
_GAP = 1e-6
_MOST_STEPS = 20_000


def cell_weights(workload: Workload) -> dict[Margin, float]:
    r"""Return V_R for every set R of the closure: how much its variance counts over all wanted cells.

    Σ_A w_A · cells(A) · var_A = Σ_R V_R σ²_R, so V_R = Σ_{A ⊇ R} w_A cells(A) Π_R (k - 1)/k Π_{A\R} k⁻², with
    A over the wanted margins. Impossible cells are not counted. A set with an attribute of one level has
    weight zero: it has no residual.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> weights = cell_weights(Workload(domain, [("a", "b")]))
    >>> [(margin, round(weight, 6)) for margin, weight in weights.items()]
    [((), 0.166667), (('a',), 0.333333), (('b',), 1.0), (('a', 'b'), 2.0)]
    """
    domain = workload.domain
    return summed_weights(
        domain,
        (
            (margin, float(weight) * _possible_cells(domain, margin))
            for margin, weight in zip(workload.margins, workload.weights, strict=True)
        ),
    )


def summed_weights(domain: Domain, margins: Iterable[tuple[Margin, float]]) -> dict[Margin, float]:
    """Return V_R of the sum Σ_A weight_A · var_A, for every subset R of these margins, lowest order first."""
    levels = dict(zip(domain.attributes, domain.shape, strict=True))
    own = {a: (k - 1) / k for a, k in levels.items()}
    other = {a: k**-2.0 for a, k in levels.items()}
    found: dict[Margin, float] = defaultdict(float)
    for margin, weight in margins:
        # Subsets of the attributes so far, each with its factor; one attribute doubles them.
        subsets: dict[Margin, float] = {(): weight}
        for a in margin:
            subsets = {s: f * other[a] for s, f in subsets.items()} | {
                (*s, a): f * own[a] for s, f in subsets.items()
            }
        for s, f in subsets.items():
            found[s] += f
    return {s: found[s] for s in sorted(found, key=lambda s: (len(s), [domain.position(a) for a in s]))}


def gaussian_allocation(domain: Domain, weights: Mapping[Margin, float]) -> dict[CentredMargin, float]:
    """Return the shares, relative 1/variance, of Gaussian noise with the least Σ_R V_R σ²_R.

    One part (R, R) for every R: for Gaussian noise no other choice of parts is better (Xiao, He, Zhang &
    Kifer 2023). It costs Π_R (k - 1)/k = c_R over σ²_R, and the least sum at a given Σ c_R/σ²_R has
    σ²_R ∝ √(c_R/V_R). The share is 1/v = Π_R h / σ²_R, the largest of them one.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> shares = gaussian_allocation(domain, cell_weights(Workload(domain, [("a", "b")])))
    >>> [(margin, share) for (margin, _), share in shares.items()]
    [((), 1.0), (('a',), 1.0), (('b',), 0.333), (('a', 'b'), 0.333)]
    """
    return completed(domain, weights, rounded(_least_shares(domain, weights)))


def gaussian_minimax(workload: Workload) -> dict[CentredMargin, float]:
    r"""Return the shares of Gaussian noise with the least largest weight · variance over the wanted margins' cells.

    With λ on the wanted margins, Σ λ = 1, and V_R(λ) the weights of Σ_A λ_A w_A var_A, the least sum at a budget
    Σ c_R/σ²_R = 1 is f(λ)² with f = Σ_R √(c_R V_R(λ)), at σ²_R = f √(c_R/V_R) (`gaussian_allocation`). No
    allocation has a smaller maximum than f², and this one has f · max_A g_A with g_A = w_A Σ_R a √(c_R/V_R),
    where w_A var_A = w_A Σ_R a σ²_R; f is concave in λ with slopes g/2, and Σ λ g = f. So max g / f - 1 is a
    proved gap. λ ← λ (g/f)^η raises f until the gap is at most 10⁻⁶.

    >>> domain = Domain({"a": "xyz", "b": "xyzu"})
    >>> shares = gaussian_minimax(Workload(domain, [("a",), ("b",)]))
    >>> variances = residual_variances(domain, {part: 1 / share for part, share in shares.items()})
    >>> [round(margin_variance(domain, variances, (a,)), 2) for a in "ab"]
    [0.38, 0.38]
    """
    domain = workload.domain
    weights = minimax_weights(workload)
    return completed(domain, weights, rounded(_least_shares(domain, weights), digits=4))


def minimax_weights(workload: Workload) -> dict[Margin, float]:
    """Return V_R(λ) at the λ for which the least sum and the least largest variance are the same.

    `gaussian_allocation` of these weights is within 10⁻⁶ of the least largest weight · variance.
    """
    domain = workload.domain
    levels = dict(zip(domain.attributes, domain.shape, strict=True))
    numbers: dict[Margin, int] = {}
    rows: list[tuple[int, int, float]] = []
    for number, (margin, weight) in enumerate(zip(workload.margins, workload.weights, strict=True)):
        for s, factor in summed_weights(domain, [(margin, float(weight))]).items():
            if factor:
                rows.append((number, numbers.setdefault(s, len(numbers)), factor))
    at = np.array([row[0] for row in rows], dtype=np.intp)
    onto = np.array([row[1] for row in rows], dtype=np.intp)
    factors = np.array([row[2] for row in rows])
    cost = np.array([math.prod((levels[a] - 1) / levels[a] for a in s) for s in numbers])

    def value(duals: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slopes = np.sqrt(cost / np.bincount(onto, factors * duals[at], len(cost)))
        gains = np.bincount(at, factors * slopes[onto], len(duals)).astype(np.float64, copy=False)
        return float(duals @ gains), gains

    duals = np.full(len(workload), 1 / len(workload))
    least, gains = value(duals)
    # Where no two margins share a residual, the power 2 is right at once; a step that lowers f is shortened.
    power = 2.0
    for _ in range(_MOST_STEPS):
        if gains.max() <= least * (1 + _GAP):
            break
        while True:
            moved = duals * (gains / least) ** power
            moved /= moved.sum()
            raised, after = value(moved)
            if raised >= least or power <= 1:
                break
            power = max(power / 1.5, 1.0)
        duals, least, gains = moved, raised, after
        power = min(power * 1.1, 8.0)
    weighted = zip(workload.margins, workload.weights, duals.tolist(), strict=True)
    return summed_weights(domain, ((margin, float(w) * dual) for margin, w, dual in weighted))


def residual_variances(domain: Domain, parts: Mapping[CentredMargin, float]) -> dict[Margin, float]:
    r"""Return σ²_R for every set that these parts know, from the variance of the noise of each part.

    By generalised least squares over all parts that know it: 1/σ²_R = Σ 1/(v Π_{S\R} k Π_B h). A set with an
    attribute of one level has no residual, and variance zero.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> residual_variances(domain, {(("a", "b"), ()): 1.0, (("b",), ("b",)): 9.0})
    {(): 6.0, ('a',): 3.0, ('b',): 0.6666666666666666, ('a', 'b'): 1.0}
    """
    levels = dict(zip(domain.attributes, domain.shape, strict=True))
    precision: dict[Margin, float] = defaultdict(float)
    for (margin, centred), variance in parts.items():
        free = [a for a in margin if a not in centred]
        fixed = variance * centring(levels[a] for a in centred)
        for order in range(len(free) + 1):
            for summed in combinations(free, order):
                own = tuple(a for a in margin if a not in summed) if summed else margin
                exact = any(levels[a] == 1 for a in own)
                precision[own] += math.inf if exact else 1 / (fixed * math.prod(levels[a] for a in summed))
    ordered = sorted(precision, key=lambda s: (len(s), [domain.position(a) for a in s]))
    return {s: 1 / precision[s] for s in ordered}


def margin_variance(domain: Domain, variances: Mapping[Margin, float], margin: Margin) -> float:
    r"""Return var_A, the variance of every cell of the table on `margin`: Σ σ²_R Π_R (k-1)/k Π_{A\R} k⁻².

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> margin_variance(domain, residual_variances(domain, {(("a", "b"), ()): 1.0}), ("a",))
    3.0
    """
    factors = summed_weights(domain, [(margin, 1.0)])
    unknown = next((s for s in factors if s not in variances), None)
    if unknown is not None:
        raise InvalidPlan(f"no part measures the residuals of {show_margin(unknown)}.")
    return sum(factor * variances[s] for s, factor in factors.items())


def rounded(shares: Mapping[CentredMargin, float], digits: int = 3) -> dict[CentredMargin, float]:
    """Return the shares over the largest of them, with this many significant digits.

    Every distinct share becomes a law of noise of its own, and each law builds the table of its sampler once:
    three digits leave hundreds of laws where there were thousands of parts. A share moves by at most 0.5 %
    (three digits) or 0.05 % (four). At the least sum of variances that changes the sum to second order only,
    by less than 0.01 %; a largest variance it changes to first order, which is why that takes four digits.

    >>> rounded({(("a",), ()): 3.0, (("b",), ()): 2.0})
    {(('a',), ()): 1.0, (('b',), ()): 0.667}
    """
    largest = max(shares.values(), default=1.0)
    return {part: float(f"{share / largest:.{digits}g}") for part, share in shares.items()}


def completed(
    domain: Domain, closure: Iterable[Margin], shares: Mapping[CentredMargin, float]
) -> dict[CentredMargin, float]:
    """Return the shares with an empty part for every set that has an attribute of one level and no part yet.

    Such a set has no residual, so its part holds no value and costs nothing; with it, a measurement knows
    every subset of the wanted margins.
    """
    single = {a for a, k in zip(domain.attributes, domain.shape, strict=True) if k == 1}
    found = dict(shares)
    if single:
        known = residual_variances(domain, dict.fromkeys(shares, 1.0))
        found |= {(m, m): 1.0 for m in closure if single.intersection(m) and m not in known}
    return found


def centring(levels: Iterable[int]) -> float:
    """Return Π h, by how much centring these attributes divides the variance of a residual's estimate."""
    return math.prod(0.5 if k == 2 else float(k) ** -2 for k in levels)


def _possible_cells(domain: Domain, margin: Margin) -> int:
    tied = any(set(attributes) & set(margin) for attributes, _ in domain.zero_blocks)
    return int((~domain.impossible(margin)).sum()) if tied else domain.cells(margin)


def _least_shares(domain: Domain, weights: Mapping[Margin, float]) -> dict[CentredMargin, float]:
    levels = dict(zip(domain.attributes, domain.shape, strict=True))
    shares = {}
    for margin, weight in weights.items():
        cost = math.prod((levels[a] - 1) / levels[a] for a in margin)
        if weight > 0 and cost > 0:
            shares[margin, margin] = math.sqrt(weight / cost) * centring(levels[a] for a in margin)
    return shares
