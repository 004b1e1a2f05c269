"""The linear estimate, beside explicit sums and explicit inverses."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.planning import Measurement
from tabulary.reconstruct.linear import linear_estimates

DOMAIN = tb.Domain({"a": range(3), "b": range(2), "c": range(4)})


def measurement_of(plan, seed=0):
    """Arbitrary whole numbers in the shape of what a plan measures."""
    generator = np.random.default_rng(seed)
    return Measurement(
        plan, tuple(np.asarray(generator.integers(-9, 9, plan.shape_of(part))) for part in plan.measured)
    )


def test_of_cells_every_table_is_their_sum():
    plan = tb.plan(DOMAIN, "[a b][b c][]", privacy=tb.PureDP(1), mechanism="cells")
    measurement = measurement_of(plan)
    found = linear_estimates(measurement)
    cells = measurement.values[0]
    assert (found["a", "b"] == cells.sum(axis=2)).all()
    assert (found["b", "c"] == cells.sum(axis=0)).all()
    assert found[()] == cells.sum()
    assert all(table.dtype == np.int64 for table in found.values())


def test_of_margins_the_most_exact_one_is_taken():
    work = tb.Workload.parse("[a][a b]", DOMAIN).weighted({("a",): 1, ("a", "b"): 9})
    plan = tb.plan(DOMAIN, work, privacy=tb.PureDP(1), mechanism="margins")
    measurement = measurement_of(plan)
    # Two cells of a table with nine times the budget are better than one with a tenth.
    assert (linear_estimates(measurement)["a",] == measurement.values[1].sum(axis=1)).all()


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [("efron-stein", DOMAIN), ("fourier", tb.Domain({"a": range(2), "b": range(4), "c": range(2)}))],
)
def test_of_contrasts_every_table_has_the_measured_ones(mechanism, domain):
    plan = tb.plan(domain, "[a b][b c]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    measurement = measurement_of(plan)
    rows = {"a": _rows(plan, "a"), "b": _rows(plan, "b"), "c": _rows(plan, "c")}
    for margin, table in linear_estimates(measurement).items():
        assert table.shape == domain.shape_of(margin)
        for part, values in zip(plan.measured, measurement.values, strict=True):
            if not set(part.margin) <= set(plan.measured_margin(margin)):
                continue
            implied = table
            for axis, attribute in enumerate(margin):
                matrix = rows[attribute](part.margin)
                implied = np.moveaxis(np.tensordot(matrix, implied, axes=(1, axis)), 0, axis)
            assert implied.reshape(-1) == pytest.approx(values.reshape(-1))


def _rows(plan, attribute):
    """The rows on one attribute that a set of measured names asks for, as an explicit matrix."""
    levels = len(plan.domain.levels_of(attribute))
    bits = plan.measured_margin((attribute,))

    def of(measured):
        if bits == (attribute,):
            helmert = [[1 if x < i else -i if x == i else 0 for x in range(levels)] for i in range(1, levels)]
            return np.array(helmert if attribute in measured else [[1] * levels])
        flipped = [len(bits) - 1 - i for i, bit in enumerate(bits) if bit in measured]
        return np.array([[(-1) ** sum(x >> shift & 1 for shift in flipped) for x in range(levels)]])

    return of
