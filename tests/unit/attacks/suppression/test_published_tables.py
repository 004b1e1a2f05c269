"""Several tables as one system of sums."""

import numpy as np
import pytest

from tabulary.attacks.suppression import published_tables
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable, TooManyCells

NAN = np.nan


def table(levels, **options):
    domain = Domain(levels)
    return SuppressedTable(domain, np.full(domain.shape, NAN), **options)


def test_a_table_alone_has_its_cells_for_atoms():
    system = AttackedTables.of([table({"a": "xy", "b": "uvw"})])
    assert system.atoms == 6
    assert (system.unknown.matrix.toarray() == np.eye(6)).all()


def test_the_order_of_attributes_does_not_matter():
    counts = np.arange(6.0).reshape(2, 3)
    one = SuppressedTable(Domain({"a": "xy", "b": "uvw"}), counts)
    other = SuppressedTable(Domain({"b": "uvw", "a": "xy"}), counts.T)
    system = AttackedTables.of([one, other])
    assert system.atoms == 6
    sums = {}
    for row, place, value in zip(
        system.known.matrix.toarray(), system.known.places, system.known.values, strict=True
    ):
        levels = frozenset(zip(place.attributes, place.levels, strict=True))
        assert sums.setdefault(levels, (row.tolist(), value)) == (row.tolist(), value)
    assert len(sums) == 6


def test_nor_does_the_order_of_levels():
    one = SuppressedTable(Domain({"a": "xyz"}), [1, 2, 3])
    other = SuppressedTable(Domain({"a": "zxy"}), [3, 1, 2])
    matrix = AttackedTables.of([one, other]).known.matrix.toarray()
    assert (matrix[[3, 4, 5]] == matrix[[2, 0, 1]]).all()


def test_tables_in_a_row_need_no_table_of_everything():
    tables = [table({f"a{i}": range(9), f"a{i + 1}": range(9)}) for i in range(8)]
    system = AttackedTables.of(tables)
    assert system.atoms == 8 * 81
    # Each agrees with the next on the attribute between them.
    assert system.links.shape[0] == 7 * 9


def test_tables_that_share_no_attribute_share_the_total():
    system = AttackedTables.of([table({"a": "xy"}), table({"b": "uvw"})])
    assert system.links.toarray().tolist() in ([[1, 1, -1, -1, -1]], [[-1, -1, 1, 1, 1]])


def test_tables_in_a_circle_are_sums_of_one_table():
    tables = [table({"a": range(2), "b": range(3), "x": range(9)}), table({"b": range(3), "c": range(4)})]
    tables.append(table({"c": range(4), "a": range(2)}))
    system = AttackedTables.of(tables)
    # The circle a, b, c, and beside it the table with an attribute of its own.
    assert system.atoms == 2 * 3 * 4 + 2 * 3 * 9
    assert system.links.shape[0] == 2 * 3


def test_levels_that_no_table_tells_apart_are_one_atom():
    parts = {"age": {"young": ["0-4", "5-9", "10-17"], "child": ["0-4", "5-9"], "17+": ["10-17", "18+"]}}
    tables = [table({"age": ["young", "18+"]}), table({"age": ["child", "17+"]})]
    assert AttackedTables.of(tables, parts).atoms == 3


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({"sex": {"young": ["a", "b"]}}, "attribute 'sex'"),
        ({"age": {"middle": ["a", "b"]}}, "level 'middle'"),
        ({"age": {"young": ["a", "a"]}}, "overlap"),
        ({"age": {"young": []}}, "overlap, or there are none"),
        ({"age": {"young": "ab"}}, "list of levels"),
        ({"age": {"young": ["a", "young"]}}, "part of itself"),
        ({"age": {"young": ["a"], "a": ["young"]}}, "part of itself"),
        ({"age": {"young": ["a", "old"]}}, "overlap in 'old'"),
    ],
)
def test_parts_that_cannot_be_are_refused(parts, wrong):
    with pytest.raises(InvalidTable, match=wrong):
        AttackedTables.of([table({"age": ["young", "old"]})], parts)


def test_tables_whose_levels_have_nothing_to_do_with_each_other_are_refused():
    with pytest.raises(InvalidTable, match="tables 1 and 2 divide attribute 'sex' into different levels"):
        AttackedTables.of([table({"sex": ["F", "M"]}), table({"sex": ["women", "men"]})])


def test_counts_and_amounts_are_not_added_up():
    with pytest.raises(InvalidTable, match="counts and others hold amounts"):
        AttackedTables.of([table({"a": "xy"}), table({"a": "xy"}, whole=False)])


def test_no_table_is_refused():
    with pytest.raises(InvalidTable, match="no table"):
        AttackedTables.of([])


def test_too_many_atoms_are_refused_with_their_number(monkeypatch):
    monkeypatch.setattr(published_tables, "MAX_ATOMS", 100)
    with pytest.raises(TooManyCells, match=r"121 unknown cells.*'a', 'b'"):
        AttackedTables.of([table({"a": range(11), "b": range(11)})])
