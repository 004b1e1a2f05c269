from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import linprog

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import CannotProtect, ConfidentialError, InvalidArgument, InvalidTable
from tabulary.suppress.classical_method.classical import classical
from tabulary.suppress.classical_method.contributions import Contributions
from tabulary.suppress.classical_method.rules import Dominance, PPercent, ProtectionLevels, Threshold
from tests.oracles.smallest_pattern import smallest_pattern

COUNTS = [[3, 20, 30, 60], [15, 25, 40, 18], [22, 31, 80, 27]]


def domain_of(shape, **more):
    return Domain({f"a{axis}": range(levels) for axis, levels in enumerate(shape)}, **more)


def table_of(counts):
    return Table(domain_of(np.shape(counts)), counts)


def intervals(published):
    """What an attacker computes from a published table alone: the least and the largest of each cell."""
    shape = published.domain.shape
    size = int(np.prod(shape))
    left, right = [], []
    for margin, sums in published.sums.items():
        kept = [published.domain.position(name) for name in margin]
        for index in np.ndindex(sums.shape):
            if not np.isnan(sums[index]):
                here = np.ones(shape, dtype=bool)
                for axis, level in zip(kept, index, strict=True):
                    here &= np.indices(shape)[axis] == level
                left.append(here.reshape(-1))
                right.append(sums[index])
    cells = published.counts.reshape(-1)
    most = np.full(size, np.nan) if published.people is None else published.people.reshape(-1)
    bounds = [
        (0, None if np.isnan(m) else m) if np.isnan(c) else (c, c) for c, m in zip(cells, most, strict=True)
    ]
    ends = np.empty((2, size))
    for cell in range(size):
        for end, sign in enumerate((1, -1)):
            found = linprog(sign * np.eye(size)[cell], A_eq=np.array(left, float), b_eq=right, bounds=bounds)
            ends[end, cell] = sign * found.fun if found.status == 0 else np.inf
            assert found.status in (0, 3)
    return ends.reshape(2, *shape)


def test_sensitive_cells_and_others_are_left_out_and_the_sums_are_not():
    made = classical(table_of(COUNTS), Threshold(5), cost="counts")
    assert made.status.tolist() == [list("uxss"), list("xxss"), list("ssss")]
    assert made.published.suppressed.tolist() == (np.isin(made.status, ["u", "x"])).tolist()
    assert made.published.sums[("a0",)].tolist() == [113, 98, 160]
    assert made.published.sums[()].tolist() == 371
    assert {margin: set(marks.reshape(-1)) for margin, marks in made.sum_status.items()} == {
        ("a0",): {"z"},
        ("a1",): {"z"},
        (): {"z"},
    }
    assert (made.method, made.optimal, made.gap, made.cost) == ("exact", True, 0.0, 63.0)


def test_what_is_public_does_not_tell_sensitive_cells_from_the_others():
    made = classical(table_of(COUNTS), Threshold(5))
    assert "3" not in repr(made).replace("3 × 4", "")
    assert not any(mark in repr(made.published) + str(made.published.columns()) for mark in ("'u'", "'x'"))
    assert "25" not in repr(made.protection)


def test_without_sensitive_cells_everything_is_published():
    made = classical(table_of(COUNTS), Threshold(2))
    assert not made.published.suppressed.any()
    assert (made.cost, made.gap, made.optimal) == (0.0, 0.0, True)


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([(2, 3), (3, 3), (3, 4), (2, 2, 2)]).flatmap(
        lambda shape: arrays.arrays(np.int64, shape, elements=st.integers(0, 12))
    ),
    st.sampled_from([Threshold(3), Threshold(3, zeros=False), Threshold(2, hides="range")]),
    st.sampled_from(["publish", "suppress"]),
    st.sampled_from(["auto", "heuristic"]),
    st.booleans(),
)
def test_an_attacker_who_sees_only_what_is_published_cannot_tell_more_than_the_levels_allow(
    counts, rule, margins, method, bounded
):
    people = counts + 6 if bounded else None
    try:
        made = classical(table_of(counts), rule, margins=margins, method=method, people=people)
    except CannotProtect:
        assume(False)
    lower, upper = intervals(made.published)
    primary = made.status == "u"
    assert (primary == rule.sensitive(counts)).all()
    levels = rule.levels(counts)
    assert (upper - lower >= levels.width - 1e-6)[primary].all()
    assert (upper >= counts + levels.upper - 1e-6)[primary].all()
    np.testing.assert_allclose(made.protection.lower, lower, atol=1e-6)
    np.testing.assert_allclose(made.protection.upper, upper, atol=1e-6)


@settings(deadline=None, max_examples=15)
@given(arrays.arrays(np.int64, (2, 2), elements=st.integers(0, 9)), st.sampled_from(["cells", "counts"]))
def test_with_sums_that_may_be_suppressed_the_pattern_is_the_cheapest_of_cells_and_sums(counts, cost):
    rule, table = Threshold(3), table_of(counts)
    framed = table.with_totals()
    prices = np.ones((3, 3)) if cost == "cells" else framed
    try:
        made = classical(table, rule, margins="suppress", cost=cost)
    except CannotProtect:
        made = None
    primary = rule.sensitive(framed)

    def protects(pattern):
        signs = np.outer([1, 1, -1], [1, 1, -1])
        lines = np.array([np.kron(np.eye(3)[i], np.ones(3)) for i in range(3)])
        lines = np.vstack([lines, [np.kron(np.ones(3), np.eye(3)[j]) for j in range(3)]]) * signs.reshape(-1)
        bounds = [
            (-v, None) if p else (0, 0) for v, p in zip(framed.reshape(-1), pattern.reshape(-1), strict=True)
        ]
        for cell in np.flatnonzero(primary):
            width = 0.0
            for sign in (1, -1):
                found = linprog(sign * np.eye(9)[cell], A_eq=lines, b_eq=np.zeros(6), bounds=bounds)
                width += np.inf if found.status == 3 else -found.fun
            if width < 1 - 1e-6:
                return False
        return True

    free = np.flatnonzero(~primary)
    costs = []
    for number in range(len(free) + 1):
        for added in combinations(free, number):
            pattern = primary.copy().reshape(-1)
            pattern[list(added)] = True
            price = prices[pattern.reshape(3, 3)].sum()
            if (not costs or price < min(costs)) and protects(pattern.reshape(3, 3)):
                costs.append(price)
    assert (made is None) == (not costs)
    if made is not None:
        assert made.cost == min(costs)
        assert np.isnan(made.published.sums[()]) == (made.sum_status[()] in ("u", "x"))


@settings(deadline=None, max_examples=30)
@given(arrays.arrays(np.int64, (3, 4), elements=st.integers(1, 12)))
def test_counts_without_empty_cells_are_left_out_in_the_number_that_nabar_and_mishra_reason_with(counts):
    made = classical(table_of(counts), Threshold(4))
    assert made.cost == smallest_pattern((3, 4), counts <= 4)


def test_a_cell_that_must_be_published_is():
    free = classical(table_of(COUNTS), Threshold(5), cost="counts")
    never = np.zeros((3, 4), dtype=bool)
    never[0, 1] = True
    assert free.status[0, 1] == "x"
    made = classical(table_of(COUNTS), Threshold(5), cost="counts", never=never)
    assert made.status[0, 1] == "z"
    assert made.published.counts[0, 1] == 20
    assert made.cost > free.cost


def test_a_sensitive_cell_that_must_be_published_is_refused_by_its_labels_and_without_its_count():
    never = np.zeros((3, 4), dtype=bool)
    never[0, 0] = True
    with pytest.raises(CannotProtect, match="a0=0, a1=0") as refused:
        classical(table_of(COUNTS), Threshold(5), never=never)
    assert "3" not in str(refused.value)


def test_a_cell_that_no_pattern_protects_is_refused_and_suppressed_sums_help():
    counts = [[0, 0, 0], [9, 8, 7]]
    with pytest.raises(CannotProtect, match=r"a0=0.*margins='suppress'") as refused:
        classical(table_of(counts), Threshold(5))
    assert isinstance(refused.value, ConfidentialError)
    with pytest.raises(CannotProtect, match="no pattern of suppressed cells protects"):
        classical(table_of(counts), Threshold(5), method="heuristic")
    made = classical(table_of(counts), Threshold(5), margins="suppress")
    assert made.sum_status[("a0",)].tolist()[0] == "u"
    assert not classical(table_of(counts), Threshold(5, zeros=False)).published.suppressed.any()


def test_a_cell_that_cannot_be_is_no_secret_and_protects_nothing():
    domain = domain_of((3, 3), structural_zeros=[{"a0": "0", "a1": "1"}])
    counts = [[3, 0, 20], [10, 11, 12], [13, 14, 15]]
    made = classical(Table(domain, counts), Threshold(5))
    assert made.status[0, 1] == "z"
    assert made.status[0].tolist() == ["u", "z", "x"]


def test_people_bound_the_intervals_and_are_published():
    people = np.full((2, 2), 11)
    made = classical(table_of([[3, 9], [10, 8]]), Threshold(5), people=people)
    # Nothing rises above 11 people, so that the cell of 10 lets the first fall by one only.
    assert made.protection.upper[0, 0] == 6
    assert made.protection.lower[0, 0] == 2
    assert (made.published.people == people).all()


def test_bounds_that_an_attacker_knows_ask_for_more_cells():
    tight = np.array(COUNTS) - 1, np.array(COUNTS) + 1
    wide = classical(table_of(COUNTS), Threshold(5), protection=ProtectionLevels(lower=2, upper=2))
    assert wide.published.suppressed.sum() == 4
    with pytest.raises(CannotProtect, match="no pattern of suppressed cells protects"):
        classical(table_of(COUNTS), Threshold(5), protection=ProtectionLevels(lower=2, upper=2), bounds=tight)
    near = tight[0].copy(), tight[1].copy()
    near[0][0, 0], near[1][0, 0] = 0, 9
    made = classical(
        table_of(COUNTS), Threshold(5), protection=ProtectionLevels(lower=2, upper=2), bounds=near
    )
    assert made.published.suppressed.sum() > 4


def test_protection_levels_may_be_given():
    made = classical(
        table_of(COUNTS), Threshold(5), protection=ProtectionLevels(lower=3, upper=15), cost="counts"
    )
    assert made.protection.lower[0, 0] == 0
    assert made.protection.upper[0, 0] >= 18
    assert made.protection.required.upper[0].tolist() == [15, 0, 0, 0]
    of_cells = ProtectionLevels(upper=np.full((3, 4), 15.0))
    made = classical(table_of(COUNTS), Threshold(5), protection=of_cells, margins="suppress", cost="counts")
    assert made.protection.upper[0, 0] >= 18


def test_amounts_are_protected_by_the_rules_for_them():
    generator = np.random.default_rng(5)
    cells = np.repeat(np.arange(16), 6)
    amounts = generator.integers(10, 60, cells.size).astype(float)
    amounts[[0, 30, 61]] = 2000.5
    firms = Contributions((4, 4), cells, amounts)
    table = table_of(firms.total)
    rules = [Dominance(1, 75), PPercent(15)]
    made = classical(table, rules, contributions=firms, cost="counts")
    assert not made.published.whole
    assert (made.status == "u").sum() == 3
    required, primary = made.protection.required, made.status == "u"
    assert (made.protection.upper - table.counts >= required.upper - 1e-4)[primary].all()
    assert (table.counts - made.protection.lower >= required.lower - 1e-4)[primary].all()
    assert (required.upper[primary] > 0).all()
    summed = classical(table, rules, contributions=firms, cost="counts", margins="suppress")
    assert summed.cost <= made.cost


def test_the_heuristic_is_never_cheaper_and_says_that_nothing_is_proved():
    generator = np.random.default_rng(2)
    table = table_of(generator.integers(1, 60, (9, 9)))
    exact = classical(table, Threshold(5, hides="range"), cost="counts")
    rough = classical(table, Threshold(5, hides="range"), cost="counts", method="heuristic")
    assert exact.optimal
    assert rough.cost >= exact.cost
    assert not rough.optimal
    assert rough.gap == (rough.cost - rough.lower_bound) / rough.cost > 0
    assert rough.method == "heuristic"


def test_when_the_time_is_up_the_pattern_protects_and_the_gap_is_told():
    generator = np.random.default_rng(1)
    counts = generator.integers(6, 500, (25, 25))
    counts.reshape(-1)[generator.choice(625, 20, replace=False)] = generator.integers(1, 6, 20)
    rule = Threshold(5, hides="range")
    made = classical(table_of(counts), rule, cost="counts", method="exact", time_limit=1e-9)
    assert not made.optimal
    assert 0 < made.gap < 1
    assert (made.protection.upper[made.status == "u"] > 5).all()


def test_costs_may_be_given_for_each_cell():
    cost = np.ones((3, 4))
    cost[:, 1] = 100
    made = classical(table_of(COUNTS), Threshold(5), cost=cost)
    assert not np.isin(made.status[:, 1], ["u", "x"]).any()
    assert made.cost == 4


def test_tables_of_three_attributes_are_protected_by_the_heuristic():
    generator = np.random.default_rng(4)
    counts = generator.integers(3, 30, (3, 3, 4))
    made = classical(table_of(counts), Threshold(5))
    assert made.method == "heuristic"
    assert set(made.published.sums) == {
        ("a0", "a1"),
        ("a0", "a2"),
        ("a1", "a2"),
        ("a0",),
        ("a1",),
        ("a2",),
        (),
    }
    primary = made.status == "u"
    assert primary.any()
    assert (made.protection.upper - made.protection.lower >= 1 - 1e-6)[primary].all()
    with pytest.raises(InvalidArgument, match="two-way"):
        classical(table_of(counts), Threshold(5), method="exact")


def test_a_one_way_table_hides_a_cell_behind_another():
    made = classical(table_of([3, 20, 30]), Threshold(5), cost="counts")
    assert made.status.tolist() == ["u", "x", "s"]
    assert made.published.sums[()] == 53


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"cost": "money"}, InvalidArgument, "money"),
        ({"cost": -np.ones((3, 4))}, InvalidArgument, "negative"),
        ({"cost": np.ones((2, 2))}, InvalidArgument, "shape"),
        ({"margins": "hide"}, InvalidArgument, "hide"),
        ({"method": "magic"}, InvalidArgument, "magic"),
        ({"time_limit": 0}, InvalidArgument, "above 0"),
        ({"never": [[True]]}, InvalidArgument, "shape"),
        ({"never": np.ones((3, 4))}, InvalidArgument, "True"),
        ({"people": np.ones((3, 4), dtype=int)}, InvalidTable, "people"),
        ({"people": [[1.5]]}, InvalidTable, "people"),
        ({"bounds": (50, 60)}, InvalidTable, "bounds"),
        ({"bounds": (0, [1, 2])}, InvalidTable, "bounds"),
        ({"protection": ProtectionLevels(upper=[1, 2, 3])}, InvalidArgument, "levels"),
        ({"contributions": Contributions((3, 4), [0], [3.0])}, InvalidTable, "add up"),
        ({"contributions": Contributions((2,), [0], [3.0])}, InvalidTable, "shape"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(options, error, words):
    with pytest.raises(error, match=words):
        classical(table_of(COUNTS), Threshold(5), **options)


def test_a_negative_cell_is_refused():
    with pytest.raises(InvalidTable, match="below zero"):
        classical(table_of([[1, -2], [3, 4]]), Threshold(5))


@pytest.mark.parametrize("counts", [[[5, 100, 5], [50, 5, 50]], [[52, 5, 53], [3, 100, 2]]])
def test_both_tables_behind_nabar_and_mishras_example_are_suppressed_whole_and_look_alike(counts):
    made = classical(table_of(counts), Threshold(5))
    assert made.optimal
    assert made.published.suppressed.all()
    assert [made.published.sums[(name,)].tolist() for name in ("a0", "a1")] == [[110, 105], [55, 105, 55]]
    # Figure 1(b): the ranges that an attacker without the rule is left with.
    assert made.protection.lower.tolist() == [[0, 0, 0]] * 2
    assert made.protection.upper.tolist() == [[55, 105, 55]] * 2
