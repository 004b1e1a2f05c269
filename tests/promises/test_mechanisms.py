"""What every mechanism promises, checked on every one of them over random small domains."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.basis import adjoint
from tabulary.errors import InvalidDomain
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.planning import Counts, Residuals
from tabulary.workflows.auditing.cost import check_cost
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))


@st.composite
def settings_of_a_plan(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 18))
    names = [f"x{i}" for i in range(len(sizes))]
    partial = st.dictionaries(st.sampled_from(names), st.just(0), min_size=1)
    zeros = draw(st.lists(partial, max_size=2))
    try:
        domain = tb.Domain(dict(zip(names, map(range, sizes), strict=True)), zeros)
    except InvalidDomain:
        assume(False)
    every = list(tb.Workload.all_up_to(domain, len(sizes)).margins)
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    return {
        "domain": domain,
        "workload": tb.Workload(domain, chosen),
        "privacy": draw(st.sampled_from([tb.PureDP(1), tb.ZCDP(1)])),
        "neighbours": draw(st.sampled_from(["add-remove", "replace"])),
        "contribution": draw(st.integers(1, 2)),
    }


def _plan_or_none(request, mechanism):
    try:
        return tb.plan(**request, mechanism=mechanism)
    except tb.errors.InvalidPlan:
        return None  # Nothing that one person could change.


def _measured(plan, counts, sampler=None):
    """What the mechanism measures of a table, bare of noise, as one long vector."""
    tally = Tally.from_table(tb.Table(plan.domain, counts), plan.counted)
    return np.concatenate([v.reshape(-1) for v in measure(tally, plan, sampler or ConstantSampler()).values])


def _changes(plan):
    """Every change that one person can make to a table: all neighbouring pairs, up to what they share."""
    possible = np.argwhere(~plan.domain.impossible(plan.domain.attributes))
    single = []
    for cell in possible:
        unit = np.zeros(plan.domain.shape, dtype=np.int64)
        unit[tuple(cell)] = 1
        single.append(unit)
    if plan.neighbours.relation == "add-remove":
        moves = single
    else:
        moves = [there - here for here, there in product(single, repeat=2)]
    # Every measurement is linear: the furthest of sums of moves is a multiple of the furthest move, which the
    # triangle inequality shows and pairs of moves confirm where there are few.
    repeat = plan.neighbours.records
    together = (
        product(moves, repeat=repeat) if len(moves) ** repeat <= 600 else ((m,) * repeat for m in moves)
    )
    for several in together:
        yield sum(several)


def _only_bounded(plan):
    """Whether the sensitivity may be more than any neighbour reaches: zeros can forbid the worst two records."""
    return plan.query is Residuals and plan.neighbours.relation == "replace" and plan.domain.structural_zeros


@every_mechanism
@given(settings_of_a_plan())
@settings(max_examples=60)
def test_no_neighbour_moves_the_measurement_further_than_the_sensitivity_and_one_moves_it_that_far(
    mechanism, asked
):
    plan = _plan_or_none(asked, mechanism)
    assume(plan is not None)
    full = np.where(plan.domain.impossible(plan.domain.attributes), 0, 4)
    before = _measured(plan, full)
    moved = [_measured(plan, full + change) - before for change in _changes(plan)]
    order = 1 if plan.norm == "L1" else 2
    furthest = max(np.linalg.norm(change, order) for change in moved)
    assert furthest == pytest.approx(float(plan.sensitivity)) or (
        _only_bounded(plan) and furthest <= float(plan.sensitivity)
    )


@every_mechanism
@given(settings_of_a_plan())
@settings(max_examples=60)
def test_the_worst_neighbour_costs_exactly_the_loss(mechanism, asked):
    plan = _plan_or_none(asked, mechanism)
    assume(plan is not None)
    checked = check_cost(plan, SeededEntropy(1))
    assert checked.every_pair
    assert not checked.problems
    worst = float(checked.found)
    allowed = plan.loss.epsilon if plan.norm == "L1" else plan.loss.rho
    assert worst == pytest.approx(float(allowed)) or (_only_bounded(plan) and worst <= float(allowed))


@every_mechanism
@given(settings_of_a_plan())
@settings(max_examples=40)
def test_every_measured_number_has_passed_the_sampler_unless_it_is_impossible(mechanism, asked):
    plan = _plan_or_none(asked, mechanism)
    assume(plan is not None)
    counts = np.where(plan.domain.impossible(plan.domain.attributes), 0, 3)
    moved = _measured(plan, counts, ConstantSampler(1_000_000)) - _measured(plan, counts)
    impossible = [
        plan.measured_domain.impossible(part.margin).reshape(-1)
        if isinstance(part.query, Counts)
        else np.zeros(math.prod(plan.shape_of(part)), dtype=bool)
        for part in plan.measured
    ]
    assert (moved == np.where(np.concatenate(impossible), 0, 1_000_000)).all()


@every_mechanism
def test_a_measurement_without_noise_is_the_table_itself(mechanism):
    table = tb.datasets.load("rochdale")
    plan = tb.plan(table.domain, "[AB][ACG][H]", privacy=tb.PureDP(1), mechanism=mechanism)
    bare = tb.release(table, plan, sampler=ConstantSampler())
    for margin in plan.workload:
        assert bare[margin].estimate == pytest.approx(table.project(margin).counts)


@pytest.mark.parametrize("mechanism", ["cells", "fourier", "efron-stein", "residual"])
def test_tables_of_one_measurement_agree_on_what_they_share(mechanism):
    table = tb.datasets.load("rochdale")
    for privacy in (tb.PureDP(1), tb.ZCDP("1/8")):
        plan = tb.plan(table.domain, "[AB][ACG][BCH]", privacy=privacy, mechanism=mechanism)
        release = tb.release(table, plan)
        for one in plan.workload:
            for other in plan.workload:
                shared = tuple(a for a in one if a in other)
                here, there = (release[m].table.project(shared).counts for m in (one, other))
                assert here == pytest.approx(there)


@given(settings_of_a_plan())
@settings(max_examples=60)
def test_coefficients_outside_the_closure_vanish_on_every_margin(asked):
    domain = asked["domain"]
    work = asked["workload"]
    closure = set(work.closure().margins)
    outside = [s for s in tb.Workload.all_up_to(domain, len(domain.attributes)).margins if s not in closure]
    for s in outside:
        # A table made of the coefficients of S alone has margins of nothing but zeros.
        coefficients = np.zeros(domain.shape, dtype=np.int64)
        coefficients[tuple(slice(1, None) if a in s else 0 for a in domain.attributes)] = 7
        table = adjoint(coefficients)
        for margin in work:
            summed = tuple(i for i, a in enumerate(domain.attributes) if a not in margin)
            assert not table.sum(axis=summed).any()
