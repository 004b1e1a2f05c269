"""A column parted in two: its first part, and the people of both, given the filling of the whole."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.table_samplers.column_split import ColumnSplit
from tabulary.table_samplers.columns import Column
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tests.suppressed_tables import law, priors

count_laws = st.builds(
    lambda one, other: PoissonBinomial([one, other], [0.2, 0.7]), st.integers(0, 2), st.integers(0, 2)
)


def _together(one, other):
    return PoissonBinomial([*one.people, *other.people], [*one.probability, *other.probability])


def _column(wholes, total):
    sizes = np.array([count_law.size for count_law in wholes])
    return Column.of(wholes, np.zeros_like(sizes), sizes, np.zeros(len(wholes)), total, cut=0.0)


@settings(max_examples=60)
@given(st.lists(st.tuples(count_laws, count_laws), min_size=1, max_size=3), st.data())
def test_the_first_part_and_everybody_in_it_are_as_all_partings_have_it(parts, data):
    wholes = [_together(*pair) for pair in parts]
    column = _column(wholes, data.draw(st.integers(0, sum(count_law.size for count_law in wholes))))
    split = ColumnSplit(column, wholes, parts, cut=0.0)
    first = split.first_part()
    found = list(split.persons(column.weights))
    assert split.dropped == 0
    sums = np.zeros_like(first)
    people = [np.zeros((count_law.people.size, split.width)) for pair in parts for count_law in pair]
    for k, filling in enumerate(column.low + column.cells):
        for ones in product(*(range(int(value) + 1) for value in filling)):
            weight = 1.0
            for (one, other), whole, value, x in zip(parts, wholes, filling, ones, strict=True):
                laws = law(priors(one)), law(priors(other))
                possible = x <= one.size and value - x <= other.size
                weight *= laws[0][x] * laws[1][value - x] / law(priors(whole))[value] if possible else 0.0
            if not weight:
                continue
            here = sum(ones) - split.low
            sums[k, here] += weight
            for i, (one, other) in enumerate(parts):
                people[2 * i][:, here] += column.weights[k] * weight * one.chances[:, ones[i]]
                people[2 * i + 1][:, here] += (
                    column.weights[k] * weight * other.chances[:, filling[i] - ones[i]]
                )
    np.testing.assert_allclose(first, sums, atol=1e-12)
    for (count_law, has_it), truth, expected in zip(
        found, people, (c for pair in parts for c in pair), strict=True
    ):
        assert count_law is expected
        np.testing.assert_allclose(has_it, truth, atol=1e-12)


def test_what_is_left_out_of_the_first_part_is_less_than_it_says():
    parts = [
        (PoissonBinomial([200], [0.3]), PoissonBinomial([300], [0.4])),
        (PoissonBinomial([100], [0.5]), PoissonBinomial([250], [0.2])),
    ]
    wholes = [_together(*pair) for pair in parts]
    sizes = np.array([count_law.size for count_law in wholes])
    column = Column.of(wholes, np.zeros_like(sizes), sizes, np.zeros(2), 280, cut=1e-6)
    whole, cut = (ColumnSplit(column, wholes, parts, cut=share) for share in (0.0, 1e-6))
    assert cut.width < whole.width
    missing = 1 - cut.first_part().sum(axis=1)
    assert (missing <= cut.dropped + 1e-12).all()
    assert 0 < cut.dropped <= 4 * 2e-6
    np.testing.assert_allclose(whole.first_part().sum(axis=1), 1, atol=1e-9)
