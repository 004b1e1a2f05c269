import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import InvalidDomain
from tabulary.release.cutting import cut
from tests.unit.release.releases import PEOPLE, a_release

TABLE = a_release(work="[sex age job]")["sex", "age", "job"]


@given(st.data())
def test_every_cell_of_a_part_is_that_cell_of_the_whole(data):
    order = data.draw(st.permutations(TABLE.margin))
    by = order[: data.draw(st.integers(0, 3))]
    where = {a: data.draw(st.sampled_from(PEOPLE.levels_of(a))) for a in order[len(by) :]}
    levels = {a: st.lists(st.sampled_from(PEOPLE.levels_of(a)), min_size=1, unique=True) for a in by}
    keep = {a: data.draw(levels[a]) for a in by if data.draw(st.booleans())}
    part = cut(TABLE, by, where, keep)
    assert part.margin == tuple(by)
    for cell in np.ndindex(part.shape):
        labels = {a: part.domain.levels_of(a)[i] for a, i in zip(by, cell, strict=True)} | where
        index = tuple(PEOPLE.code(a, labels[a]) for a in TABLE.margin)
        assert part.counts[cell] == TABLE.counts[index]
        assert part.standard_errors[cell] == TABLE.standard_errors[index]


def test_a_selection_keeps_which_cells_are_impossible():
    part = TABLE.select({"age": ["65+", "0-14"]})
    assert part.domain.impossible(part.margin).tolist() == [[[False, False], [False, True]]] * 2
    assert part.domain.levels_of("age") == ("65+", "0-14")


def test_a_selection_in_which_nothing_is_possible_is_zero_and_exact():
    part = TABLE.select({"age": ["0-14"], "job": ["paid, or self"]})
    assert not part.counts.any()
    assert not part.standard_errors.any()


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ({"region": ["N"]}, "no attribute 'region'"),
        ({"sex": ["X"]}, "no level 'X'"),
        ({"sex": []}, "attribute 'sex' has no level"),
        ({"sex": ["F", "F"]}, "the level 'F' twice"),
    ],
)
def test_a_selection_of_what_is_not_there_is_refused(levels, reason):
    with pytest.raises(InvalidDomain, match=reason):
        TABLE.select(levels)
