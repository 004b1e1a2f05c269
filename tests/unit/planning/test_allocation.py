"""How much noise each part gets: against dense linear algebra, a generic solver, and every start."""

import math
import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import tabulary as tb
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ApproxDP, gaussian_rho
from tabulary.core.residual_sensitivity import residual_sensitivity
from tabulary.core.residuals import residual_shape, residual_values
from tabulary.errors import InvalidPlan
from tabulary.planning.allocation import (
    cell_weights,
    gaussian_allocation,
    gaussian_minimax,
    margin_variance,
    minimax_weights,
    residual_variances,
    rounded,
    summed_weights,
)
from tabulary.planning.laplace_allocation import laplace_allocation, laplace_minimax

ADULT = tb.Domain(
    {f"x{i}": range(k) for i, k in enumerate((85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2))}
)
ADULT_PAIRS = tb.Workload.all_up_to(ADULT, 2)
TENS = tb.Workload.k_way(tb.Domain({f"x{i}": range(10) for i in range(100)}), 2)
BITS = tb.Workload.k_way(tb.Domain({f"x{i}": range(2) for i in range(50)}), 3)


@st.composite
def workloads(draw, *, min_levels=1, max_levels=4, max_attributes=4):
    sizes = draw(st.lists(st.integers(min_levels, max_levels), min_size=1, max_size=max_attributes))
    domain = tb.Domain({f"x{i}": range(k) for i, k in enumerate(sizes)})
    every = [m for n in range(len(sizes) + 1) for m in combinations(domain.attributes, n)]
    margins = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    weights = draw(
        st.lists(st.sampled_from([1, 2, 10, "1/10"]), min_size=len(margins), max_size=len(margins))
    )
    return tb.Workload(domain, margins, weights)


def subsets(margin):
    return [s for n in range(len(margin) + 1) for s in combinations(margin, n)]


def laplace_variances(domain, shares):
    """σ²_R at ε = 1, add-remove, with the variance 2/t² of continuous Laplace noise."""
    cost = residual_sensitivity(domain, list(shares), Neighbours(), scales=exact(shares)).l1
    return residual_variances(domain, {part: 2 * (float(cost) / s) ** 2 for part, s in shares.items()})


def gaussian_variances(domain, shares, rho=0.5):
    """σ²_R at this ρ, add-remove."""
    cost = residual_sensitivity(domain, list(shares), Neighbours(), squared_scales=exact(shares)).l2_squared
    return residual_variances(domain, {part: float(cost) / (2 * rho) / s for part, s in shares.items()})


def exact(shares):
    return [1 / Fraction(str(share)) for share in shares.values()]


def total(weights, variances):
    return sum(weight * variances[s] for s, weight in weights.items() if weight)


def rmse(workload, variances):
    cells = sum(
        float(w) * workload.domain.cells(m) for m, w in zip(workload.margins, workload.weights, strict=True)
    )
    return math.sqrt(total(cell_weights(workload), variances) / cells)


def largest(workload, variances):
    return max(
        float(w) * margin_variance(workload.domain, variances, m)
        for m, w in zip(workload.margins, workload.weights, strict=True)
    )


# What an allocation is about.


@given(workloads())
def test_the_weights_add_up_to_the_variances_of_all_wanted_cells(workload):
    domain = workload.domain
    weights = cell_weights(workload)
    assert set(weights) == set(workload.closure().margins)
    variances = {s: 1.0 + i for i, s in enumerate(weights)}
    direct = sum(
        float(w) * domain.cells(m) * margin_variance(domain, variances, m)
        for m, w in zip(workload.margins, workload.weights, strict=True)
    )
    assert total(weights, variances) == pytest.approx(direct)


def test_impossible_cells_do_not_count():
    levels = {"a": "xy", "b": "xyz"}
    work = tb.Workload(tb.Domain(levels), [("a", "b")])
    holes = tb.Workload(tb.Domain(levels, [{"a": "x", "b": ["x", "y"]}]), [("a", "b")])
    assert cell_weights(holes) == pytest.approx({s: w * 4 / 6 for s, w in cell_weights(work).items()})


@settings(max_examples=40)
@given(workloads(max_levels=3, max_attributes=3), st.data())
def test_variances_are_those_of_dense_generalised_least_squares(workload, data):
    domain = workload.domain
    everything = domain.attributes
    parts = {(everything, ()): data.draw(st.floats(0.5, 2))}
    for margin in data.draw(st.lists(st.sampled_from(subsets(everything)), max_size=3)):
        centred = data.draw(st.sampled_from(subsets(margin)))
        parts[margin, centred] = data.draw(st.floats(0.5, 2))
    rows, noise = [], []
    for (margin, centred), variance in parts.items():
        summed = tuple(i for i, a in enumerate(everything) if a not in margin)
        places = [margin.index(a) for a in centred]
        cells = np.eye(domain.size, dtype=np.int64).reshape((domain.size, *domain.shape))
        columns = [residual_values(cell.sum(axis=summed), places).ravel() for cell in cells]
        assert len(columns[0]) == math.prod(residual_shape(domain.shape_of(margin), places))
        rows.append(np.array(columns).T)
        noise.append(np.full(len(columns[0]), variance))
    matrix, precision = np.vstack(rows), 1 / np.concatenate(noise)
    covariance = np.linalg.inv(matrix.T @ (precision[:, None] * matrix))
    found = residual_variances(domain, parts)
    for margin in workload:
        onto = [
            np.eye(k) if a in margin else np.ones((1, k))
            for a, k in zip(everything, domain.shape, strict=True)
        ]
        add = np.ones((1, 1))
        for axis in onto:
            add = np.kron(add, axis)
        cells = np.diag(add @ covariance @ add.T)
        assert np.allclose(cells, margin_variance(domain, found, margin))


def test_a_margin_that_no_part_knows_has_no_variance():
    domain = tb.Domain({"a": "xy", "b": "xy"})
    with pytest.raises(InvalidPlan, match=r"residuals of \[b\]"):
        margin_variance(domain, residual_variances(domain, {(("a",), ()): 1.0}), ("b",))


def test_shares_are_rounded_to_few_digits():
    shares = {((f"x{i}",), ()): math.exp(-i / 7) * 3 for i in range(50)}
    for digits, error in ((3, 0.005), (4, 0.0005)):
        found = rounded(shares, digits=digits)
        assert max(found.values()) == 1
        for part, share in shares.items():
            assert found[part] == pytest.approx(share / 3, rel=error)
            assert len(f"{found[part]:.12e}".split("e")[0].rstrip("0").replace(".", "")) <= digits


# Gaussian noise.


@pytest.mark.parametrize(
    ("rho", "expected"),
    [(0.014973, 37.04), (float(gaussian_rho(ApproxDP(1, 1e-9))), 35.2)],
)
def test_the_known_error_of_all_pairs_of_adult(rho, expected):
    shares = gaussian_allocation(ADULT, cell_weights(ADULT_PAIRS))
    found = rmse(ADULT_PAIRS, gaussian_variances(ADULT, shares, rho))
    assert found == pytest.approx(expected, abs=0.005 if rho == 0.014973 else 0.05)


def test_rounding_the_shares_costs_next_to_nothing():
    weights = cell_weights(ADULT_PAIRS)
    shares = gaussian_allocation(ADULT, weights)
    # At ρ = 1/2 the least sum is (Σ √(c V))².
    costs = {s: math.prod((k - 1) / k for k in ADULT.shape_of(s)) for s in weights}
    least = sum(math.sqrt(costs[s] * w) for s, w in weights.items()) ** 2
    found = total(weights, gaussian_variances(ADULT, shares))
    assert least <= found * (1 + 1e-12) <= least * 1.0001


def test_the_shares_of_a_part_spend_the_budget_in_its_own_norm():
    shares = gaussian_allocation(ADULT, cell_weights(ADULT_PAIRS))
    spent = sum(
        share * math.prod(1 if k == 2 else k * (k - 1) for k in ADULT.shape_of(margin))
        for (margin, _), share in shares.items()
    )
    cost = residual_sensitivity(ADULT, list(shares), Neighbours(), squared_scales=exact(shares)).l2_squared
    assert float(cost) == pytest.approx(spent)


@settings(max_examples=25)
@given(workloads())
def test_no_other_gaussian_allocation_has_a_smaller_sum(workload):
    domain = workload.domain
    weights = cell_weights(workload)
    sets = [s for s, w in weights.items() if w]
    costs = np.array([math.prod((k - 1) / k for k in domain.shape_of(s)) for s in sets])
    values = np.array([weights[s] for s in sets])

    def objective(log_precision):
        # With logarithms both factors are log-convex, and so is their product.
        precision = np.exp(log_precision)
        return math.log((values / precision).sum()) + math.log((costs * precision).sum())

    solved = minimize(objective, np.zeros(len(sets)), method="BFGS", options={"gtol": 1e-8})
    found = total(weights, gaussian_variances(domain, gaussian_allocation(domain, weights)))
    assert found <= math.exp(solved.fun) * (1 + 1e-4)
    assert found >= math.exp(solved.fun) * (1 - 1e-6)


@settings(max_examples=40)
@given(workloads())
def test_the_largest_variance_is_least_up_to_a_proved_gap(workload):
    domain = workload.domain
    weights = minimax_weights(workload)
    costs = {s: math.prod((k - 1) / k for k in domain.shape_of(s)) for s in weights}
    # Weak duality at ρ = 1/2: V(λ) with Σ λ = 1 bounds every allocation from below.
    root = sum(math.sqrt(costs[s] * w) for s, w in weights.items())
    unrounded = {s: root * math.sqrt(costs[s] / w) if w else 0.0 for s, w in weights.items()}
    assert sum(costs[s] / v for s, v in unrounded.items() if v) == pytest.approx(1)
    assert root**2 * (1 - 1e-9) <= largest(workload, unrounded) <= root**2 * (1 + 1.01e-6)
    found = largest(workload, gaussian_variances(domain, gaussian_minimax(workload)))
    assert root**2 * (1 - 1e-9) <= found <= root**2 * 1.001


def test_the_bound_of_the_gap_is_a_mean_over_the_wanted_margins():
    # What makes V(λ) a bound: it is the sum of λ w var with Σ λ = 1. Equal variances turn it into Σ λ w var = var.
    workload = tb.Workload(tb.Domain({"a": range(3), "b": range(2)}), [("a",), ("b",), ("a", "b")])
    weights = minimax_weights(workload)
    ones = summed_weights(workload.domain, [(m, 1.0) for m in workload])
    top = {s: weights[s] / summed_weights(workload.domain, [(s, 1.0)])[s] for s in weights}
    assert set(weights) == set(ones)
    # The weight of {a, b} is λ of the table on both; that of {a} has λ of [a] and a share of the former.
    both = top["a", "b"]
    first = (weights["a",] - both * summed_weights(workload.domain, [(("a", "b"), 1.0)])["a",]) / (2 / 3)
    second = (weights["b",] - both * summed_weights(workload.domain, [(("a", "b"), 1.0)])["b",]) / (1 / 2)
    assert both + first + second == pytest.approx(1)


def test_the_largest_variance_of_adult_is_far_smaller_than_with_the_least_sum():
    least = largest(ADULT_PAIRS, gaussian_variances(ADULT, gaussian_minimax(ADULT_PAIRS)))
    summed = largest(
        ADULT_PAIRS, gaussian_variances(ADULT, gaussian_allocation(ADULT, cell_weights(ADULT_PAIRS)))
    )
    assert least < summed / 10


# Laplace noise.


def starts_of(workload):
    """What anyone would try first, each as parts with shares."""
    domain = workload.domain
    closure = workload.closure().margins
    bits = {s: tuple(a for a in s if len(domain.levels_of(a)) == 2) for s in closure}
    yield {(m, ()): 1.0 for m in workload}
    yield {(m, ()): float(w) for m, w in zip(workload.margins, workload.weights, strict=True)}
    yield {(s, bits[s]): 1.0 for s in closure}
    everything = domain.margin({a for m in workload for a in m})
    if everything in closure:
        yield {(everything, ()): 1.0}


def best_fourier(workload):
    """The least rmse of contrasts of binary attributes with the best noise: t ∝ (V/a)^(1/3)."""
    shares = {(s, s): (w / 2.0 ** len(s)) ** (1 / 3) for s, w in cell_weights(workload).items()}
    return rmse(workload, laplace_variances(workload.domain, shares))


@settings(max_examples=40)
@given(workloads())
def test_laplace_shares_are_never_worse_than_any_start(workload):
    weights = cell_weights(workload)
    domain = workload.domain
    shares = laplace_allocation(workload, weights)
    found = laplace_variances(domain, shares)
    assert set(found) >= set(weights)
    for start in starts_of(workload):
        assert total(weights, found) <= total(weights, laplace_variances(domain, start)) * 1.0001
    assert laplace_allocation(workload, weights) == shares


def test_laplace_shares_of_all_pairs_of_adult():
    before = time.process_time()
    shares = laplace_allocation(ADULT_PAIRS, cell_weights(ADULT_PAIRS))
    assert time.process_time() - before < 10
    assert rmse(ADULT_PAIRS, laplace_variances(ADULT, shares)) < 72.98
    equal, _, contrasts = starts_of(ADULT_PAIRS)
    assert rmse(ADULT_PAIRS, laplace_variances(ADULT, equal)) == pytest.approx(144.67, abs=0.01)
    assert rmse(ADULT_PAIRS, laplace_variances(ADULT, contrasts)) > 140


@pytest.mark.parametrize(("attributes", "order", "least_gain"), [(8, 2, 0.15), (6, 3, 0.2), (10, 3, 0.2)])
def test_on_bits_margins_that_are_not_treated_alike_beat_the_best_fourier_basis(
    attributes, order, least_gain
):
    workload = tb.Workload.k_way(tb.Domain({f"x{i}": "01" for i in range(attributes)}), order)
    found = rmse(
        workload, laplace_variances(workload.domain, laplace_allocation(workload, cell_weights(workload)))
    )
    assert found < best_fourier(workload) * (1 - least_gain)


@pytest.mark.slow
@pytest.mark.parametrize("workload", [TENS, BITS], ids=["all pairs of 100", "all triples of 50 bits"])
def test_thousands_of_margins_take_seconds(workload):
    weights = cell_weights(workload)
    before = time.process_time()
    shares = laplace_allocation(workload, weights)
    assert time.process_time() - before < 15
    assert len(set(shares.values())) <= 4
    start = {(m, ()): 1.0 for m in workload}
    found = total(weights, laplace_variances(workload.domain, shares))
    assert found <= total(weights, laplace_variances(workload.domain, start)) * 1.0001
    if workload is BITS:
        assert rmse(workload, laplace_variances(workload.domain, shares)) <= best_fourier(workload) * 1.0001


def test_equal_shares_for_what_an_exchange_takes_into_each_other_are_an_allocation_too():
    workload = tb.Workload.k_way(tb.Domain({f"x{i}": range(2 + i % 2) for i in range(8)}), 3)
    weights = cell_weights(workload)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tabulary.planning.laplace_allocation.MOST_APART", 0)
        alike = laplace_allocation(workload, weights)
        patch.setattr("tabulary.planning.laplace_allocation.MOST_PAIRS", 0)
        fewer = laplace_allocation(workload, weights)
    apart = laplace_allocation(workload, weights)
    for shares in (alike, fewer):
        found = total(weights, laplace_variances(workload.domain, shares))
        assert found >= total(weights, laplace_variances(workload.domain, apart)) * 0.9999
        for start in starts_of(workload):
            assert found <= total(weights, laplace_variances(workload.domain, start)) * 1.0001
    assert len(set(alike.values())) <= 12


def test_parts_with_next_to_no_share_are_dropped():
    shares = laplace_allocation(ADULT_PAIRS, cell_weights(ADULT_PAIRS))
    # Each pair once, and none of the fifteen lower tables.
    assert sorted({margin for margin, _ in shares}) == sorted(combinations(ADULT.attributes, 2))
    assert len(shares) == 91


@settings(max_examples=25)
@given(workloads(max_attributes=3))
def test_the_largest_laplace_variance_is_no_larger_than_with_the_least_sum(workload):
    domain = workload.domain
    least = largest(workload, laplace_variances(domain, laplace_minimax(workload)))
    summed = laplace_allocation(workload, cell_weights(workload))
    assert least <= largest(workload, laplace_variances(domain, summed)) * 1.002


def test_the_largest_laplace_variance_of_adult_is_far_smaller_than_with_the_least_sum():
    least = largest(ADULT_PAIRS, laplace_variances(ADULT, laplace_minimax(ADULT_PAIRS)))
    assert math.sqrt(least) < 115
    shares = laplace_allocation(ADULT_PAIRS, cell_weights(ADULT_PAIRS))
    assert math.sqrt(largest(ADULT_PAIRS, laplace_variances(ADULT, shares))) > 400


# Attributes of a single level.


@pytest.mark.parametrize("allocate", ["gaussian", "laplace", "gaussian-max", "laplace-max"])
def test_an_attribute_of_one_level_leaves_everything_measured(allocate):
    domain = tb.Domain({"a": range(3), "one": range(1), "b": range(2)})
    workload = tb.Workload(domain, [("a", "one"), ("one", "b"), ("one",)])
    weights = cell_weights(workload)
    shares = {
        "gaussian": lambda: gaussian_allocation(domain, weights),
        "laplace": lambda: laplace_allocation(workload, weights),
        "gaussian-max": lambda: gaussian_minimax(workload),
        "laplace-max": lambda: laplace_minimax(workload),
    }[allocate]()
    variances = residual_variances(domain, shares)
    assert set(variances) >= set(workload.closure().margins)
    assert all(v == 0 for s, v in variances.items() if "one" in s)
    assert margin_variance(domain, variances, ("a", "one")) == margin_variance(domain, variances, ("a",))


def test_another_epsilon_takes_no_other_descent_and_nobody_can_change_what_is_kept(monkeypatch):
    domain = tb.Domain({"once": "ab", "only": "xyz"})
    work = tb.Workload(domain, [("once",), ("only",), ("once", "only")])
    shares = laplace_allocation(work, cell_weights(work))
    kept = dict(shares)
    shares.clear()
    monkeypatch.setattr("tabulary.planning.laplace_allocation.least_sum", None)
    assert laplace_allocation(work, cell_weights(work)) == kept
    plans = [tb.plan(domain, work, privacy=tb.PureDP(epsilon), mechanism="residual") for epsilon in (1, 2)]
    assert plans[0].mechanism == plans[1].mechanism == "residual"
