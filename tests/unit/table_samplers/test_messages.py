"""Messages: the sums of the rows over some columns, listed one by one."""

from itertools import product as every

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.table_samplers.columns import Column
from tabulary.table_samplers.messages import Message, MessageRows, all_but_one, flat, product
from tabulary.table_samplers.poisson_binomial import PoissonBinomial


@st.composite
def several_columns(draw):
    rows = draw(st.integers(1, 3))
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        count_laws = [
            PoissonBinomial([draw(st.integers(0, 3))], [draw(st.sampled_from([0.2, 0.5]))])
            for _ in range(rows)
        ]
        sizes = np.array([count_law.size for count_law in count_laws])
        total = draw(st.integers(0, int(sizes.sum())))
        columns.append(Column.of(count_laws, np.zeros_like(sizes), sizes, np.zeros(rows), total, cut=0.0))
    return columns


def _sums(columns):
    """Every vector of row sums and how likely it is."""
    found = {}
    for chosen in every(*(range(len(column.cells)) for column in columns)):
        pairs = list(zip(columns, chosen, strict=True))
        sums = tuple(int(v) for v in sum((c.low + c.cells[k] for c, k in pairs), 0 * columns[0].low))
        found[sums] = found.get(sums, 0.0) + float(np.prod([c.weights[k] for c, k in pairs]))
    return found


@settings(max_examples=60)
@given(several_columns())
def test_the_message_of_all_columns_is_the_law_of_the_row_sums(columns):
    truth = _sums(columns)
    targets = np.array(list(truth))
    rows = MessageRows.of(columns, targets)
    assert rows.free.size == targets.shape[1] - 1
    found = product(columns, rows, cut=0.0).at(targets[:, rows.free])
    np.testing.assert_allclose(found, list(truth.values()), atol=1e-12)


@settings(max_examples=60)
@given(several_columns())
def test_the_message_of_all_but_one_needs_only_that_one(columns):
    truth = _sums(columns)
    targets = np.array(list(truth))
    rows = MessageRows.of(columns, targets)
    for column, rest in zip(columns, all_but_one(columns, rows, cut=0.0), strict=True):
        whole = rest.with_column(column, rows, cut=0.0)
        np.testing.assert_allclose(whole.at(targets[:, rows.free]), list(truth.values()), atol=1e-12)


def test_what_cannot_be_completed_is_left_out_at_no_price():
    sizes = np.array([60, 60])
    count_laws = [PoissonBinomial([60], [0.5]), PoissonBinomial([60], [0.5])]
    columns = [Column.of(count_laws, 0 * sizes, sizes, np.zeros(2), 60, cut=0.0) for _ in range(3)]
    rows = MessageRows.of(columns, np.array([[2, 178]]))
    message = Message.empty(columns, rows).with_column(columns[0], rows, cut=0.0)
    assert message.mass.size == 3
    assert message.dropped == 0


def test_what_is_cut_off_is_counted():
    sizes = np.array([400, 400])
    count_laws = [PoissonBinomial([400], [0.5]), PoissonBinomial([400], [0.5])]
    columns = [Column.of(count_laws, 0 * sizes, sizes, np.zeros(2), 400, cut=0.0) for _ in range(2)]
    rows = MessageRows.of(columns, np.array([[300, 500], [500, 300]]))
    whole, cut = (product(columns, rows, cut=share) for share in (0.0, 1e-4))
    assert cut.mass.size < whole.mass.size
    assert 0 < 1 - cut.mass.sum() <= cut.dropped + 1e-12
    assert cut.dropped <= 4 * 1e-4


def test_places_outside_a_message_have_no_mass():
    column = Column.of(
        [PoissonBinomial([2], [0.5])] * 2, np.zeros(2, int), np.full(2, 2), np.zeros(2), 2, cut=0.0
    )
    rows = MessageRows.of([column], np.array([[0, 2], [2, 0]]))
    message = product([column], rows, cut=0.0)
    assert message.at(np.array([[-1], [1], [3]])).tolist() == [0.0, pytest.approx(2 / 3), 0.0]


def test_a_place_lies_where_its_row_and_column_say():
    assert flat(np.array([[1, 2], [0, 3]]), (2, 5)).tolist() == [7, 3]
