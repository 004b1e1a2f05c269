"""How far a margin may be from the truth: the papers' bounds by name, and one from the noise really drawn.

YFR is Yang, Fienberg & Rinaldo, DMT is Dwork, McSherry & Talwar (2007). All bound the L1 distance between the
true margin and the published one, and read no data. B is the downward closure of the wanted margins, δ is `failure`.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tabulary import PureDP, Workload
from tabulary.core import Margin, show_margin
from tabulary.errors import InvalidArgument, UnknownMargin
from tabulary.noise import IntegerNoise
from tabulary.planning import Contrasts, Plan
from tabulary.reconstruct import weighted_shift
from tabulary_papers.published import PublishedMeasurement

# The linear program of a release is solved to this gap (`reconstruct.lp.solve_program`).
_GAP = 1e-3


def yfr_theorem_1_bound(
    workload: Workload, margin: Iterable[str], epsilon: object, *, failure: float
) -> float:
    r"""Return the bound of YFR Theorem 1: 2^{\|α\|} · 8 \|B\|/ε · log(\|B\|/δ) + \|B\|.

    For the mechanism of their Table 1. Four times the first term of DMT Theorem 5, of which the doubled scale
    explains two. Their remark says that the proof assumes a linear program with b = 0.

    >>> from tabulary import datasets
    >>> work = Workload.parse("[AD][AB][BE][CE][CF]", datasets.load("fungus").domain)
    >>> round(yfr_theorem_1_bound(work, ("A", "D"), 1, failure=0.05), 1)
    2116.6
    """
    return _theorem(8, workload, margin, epsilon, failure)


def dmt_theorem_5_bound(
    workload: Workload, margin: Iterable[str], epsilon: object, *, failure: float
) -> float:
    r"""Return the bound of DMT Theorem 5: 2^{\|α\|} · 2 \|B\| log(\|B\|/δ)/ε + \|B\|.

    Each coefficient of the table that the program finds is within twice the largest noise of the truth, whether
    or not b = 0: once because the true table is a candidate, so that b is at most that, and once for b itself.
    The largest of \|B\| Laplace draws of scale \|B\|/ε is at most \|B\| log(\|B\|/δ)/ε; rounding a vertex moves at most
    \|B\| cells. The discrete Laplace tail is up to 2/(1 + q) times the continuous one, q = exp(-ε/\|B\|).

    >>> from tabulary import datasets
    >>> work = Workload.parse("[AD][AB][BE][CE][CF]", datasets.load("fungus").domain)
    >>> round(dmt_theorem_5_bound(work, ("A", "D"), 1, failure=0.05), 1)
    538.1
    """
    return _theorem(2, workload, margin, epsilon, failure)


def yfr_theorem_3_bound(
    workload: Workload, margin: Iterable[str], epsilon: object, *, failure: float
) -> float:
    r"""Return the bound of YFR Theorem 3: 2/ε · Π_α k · Σ_{S∈B} 1/Π_{j∉S} k · log(N/δ) + N.

    For the mechanism of their Table 2; N = Σ_{S∈B} Π_{j∈S} k is the number of its terms. The proof takes the error of
    a cell of a margin for one term of one cell, where it sums the components of all subsets over Π_{j∉α} k cells, and
    b for 0, which the redundant terms rule out. A bound to quote, not to rely on.

    >>> from tabulary import datasets
    >>> work = Workload.k_way(datasets.load("journey-to-work").domain, 2)
    >>> round(yfr_theorem_3_bound(work, ("A", "C"), 1, failure=0.05), 1)
    855.6
    """
    named, claimed = _checked(workload, margin, epsilon, failure)
    domain = workload.domain
    terms = sum(map(domain.cells, workload.closure()))
    scale = 2 / claimed * terms / math.prod(domain.shape)
    return domain.cells(named) * scale * math.log(terms / failure) + terms


def quantile_bound(plan: Plan, margin: Iterable[str], *, failure: float) -> float:
    r"""Return the bound that the noise of a plan implies: an exact quantile where the papers have inequalities.

    For plans that measure contrasts with one noise e; the margin has n cells. Two norms of its error are known. The
    row of contrast i of an attribute puts 2i on the margin in L1 and has the squared length i(i + 1), so the L1
    error is at most Σ w\|e\| with w = 2/(i + 1), one for the total, multiplied over attributes; on binary ones all
    are one. By Cauchy and Schwarz it is also at most √n · max\|e\|, for Σ n/\|row\|² is n in every shape.

    Reconstruction "none": the smaller of the quantiles of these two, over the contrasts of this margin. "lp": every
    contrast is within max\|e\| + b of the truth and b ≤ max\|e\| (up to the gap of the solver), so √n · 2 · the
    quantile of the largest of all draws, where the papers have n for √n; for all margins at once. Rounding "nearest"
    of a vertex moves at most half a person in each of as many cells as there are contrasts.

    >>> import tabulary as tb
    >>> domain = tb.datasets.load("fungus").domain
    >>> plan = tb.plan(domain, "[AD][AB][BE][CE][CF]", privacy=tb.PureDP(1), mechanism="fourier", reconstruct="none")
    >>> quantile_bound(plan, ("A", "D"), failure=0.05)
    93.0
    """
    _check_failure(failure)
    if plan.query is not Contrasts or plan.reconstruct not in ("none", "lp"):
        raise InvalidArgument(
            "a quantile bound is known for plans that measure contrasts and reconstruct with 'none' or 'lp', not for "
            f"mechanism {plan.mechanism!r} with {plan.reconstruct!r}."
        )
    named = plan.domain.margin(margin)
    plan.check_measured(named)
    noise = _one_noise(plan)
    shape = plan.measured_domain.shape_of(plan.measured_margin(named))
    cells, measured = math.prod(shape), sum(math.prod(plan.shape_of(part)) for part in plan.measured)
    if (plan.reconstruct, plan.rounding) == ("none", "none"):
        summed = weighted_shift(noise, _margin_weights(shape), failure=failure)
        return min(summed, math.sqrt(cells) * _largest(noise, cells, failure))
    if plan.reconstruct == "none" or plan.rounding not in ("none", "nearest"):
        raise InvalidArgument(
            f"no quantile bound is known for {plan.reconstruct!r} with rounding {plan.rounding!r}."
        )
    rounded = 0.0 if plan.rounding == "none" else measured / 2
    return math.sqrt(cells) * _largest(noise, measured, failure) * (1 + 1 / (1 - _GAP)) + rounded


def published_quantile_bound(
    measured: PublishedMeasurement, margin: Iterable[str], *, failure: float
) -> float:
    r"""Return the bound that the noise of a published mechanism implies, after its linear program and rounding.

    With q the quantile of the largest draw, each whole term of the program's table is within 2q of the truth (up to the
    gap of the solver), since the truth is a candidate. The difference d of the two tables is a table, so its components
    d^S are orthogonal, and \|d^S\| ≤ 2q/Π k. A cell of the margin α sums Π_{j∉α} k of Σ_{S⊆α} d^S, and by Cauchy and
    Schwarz over its cells the margin is within 2^{\|α\|/2} · 2q, for any numbers of levels. A Fourier coefficient is
    the f^S of binary attributes but for its sign. Rounding a vertex moves at most half a person per term.

    >>> from tabulary import datasets
    >>> from tabulary_papers.published import published_fourier
    >>> fungus = datasets.load("fungus")
    >>> drawn = published_fourier(fungus, "[AD][AB][BE][CE][CF]", 1, neighbours="replace", calibration="exact")
    >>> round(published_quantile_bound(drawn, ("A", "D"), failure=0.05))
    354
    """
    _check_failure(failure)
    named = measured.workload.domain.margin(margin)
    terms = int(measured.values.size)
    largest = _largest(measured.noise, terms, failure)
    return 2 ** (len(named) / 2) * largest * (1 + 1 / (1 - _GAP)) + terms / 2


def _largest(noise: IntegerNoise, draws: int, failure: float) -> int:
    """Return the quantile of the largest of so many draws: P(all within h) = P(one within h)^draws."""
    return noise.half_width(math.exp(math.log1p(-failure) / draws))


def _theorem(
    constant: int, workload: Workload, margin: Iterable[str], epsilon: object, failure: float
) -> float:
    named, claimed = _checked(workload, margin, epsilon, failure)
    if any(levels != 2 for levels in workload.domain.shape):
        raise InvalidArgument("this theorem is about binary attributes, and the domain has others.")
    sets = len(workload.closure())
    return float(2 ** len(named) * constant * sets / claimed * math.log(sets / failure) + sets)


def _checked(
    workload: Workload, margin: Iterable[str], epsilon: object, failure: float
) -> tuple[Margin, float]:
    named = workload.domain.margin(margin)
    if named not in workload.margins:
        raise UnknownMargin(f"the workload {workload} does not ask for the margin {show_margin(named)}.")
    _check_failure(failure)
    return named, float(PureDP(epsilon).epsilon)


def _check_failure(failure: float) -> None:
    if not 0 < failure < 1:
        raise InvalidArgument(f"a failure probability must lie between 0 and 1, not {failure!r}.")


def _one_noise(plan: Plan) -> IntegerNoise:
    noises = {part.noise for part in plan.measured}
    if len(noises) != 1:
        raise InvalidArgument("a quantile bound is known for plans with one noise on all contrasts.")
    return noises.pop()


def _margin_weights(shape: tuple[int, ...]) -> NDArray[np.float64]:
    weights = np.ones(1)
    for levels in shape:
        along = np.concatenate([[1.0], 2 / np.arange(2.0, levels + 1)])
        weights = np.outer(weights, along).reshape(-1)
    return weights
