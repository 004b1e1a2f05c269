import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidColumn, InvalidTable, UnknownLevel
from tabulary.suppress.classical_method.contributions import Contributions
from tabulary.suppress.classical_method.rules import Dominance, PPercent, ProtectionLevels, Threshold, primary

amounts = st.lists(st.integers(0, 200), min_size=1, max_size=12)


def one_cell(values):
    return Contributions((1,), np.zeros(len(values), dtype=int), values)


def test_a_count_at_the_threshold_is_sensitive_and_one_above_is_not():
    assert Threshold(5).sensitive([4, 5, 6]).tolist() == [True, True, False]


def test_empty_cells_are_sensitive_unless_they_are_said_not_to_be():
    assert Threshold(5).sensitive([0, 1]).tolist() == [True, True]
    assert Threshold(5, zeros=False).sensitive([0, 1]).tolist() == [False, True]


def test_a_threshold_hides_the_value_by_a_width_of_one_or_the_range_by_a_step_above_the_limit():
    assert Threshold(5).levels([0, 5]).width.tolist() == [1, 1]
    hidden = Threshold(5, hides="range").levels([0, 5])
    assert (np.array([0, 5]) + hidden.upper).tolist() == [6, 6]
    assert not hidden.width.any()


def test_in_a_table_of_amounts_a_threshold_counts_contributors():
    firms = Contributions((2,), [0, 0, 1], [1, 1, 5000])
    assert Threshold(1).sensitive([2, 5000], firms).tolist() == [False, True]
    assert Threshold(1).levels([2, 5000], firms).width.tolist() == [0.2, 500]
    with pytest.raises(InvalidArgument, match="range"):
        Threshold(1, hides="range").levels([2, 5000], firms)


@given(amounts, st.integers(1, 4), st.integers(1, 99))
def test_dominance_is_a_share_of_the_largest_above_k_percent_and_its_level_what_would_make_it_safe(
    values, n, k
):
    rule, given_ = Dominance(n, k), one_cell(values)
    top = sum(sorted(values, reverse=True)[:n])
    assert rule.sensitive([sum(values)], given_).item() == (100 * top > k * sum(values))
    levels = rule.levels([sum(values)], given_)
    if 100 * top > k * sum(values):
        assert (sum(values) + levels.upper.item()) * k == pytest.approx(100 * top)
    else:
        assert levels.upper.item() == 0


@given(amounts, st.integers(1, 99))
def test_the_p_percent_rule_protects_the_largest_from_the_second(values, p):
    rule, given_ = PPercent(p), one_cell(values)
    first, second, *_ = [*sorted(values, reverse=True), 0, 0]
    rest = sum(values) - first - second
    assert rule.sensitive([sum(values)], given_).item() == (100 * rest < p * first)
    levels = rule.levels([sum(values)], given_)
    # With the level added, the second's estimate of the largest is off by p percent of it.
    assert rest + levels.upper.item() == pytest.approx(max(rest, p * first / 100))


@given(amounts, st.integers(1, 3), st.integers(1, 99), st.integers(1, 300))
def test_no_lower_level_asks_for_less_than_nothing(values, n, k, p):
    for rule in (Dominance(n, k), PPercent(p)):
        levels = rule.levels([sum(values)], one_cell(values))
        assert levels.lower.item() == min(levels.upper.item(), sum(values))


def test_any_rule_makes_a_cell_sensitive_and_the_largest_of_their_levels_holds():
    firms = Contributions((3,), [0, 1, 1, 1, 2, 2, 2, 2], [50, 90, 5, 5, 25, 25, 25, 25])
    cells, levels = primary([50, 100, 100], [Threshold(1), Dominance(1, 80), PPercent(10)], firms)
    assert cells.tolist() == [True, True, False]
    assert levels.upper.tolist() == [12.5, 12.5, 0]
    assert levels.width.tolist() == [5, 0, 0]


@pytest.mark.parametrize("rule", [Dominance(1, 80), PPercent(10)])
def test_rules_about_contributions_ask_for_them(rule):
    with pytest.raises(InvalidArgument, match="contributions"):
        primary([1, 2], rule)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Threshold(-1), "a whole number of at least 0, not -1"),
        (lambda: Threshold(2.5), "a whole number of at least 0, not 2.5"),
        (lambda: Threshold(True), "a whole number of at least 0, not True"),
        (lambda: Threshold(5, hides="people"), "'value' or 'range', not 'people'"),
        (lambda: Dominance(0, 80), "n of the dominance rule must be"),
        (lambda: Dominance(1, 0), "between 0 and 100 percent, not 0"),
        (lambda: Dominance(1, 100), "between 0 and 100 percent, not 100"),
        (lambda: PPercent(0), "must be above 0, not 0"),
        (lambda: PPercent(float("nan")), "must be above 0, not nan"),
        (lambda: ProtectionLevels(upper=-1), "upper protection level is negative"),
        (lambda: ProtectionLevels(width=float("inf")), "width protection level is negative, infinite"),
        (lambda: ProtectionLevels(lower="much"), "lower protection level is not a number"),
        (lambda: primary([1], []), "no rule was given"),
    ],
)
def test_rules_that_cannot_be_are_refused(make, reason):
    with pytest.raises(InvalidArgument, match=reason):
        make()


def test_levels_that_do_not_fit_a_table_are_refused():
    with pytest.raises(InvalidArgument, match=r"shape \(3,\)"):
        ProtectionLevels(upper=[1, 2]).stretched((3,))


FIRMS = {"branch": ["a", "b", "a"], "region": ["n", "n", "s"], "sales": [7.5, 2.0, 1.0]}
DOMAIN = Domain({"branch": "ab", "region": "ns"})


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_contributions_are_read_from_any_frame(frame):
    read = Contributions.from_frame(frame(FIRMS), value="sales", domain=DOMAIN)
    assert read.total.tolist() == [[7.5, 1], [2, 0]]
    assert read.number.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_without_the_column_is_refused_by_name(frame):
    with pytest.raises(InvalidColumn, match="turnover"):
        Contributions.from_frame(frame(FIRMS), value="turnover", domain=DOMAIN)


def test_a_level_outside_the_domain_is_refused_without_telling_it():
    with pytest.raises(UnknownLevel, match="column 'branch' holds a value outside its domain") as refused:
        Contributions.from_frame({**FIRMS, "branch": ["a", "b", "secret"]}, value="sales", domain=DOMAIN)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([1.0, -2.0, 3.0], "a contribution is negative"),
        ([1.0, float("nan"), 3.0], "infinite or missing"),
        (["x", "y", "z"], "a value is not a number"),
    ],
)
def test_amounts_that_are_no_amounts_are_refused(bad, reason):
    with pytest.raises(InvalidColumn, match=reason):
        Contributions.from_frame({**FIRMS, "sales": bad}, value="sales", domain=DOMAIN)


def test_contributions_to_cells_that_are_not_there_are_refused():
    with pytest.raises(InvalidTable, match="a cell that a table of shape"):
        Contributions((2,), [2], [1.0])
    with pytest.raises(InvalidTable, match="one cell and one amount for each contributor"):
        Contributions((2,), [0, 1], [1.0])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=30))
def test_the_contributions_to_a_sum_are_those_to_its_cells(pairs):
    cells, given_ = [cell for cell, _ in pairs], [amount for _, amount in pairs]
    framed = Contributions((2, 3), cells, given_).with_totals()
    assert framed.shape == (3, 4)
    for row in range(3):
        for column in range(4):
            inside = sorted(
                (a for c, a in pairs if row in (c // 3, 2) and column in (c % 3, 3)), reverse=True
            )
            assert framed.number[row, column] == len(inside)
            assert framed.total[row, column] == sum(inside)
            assert framed.largest(3)[row, column].tolist() == [*inside, 0, 0, 0][:3]


def test_contributions_print_no_amount():
    assert repr(Contributions((2, 3), [0], [123456.0])) == "<Contributions to a table of shape 2 × 3>"
