"""Advice on binning: what it weighs, what it merges, and that a suppressor would follow it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidPrivacy
from tabulary.suppress.simulatable_method.advice import advice
from tabulary.suppress.simulatable_method.theorems import unsafe_chance
from tabulary.table_samplers.people import People

AGES = Domain({"age": ["0-14", "15-64", "65-79", "80+"], "sex": ["F", "M"]})


def aged(number, probability=0.4):
    return People.of(AGES, number, probability)


def test_each_cell_has_the_exact_chance_of_its_own_people():
    people = aged([[150, 160], [500, 480], [90, 70], [25, 10]], [[0.4, 0.3]] * 4)
    found = advice(people, 0.5, 0.2).given
    for index in np.ndindex(people.shape):
        count_law = people.count_law(tuple((level, level + 1) for level in index))
        assert found.unsafe[index] == unsafe_chance(count_law, epsilon=0.5)
    assert found.chance == pytest.approx(np.prod(1 - found.unsafe))
    assert found.unsafe_cells == pytest.approx(found.unsafe.sum())
    assert found.parts == 5 * 3


def test_a_table_with_enough_people_is_left_as_it_is():
    found = advice(aged(np.full((4, 2), 200)), 0.5, 0.2)
    assert found.merged is found.given
    assert not found.too_few.any()
    assert str(found).endswith("Nothing needs to be merged.")


def test_the_cells_with_too_few_people_are_named_and_their_level_is_merged_with_a_neighbour():
    found = advice(aged([[150, 160], [500, 480], [90, 70], [25, 10]]), 0.5, 0.2)
    assert np.argwhere(found.too_few).tolist() == [[3, 0], [3, 1]]
    assert found.merged.groups == (((0, 1), (1, 2), (2, 4)), ((0, 1), (1, 2)))
    assert found.levels == {"age": ["0-14", "15-64", "65+"], "sex": ["F", "M"]}
    assert "Merge 'age' to '0-14', '15-64', '65+'." in str(found)


def test_a_sparse_column_is_merged_rather_than_many_rows():
    found = advice(aged([[300, 9], [300, 8], [300, 9], [300, 8]]), 0.5, 0.2)
    assert found.merged.groups == (((0, 1), (1, 2), (2, 3), (3, 4)), ((0, 2),))


def test_where_even_one_cell_is_too_few_no_binning_is_safe():
    found = advice(aged(np.ones((4, 2), dtype=int)), 0.5, 0.2)
    assert found.merged is None
    assert found.levels is None
    assert "No binning is safe" in str(found)


def test_a_certain_chance_is_not_claimed_where_there_is_a_doubt():
    assert "99.99 %" in str(advice(aged(np.full((4, 2), 200)), 0.5, 0.2))


@st.composite
def populations(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    kinds = draw(st.integers(1, 2))
    number = np.array(
        draw(
            st.lists(
                st.integers(0, 120),
                min_size=int(np.prod(shape)) * kinds,
                max_size=int(np.prod(shape)) * kinds,
            )
        )
    ).reshape(*shape, kinds)
    priors = [draw(st.sampled_from([0.1, 0.3, 0.5, 0.8])) for _ in range(kinds)]
    return People.of(Domain({f"x{axis}": range(size) for axis, size in enumerate(shape)}), number, priors)


@settings(max_examples=60)
@given(populations(), st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0.05, 0.2]))
def test_merged_groups_cover_all_levels_in_order_and_are_safe_together(people, epsilon, delta):
    found = advice(people, epsilon, delta)
    if found.merged is None:
        everybody = people.count_law(tuple((0, levels) for levels in people.shape))
        assert unsafe_chance(everybody, epsilon=epsilon) > delta / 2 ** len(people.shape)
        return
    for levels, of_axis in zip(people.shape, found.merged.groups, strict=True):
        assert [level for first, last in of_axis for level in range(first, last)] == list(range(levels))
    assert found.merged.unsafe.shape == tuple(map(len, found.merged.groups))
    for index in np.ndindex(found.merged.unsafe.shape):
        block = tuple(of_axis[group] for of_axis, group in zip(found.merged.groups, index, strict=True))
        assert found.merged.unsafe[index] == unsafe_chance(people.count_law(block), epsilon=epsilon)
    assert found.merged.chance >= 1 - delta
    assert (found.merged.unsafe <= delta / found.merged.parts).all()


def test_progress_is_told_from_the_first_cell_to_the_last_merge():
    told = []
    advice(
        aged([[30, 20], [20, 25], [20, 20], [25, 10]]),
        0.5,
        0.2,
        progress=lambda what, done, of: told.append((what, done, of)),
    )
    assert told[0] == ("weighing cells", 0, 8)
    assert told[-1] == ("merging levels", 4, 4)
    assert all(0 <= done <= of for _, done, of in told)


@pytest.mark.parametrize(
    ("epsilon", "delta", "reason"),
    [
        (0, 0.2, "epsilon must be above 0"),
        (-1, 0.2, "epsilon must be above 0"),
        (0.5, 0, "delta is a probability strictly between 0 and 1"),
        (0.5, 1, "delta is a probability strictly between 0 and 1"),
        ("much", 0.2, "epsilon must be a whole number"),
    ],
)
def test_terms_that_cannot_be_are_refused(epsilon, delta, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        advice(aged(np.full((4, 2), 200)), epsilon, delta)
