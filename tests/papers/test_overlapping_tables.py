"""Lists of overlapping tables: the numbers of Rinott, O'Keefe, Shlomo & Skinner (2018), section 7."""

import math
from fractions import Fraction

import pytest

import tabulary as tb
from tabulary.perturb.tables import Tables

# A four-way table, each attribute with C = 10 categories.
FOUR = tb.Domain(dict.fromkeys("abcd", range(10)))
INTERIOR = "[abcd]"
TWO_WAY = tb.Workload.k_way(FOUR, 2)
EVERYTHING = tb.Workload.all_up_to(FOUR, 4)


def exact(rate):
    """The standard deviation of discrete Laplace noise whose probabilities fall by e^-rate a step."""
    return 1 / (math.sqrt(2) * math.sinh(rate / 2))


@pytest.mark.parametrize(
    ("work", "d", "terms", "printed"),
    [
        # Two-way margins summed from perturbed interior cells, perturbed directly, and with everything else.
        (INTERIOR, 1, 100, "14"),
        (TWO_WAY, 6, 1, "8.5"),
        (EVERYTHING, 15, 1, "21"),
    ],
)
def test_the_deviations_of_a_two_way_cell_are_those_that_are_printed(work, d, terms, printed):
    tables = Tables(FOUR, work, epsilon=1)
    assert tables.d == d
    digits = len(printed.replace(".", ""))
    approximate = math.sqrt(2 * terms) * d
    assert f"{approximate:.{digits}g}" == printed
    found = tables.standard_deviation(("a", "b"))
    assert found == pytest.approx(math.sqrt(terms) * exact(1 / d), rel=1e-12)
    # The discrete law has a little less than √2·d/ε: its variance is 2/ε² - 1/6 for small ε.
    assert 0.95 * approximate < found < approximate
    # The printed factor is that of 1/ε; where ε is small the discrete law has it too.
    small = Tables(FOUR, work, epsilon="1/1000").standard_deviation(("a", "b")) / 1000
    assert small == pytest.approx(approximate, rel=1e-6)


def test_the_exact_deviations_at_epsilon_one():
    found = [
        Tables(FOUR, work, epsilon=1).standard_deviation(("a", "b"))
        for work in (INTERIOR, TWO_WAY, EVERYTHING)
    ]
    assert [round(deviation, 2) for deviation in found] == [13.57, 8.48, 21.21]


def test_of_the_three_the_two_way_margins_alone_are_best_and_interior_cells_beat_everything():
    interior, direct, everything = (
        Tables(FOUR, work, epsilon=1).standard_deviation(("a", "b"))
        for work in (INTERIOR, TWO_WAY, EVERYTHING)
    )
    assert direct < interior < everything


@pytest.mark.parametrize("t", [1, 2, 3, 4])
def test_a_table_with_all_its_margins_but_the_total_has_d_two_to_the_t_less_one(t):
    domain = tb.Domain(dict.fromkeys("abcd"[:t], "xyz"))
    assert Tables(domain, tb.Workload.all_up_to(domain, t), epsilon=1).d == 2**t - 1


THREE = tb.Domain({"income": range(4), "education": range(3), "ethnicity": range(5)})
SEVEN = tb.Workload.all_up_to(THREE, 3)


def test_seven_tables_may_share_the_budget_as_they_are_important():
    important = [("income", "education", "ethnicity"), ("income", "education")]
    epsilons = {m: "1/3" if m in important else "1/15" for m in SEVEN}
    tables = Tables(THREE, SEVEN, epsilons=epsilons)
    assert tables.d == 7
    assert tables.privacy() == tb.PureDP(1)
    equal = Tables(THREE, SEVEN, epsilon=1)
    assert set(equal.epsilons.values()) == {Fraction(1, 7)}
    for margin in SEVEN:
        assert tables.standard_deviation(margin) == pytest.approx(exact(float(Fraction(epsilons[margin]))))
        assert (tables.standard_deviation(margin) < equal.standard_deviation(margin)) == (margin in important)


def test_theorem_7_1_adds_up_what_a_bound_costs_each_table():
    tables = Tables(THREE, SEVEN, epsilon=1, bound=30)
    assert tables.summed_delta == pytest.approx(7 * tables.laws[0].delta)
    assert tables.delta == pytest.approx(1 - (1 - tables.laws[0].delta) ** 7)
    assert tables.delta < tables.summed_delta


def test_a_weighted_count_is_perturbed_w_times_as_much():
    # Section 8: with maximal weight w one record moves a count by w.
    plain = Tables(THREE, "[income]", epsilon="1/2")
    weighted = Tables(THREE, "[income]", epsilon="1/2", sensitivity=40)
    assert weighted.standard_deviation("income") == pytest.approx(exact(0.5 / 40))
    assert weighted.standard_deviation("income") == pytest.approx(
        40 * plain.standard_deviation("income"), rel=0.02
    )
