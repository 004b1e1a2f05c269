from itertools import combinations

import numpy as np
import pytest

from tabulary import infer
from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.core.table import Table
from tabulary.planning import StatedErrors, plan
from tabulary.release import ReleasedTable
from tabulary.release.limits import difference_width, disagreement, limits_of
from tests.releases import release_of
from tests.unit.release.releases import PEOPLE, a_release
from tests.unit.release.test_heat_map import table_of

SIZES = Domain({"a": "xyz", "b": "xy", "c": range(5)})


def a_table(mechanism, privacy, margin=("a", "b")):
    return a_release(SIZES, "[a b][b c][a c]", privacy=privacy, mechanism=mechanism, reconstruct="none")[
        margin
    ]


@pytest.mark.parametrize("privacy", [PureDP(1), ZCDP("1/8")])
@pytest.mark.parametrize("mechanism", ["cells", "margins", "efron-stein", "residual"])
def test_a_difference_is_noise_up_to_the_widest_interval_of_any_two_cells(mechanism, privacy):
    table = a_table(mechanism, privacy)
    cells = np.eye(table.domain.size).reshape(-1, *table.shape)
    spans = [infer.interval(table, one, minus=other) for one, other in combinations(cells, 2)]
    widest = max((each.upper - each.lower) / 2 for each in spans)
    # Whole draws leave a step between one half-width and the next, of which a continuous law knows nothing.
    assert 0.93 * widest <= difference_width(table) <= 1.02 * widest


def test_a_difference_of_whole_noise_is_exact():
    table = table_of([[5, 9], [1, 7]])
    noise = table.errors.noise
    reach = np.arange(-200, 201)
    law = np.convolve(noise.pmf(reach), noise.pmf(reach))
    offsets = np.arange(-400, 401)
    width = int(difference_width(table))
    assert law[np.abs(offsets) <= width].sum() >= 0.95 > law[np.abs(offsets) < width].sum()


def test_errors_that_are_known_cell_by_cell_give_a_limit_that_holds_whatever_they_share():
    table = Table(Domain({"a": "xyz"}), [9.0, 9.0, 9.0])
    errors = StatedErrors(np.array([1.0, 2.0, 3.0]), np.array([1.96, 3.92, 5.88]))
    # Two halves of 5 % at 2.2414 deviations each, of the two widest.
    assert difference_width(ReleasedTable(table, errors)) == pytest.approx(2.2414 * (2 + 3), rel=1e-4)


def test_one_uncertain_cell_has_nothing_to_differ_from():
    assert difference_width(a_release(work="[]", mechanism="margins", reconstruct="none")[()]) is None


def test_the_limits_of_a_table_follow_from_its_errors_alone():
    one, other = limits_of(table_of([[5, 9], [1, 7]])), limits_of(table_of([[500, 0], [-3, 8]]))
    assert one == other
    table = table_of([[5, 9], [1, 7]])
    assert one.zero == table.half_widths().max()
    assert one.missing == pytest.approx(4 * 0.05)
    assert one.all_at_once == table.half_widths(1 - 0.05 / 4).max()
    assert one.zero < one.all_at_once


def test_an_impossible_cell_is_not_among_those_that_may_miss():
    assert limits_of(a_release(mechanism="margins", reconstruct="none")["age", "job"]).cells == 5


def test_errors_that_are_simulated_say_nothing_of_all_cells_at_once():
    errors = StatedErrors(np.ones(2), np.full(2, 2.0))
    table = ReleasedTable(Table(Domain({"a": "xy"}), [9.0, 9.0]), errors)
    assert limits_of(table).all_at_once is None


def test_tables_that_were_measured_by_themselves_disagree_by_as_much_as_is_said():
    planned = plan(PEOPLE, "[sex][age]", privacy=PureDP(1), mechanism="margins", reconstruct="none")
    release = release_of(planned, {("sex",): [500, 500], ("age",): [300, 300, 380]})
    found = disagreement(tuple(release))
    assert (found.compared, found.agrees, found.largest, found.on) == (True, False, 20, ())
    planned = plan(PEOPLE, "[sex age][age job]", privacy=PureDP(1), mechanism="margins", reconstruct="none")
    counts = {("sex", "age"): [[10, 20, 30], [1, 2, 3]], ("age", "job"): [[11, 0], [2, 20], [30, 9]]}
    found = disagreement(tuple(release_of(planned, counts)))
    assert (found.largest, found.on) == (6, ())


def test_tables_of_one_measurement_agree():
    found = disagreement(tuple(a_release(work="[sex age][age job]", mechanism="cells", reconstruct="none")))
    assert found.compared
    assert found.agrees


def test_one_table_agrees_with_nothing():
    assert not disagreement([table_of([[1, 2], [3, 4]])]).compared
