"""A custodian's file: people, priors and counts by cell and kind, however the rows are given."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import (
    ConfidentialError,
    InvalidArgument,
    InvalidColumn,
    InvalidTable,
    UnknownLevel,
    UnreadableSource,
)
from tabulary.workflows.suppressing import (
    TableFile,
    fitted_prior,
    published_groups,
    read_cells,
    read_contributors,
    read_persons,
)

CELLS = "eye,hair,people,count\nblue,fair,20,6\nblue,dark,30,8\nbrown,fair,10,3\nbrown,dark,40,9\n"


@pytest.fixture
def source(tmp_path):
    """A file with this text, by eye and hair unless said otherwise."""

    def of(text, by=("eye", "hair"), levels=None, name="cells.csv"):
        (tmp_path / name).write_text(text)
        return TableFile(tmp_path / name, by, levels or {})

    return of


def test_cells_are_read_in_the_order_of_the_file(source):
    groups = read_cells(source(CELLS), people="people", count="count")
    assert groups.domain.levels == (("blue", "brown"), ("fair", "dark"))
    assert groups.people[..., 0].tolist() == [[20, 30], [10, 40]]
    assert groups.counts[..., 0].tolist() == [[6, 8], [3, 9]]
    assert groups.probability is None


def test_declared_levels_give_the_order_and_admit_no_others(source):
    turned = {"eye": ["brown", "blue"]}
    groups = read_cells(source(CELLS, levels=turned), people="people", count="count")
    assert groups.domain.levels_of("eye") == ("brown", "blue")
    assert groups.people[..., 0].tolist() == [[10, 40], [20, 30]]
    with pytest.raises(UnknownLevel, match="outside its declared levels"):
        read_cells(source(CELLS, levels={"eye": ["brown"]}), people="people", count="count")


def test_a_cell_has_a_row_for_each_kind_of_person(source):
    text = "eye,people,count,risk\nblue,20,6,0.4\nbrown,10,3,0.3\nblue,5,1,0.1\n"
    groups = read_cells(source(text, ("eye",)), people="people", count="count", probability="risk")
    assert groups.people.tolist() == [[5, 20], [10, 0]]
    assert groups.counts.tolist() == [[1, 6], [3, 0]]
    assert groups.probability[0].tolist() == [0.1, 0.4]
    assert groups.probability[1, 0] == 0.3


def test_what_is_not_asked_for_is_not_read(source):
    text = "eye,people,count\nblue,20,secret\nbrown,10,secret\n"
    groups = read_cells(source(text, ("eye",)), people="people", count=None)
    assert groups.counts is None
    assert groups.people[:, 0].tolist() == [20, 10]
    persons = "eye,ill\nblue,secret\nbrown,secret\n"
    assert read_persons(source(persons, ("eye",)), private=None).counts is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["5-9", "10-14", "80+"]),
            st.sampled_from("FM"),
            st.booleans(),
            st.sampled_from([0.1, 0.25]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_persons_are_counted_by_cell_and_kind(tmp_path_factory, persons):
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    age, sex, ill, risk = zip(*persons, strict=True)
    pq.write_table(pa.table({"age": age, "sex": sex, "ill": ill, "risk": risk}), path)
    groups = read_persons(TableFile(path, ("age", "sex"), {}), private="ill", probability="risk")
    # Sorted as a reader would, so that no order of records shows.
    assert list(groups.domain.levels_of("age")) == [a for a in ["5-9", "10-14", "80+"] if a in age]
    for index in np.ndindex(groups.people.shape):
        cell = index[:-1]
        labels = [levels[i] for levels, i in zip(groups.domain.levels, cell, strict=True)]
        here = [p for p in persons if list(p[:2]) == labels and p[3] == groups.probability[index]]
        if groups.people[index]:
            assert groups.people[index] == len(here)
            assert groups.counts[index] == sum(p[2] for p in here)
    assert groups.people.sum() == len(persons)
    assert groups.counts.sum() == sum(ill)


@pytest.mark.parametrize("column", [["1", "0"], ["true", "false"], ["True", "FALSE"]])
def test_a_private_value_may_be_written_as_a_number_or_a_word(source, column):
    yes, no = column
    groups = read_persons(source(f"eye,ill\nblue,{yes}\nblue,{no}\n", ("eye",)), private="ill")
    assert groups.counts[0, 0] == 1


def test_contributors_keep_their_amounts_and_their_cells(source):
    domain, given = read_contributors(
        source("branch,sales\ntrade,7\nmining,70\ntrade,2.5\n", ("branch",)), value="sales"
    )
    assert domain.levels == (("mining", "trade"),)
    assert given.total.tolist() == [70, 9.5]
    assert given.largest(1)[..., 0].tolist() == [70, 7]


def test_the_prior_is_fitted_from_past_tables_without_what_they_suppressed(tmp_path):
    for year, cell in (("2024", "6"), ("2025", "[c]")):
        (tmp_path / f"{year}.csv").write_text(f"eye,count,people\nblue,{cell},20\nbrown,40,100\n")
    domain = tb.Domain({"eye": ["blue", "brown"]})
    prior = fitted_prior([tmp_path / "2024.csv", tmp_path / "2025.csv"], domain)
    from tabulary.suppress.simulatable_method.priors import fit_prior

    assert prior.tolist() == fit_prior([20, 200], [6, 80]).tolist()
    with pytest.raises(InvalidTable, match="other attributes or levels"):
        fitted_prior([tmp_path / "2024.csv"], tb.Domain({"eye": ["blue", "green"]}))
    (tmp_path / "2026.csv").write_text("eye,count\nblue,6\nbrown,40\n")
    with pytest.raises(InvalidTable, match="no numbers of people"):
        fitted_prior([tmp_path / "2026.csv"], domain)


def test_a_published_table_brings_its_people_and_its_prior():
    groups = published_groups(tb.datasets.describe("hair-eye-gene"))
    assert groups.people[0, :, 0].tolist() == [200, 80, 100]
    assert groups.probability[..., 0].tolist() == [[0.5, 0.4, 0.3]] * 3
    with pytest.raises(InvalidArgument, match="rochdale"):
        published_groups(tb.datasets.describe("rochdale"))


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (("blue,fair,20,6", "blue,fair,20,6777.5"), InvalidColumn, "negative, not whole or too large"),
        (("blue,fair,20,6", "blue,fair,20,-6777"), InvalidColumn, "negative, not whole or too large"),
        (("blue,fair,20,6", "blue,fair,20,1e300"), InvalidColumn, "negative, not whole or too large"),
        (
            ("blue,fair,20,6", "blue,fair,20,6777nan"),
            InvalidColumn,
            "'count' of 'cells.csv' holds no finite number",
        ),
        (("blue,fair,20,6", "blue,fair,20,"), InvalidColumn, "'count' of 'cells.csv' holds no finite number"),
        (("blue,fair,20,6", ",fair,20,6777"), InvalidColumn, "'eye' of 'cells.csv' holds nothing"),
        (("blue,fair,20,6\n", ""), InvalidTable, "not every combination of levels"),
        (("blue,dark", "blue,fair"), InvalidTable, "a cell has two rows"),
        (("count\n", "6777\n"), InvalidColumn, "no column 'count'"),
        (("people,count", "count,count"), InvalidColumn, "no column 'people'"),
        (("people,count", "people,count,count"), InvalidColumn, "more than one column 'count'"),
        (("blue,fair,20,6", "blue,fair,20,6,6777"), UnreadableSource, "more or fewer fields"),
    ],
)
def test_a_file_that_is_no_table_is_refused_without_a_value_from_it(source, change, error, reason):
    with pytest.raises(error, match=reason) as caught:
        read_cells(source(CELLS.replace(*change)), people="people", count="count")
    assert "6777" not in str(caught.value)
    assert "Nothing was" in str(caught.value)


def test_an_empty_file_is_refused(source):
    with pytest.raises(UnreadableSource, match="no rows"):
        read_cells(source("eye,hair,people,count\n"), people="people", count="count")
    with pytest.raises(UnreadableSource, match="empty"):
        read_cells(source(""), people="people", count="count")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((value, "other than 0, 1, true or false") for value in ("2", "yes", "0.5", "-1")),
        ("", "holds nothing in at least one row"),
    ],
)
def test_a_private_value_that_is_neither_yes_nor_no_is_refused(source, value, reason):
    with pytest.raises(ConfidentialError, match=reason) as caught:
        read_persons(source(f"eye,ill\nblue,1\nblue,{value}\n", ("eye",)), private="ill")
    assert "'ill'" in str(caught.value)


def test_attributes_are_named_once_and_declared_levels_belong_to_one(source):
    for by, levels in (((), {}), (("eye", "eye"), {}), (("eye",), {"hair": ["fair"]})):
        with pytest.raises(InvalidArgument, match="Nothing was read"):
            source(CELLS, by, levels)
    with pytest.raises(InvalidArgument, match="two purposes"):
        read_cells(source(CELLS), people="people", count="people")


def test_neither_source_nor_groups_show_what_they_hold(source):
    groups = read_cells(source(CELLS), people="people", count="count")
    assert "[" not in repr(groups)
