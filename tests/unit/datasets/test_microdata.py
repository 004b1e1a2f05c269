import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.datasets import MAX_PEOPLE, microdata, people, people_domain
from tabulary.datasets.microdata import alias_table
from tabulary.datasets.population import joint_probability
from tabulary.errors import InvalidArgument


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(microdata, "CHUNK", 1000)


def cells(table):
    """The flat index in the full table of every record."""
    domain = people_domain()
    codes = []
    for attribute, levels in zip(domain.attributes, domain.levels, strict=True):
        column = table[attribute].combine_chunks()
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        place = np.array([levels.index(label) for label in column.dictionary.to_pylist()])
        codes.append(place[column.indices.to_numpy()])
    return np.ravel_multi_index(codes, domain.shape)


def test_records_have_the_attributes_of_the_domain_as_dictionary_encoded_text():
    table = people(100)
    assert table.num_rows == 100
    assert tuple(table.column_names) == people_domain().attributes
    assert all(field.type == pa.dictionary(pa.int8(), pa.string()) for field in table.schema)
    assert all(table[name].null_count == 0 for name in table.column_names)


def test_the_same_number_and_seed_give_the_same_records(small_chunks):
    assert people(2500, seed=3).equals(people(2500, seed=3))


def test_another_seed_gives_other_records():
    assert not people(1000, seed=3).equals(people(1000, seed=4))


def test_no_record_stands_in_a_structural_zero():
    impossible = people_domain().impossible(people_domain().attributes).ravel()
    assert not impossible[cells(people(300_000, seed=1))].any()


def chi_squared_z(drawn, probability):
    """Pearson's statistic on the pooled cells, in standard deviations from its mean."""
    expected = drawn.size * probability
    group = np.minimum(np.cumsum(expected) // 1000, drawn.size // 1000 - 1)
    pool = np.unique(group, return_inverse=True)[1]
    seen, meant = np.bincount(pool[drawn]), np.bincount(pool, weights=expected)
    freedom = len(meant) - 1
    return (((seen - meant) ** 2 / meant).sum() - freedom) / math.sqrt(2 * freedom)


def test_records_follow_the_population_and_not_a_slightly_different_one():
    probability = joint_probability().ravel()
    drawn = cells(people(400_000, seed=11))
    assert abs(chi_squared_z(drawn, probability)) < 5
    sabotaged = joint_probability()
    sabotaged[:, 0] *= 1.05
    sabotaged = sabotaged.ravel() / sabotaged.sum()
    assert chi_squared_z(drawn, sabotaged) > 5


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda p: sum(p) > 1e-3))
def test_an_alias_table_gives_every_cell_its_probability(weights):
    probability = np.array(weights) / sum(weights)
    keep, other = alias_table(probability)
    assert ((keep >= 0) & (keep <= 1)).all()
    implied = (keep + np.bincount(other, weights=1 - keep, minlength=len(keep))) / len(keep)
    np.testing.assert_allclose(implied, probability, atol=1e-12)


def test_the_alias_table_of_the_population_gives_every_cell_its_probability():
    joint = joint_probability().ravel()
    probability = joint[joint > 0]
    keep, other = alias_table(probability)
    implied = (keep + np.bincount(other, weights=1 - keep, minlength=len(keep))) / len(keep)
    np.testing.assert_allclose(implied, probability, atol=1e-13)


def test_a_file_holds_the_same_records_as_memory_in_row_groups(tmp_path, small_chunks):
    path = people(3500, seed=5, path=tmp_path / "people.parquet")
    assert path == tmp_path / "people.parquet"
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [
        1000,
        1000,
        1000,
        500,
    ]
    assert np.array_equal(cells(pq.read_table(path)), cells(people(3500, seed=5)))


def test_a_path_may_be_text(tmp_path):
    assert people(10, path=str(tmp_path / "people.parquet")).is_file()


def test_an_existing_file_is_left_as_it_is(tmp_path):
    path = tmp_path / "people.parquet"
    path.write_text("mine")
    with pytest.raises(InvalidArgument, match="already exists"):
        people(10, path=path)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_while_writing_is_left_as_it_is(tmp_path):
    path = tmp_path / "people.parquet"
    with pytest.raises(InvalidArgument, match="already exists"):
        people(10, path=path, progress=lambda *_: path.write_text("mine"))
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_file_never_appears(tmp_path, small_chunks):
    def interrupt(stage, done, total):
        if done >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        people(5000, path=tmp_path / "people.parquet", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="no folder"):
        people(10, path=tmp_path / "nowhere" / "people.parquet")


@pytest.mark.parametrize("n", [0, -1, MAX_PEOPLE + 1, 1.5, "10", None, True])
def test_a_number_of_records_that_cannot_be_is_refused(n, tmp_path):
    with pytest.raises(InvalidArgument, match="from 1 to 100,000,000"):
        people(n, path=tmp_path / "people.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "x", None, False])
def test_a_seed_that_cannot_be_is_refused(seed):
    with pytest.raises(InvalidArgument, match="the seed must be a whole number"):
        people(10, seed=seed)


def test_progress_is_told_after_every_chunk(small_chunks):
    told = []
    people(2500, progress=lambda *news: told.append(news))
    assert told == [("records", 1000, 2500), ("records", 2000, 2500), ("records", 2500, 2500)]
