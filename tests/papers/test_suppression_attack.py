"""Suppressions leak information: the example of Nabar & Mishra (2010), section 3, claim by claim."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from tabulary.attacks.suppression.attack import attack
from tabulary.attacks.suppression.primary_sets import primary_sets
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.suppress.classical_method.rules import Threshold
from tabulary_papers.suppression.printed import FIGURE_1
from tests.oracles.smallest_pattern import smallest_pattern

DOMAIN = Domain({"eye": ["blue", "not blue"], "hair": ["blonde", "brown", "black"]})
SUMS = {("eye",): np.array([110, 105]), ("hair",): np.array([55, 105, 55]), (): np.array(215)}
RULE = Threshold(5)
# The paper says only that 100 people are brown-haired and not blue-eyed.
PEOPLE = np.array([[110, 200, 110], [110, 100, 110]])


def figure_1a(people=None):
    return SuppressedTable(DOMAIN, np.full((2, 3), np.nan), SUMS, people)


def needed(cells):
    """The least number of suppressed cells that protect some cells, numbered row by row from 1."""
    mask = np.zeros(6, dtype=bool)
    mask[[cell - 1 for cell in cells]] = True
    return smallest_pattern((2, 3), mask.reshape(2, 3))


def test_figure_1b():
    ranges = [interval.whole for interval in attack(figure_1a()).intervals]
    assert ranges == [(0, 55), (0, 105), (0, 55)] * 2
    assert ranges == [printed for row in FIGURE_1 for printed in row]


def test_no_cell_value_can_be_uniquely_determined():
    assert attack(figure_1a()).disclosed == ()


def test_one_primary_suppression_needs_three_more_cells_in_two_columns():
    assert all(needed([cell]) == 4 for cell in range(1, 7))


def test_two_primary_suppressions_need_at_most_four_cells_in_total():
    assert all(needed(pair) == 4 for pair in combinations(range(1, 7), 2))


def test_at_least_one_of_the_cells_is_between_0_and_5():
    assert all(found.cells for found in primary_sets(AttackedTables.of([figure_1a()]), rule=RULE).sets)


def allowed():
    """The sets that the rule and the sums allow, whatever was known of how few cells are suppressed."""
    return {
        found.numbers
        for found in primary_sets(AttackedTables.of([figure_1a()]), rule=RULE, minimal=False).sets
    }


def test_there_cannot_be_two_in_a_column_nor_four_nor_three_in_a_row():
    for cells in allowed():
        assert not any({column, column + 3} <= set(cells) for column in (1, 2, 3))
        assert len(cells) <= 3
        assert cells not in {(1, 2, 3), (4, 5, 6)}


def test_what_the_paper_says_leaves_six_sets_and_the_row_sums_leave_two_of_them():
    # One in each column and not all in a row: the paper names two of these and does not say why the others go.
    stated = {
        cells
        for cells in combinations(range(1, 7), 3)
        if len({(cell - 1) % 3 for cell in cells}) == 3 and len({(cell - 1) // 3 for cell in cells}) == 2
    }
    assert len(stated) == 6
    assert {(1, 3, 5), (2, 4, 6)} < stated
    # Two small cells in a row whose third is blonde or black leave it 95 or more, above the 55 of its column.
    assert stated & allowed() == {(1, 3, 5), (2, 4, 6)}


def test_the_only_possible_primary_suppressions():
    found = attack(figure_1a(), rule=RULE)
    assert [each.numbers for each in found.primary_sets[0].sets] == [(1, 3, 5), (2, 4, 6)]
    assert all(needed(each.numbers) == 6 for each in found.primary_sets[0].sets)


def test_the_sensitive_values_are_narrowed_and_not_revealed():
    # "Not only are the sensitive cell values revealed": to a range of six values, under either set.
    for found in primary_sets(AttackedTables.of([figure_1a()]), rule=RULE).sets:
        for cell in found.cells:
            assert (found.lower[cell], found.upper[cell]) == (0, 5)


def test_a_gene_more_likely_in_blue_eyed_blondes_makes_the_second_set_more_likely():
    people = np.full((2, 3), 120)
    prior = np.array([[0.6, 0.4, 0.4], [0.4, 0.4, 0.4]])
    first, second = attack(figure_1a(people), rule=RULE, probability=prior).primary_sets[0].sets
    even = attack(figure_1a(people), rule=RULE, probability=0.4).primary_sets[0].sets
    assert second.numbers == (2, 4, 6)
    assert second.probability > 0.99
    assert second.probability > even[1].probability
    assert first.probability + second.probability == pytest.approx(1)


def test_the_probability_of_each_set_is_exact_however_small_both_are():
    prior = np.array([[0.5, 0.3, 0.4], [0.2, 0.4, 0.3]])
    sets = attack(figure_1a(PEOPLE), rule=RULE, probability=prior).primary_sets[0].sets

    def mass(found):
        total = 0.0
        for first in range(56):
            for second in range(106):
                top = np.array([first, second, 110 - first - second])
                table = np.array([top, SUMS["hair",] - top])
                if ((found.lower <= table) & (table <= found.upper)).all():
                    total += float(binom.pmf(table, PEOPLE, prior).prod())
        return total

    masses = [mass(found) for found in sets]
    assert max(masses) < 1e-70
    assert [found.probability for found in sets] == pytest.approx(np.divide(masses, sum(masses)), rel=1e-6)


def test_the_breach_of_a_hundred_people():
    found = attack(figure_1a(PEOPLE), rule=RULE)
    first, second = found.primary_sets[0].sets
    # Under {2, 4, 6} at most 5 of the 105 are blue-eyed, so all of the 100 others have the gene.
    assert second.certain(PEOPLE) == {(1, 1): True}
    assert (second.lower[1, 1], second.upper[1, 1]) == (100, 100)
    assert (second.lower[0, 1], second.upper[0, 1]) == (5, 5)
    assert "If the sensitive cells are {2, 4, 6}, all 100 of not blue, brown have it." in found.verdict
    # The paper calls it clear; it is not where {1, 3, 5} is possible too, and the table alone does not say which.
    assert first.certain(PEOPLE) == {}
    assert found.certain == ()


def test_once_the_second_set_is_all_but_certain_so_are_they():
    prior = np.array([[0.5, 0.02, 0.5], [0.02, 0.5, 0.02]])
    found = attack(figure_1a(PEOPLE), rule=RULE, probability=prior)
    assert found.primary_sets[0].sets[1].probability > 1 - 1e-9
    assert found.beliefs[0].posterior[1, 1] == pytest.approx(1, abs=1e-8)
