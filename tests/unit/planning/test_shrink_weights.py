"""What variances count for when tables are shrunk: slopes of a risk, found by descent, without data."""

import itertools
import math

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.core.workload import Workload
from tabulary.planning.allocation import cell_weights, margin_variance
from tabulary.planning.shrink_weights import (
    LEAST,
    ShrinkageModel,
    allocated_variances,
    shrink_weights,
    shrunk_variances,
)

DOMAIN = Domain({"a": range(2), "b": range(12), "c": range(40), "d": range(7)})
NEAR = Neighbours("add-remove")
LOSSES = [ZCDP("1/50"), PureDP(1)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def pairs_of(domain):
    return Workload(domain, list(itertools.combinations(domain.attributes, 2)))


def variances_of(work, scale=100.0):
    sets = {s for m in work for k in range(len(m) + 1) for s in itertools.combinations(m, k)}
    return {s: scale * (1 + i) for i, s in enumerate(sorted(sets))}


def risk(work, variances, records):
    """The root mean squared error of a cell that the model expects over all wanted tables."""
    each = shrunk_variances(work, variances, records=records)
    cells = {m: work.domain.cells(m) for m in each}
    return math.sqrt(sum(cells[m] * v for m, v in each.items()) / sum(cells.values()))


@pytest.mark.parametrize("order", [2, 3])
def test_weights_are_the_slopes_of_the_risk(order):
    work = Workload(DOMAIN, list(itertools.combinations(DOMAIN.attributes, order)))
    model = ShrinkageModel(work, 10_000)
    variances = variances_of(work)
    reach = model.reach(variances)
    weights, _ = model.tangent(variances, reach)
    for s, v in variances.items():
        up, down = ({**variances, s: v * (1 + e)} for e in (1e-4, -1e-4))
        slope = (model.tangent(up, reach)[1] - model.tangent(down, reach)[1]) / (2e-4 * v)
        assert weights[s] == pytest.approx(slope, rel=1e-4)


def test_what_is_below_a_wanted_table_has_the_slope_of_the_whole_risk():
    # V depends on the variances of the wanted tables alone.
    work = pairs_of(DOMAIN)
    model = ShrinkageModel(work, 10_000)
    variances = variances_of(work)
    weights, _ = model.tangent(variances)
    for s, v in variances.items():
        if len(s) < 2:
            up, down = ({**variances, s: v * (1 + e)} for e in (1e-4, -1e-4))
            assert weights[s] == pytest.approx(
                (model.tangent(up)[1] - model.tangent(down)[1]) / (2e-4 * v), rel=1e-4
            )


def test_the_tangent_lies_above_the_risk():
    work = pairs_of(DOMAIN)
    model = ShrinkageModel(work, 10_000)
    here = variances_of(work)
    reach = model.reach(here)
    weights, risk = model.tangent(here, reach)
    generator = np.random.default_rng(0)
    for _ in range(20):
        there = {s: v * 10 ** generator.uniform(-2, 2) for s, v in here.items()}
        bound = risk + sum(weights[s] * (there[s] - here[s]) for s in here)
        assert model.tangent(there, reach)[1] <= bound * (1 + 1e-9) + 1e-6


@every_loss
def test_with_the_same_reach_no_round_raises_the_risk(loss):
    work = pairs_of(DOMAIN)
    model = ShrinkageModel(work, 20_000)
    weights = cell_weights(work)
    reach = model.reach(allocated_variances(work, weights, loss, 1))
    risks = []
    for _ in range(6):
        weights, risk = model.tangent(allocated_variances(work, weights, loss, 1), reach)
        risks.append(risk)
    # Shares have three digits.
    assert all(after <= before * 1.001 for before, after in itertools.pairwise(risks))
    assert risks[-1] < risks[0]


@every_loss
def test_weights_are_positive_and_the_same_every_time(loss):
    work = pairs_of(DOMAIN)
    one, two = (shrink_weights(work, loss, NEAR, records=5_000) for _ in range(2))
    assert one == two
    assert one.keys() == cell_weights(work).keys()
    assert min(one.values()) > 0


@every_loss
def test_planning_for_shrinkage_lowers_the_risk_of_shrinkage(loss):
    work = pairs_of(DOMAIN)
    plain = allocated_variances(work, cell_weights(work), loss, 1)
    shrunk = allocated_variances(work, shrink_weights(work, loss, NEAR, records=5_000), loss, 1)
    assert risk(work, shrunk, 5_000) < risk(work, plain, 5_000)


def test_an_interaction_that_no_noise_could_show_keeps_the_floor_of_its_weight():
    work = pairs_of(DOMAIN)
    weights = shrink_weights(work, ZCDP("1/1000000"), NEAR, records=10)
    floor = LEAST * (40 - 1) * (12 - 1)
    assert weights["b", "c"] == pytest.approx(floor, rel=1e-6)


def test_with_records_enough_shrinkage_is_planned_for_like_a_linear_estimate():
    work = pairs_of(DOMAIN)
    weights = shrink_weights(work, ZCDP("1/2"), NEAR, records=10**9)
    for s, weight in cell_weights(work).items():
        assert weights[s] == pytest.approx(weight, rel=0.01)


def test_risk_is_at_most_that_of_the_linear_estimate_where_nothing_is_uneven():
    # One table by itself: its interaction costs at most its noise.
    domain = Domain({"a": range(9)})
    work = Workload(domain, [("a",)])
    variances = {(): 4.0, ("a",): 9.0}
    linear = math.sqrt(margin_variance(domain, variances, ("a",)))
    assert risk(work, variances, 100) >= linear
    pair = Domain({"a": range(9), "b": range(9)})
    both = Workload(pair, [("a", "b")])
    found = {(): 0.0, ("a",): 0.0, ("b",): 0.0, ("a", "b"): 25.0}
    assert risk(both, found, 1_000) <= math.sqrt(margin_variance(pair, found, ("a", "b")))


@every_loss
def test_an_attribute_of_one_level_changes_nothing(loss):
    domain = Domain({"a": range(3), "one": range(1), "b": range(5)})
    work = Workload(domain, [("a", "one", "b")])
    without = Workload(Domain({"a": range(3), "b": range(5)}), [("a", "b")])
    found = shrink_weights(work, loss, NEAR, records=1_000)
    plain = shrink_weights(without, loss, NEAR, records=1_000)
    for s, weight in found.items():
        assert weight == pytest.approx(0 if "one" in s else plain[s], rel=1e-9)
    for s, v in allocated_variances(without, plain, loss, 1).items():
        assert allocated_variances(work, found, loss, 1)[s] == pytest.approx(v)


@every_loss
def test_a_person_with_many_records_has_so_much_more_noise(loss):
    work = pairs_of(DOMAIN)
    once, thrice = (allocated_variances(work, cell_weights(work), loss, records) for records in (1, 3))
    for s, v in once.items():
        assert thrice[s] == pytest.approx(9 * v)
