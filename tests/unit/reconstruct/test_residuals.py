"""The estimates of residuals, beside generalised least squares with every matrix written out."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.residuals import centre
from tabulary.mechanisms import measure
from tabulary.noise import DiscreteLaplace
from tabulary.planning import Measurement, Part, Plan, Residuals
from tabulary.reconstruct.constrained import FullTable, measured_vector
from tabulary.reconstruct.linear import linear_estimates
from tests.samplers import ConstantSampler


def _subsets(margin):
    return [s for k in range(len(margin) + 1) for s in combinations(margin, k)]


@st.composite
def measurements(draw):
    """Arbitrary numbers for arbitrary parts, of arbitrary scales, that determine a workload."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = tb.Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    every = [(m, b) for m in _subsets(domain.attributes) for b in _subsets(m)]
    wanted = draw(st.lists(st.sampled_from(_subsets(domain.attributes)), min_size=1, max_size=3, unique=True))
    used = {a for m in wanted for a in m}
    inside = [part for part in every if set(part[0]) <= used]
    chosen = draw(st.lists(st.sampled_from(inside), max_size=6, unique=True))
    chosen = list(dict.fromkeys([*chosen, *((m, ()) for m in wanted)]))
    scales = draw(st.lists(st.fractions("1/2", 20), min_size=len(chosen), max_size=len(chosen)))
    measured = tuple(
        Part(Residuals(m, b), DiscreteLaplace(s)) for (m, b), s in zip(chosen, scales, strict=True)
    )
    loss = tb.PureDP(10**9)
    plan = Plan(domain, tb.Workload(domain, wanted), loss, loss, tb.Neighbours(), "residual", measured)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Measurement(
        plan, tuple(np.asarray(generator.integers(-99, 99, plan.shape_of(part))) for part in measured)
    )


@given(measurements())
@settings(max_examples=60)
def test_tables_are_those_of_generalised_least_squares(measurement):
    unknown = FullTable(measurement.plan)
    cells = math.prod(unknown.linear_map.shape)
    rows = np.array(
        [unknown.linear_map.forward(u.reshape(unknown.linear_map.shape)) for u in np.eye(cells)]
    ).T
    precision = 1 / np.sqrt(unknown.spread(lambda noise: noise.variance))
    full, *_ = np.linalg.lstsq(
        rows * precision[:, None], measured_vector(measurement) * precision, rcond=1e-12
    )
    expected = unknown.tables(full.reshape(unknown.linear_map.shape))
    for margin, table in linear_estimates(measurement).items():
        assert table == pytest.approx(expected[margin], rel=1e-7, abs=1e-6)


@given(measurements())
@settings(max_examples=60)
def test_every_axis_of_a_residual_sums_to_zero_and_tables_agree(measurement):
    for r, residual in measurement.plan.estimator.residuals(measurement.values.__getitem__).items():
        assert residual.shape == measurement.plan.domain.shape_of(r)
        for axis in range(residual.ndim):
            assert residual.sum(axis=axis) == pytest.approx(0, abs=1e-6)
    tables = linear_estimates(measurement)
    for one, here in tables.items():
        for other, there in tables.items():
            summed = here.sum(axis=tuple(i for i, a in enumerate(one) if a not in other))
            assert summed == pytest.approx(
                there.sum(axis=tuple(i for i, a in enumerate(other) if a not in one)), abs=1e-6
            )


@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/10")], ids=str)
def test_without_noise_the_residuals_are_those_of_the_table(privacy):
    table = tb.datasets.load("rochdale")
    plan = tb.plan(table.domain, "[ABC][CDE][F]", privacy=privacy, mechanism="residual")
    bare = measure(Tally.from_table(table, plan.counted), plan, ConstantSampler())
    found = plan.estimator.residuals(bare.values.__getitem__)
    assert found.keys() == plan.residual_variances.keys() == set(plan.workload.closure().margins)
    for r, residual in found.items():
        assert residual == pytest.approx(centre(table.project(r).counts.astype(float)))
