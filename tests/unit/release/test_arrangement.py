"""A table as people read it: what goes down, what across, and where totals stand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.release.arrangement import ArrangedTable, Arrangement
from tabulary.release.publication import Publication
from tests.unit.release.publications import with_all_totals


def a_domain(*sizes):
    return Domain({f"a{n}": [f"{n}.{level}" for level in range(size)] for n, size in enumerate(sizes)})


def test_the_last_attribute_goes_across_as_it_was_asked_for():
    assert Arrangement.of(a_domain(2, 5)) == Arrangement((), ("a0",), ("a1",))
    assert Arrangement.of(a_domain(20, 8)) == Arrangement((), ("a0",), ("a1",))


def test_instead_of_many_levels_the_fewest_go_across():
    assert Arrangement.of(a_domain(2, 9)) == Arrangement((), ("a1",), ("a0",))
    assert Arrangement.of(a_domain(9, 9)) == Arrangement((), ("a0",), ("a1",))


def test_no_attribute_goes_across_where_all_have_more_levels_than_fit():
    assert Arrangement.of(a_domain(20, 30), most_columns=12) == Arrangement(("a0",), ("a1",), ())
    assert Arrangement.of(a_domain(20, 30)) == Arrangement((), ("a1",), ("a0",))


def test_one_attribute_goes_down_and_the_total_has_neither_rows_nor_columns():
    assert Arrangement.of(a_domain(3)) == Arrangement((), ("a0",), ())
    assert Arrangement.of(Domain({})) == Arrangement((), (), ())


def test_of_three_attributes_the_longer_one_goes_down_and_the_other_makes_blocks():
    assert Arrangement.of(a_domain(20, 3, 3)) == Arrangement(("a1",), ("a0",), ("a2",))
    assert Arrangement.of(a_domain(2, 9, 13)) == Arrangement(("a1",), ("a2",), ("a0",))


def test_of_more_attributes_several_make_blocks():
    assert Arrangement.of(a_domain(9, 2, 5, 4)) == Arrangement(("a1", "a2"), ("a0",), ("a3",))


sizes = st.lists(st.integers(1, 4), max_size=5)


@settings(max_examples=50)
@given(sizes)
def test_every_attribute_has_one_place(sizes):
    arrangement = Arrangement.of(a_domain(*sizes))
    assert sorted(arrangement.order) == sorted(a_domain(*sizes).attributes)


@settings(max_examples=50)
@given(sizes)
def test_every_cell_is_found_under_its_labels_and_totals_are_sums(sizes):
    domain = a_domain(*sizes)
    counts = np.arange(domain.size).reshape(domain.shape) + 1
    table = ArrangedTable.of(with_all_totals(Publication(domain, counts, None)))
    order = table.arrangement.order
    for place in np.ndindex(*table.counts.shape):
        taken = dict(zip(order, place, strict=True))
        own = tuple(
            slice(None) if table.has_totals(a) and taken[a] == len(domain.levels_of(a)) else taken[a]
            for a in domain.attributes
        )
        assert table.counts[place] == counts[own].sum()


def test_blocks_of_two_attributes_end_with_one_block_of_totals():
    table = ArrangedTable.of(with_all_totals(Publication(a_domain(2, 2, 4, 2), np.ones((2, 2, 4, 2)), None)))
    labels, places = zip(*table.blocks(), strict=True)
    assert places == ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2))
    assert labels[0] == "a0: 0.0, a1: 1.0"
    assert table.counts[2, 2, -1, -1] == 32


def test_a_single_level_has_no_total_beside_it():
    table = ArrangedTable.of(with_all_totals(Publication(a_domain(1, 3), np.ones((1, 3)), None)))
    assert not table.has_totals("a0")
    assert table.has_totals("a1")
    assert table.counts.shape == (1, 4)
