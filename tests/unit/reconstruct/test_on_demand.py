"""Tables on demand: the linear estimates of a plan, bit for bit, from no more parts than they need."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.cache import Cache
from tabulary.errors import InvalidArgument, UnknownMargin
from tabulary.planning import Measurement
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.reconstruct.linear import TablesOnDemand, linear_estimates

DOMAIN = tb.Domain({"a": "xyz", "b": "xy", "c": "pqrs"})


@st.composite
def measurements(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = tb.Domain({f"x{i}": range(k) for i, k in enumerate(sizes)})
    allowed = AllowedTables(domain, order=draw(st.integers(1, len(sizes))))
    privacy = draw(st.sampled_from([tb.PureDP(1), tb.ZCDP(1)]))
    try:
        plan = tb.plan(domain, allowed.workload(), privacy=privacy, mechanism="residual")
    except InvalidArgument:
        assume(False)
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    return Measurement(plan, tuple(generator.integers(-99, 99, shape) for shape in plan.shapes()))


@given(measurements(), st.data())
@settings(max_examples=30)
def test_every_table_has_the_bits_of_the_whole_reconstruction_in_any_order_and_with_any_memory(
    measured, data
):
    plan = measured.plan
    tables = TablesOnDemand(
        plan, measured.values.__getitem__, cache=Cache(data.draw(st.sampled_from([0, 1000, 1 << 20])))
    )
    known = linear_estimates(measured)
    for margin in data.draw(st.lists(st.sampled_from(plan.workload.margins), min_size=1, max_size=8)):
        assert tables.table(margin).tobytes() == np.asarray(known[margin]).tobytes()


@given(measurements())
@settings(max_examples=15)
def test_the_parts_that_tell_of_a_residual_are_those_between(measured):
    plan = measured.plan
    for r in plan.residual_variances:
        between = [i for i, p in enumerate(plan.measured) if set(p.query.centred) <= set(r) <= set(p.margin)]
        assert plan.estimator.positions(r) == between


def test_a_table_asks_for_the_parts_below_it_alone_and_once():
    plan = tb.plan(
        DOMAIN, AllowedTables(DOMAIN, order=3).workload(), privacy=tb.ZCDP(1), mechanism="residual"
    )
    asked = []

    def values(position):
        asked.append(plan.measured[position].margin)
        return np.zeros(plan.shape_of(plan.measured[position]), dtype=np.int64)

    tables = TablesOnDemand(plan, values)
    tables.table(("a", "b"))
    tables.table(("b",))
    assert sorted(asked) == [(), ("a",), ("a", "b"), ("b",)]


def test_a_table_that_the_plan_does_not_determine_is_refused():
    plan = tb.plan(
        DOMAIN, AllowedTables(DOMAIN, order=1).workload(), privacy=tb.ZCDP(1), mechanism="residual"
    )
    tables = TablesOnDemand(plan, lambda position: pytest.fail("asked"))
    with pytest.raises(UnknownMargin, match=r"every residual of \[ab\]"):
        tables.table(("a", "b"))
