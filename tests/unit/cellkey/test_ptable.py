"""The perturbation table: what it holds, and what it refuses."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.cellkey import PTable
from tabulary.cellkey.design import exact_law, key_shares
from tabulary.cellkey.runs import Runs
from tabulary.errors import ConfidentialError, InvalidArgument, InvalidNoise
from tests.unit.cellkey.ptables import ptables


@given(st.data())
def test_the_lookup_is_the_matrix_that_was_given(data):
    modulus = data.draw(st.integers(2, 30))
    matrix = data.draw(
        st.lists(st.lists(st.integers(0, 3), min_size=modulus, max_size=modulus), min_size=1, max_size=5)
    )
    ptable = PTable.from_array(matrix)
    rows, keys = np.indices((len(matrix), modulus))
    assert ptable.pvalues(rows + 1, keys).tolist() == matrix
    assert ptable.runs.array(modulus).tolist() == matrix


@given(ptables())
def test_the_probabilities_of_a_row_are_its_shares_of_the_keys(ptable):
    matrix = ptable.runs.array(ptable.modulus)
    for row, values in enumerate(matrix):
        law = ptable.probabilities(ptable.first + row)
        assert sum(law.values()) == 1
        assert law == {
            v: Fraction(int((values == v).sum()), ptable.modulus) for v in sorted(set(values.tolist()))
        }
        assert ptable.mean(ptable.first + row) == Fraction(int(values.sum()), ptable.modulus)


def test_a_zero_stays_zero_where_the_table_begins_at_one():
    ptable = PTable.from_array([[1, 1], [2, 2]])
    assert ptable.pvalue(0, 1) == 0
    assert not ptable.perturbs_zeros
    assert not PTable.from_array([[0, 0], [1, 1]], first=0).perturbs_zeros
    assert PTable.from_array([[0, 1]], first=0).perturbs_zeros


def test_a_count_above_the_last_row_is_refused_without_telling_it():
    ptable = PTable.from_array([[0, 0]] * 7)
    with pytest.raises(ConfidentialError, match="larger than the ptable's last row, 7") as refused:
        ptable.pcv(np.array([3, 4711]))
    assert "4711" not in str(refused.value)
    assert "Nothing was published" in str(refused.value)


def test_the_last_row_serves_larger_counts_if_declared():
    ptable = PTable.from_array([[0, 0], [1, 2]], above="last")
    assert ptable.pcv(np.array([0, 1, 2, 3, 900])).tolist() == [0, 1, 2, 2, 2]
    assert ptable.pvalue(900, 1) == 2


@given(st.integers(751, 10**9))
def test_rows_501_to_750_repeat_as_the_ons_reuses_them(count):
    ptable = PTable.from_array(np.zeros((750, 2), dtype=int), above=("repeat", 501))
    assert ptable.pcv(np.array([count, 17])).tolist() == [(count - 1) % 250 + 501, 17]


@pytest.mark.parametrize(
    "above", ["first", ("repeat", 0), ("repeat", 3), ("repeat", "1"), None, ("again", 1)]
)
def test_what_a_large_count_does_is_one_of_three_things(above):
    with pytest.raises(InvalidArgument, match="above"):
        PTable.from_array([[0, 0], [0, 0]], above=above)


def test_a_table_that_would_publish_a_negative_count_is_refused():
    assert PTable.from_array([[-1, 0], [-2, 0]]).last == 2
    with pytest.raises(InvalidNoise, match="negative count"):
        PTable.from_array([[-1, 0], [-3, 0]])
    with pytest.raises(InvalidNoise, match="negative count"):
        PTable.from_rows([{-1: "1/2", 1: "1/2"}], modulus=10)


@pytest.mark.parametrize(
    "matrix", [[], [[]], [1, 2], [[0.5, 1.0]], [[np.nan, 1.0]], [[0, 1], [0]], [["a", "b"]], [[True, False]]]
)
def test_only_a_matrix_of_whole_numbers_is_a_table(matrix):
    with pytest.raises(InvalidNoise, match="matrix of whole numbers"):
        PTable.from_array(matrix)


@pytest.mark.parametrize("modulus", [1, 0, -5, 2**62 + 1, True, 2.0, "256"])
def test_the_number_of_keys_has_bounds(modulus):
    with pytest.raises(InvalidNoise, match="keys"):
        PTable.from_rows([{0: 1}], modulus=modulus)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        ({0: "1/2"}, "add up to 0.5, not to 1"),
        ({0: 0.6, 1: 0.6}, "add up to 1.2, not to 1"),
        ({0: 2, 1: -1}, "the offset 1 has a negative probability"),
        ({0.5: 1}, "an offset must be a whole number, not 0.5"),
        ({True: 1}, "an offset must be a whole number, not True"),
        ({0: "half"}, "a probability must be .* not 'half'"),
        ({0: float("nan")}, "a probability must be .* not nan"),
    ],
)
def test_a_row_is_a_law_of_whole_offsets(law, reason):
    with pytest.raises(InvalidNoise, match=reason):
        PTable.from_rows([law], modulus=10)


weights = st.dictionaries(st.integers(-6, 6), st.integers(1, 50), min_size=1)


@given(weights, st.integers(2, 5000))
def test_no_probability_moves_by_more_than_one_key_and_every_key_is_dealt(law, modulus):
    total = sum(law.values())
    exact = exact_law({v: Fraction(w, total) for v, w in law.items()})
    shares = key_shares(exact, modulus)
    assert sum(shares.values()) == modulus
    for offset, probability in exact.items():
        assert abs(Fraction(shares.get(offset, 0), modulus) - probability) <= Fraction(1, modulus)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 50), st.integers(2, 5000))
def test_a_symmetric_law_with_a_middle_keeps_its_mean(half, middle, modulus):
    total = 2 * sum(half) + middle + 1
    law = {0: Fraction(middle + 1, total)}
    for offset, weight in enumerate(half, start=1):
        law[offset] = law[-offset] = Fraction(weight, total)
    shares = key_shares(exact_law(law), modulus)
    assert sum(v * s for v, s in shares.items()) == 0


@given(weights, st.integers(2, 5000))
def test_the_rounding_that_a_table_states_is_its_distance_from_the_law(law, modulus):
    total = sum(law.values())
    exact = {v + 6: Fraction(w, total) for v, w in law.items()}
    ptable = PTable.from_rows([exact], modulus=modulus)
    made = ptable.probabilities(0)
    distance = sum(abs(made.get(v, 0) - exact.get(v, 0)) for v in made.keys() | exact.keys()) / 2
    assert ptable.rounding == distance
    assert (distance == 0) == (made == exact)


def test_a_law_is_laid_on_the_keys_of_any_size():
    ptable = PTable.from_rows([{0: 1}, {-1: "1/2", 1: "1/2"}], modulus=2**62)
    assert [ptable.pvalue(1, key) for key in (0, 2**61 - 1, 2**61, 2**62 - 1)] == [-1, -1, 1, 1]


def test_a_key_or_a_row_outside_the_table_is_refused():
    ptable = PTable.from_array([[0, 0]])
    for count, key, what in ((1, 2, "ckey"), (1, -1, "ckey"), (-1, 0, "pcv")):
        with pytest.raises(InvalidArgument, match=f"a {what} of this ptable must be between 0 and 1"):
            ptable.pvalue(count, key)
    with pytest.raises(InvalidArgument, match="rows 1 to 1"):
        ptable.probabilities(0)


def test_a_table_cannot_be_written_to():
    ptable = PTable.from_array([[0, 1]])
    with pytest.raises(ValueError, match="read-only"):
        ptable.runs.pvalues[0] = 5


def test_the_description_tells_the_size_and_not_what_a_key_does():
    described = PTable.from_array([[0, 1, -1, 0]], above=("repeat", 1)).describe()
    assert described == {
        "rows": [1, 1],
        "keys": 4,
        "offsets": [-1, 1],
        "above": ["repeat", 1],
        "perturbs_zeros": False,
        "rounding": "0",
    }


@pytest.mark.parametrize(
    ("offsets", "starts", "pvalues"),
    [
        ([0, 1], [1], [0]),
        ([0, 2], [0, 0], [0, 1]),
        ([0, 3], [0, 5, 2], [0, 1, 2]),
        ([0, 1, 1], [0], [0]),
        ([0, 2], [0], [0]),
        ([0, 1], [0, 3], [0, 1]),
        ([0, 2], [0, 1], [0]),
        ([0, 2, 3], [0, 1, 1], [0, 1, 2]),
    ],
)
def test_runs_that_leave_a_key_out_or_name_it_twice_are_no_table(offsets, starts, pvalues):
    with pytest.raises(
        InvalidNoise, match="begin at key 0, with at least one run, in ascending order of keys"
    ):
        PTable(Runs(np.array(offsets), np.array(starts), np.array(pvalues)), 10)


def test_runs_of_no_row_are_no_table():
    with pytest.raises(InvalidNoise, match="at least one row"):
        PTable(Runs(np.array([0]), np.array([]), np.array([])), 10)


def test_a_run_beyond_the_last_key_is_no_table():
    runs = Runs(np.array([0, 2]), np.array([0, 7]), np.array([0, 1]))
    assert PTable(runs, 8).pvalue(1, 7) == 1
    with pytest.raises(InvalidNoise, match="below 7"):
        PTable(runs, 7)
